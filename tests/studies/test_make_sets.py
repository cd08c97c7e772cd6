"""The script that writes sets drawn by code, and how recipes find them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from restore.data import Gathering, gather, load
from restore.data.dataset import Images, Split
from restore.errors import InputError
from training.data import make

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
    gathering = Gathering(shape=(8, 8), patches=50, held_out=0.2)
    # Files are held out by the numbers of rows, as from an array.
    np.testing.assert_array_equal(
        gather("drawings", gathering).training.images, gather(DRAWN[0], gathering).training.images
    )
    with pytest.raises(InputError):
        load("text", split="test")
