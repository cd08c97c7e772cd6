"""Sets drawn by code or cut from photographs: how they are written, found and split."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from data_sets import overlap

from restore.data import Gathering, gather, load
from restore.data.dataset import Dataset, Images, Split
from restore.errors import InputError
from training.data import make, photographs, text
from training.data.drawings import KINDS, TESTED, drawing, drawings, images
from training.data.pages import Family, pages
from training.data.pen import SIDE

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


# --- photographs ---


def test_no_photograph_is_in_both_splits() -> None:
    assert not set(photographs.PHOTOGRAPHS_OF["train"]) & set(photographs.PHOTOGRAPHS_OF["test"])
    train, test = (Dataset(photographs.images(split), "photographs", split) for split in ("train", "test"))
    assert train.images.shape[1:] == test.images.shape[1:] == (photographs.SIDE, photographs.SIDE)
    assert overlap(train, test) == 0


def test_the_photographs_never_change() -> None:
    assert Dataset(photographs.images("test"), "photographs", "test").fingerprint.startswith("63c99512d0ed")


# --- drawings ---


def test_a_picture_depends_on_its_seed_and_number_alone() -> None:
    several = drawings(len(KINDS) + 1, seed=3)
    assert several.shape == (len(KINDS) + 1, SIDE, SIDE) and several.dtype == np.uint8
    assert set(np.unique(several)) == {0, 255}
    for number in (0, len(KINDS)):
        assert (drawing(3, number) == several[number]).all()
    assert (drawing(4, 0) != several[0]).any()


def test_training_and_test_pictures_differ() -> None:
    test = Dataset(images("test"), "drawings", "test")
    assert len(test.images) == TESTED and test.images.shape[1:] == (SIDE, SIDE)
    first = Dataset(drawings(200, seed=0), "drawings", "train")
    assert overlap(first, test) == 0


# --- printed text, in fonts that are never those for testing ---


# Packages whose fonts are for testing, and others that look the same.
KEPT_APART = ("Liberation", "Free", "Arimo", "Tinos", "Cousine", "Nimbus", "texgyre")


def names(families: list[Family]) -> set[str]:
    return {face.stem for family in families for face in family}


def test_no_font_for_testing_is_learnt_from() -> None:
    listed = " ".join((text.FROM_MATPLOTLIB, *text.FROM_DEBIAN.values())).split()
    tested = " ".join(text.FOR_TESTS.values()).split()
    assert not [name for name in listed if name.startswith(KEPT_APART)]
    assert not set(listed) & set(tested)
    assert len(set(listed)) == len(listed)
    assert not [package for package in text.FROM_DEBIAN if package in text.FOR_TESTS]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        faces = [face for family in text.families_to_learn_from() for face in family]
    assert not [face for face in faces if "liberation" in str(face).lower() or "freefont" in str(face).lower()]


def test_pages_for_testing_are_in_their_own_fonts(monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        families = text.families_for_tests()
    except InputError:
        pytest.skip("the fonts for testing are not installed")
    assert names(families) >= {"FreeSans", "FreeMonoBold", "LiberationSerif-Italic", "LiberationMono-Regular"}
    monkeypatch.setattr(text, "TESTED", 2)
    np.testing.assert_array_equal(text.images("test"), pages(families, 2, seed=1))
