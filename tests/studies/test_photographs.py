"""The photographs of scikit-image: their one split, their tiles, and what happens without them."""

from __future__ import annotations

from data_sets import overlap

from restore.data import Dataset
from training.data.photographs import PHOTOGRAPHS_OF, SIDE, images


def test_no_photograph_is_in_both_splits() -> None:
    assert not set(PHOTOGRAPHS_OF["train"]) & set(PHOTOGRAPHS_OF["test"])
    train, test = (Dataset(images(split), "photographs", split) for split in ("train", "test"))
    assert train.images.shape[1:] == test.images.shape[1:] == (SIDE, SIDE)
    assert overlap(train, test) == 0


def test_the_photographs_never_change() -> None:
    assert Dataset(images("test"), "photographs", "test").fingerprint.startswith("63c99512d0ed")
