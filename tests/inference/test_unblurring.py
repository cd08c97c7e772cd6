"""The blur of scans: how near it is found, what undoing it leaves wrong, and scans that have none."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont
from restore.channels.blurred_tones import BlurredTones, smoothed
from restore.inference.pictures import Restored
from restore.inference.scans import unblurring
from restore.inference.scans.blur import tones_through
from restore.inference.scans.local import Local
from restore.inference.scans.reading import Scan, scan_of
from restore.inference.scans.unblurring import unblurred

import restore
from restore.channels.two_tone import TwoTone
from restore.inference.damage import Damage
from restore.marginals import Status

SHAPE = (120, 160)
LIGHT = np.linspace(1.0, 0.7, SHAPE[1]) * np.ones(SHAPE)


def page() -> np.ndarray:
    """Strokes of two and three pixels, white being True."""
    rows, columns = np.indices(SHAPE)
    strokes = ((rows % 20 < 9) & (columns % 8 < 2)) | ((rows % 20 < 3) & (columns % 24 < 16))
    strokes[:, :12] = strokes[:, -12:] = False
    return ~strokes


PAGE = page()
SEEN = np.ones(SHAPE, np.float32)


def scanned(blur: float, noise: float, seed: int = 0) -> np.ndarray:
    return BlurredTones(0.15 * LIGHT, 0.9 * LIGHT, noise, blur).corrupt(PAGE, np.random.default_rng(seed))


@pytest.mark.parametrize("blur", [0.5, 0.7, 1.0, 1.3])
@pytest.mark.parametrize("noise", [0.02, 0.1, 0.2])
def test_blur_noise_and_levels_are_those_of_a_known_page(blur: float, noise: float) -> None:
    found = tones_through(scanned(blur, noise), PAGE.astype(np.float32), SEEN, Local(SHAPE))
    # The parabola errs, between widths that are 0.15 to 0.25 apart, by less than half of that; contrast drawn to its
    # mean by a thousandth of the pixels, of which an eighth are ink, by a hundredth.
    assert found is not None and found.blur == pytest.approx(blur, abs=0.06)
    # The light between the centres of cells adds to it.
    assert found.noise == pytest.approx(noise, rel=0.1, abs=0.007)
    assert np.abs(found.white - 0.9 * LIGHT).mean() < 0.02 and np.abs(found.black - 0.15 * LIGHT).mean() < 0.06


@pytest.mark.parametrize("noise", [0.02, 0.1, 0.3])
def test_a_scan_without_blur_has_none(noise: float) -> None:
    assert tones_through(scanned(0.0, noise), PAGE.astype(np.float32), SEEN, Local(SHAPE)) is None


def test_levels_of_hidden_pixels_count_for_nothing() -> None:
    grey, seen = scanned(0.7, 0.1), SEEN.copy()
    seen[40:60, 40:80] = 0
    painted = np.where(seen > 0, grey, 55.0)
    first, other = (tones_through(each, PAGE.astype(np.float32), seen, Local(SHAPE)) for each in (grey, painted))
    assert first is not None and other is not None and first.blur == pytest.approx(other.blur, abs=1e-4)


def as_restored(means: np.ndarray) -> Restored:
    some = (None, 5, 0.0, Status.CONVERGED, (), False, 0.0, None)
    return Restored((means > 0.5).astype(float), means, np.sqrt(means * (1 - means)), *some)


def read(grey: np.ndarray) -> Scan:
    scan = scan_of(grey, Damage("scan"), assumed=False)
    assert scan is not None
    return scan


def restored_pixels(scan: Scan, log_odds: np.ndarray) -> Restored:
    """What comes of a scan under independent pixels with these log-odds of white."""
    return as_restored(1 / (1 + np.exp(-(scan.log_odds + log_odds).clip(-15, 15))))


@pytest.mark.parametrize(("blur", "noise"), [(0.5, 0.1), (0.6, 0.05), (0.6, 0.1)])
def test_undoing_blur_leaves_fewer_pixels_wrong(blur: float, noise: float) -> None:
    draw = np.random.default_rng(3)
    # As the channel takes pixels to be: a quarter are ink, whatever is beside them; the prior is right of nine in ten.
    page = draw.random(SHAPE) < 0.75
    told = np.where(page ^ (draw.random(SHAPE) < 0.1), 1, -1) * np.log(9) + np.log(3)
    grey = BlurredTones(0.15, 0.9, noise, blur).corrupt(page, draw)
    classes = TwoTone(grey[~page].mean(), grey[page].mean(), (grey[~page].std() + grey[page].std()) / 2)
    scan = Scan(page, Damage("scan"), "", grey.astype(np.float32), classes.log_odds(grey), *np.array([0.15, 0.9]))
    before = restored_pixels(scan, told)
    after = unblurred(scan, before)
    assert "blurred by a Gaussian of" in after.notes[-1]
    left = [((each.estimate > 0.5) != page).mean() for each in (before, after)]
    assert left[1] < 0.7 * left[0], left
    np.testing.assert_array_equal(after.estimate > 0.5, after.means > 0.5)
    np.testing.assert_allclose(after.deviations**2, after.means * (1 - after.means), atol=1e-6)


@pytest.mark.thorough
def test_blurred_print_is_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    sheet, font = Image.new("L", (300, 120)), ImageFont.load_default(size=20)
    for line, words in enumerate(("Undo the blur of scans,", "of which every level", "tells of many pixels.")):
        ImageDraw.Draw(sheet).text((20, 10 + 30 * line), words, fill=255, font=font)
    ink = np.asarray(sheet) > 127
    grey = BlurredTones(0.15, 0.9, 0.08, 0.6).corrupt(~ink, np.random.default_rng(0)).clip(0, 1)
    prior = restore.load("tap-text")
    after = prior.denoise(grey, "scan") < 0.5
    monkeypatch.setattr(unblurring, "unblurred", lambda scan, found, hidden: found)
    before = prior.denoise(grey, "scan") < 0.5
    assert (after != ink).sum() < 0.85 * (before != ink).sum()


@pytest.mark.parametrize("noise", [0.05, 0.1, 0.2])
def test_a_prior_that_knows_nothing_does_no_great_harm(noise: float) -> None:
    scan = read(scanned(0.6, noise))
    before = restored_pixels(scan, np.full(SHAPE, np.log(7.0)))
    after = unblurred(scan, before)
    left = [((each.estimate > 0.5) != PAGE).mean() for each in (before, after)]
    assert left[1] < left[0] + 0.02


def test_without_blur_or_doubt_nothing_changes() -> None:
    scan = read(scanned(0.0, 0.1))
    before = restored_pixels(scan, np.where(PAGE, 3.0, -3.0))
    assert unblurred(scan, before) is before
    sharp = as_restored(PAGE.astype(float))
    assert unblurred(read(scanned(0.6, 0.1)), sharp) is sharp


def test_hidden_pixels_stay_as_the_prior_fills_them() -> None:
    scan, hidden = read(scanned(0.6, 0.1)), np.zeros(SHAPE, bool)
    hidden[40:60, 40:80] = True
    before = restored_pixels(scan, np.where(PAGE, 3.0, -3.0))
    after = unblurred(scan, before, hidden)
    np.testing.assert_array_equal(after.means[hidden], before.means[hidden].astype(np.float32))
    assert (after.means[~hidden] != before.means[~hidden]).any()


def test_strips_leave_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    channel, grey = BlurredTones(0.15 * LIGHT, 0.9 * LIGHT, 0.1, 0.6), scanned(0.6, 0.1)
    told = (grey, np.where(PAGE, 1.0, -1.0), SEEN, np.where(PAGE, 0.9, 0.1).astype(np.float32))
    whole = unblurring._solved(channel, *told)
    monkeypatch.setattr(unblurring, "TOGETHER", 25 * SHAPE[1])
    # Messages rest when no probability changes by a hundredth, and strips may take other numbers of steps.
    assert np.abs(unblurring._solved(channel, *told) - whole).max() < 0.02


def test_smoothing_an_even_picture_changes_nothing() -> None:
    assert np.abs(smoothed(np.full(SHAPE, 0.4), 0.9) - 0.4).max() < 1e-12
