"""The data set of printed text: drawn by seed, in fonts that are never those for testing."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

from restore.errors import InputError
from training.data import text
from training.data.pages import Family, pages

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
