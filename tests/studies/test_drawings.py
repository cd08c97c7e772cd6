"""Pictures drawn by code: what a patch prior of general pictures learns from."""

from __future__ import annotations

import numpy as np
import pytest
from data_sets import overlap

from restore.data.dataset import Dataset
from training.data.dice import Dice
from training.data.drawings import KINDS, TESTED, drawing, drawings, images
from training.data.pen import SIDE, Pen


def test_a_picture_depends_on_its_seed_and_number_alone() -> None:
    several = drawings(len(KINDS) + 1, seed=3)
    assert several.shape == (len(KINDS) + 1, SIDE, SIDE) and several.dtype == np.uint8
    assert set(np.unique(several)) == {0, 255}
    for number in (0, len(KINDS)):
        assert (drawing(3, number) == several[number]).all()
    assert (drawing(4, 0) != several[0]).any()


@pytest.mark.parametrize("kind", range(len(KINDS)), ids=list(KINDS))
def test_every_kind_occurs_in_both_polarities(kind: int) -> None:
    """One round of the kinds is light on dark, the next the reverse."""
    rounds = [drawing(0, kind + len(KINDS) * number) for number in range(8)]
    assert len({picture.tobytes() for picture in rounds}) == 8
    assert all(0 < (picture > 0).mean() < 1 for picture in rounds)


def test_training_and_test_pictures_differ() -> None:
    test = Dataset(images("test"), "drawings", "test")
    assert len(test.images) == TESTED and test.images.shape[1:] == (SIDE, SIDE)
    first = Dataset(drawings(200, seed=0), "drawings", "train")
    assert overlap(first, test) == 0


def smooth_pen(turned: float = 0.0) -> Pen:
    """One that draws four times as large."""
    pens = (Pen(Dice(0, number), turned) for number in range(99))
    return next(pen for pen in pens if pen.scale == 4)


@pytest.mark.parametrize("down", np.linspace(20, 21, 9).tolist())
def test_a_line_of_one_pixel_never_vanishes(down: float) -> None:
    """Wherever between two rows it lies."""
    pen = smooth_pen()
    pen.line([(10, down), (110, down)], 1)
    drawn = np.asarray(pen.drawn()) > 0
    assert set(drawn[:, 12:108].sum(0)) <= {1, 2} and not drawn[24:].any()


def test_line_art_has_both_narrow_and_broad_lines() -> None:
    """Of each kind of line art much of the ink is gone when a pixel is taken off all round, and not all of it."""
    rounds = list(KINDS)
    for kind in ("staves", "hatching", "circuits", "tables", "maps"):
        ink = np.stack([drawing(2, rounds.index(kind) + 2 * len(KINDS) * number) > 0 for number in range(5)])
        core = ink[:, 1:-1, 1:-1] & ink[:, :-2, 1:-1] & ink[:, 2:, 1:-1] & ink[:, 1:-1, :-2] & ink[:, 1:-1, 2:]
        assert 0.02 < core.sum() / ink.sum() < 0.6, kind
