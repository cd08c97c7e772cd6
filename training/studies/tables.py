"""Write all tables of the documents anew from the records, without measuring anything.

Where a figure shows the same, the documents have no table; the study prints it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import bslm
import bslm_paper
import crbm
import crbm_inference
import dcp_fall
import dcp_small
import deep_joint
import denoising
import dynamics_causes
import dynamics_measure
import dynamics_show
import grey
import growth
import likelihoods
from harness import DOCUMENTS, TRAINING, section
from mean_likelihoods import Likelihood

from restore.files import write_atomically
from restore.zoo.structure import structure

RECORDS = TRAINING / "studies" / "records"


def tables() -> dict[str, str]:
    """The tables of all records, by the names of their marks."""
    return (
        _of("bslm", _bslm)
        | _of("bslm-paper", _bslm_paper)
        | _of("crbm", _crbm)
        | _of("crbm-inference", _crbm_inference)
        | _of("dcp", _dcp)
        | _of("dcp-fall", lambda found: {"dcp-fall": dcp_fall.as_table(_all(dcp_fall.Moment, found["moments"]))})
        | _of("deep-joint", lambda found: {"deep-joint": deep_joint.as_table(_all(deep_joint.Deep, found["machines"]))})
        | _of("denoising", lambda found: {"denoising": denoising.as_tables(_all(denoising.Curve, found["curves"]))})
        | _of("dynamics", _dynamics)
        | _of("dynamics-causes", _dynamics_causes)
        | _of("grey", _grey)
        | _of("growth", _growth)
        | _of("likelihoods", _likelihoods)
    )


def _of(name: str, make: Any) -> dict[str, str]:
    path = RECORDS / f"{name}.json"
    found: dict[str, str] = make(json.loads(path.read_text("utf-8"))) if path.exists() else {}
    return found


def _all(kind: type, entries: Any) -> list[Any]:
    return [structure(kind, each) for each in entries]


def _bslm(found: Any) -> dict[str, str]:
    return {"bslm-errors": bslm.errors_table(_all(bslm.Errors, found["errors"]))}


def _bslm_paper(found: Any) -> dict[str, str]:
    ascents, fits = _all(bslm_paper.Ascent, found["ascents"]), _all(bslm_paper.Fits, found["fits"])
    instances = _all(bslm_paper.Instance, found["instances"])
    return {
        "bslm-paper-ascents": bslm_paper.ascents_table(ascents),
        "bslm-paper-instances": bslm_paper.instances_table(instances),
        "bslm-paper-fits": bslm_paper.fits_table(fits),
    }


def _crbm(found: Any) -> dict[str, str]:
    return {"crbm": crbm.as_tables(_all(crbm.Cell, found["cells"]))}


def _crbm_inference(found: Any) -> dict[str, str]:
    courses, answers = _all(crbm_inference.Course, found["courses"]), _all(crbm_inference.Answer, found["answers"])
    return crbm_inference.as_tables(courses, answers)


def _dcp(found: Any) -> dict[str, str]:
    trials, exact = _all(dcp_small.Trials, found["small"]), _all(dcp_small.Trials, found["exact"])
    return {
        "dcp-small": dcp_small.tables(trials),
        "dcp-exact": dcp_small.tables(exact, dcp_small.EXACTLY),
    }


def _dynamics(found: Any) -> dict[str, str]:
    return {"dynamics": dynamics_show.as_table(_all(dynamics_measure.Moment, found["moments"]))}


def _dynamics_causes(found: Any) -> dict[str, str]:
    return {
        "dynamics-causes": dynamics_causes.as_table(_all(dynamics_causes.Sought, found["sought"])),
        "dynamics-counted": dynamics_causes.counts_table(_all(dynamics_causes.Counted, found["counted"])),
    }


def _grey(found: Any) -> dict[str, str]:
    entries = _all(grey.Entry, found["entries"])
    return {f"grey-{data}": grey.as_table(entries, data) for data in grey.SETS}


def _growth(found: Any) -> dict[str, str]:
    return {"growth": growth.as_tables(_all(growth.Point, found["points"]))}


def _likelihoods(found: Any) -> dict[str, str]:
    def measured(entry: Any) -> likelihoods.Measured:
        kinds = {}
        for kind, values in entry["likelihoods"].items():
            own = {key: value for key, value in values.items() if key in Likelihood.__dataclass_fields__}
            details = tuple((key, value) for key, value in values.items() if key not in own)
            kinds[kind] = Likelihood(**own, details=details)
        return likelihoods.Measured(entry["name"], entry["hidden"], kinds)

    return {"likelihoods": likelihoods.priors_table([measured(entry) for entry in found["priors"]])}


def rewrite(document: Path) -> None:
    """Put the tables of all records between their marks in a document."""
    text = document.read_text(encoding="utf-8")
    for mark, table in tables().items():
        text = section(text, mark, table)
    write_atomically(document, text.encode())


if __name__ == "__main__":
    for each in DOCUMENTS:
        rewrite(TRAINING / each)
