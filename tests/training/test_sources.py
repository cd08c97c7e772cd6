"""Pictures to learn from, and where they come from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from training.data import photographs
from training.data.photographs import LEAST_SIDE, PHOTOGRAPHS_OF, photograph, to_learn_from
from training.data.sources import GROUPS, real_pages


def put(data: Path, source: str, ink: np.ndarray) -> None:
    """A real page and its truth."""
    page = data / ("dibco" if source.isdecimal() else "pages") / source / "H01.png"
    page.parent.mkdir(parents=True)
    Image.fromarray(np.where(ink, 60, 200).astype(np.uint8)).save(page)
    Image.fromarray(~ink).save(page.with_suffix(".truth.png"))


def test_every_source_is_in_one_group_and_its_pages_come_with_their_truth(tmp_path: Path) -> None:
    every = [source for group in GROUPS.values() for source in group]
    assert len(every) == len(set(every)) == 11
    draw = np.random.default_rng(0)
    inks = {source: draw.random((9, 13)) < 0.3 for source in every}
    for source, ink in inks.items():
        put(tmp_path, source, ink)
    for group, sources in GROUPS.items():
        found = list(real_pages(tmp_path, groups=[group]))
        assert {source for source, *_ in found} == set(sources) and len(found) == len(sources)
        for source, name, grey, paper in found:
            assert name == "H01" and grey.dtype == np.uint8
            np.testing.assert_array_equal(paper, ~inks[source])
            np.testing.assert_array_equal(grey < 130, inks[source])
    # Three groups have print.
    assert len([group for group, sources in GROUPS.items() if {"2009", "2011", "2013"} & set(sources)]) == 3


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(photographs, "BACKGROUNDS", tmp_path)
    to_learn_from.cache_clear()
    yield tmp_path
    to_learn_from.cache_clear()


def test_more_photographs_are_learnt_from_where_they_are_installed(installed: Path) -> None:
    ours = [photograph(name) for name in PHOTOGRAPHS_OF["train"]]
    assert all(map(np.array_equal, to_learn_from(), ours)) and len(to_learn_from()) == len(ours)
    (installed / "mate" / "nature").mkdir(parents=True)
    levels = np.random.default_rng(0).integers(256, size=(900, 1800, 3), dtype=np.uint8)
    for name in ("mate/nature/Dune.jpg", "sea_by_somebody.jpg", "mate/logo.jpg", "drawn.jpg"):
        Image.fromarray(levels).save(installed / name)
    to_learn_from.cache_clear()
    found = to_learn_from()
    assert [one.shape for one in found[len(ours) :]] == [(LEAST_SIDE, 2 * LEAST_SIDE)] * 2
