"""Advice is true: it is printed where following it on the picture helps, and following it does."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from enumerated import ANY_SIZE, SHAPE, FieldEngine, Opened, small_machine
from PIL import Image
from skimage import data

import restore
from restore.channels.damage import Damage, Observed
from restore.errors import RestoreWarning
from restore.inference.case import Case
from restore.inference.decision.remedies import REMEDIES, remedy
from restore.inference.options import Options
from restore.inference.restored import Restored
from restore.status import Outcome, Status

FIELD = FieldEngine.of(small_machine(scale=0.0), SHAPE, **ANY_SIZE)
PAGE = np.asarray(Image.open(Path(__file__).parents[3] / "assets" / "page.png").convert("L")) > 127
# Of enough letters to be known as print.
FULL = np.pad(np.tile(PAGE, (2, 1)), 20, constant_values=True)


def answer(picture: np.ndarray, mask: np.ndarray | None = None, **options: Any) -> Restored:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RestoreWarning)
        if mask is not None:
            return restore.complete(picture, mask, return_solution=True, **options)[1]
        return restore.denoise(picture, return_solution=True, **options)[1]


def spotted(seed: int = 0) -> np.ndarray:
    """A page with dirt of one to twelve pixels, light within letters."""
    draw, spots = np.random.default_rng(seed), np.zeros(FULL.shape, bool)
    corners = draw.integers(0, (FULL.shape[0] - 4, FULL.shape[1] - 4), (90, 2))
    for (top, left), (down, right) in zip(corners.tolist(), draw.integers(1, (4, 5), (90, 2)).tolist(), strict=True):
        spots[top : top + down, left : left + right] = True
    return FULL ^ spots


def photograph(noise: float) -> np.ndarray:
    grey = data.camera()[100:356, 100:356] / 255 + noise * np.random.default_rng(0).standard_normal((256, 256))
    return np.rint(255 * grey.clip(0, 1)).astype(np.uint8)


def grain() -> np.ndarray:
    return np.random.default_rng(0).random((96, 96)) < 0.5


def test_dirt_is_removed_by_the_option_that_is_named() -> None:
    told = 0
    for seed in range(5):
        dirty = spotted(seed)
        unasked = answer(dirty)
        if "specks" in unasked.remedy or unasked.marks:
            cleaned = unasked if unasked.marks else answer(dirty, remove="specks")
            assert cleaned.outcome is Outcome.RESTORED
            assert (cleaned.estimate != FULL).sum() < 0.95 * (dirty != FULL).sum()
            told += 1
    assert told


def test_grain_of_a_photograph_is_removed_by_the_option_that_is_named() -> None:
    result = answer(photograph(0.08))
    assert result.status is Status.NOT_INK and "sigma" in result.remedy
    assert answer(photograph(0.08), sigma="auto").outcome is Outcome.RESTORED


def test_a_photograph_without_grain_gets_no_advice_that_does_nothing() -> None:
    result = answer(photograph(0.0))
    assert result.status is Status.NOT_INK and "sigma" not in result.remedy and "scan" not in result.remedy
    assert answer(photograph(0.0), force=True).outcome is Outcome.RESTORED and "force" in result.remedy


def test_noise_that_nobody_knows_can_be_forced_or_told() -> None:
    result = answer(grain())
    assert result.status is Status.UNRECOGNISED
    for word, options in (("force", {"force": True}), ("model", {"model": "conv-art", "p": 0.1})):
        assert word in result.remedy and answer(grain(), **options).outcome is not Outcome.NOT_SURE
    assert not any(word in result.remedy for word in ("specks", "scan", "invert"))


@pytest.mark.parametrize("row", REMEDIES, ids=range(len(REMEDIES)))
def test_advice_is_given_only_if_it_was_tried_and_helped(row: Any) -> None:
    seen: list[tuple[Damage, Options]] = []
    grey = np.random.default_rng(0).random((40, 40))
    hidden = np.eye(40, dtype=bool)
    helped = answer(PAGE[:60, :60] ^ (np.random.default_rng(0).random((60, 60)) < 0.05), model="conv-text", p=0.05)
    options = Options(invert=True if row is REMEDIES[0] else None)
    filled = row is REMEDIES[1]
    case = Case.of(
        0,
        Observed(grey, Damage(hidden=hidden if filled else None)),
        options,
        Opened((FIELD,), named=False),  # type: ignore[arg-type]
        lambda share: None,
    )

    def attempt(good: bool) -> Any:
        def made(picture: Observed, tried: Options) -> Restored:
            seen.append((picture.damage, tried))
            wanted = (row.damage(case.original.damage), row.options(case.options))
            same = vars(wanted[0]).keys() == vars(picture.damage).keys() and tried == wanted[1]
            levels = [getattr(picture.damage, name) for name in ("p", "sigma")]
            same = same and levels == [getattr(wanted[0], name) for name in ("p", "sigma")]
            return helped if same and good else replace(helped, outcome=Outcome.CLEAN)

        return made

    assert row.fits(case)
    for why in row.why:
        assert row.words(case) in remedy(case, why, attempt(True))
        assert row.words(case) not in remedy(case, why, attempt(False))
    assert seen
