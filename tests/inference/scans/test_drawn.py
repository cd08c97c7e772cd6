"""A picture without grain is drawn, and read by no prior of pages; a sheet with grain on an even table is."""

from __future__ import annotations

from dataclasses import replace
from typing import NoReturn

import numpy as np
import pytest

import restore
from restore.channels.damage import Damage, Observed
from restore.errors import option
from restore.images.tones import Tones, counted
from restore.inference.painting import AS_DRAWN
from restore.inference.scans.reading import read
from restore.status import Outcome


class Opened(Exception):
    """A prior of pages was asked for."""


class Readers:
    """Whoever opens one is told."""

    @property
    def reader(self) -> NoReturn:
        raise Opened

    parts = reader


def is_drawn(picture: Observed, *, inverted: bool | None = None) -> bool:
    """Whether it is read without a prior of pages."""
    try:
        return read(picture, None, Readers(), inverted, lambda share: None, careful=True).drawn
    except Opened:
        return False


@pytest.fixture
def window() -> np.ndarray:
    """A window of a program, with type and gradients."""
    rng = np.random.default_rng(0)
    window = np.full((300, 400), 232, np.uint8)
    window[:150] = np.linspace(180, 245, 150)[:, None]
    window[60:280, 20:190] = 255
    window[60:280, 210:380] = np.repeat(np.linspace(250, 150, 55), 4)[:, None]
    for top in range(70, 270, 20):
        window[top : top + 9, 30:180][rng.random((9, 150)) < 0.3] = 0
    assert not Tones.of(counted(window)).drawn  # it has too many tones
    return window


@pytest.fixture
def sheet() -> Observed:
    """A sheet with grain and lines of ink on an even table."""
    levels = np.full((600, 600), 0.2)
    levels[110:490, 110:490] = np.random.default_rng(0).normal(0.85, 0.03, (380, 380))
    levels[200:400:20, 180:420] = 0.1
    return Observed(levels, Damage())


def test_a_window_with_a_gradient_comes_back_as_it_came(window: np.ndarray) -> None:
    found, solution = restore.denoise(window, return_solution=True)
    assert solution.unchanged
    np.testing.assert_array_equal(found, window)
    # Whoever calls it a page gets one.
    assert set(np.unique(restore.denoise(window, p="scan"))) == {0, 255}


def test_a_clean_grey_drawing_may_be_a_scan_whose_paper_was_whitened() -> None:
    soft = np.full((120, 160), 255, np.uint8)
    soft[30:90, 30:130] = 128
    soft[31:89, 31:129] = 0
    said = AS_DRAWN.format(option("p", "scan"))
    for picture, wanted in ((soft, True), (soft[:60], False), (np.where(soft > 128, 255, 0).astype(np.uint8), False)):
        _, solution = restore.denoise(picture, return_solution=True)
        assert solution.outcome is Outcome.CLEAN
        assert (said in solution.notes) is wanted


def test_what_has_no_grain_is_read_by_no_prior_of_pages(window: np.ndarray) -> None:
    picture = Observed(window / 255, Damage())
    assert is_drawn(picture)
    grain = np.random.default_rng(0).normal(0, 0.01, window.shape)
    assert not is_drawn(replace(picture, pixels=window / 255 + grain))


def test_grain_that_colours_alone_have_is_grain(window: np.ndarray) -> None:
    grey = window / 255
    assert is_drawn(Observed(grey, Damage(), np.stack([grey] * 3, -1)))
    grain = np.random.default_rng(0).normal(0, 0.01, (*window.shape, 3))
    assert not is_drawn(Observed(grey, Damage(), grey[..., None] + grain))


def test_an_even_table_says_nothing_of_the_sheet_on_it(sheet: Observed) -> None:
    assert not is_drawn(sheet)
    # On dark paper no sheet is looked for.
    assert is_drawn(sheet, inverted=True)


def test_what_is_hidden_says_nothing(sheet: Observed) -> None:
    hidden = np.ones(sheet.shape, bool)
    hidden[110:490, 110:490] = False
    assert not is_drawn(replace(sheet, damage=Damage(hidden=hidden)))
