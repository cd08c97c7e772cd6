"""Pictures drawn by code: what a patch prior of general pictures learns from."""

from __future__ import annotations

import numpy as np
import pytest
from overlaps import overlap

from restore.data.dataset import Dataset
from training.data.drawings import KINDS, SIDE, TESTED, drawing, drawings, images


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
