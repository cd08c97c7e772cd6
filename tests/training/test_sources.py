"""Real pages by source, in groups of which one is left out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

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
