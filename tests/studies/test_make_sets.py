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
from training.data.dice import Dice
from training.data.drawings import KINDS, TESTED, drawing, drawings, images
from training.data.pages import Family, pages
from training.data.pen import SIDE, Pen

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


# --- printed text, in fonts that are never those for testing ---


# Packages whose fonts are for testing, and others that look the same.
KEPT_APART = ("Liberation", "Free", "Arimo", "Tinos", "Cousine", "Nimbus", "texgyre")


@pytest.fixture
def matplotlib_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Family]:
    """The fonts that are there wherever the package `plots` is."""
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(text, "SYSTEM", tmp_path)
    with pytest.warns(UserWarning, match="drawn without the fonts of fonts-crosextra-carlito, .* not installed"):
        return text.families_to_learn_from()


def names(families: list[Family]) -> set[str]:
    return {face.stem for family in families for face in family}


def test_pages_are_white_ink_on_black_paper_with_words_all_over(matplotlib_only: list[Family]) -> None:
    drawn = pages(matplotlib_only, 12, seed=5) > 127
    assert 0.04 < drawn.mean() < 0.15
    # Margins are paper.
    assert not drawn[:, :5].any()
    windows = drawn[:, :800, :592].reshape(12, 50, 16, 37, 16).any(axis=(2, 4))
    blank = 1 - windows.mean()
    assert 0.25 < blank < 0.65
    # Most pages reach their lower third.
    assert windows[:, 33:].any(axis=(1, 2)).mean() > 0.7


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


def test_pages_for_testing_need_their_own_fonts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(text, "SYSTEM", tmp_path)
    with pytest.raises(InputError, match="install Debian's fonts-liberation and fonts-freefont-ttf, or take pages"):
        text.images("test")


def test_pages_for_testing_are_in_their_own_fonts(monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        families = text.families_for_tests()
    except InputError:
        pytest.skip("the fonts for testing are not installed")
    assert names(families) >= {"FreeSans", "FreeMonoBold", "LiberationSerif-Italic", "LiberationMono-Regular"}
    monkeypatch.setattr(text, "TESTED", 2)
    np.testing.assert_array_equal(text.images("test"), pages(families, 2, seed=1))
