"""The figures of the papers: all are shown in the log, and what each shows is what the records hold today."""

from __future__ import annotations

import re

import claims
import figures
import paper_panels as panels
import pytest
from harness import TRAINING

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
