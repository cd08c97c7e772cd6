"""The log: its tables are those of the records, and its prose has no figure that is in no table."""

from __future__ import annotations

import json
import re

import pytest
import tables
from harness import DOCUMENTS, TRAINING, checksum, section
from test_claims import MEASURED

from restore import zoo

LOG = TRAINING / "log.md"
FOUND = tables.tables()


@pytest.mark.parametrize("mark", FOUND)
def test_tables_are_those_of_the_records(mark: str) -> None:
    text = "\n".join((TRAINING / name).read_text() for name in DOCUMENTS)
    assert text.count(f"<!-- {mark}: begin -->") == 1
    assert section(text, mark, FOUND[mark]) == text


def test_every_table_with_a_mark_has_a_record() -> None:
    text = "".join((TRAINING / name).read_text() for name in DOCUMENTS)
    assert set(re.findall(r"<!-- ([\w-]+): begin -->", text)) == set(FOUND)


def test_prose_has_no_figure_of_its_own() -> None:
    """A measured decimal in the prose stands in a table of the log, or in the claims."""
    text = LOG.read_text()
    told = set(MEASURED.findall("\n".join(FOUND.values()) + (TRAINING / "claims.md").read_text()))
    prose = re.sub(r"<!-- ([\w-]+): begin -->.*?<!-- \1: end -->", "", text, flags=re.DOTALL)
    # Numbers of sections, and of equations.
    prose = re.sub(r"\(?(?:sec|eq|eqs)\. [\w.]+(?: and [\d.]+)?", "", prose)
    assert set(MEASURED.findall(prose)) <= told


def test_every_figure_is_there() -> None:
    for name in DOCUMENTS:
        for path in re.findall(r"\]\(([\w/.-]+\.png)\)", (TRAINING / name).read_text()):
            assert (TRAINING / name).parent.joinpath(path).is_file(), path


# --- records and priors ---


@pytest.mark.parametrize("name", ["fw-mnist", "cd-fw-mnist", "fw-caltech"])
def test_published_priors_need_not_be_measured_again(name: str) -> None:
    folder = zoo.published_folder() / name
    known = json.loads((TRAINING / "studies" / "records" / "growth.json").read_text())["points"]
    assert (zoo.describe(folder).recipe, checksum(folder)) in [(each["recipe"], each["weights"]) for each in known]
