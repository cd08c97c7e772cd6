"""The figures of the papers: all are shown in the log, and what each shows is what the records hold today."""

from __future__ import annotations

import re
from io import BytesIO
from typing import Any

import claims
import figures
import paper_panels as panels
import pytest
from harness import TRAINING
from PIL import Image

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


@pytest.mark.parametrize("name", ["bslm-errors", "sdcp-fig1"])
def test_every_point_of_a_panel_is_drawn(name: str) -> None:
    pytest.importorskip("matplotlib")
    found = panels.FIGURES[name]()
    for axes, panel in zip(figures.figure_of(found).axes, found, strict=True):
        drawn: dict[str, Any] = {str(one.get_label()): one for one in axes.get_lines()}
        assert set(drawn) == {one.label for one in panel.lines} | set(panel.across) | set(panel.upright)
        for one in panel.lines:
            assert list(drawn[one.label].get_xdata()) == list(one.x)
            assert list(drawn[one.label].get_ydata()) == list(one.y)
        assert axes.get_xlabel() and axes.get_ylabel() and axes.get_title()


def test_a_figure_carries_the_digest_of_what_it_shows() -> None:
    pytest.importorskip("matplotlib")
    found = panels.bslm_errors()
    image = Image.open(BytesIO(figures.as_png(found)))
    assert image.info[figures.DRAWN] == figures.digest(found) != figures.digest(panels.bslm_sweeps())


def test_long_curves_are_thinned_and_keep_their_ends() -> None:
    found = panels.line("all", range(1000), [value / 3 for value in range(1000)])
    assert len(found.x) <= panels.POINTS + 1
    assert (found.x[0], found.x[-1], found.y[-1]) == (0, 999, 333)
