"""Sets drawn by code or cut from photographs: how they are written, found and split."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from data_sets import overlap

from restore.data import Dataset, Wanted, gather, load
from restore.data.dataset import Images, Split
from restore.errors import InputError
from training.data import make
from training.data.photographs import PHOTOGRAPHS_OF, SIDE, images

DRAWN = np.random.default_rng(0).integers(0, 2, (2, 9, 20, 20), dtype=np.uint8) * np.uint8(255)


def both(split: Split) -> Images:
    return DRAWN[int(split == "test")]


def one(split: Split) -> Images:
    if split == "test":
        raise InputError("no fonts")
    return DRAWN[0]


def test_sets_are_found_by_name_below_the_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(make, "SETS", {"drawings": both, "text": one})
    written = make.make(["drawings", "text"], tmp_path)
    assert [path.relative_to(tmp_path).as_posix() for path in written] == [
        "drawings/train.npy",
        "drawings/test.npy",
        "text/train.npy",
    ]
    assert "text/test.npy" in capsys.readouterr().err
    for split in ("train", "test"):
        np.testing.assert_array_equal(load("drawings", split=split, root=tmp_path).images, both(split))
    monkeypatch.setenv("RESTORE_DATA", str(tmp_path))
    wanted = Wanted(shape=(8, 8), patches=50, held_out=0.2)
    # Files are held out by the numbers of rows, as from an array.
    np.testing.assert_array_equal(gather("drawings", wanted).training.images, gather(DRAWN[0], wanted).training.images)
    with pytest.raises(InputError):
        load("text", split="test")


# --- photographs ---


def test_no_photograph_is_in_both_splits() -> None:
    assert not set(PHOTOGRAPHS_OF["train"]) & set(PHOTOGRAPHS_OF["test"])
    train, test = (Dataset(images(split), "photographs", split) for split in ("train", "test"))
    assert train.images.shape[1:] == test.images.shape[1:] == (SIDE, SIDE)
    assert overlap(train, test) == 0


def test_the_photographs_never_change() -> None:
    assert Dataset(images("test"), "photographs", "test").fingerprint.startswith("63c99512d0ed")
