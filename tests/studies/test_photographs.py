"""The photographs of scikit-image: their one split, their tiles, and what happens without them."""

from __future__ import annotations

import pytest
from overlaps import overlap

from restore.data import Dataset
from restore.errors import InputError
from training.data import photographs
from training.data.photographs import PHOTOGRAPHS_OF, SIDE, images


def test_no_photograph_is_in_both_splits() -> None:
    assert not set(PHOTOGRAPHS_OF["train"]) & set(PHOTOGRAPHS_OF["test"])
    train, test = (Dataset(images(split), "photographs", split) for split in ("train", "test"))
    assert train.images.shape[1:] == test.images.shape[1:] == (SIDE, SIDE)
    assert overlap(train, test) == 0


def test_the_photographs_never_change() -> None:
    assert Dataset(images("test"), "photographs", "test").fingerprint.startswith("63c99512d0ed")


def test_a_photograph_that_is_not_there_is_a_fault_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(photographs.PHOTOGRAPHS_OF, "test", ("lenna.png",))
    with pytest.raises(InputError, match=r"lenna\.png of scikit-image cannot be read; pip install scikit-image"):
        images("test")
