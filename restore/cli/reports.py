"""What commands on many images report: faults and notes on stderr, JSON on stdout."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from restore.console import say
from restore.errors import PartialFailure, RestoreError, shown
from restore.images.outputs import STDIO
from restore.images.pages import page_name
from restore.inference.damage import Damage, Rates
from restore.marginals import Status

if TYPE_CHECKING:
    from restore.cli.files import Job, Sheet


@dataclass
class Failures:
    """Faults of images: that of a single one ends the command; of many, each is reported and counted.

    Attributes:
        json: report them as JSON too.
        many: several images were named.
        count: of faults so far.
    """

    json: bool
    many: bool
    count: int = 0

    def add(self, source: str | Path, fault: RestoreError) -> None:
        if self.json:
            print_json({"input": shown(source), "error": str(fault)})
        if not self.many:
            raise fault
        self.count += 1
        say(f"restore: {fault}")

    def of(self, total: int) -> PartialFailure:
        """The error that ends the command."""
        return PartialFailure(f"{self.count} of {total} images failed; the messages above say why")


def print_json(record: dict[str, Any]) -> None:
    print(json.dumps(record), flush=True)


def record_of(sheet: Sheet, damage: Damage) -> dict[str, Any]:
    """What became of it, for reports and --json."""
    picture, job, answer = sheet.picture, sheet.job, sheet.answer
    assert picture is not None and answer is not None
    notes = [*picture.notes, *(sheet.mask.notes if sheet.mask else ()), *answer.notes]
    if answer.refused:
        notes[-1] = f"is left as it is: {notes[-1]}"
    found = answer.level
    known = damage if found is None else replace(damage, **{found.name: found.value})
    return {
        "input": shown(job.source),
        "page": None if sheet.page is None else sheet.page + 1,
        "output": shown(job.target),
        "mask": None if job.mask is None else shown(job.mask),
        "model": answer.model or None,
        "engine": answer.engine or None,
        "status": Status(answer.status).name.lower(),
        "iterations": answer.iterations,
        "residual": answer.residual if isfinite(answer.residual) else None,
        "p": known.p,
        "sigma": known.sigma,
        "found": None if found is None else found.name,
        "bits": answer.bits,
        "changed": answer.changed,
        "notes": [note for note in notes if found is None or note != found.sentence],
    }


def tell(jobs: Sequence[Job], damage: Damage) -> None:
    """Tell what was done: the notes on each picture, a note on several of them once, and what all have in common."""
    records = [(job, record) for job in jobs for record in job.records]
    counted = Counter(note for _, record in records for note in record["notes"])
    for job, record in records:
        pages = len(job.records)
        name = shown(job.name) if pages == 1 else page_name(shown(job.name), record["page"] - 1, pages)
        for note in record["notes"]:
            if counted[note] == 1:
                say(f"{name}: {note}")
    for note, count in counted.items():
        if count > 1:
            say(f"{count} of {len(records)} images: {note}")
    done = [record for _, record in records if not Status[record["status"].upper()].refused]
    if not done:
        return
    models = [f"{name} ({count})" for name, count in Counter(record["model"] for record in done).most_common()]
    parts = [f"restored with {', '.join(models) if len(models) > 1 else done[0]['model']}"]
    for kind in ("p", "sigma"):
        given: Any = getattr(damage, kind)
        found = [float(np.mean(record[kind])) for record in done if record["found"] == kind]
        if found:
            span = f", {min(found):.2g} to {max(found):.2g}" if len(found) > 1 else ""
            parts.append(f"{kind} = {np.median(found):.2g} (found{span})")
        elif given is not None:
            parts.append(f"{kind} = {', '.join(map(str, given)) if isinstance(given, Rates) else given}")
    changed = [record["changed"] for record in done if record["changed"] is not None]
    parts += [f"{np.mean(changed):.2%} of pixels changed"] if changed else []
    who = name if len(records) == 1 else f"{len(done)} of {len(records)} images"
    target = "stdout" if jobs[0].target == STDIO else shown(jobs[0].target)
    say(f"{who}: {', '.join(parts)}" + (f": {target}" if len(jobs) == 1 else ""))
