"""The log: its tables and figures are those of the records, and its prose has no number that is in no table."""

from __future__ import annotations

import json
import re

import claims
import figures
import paper_panels as panels
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


# Three of each paper, by the first word of their names.
PAPERS = ("fw", "sdcp", "crbm", "bslm", "tap")


@pytest.mark.parametrize("name", panels.FIGURES)
def test_a_figure_shows_what_the_records_hold(name: str) -> None:
    assert figures.is_current(name), f"{name}.png is older than its record; run training/studies/figures.py"
    assert (figures.FOLDER / f"{name}.png").stat().st_size < 60_000


def test_three_of_every_paper_are_in_the_log() -> None:
    shown = re.findall(r"\]\(figures/([\w-]+)\.png\)", (TRAINING / "log.md").read_text())
    assert sorted(shown) == sorted(panels.FIGURES)
    assert all(sum(name.startswith(f"{paper}-") for name in shown) >= 3 for paper in PAPERS)
    assert {path.stem for path in figures.FOLDER.iterdir()} == set(panels.FIGURES)


def test_what_is_drawn_follows_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    before = figures.digest(panels.crbm_tables())
    changed = claims.record("crbm") | {
        "cells": [
            one | {"everywhere": [one["everywhere"][0] + 0.1 * (one["method"] == "bp"), 0]}
            for one in claims.record("crbm")["cells"]
        ]
    }
    monkeypatch.setattr(panels, "record", {"crbm": changed}.__getitem__)
    after = panels.crbm_tables()
    assert figures.digest(after) != before
    assert not figures.is_current("crbm-tables")
    (here, paper) = after[0].lines
    assert here.y[5] == pytest.approx(
        claims.entry("crbm", "cells", method="bp", task="mnist-flip10")["everywhere"][0] + 0.1, rel=1e-5
    )
    assert paper.y[5] == 1.688
