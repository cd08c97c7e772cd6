"""Scans: the levels that are found, against those they were drawn with; and what comes of them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from restore.channels.blurred_tones import smoothed
from restore.inference.scans.classes import tones_of
from restore.inference.scans.local import Local
from restore.inference.scans.reading import scan_of
from restore.inference.tones import MOST, middle_tones
from skimage import data

import restore
from restore.errors import ModelError, UsageError
from restore.inference.damage import Damage

SHAPE = (160, 200)


def strokes() -> np.ndarray:
    """Lines of strokes with gaps between them, as on a page; a tenth of it."""
    ink = np.zeros(SHAPE, bool)
    rows = np.arange(SHAPE[0]) % 24 < 8
    ink[np.ix_(rows, np.arange(SHAPE[1]) % 9 < 3)] = True
    ink[:, :10] = ink[:, -10:] = False
    return ink


INK = strokes()
LIGHT = np.linspace(1.0, 0.6, SHAPE[1]) * np.linspace(1.0, 0.9, SHAPE[0])[:, None]


def scanned(noise: float, ink: np.ndarray = INK, light: np.ndarray = LIGHT) -> np.ndarray:
    return light * np.where(ink, 0.2, 0.9) + noise * np.random.default_rng(1).standard_normal(ink.shape)


@pytest.mark.parametrize("noise", [0.01, 0.05, 0.1, 0.2])
@pytest.mark.parametrize("turned", [False, True], ids=["dark-on-light", "light-on-dark"])
def test_levels_and_noise_are_recovered(noise: float, turned: bool) -> None:
    grey = 1 - scanned(noise) if turned else scanned(noise)
    found = tones_of(grey)
    assert found is not None and found.distinct
    ink, paper = 0.2 * LIGHT, 0.9 * LIGHT
    black, white = (1 - paper, 1 - ink) if turned else (ink, paper)
    # Within a tenth of their distance, where the light changes by far more.
    assert np.abs(found.channel.white - white).mean() < 0.05
    assert np.abs(found.channel.black - black).mean() < 0.08
    assert found.noise == pytest.approx(noise, rel=0.25, abs=0.03)
    wrong = (found.channel.log_odds(grey) < 0) != (~INK if turned else INK)
    # Gaussians 0.7 of the light apart are told apart no better than at half of their distance.
    assert wrong.mean() < {0.01: 1e-4, 0.05: 1e-3, 0.1: 0.02, 0.2: 0.15}[noise]


@settings(max_examples=10, deadline=None)
@given(st.floats(-2, 2), st.floats(0.2, 5))
def test_a_shifted_or_scaled_scan_says_the_same(shift: float, scale: float) -> None:
    grey = scanned(0.1)
    first, other = tones_of(grey), tones_of(scale * grey + shift)
    assert first is not None and other is not None
    expected = first.channel.log_odds(grey)
    # Single precision, through some twenty steps of EM.
    np.testing.assert_allclose(other.channel.log_odds(scale * grey + shift), expected, atol=0.02)


@pytest.mark.parametrize("name", ["camera", "grass", "gravel", "astronaut", "coffee", "chelsea"])
def test_photographs_are_no_scans(name: str) -> None:
    photograph = getattr(data, name)()[:400, :400] / 255
    found = tones_of(photograph if photograph.ndim == 2 else photograph.mean(2))
    assert found is None or not found.distinct


@pytest.mark.parametrize("name", ["page", "text"])
def test_photographed_writing_is_a_scan(name: str) -> None:
    grey = getattr(data, name)() / 255
    found = tones_of(grey)
    assert middle_tones(grey) > MOST and found is not None and found.distinct


def test_what_is_called_a_scan_may_have_an_uneven_ground() -> None:
    blotches = 0.1 * smoothed(np.random.default_rng(0).standard_normal(SHAPE), 4.0) / 0.07
    grey = scanned(0.05) + blotches
    found = tones_of(grey)
    assert found is not None and not found.distinct
    with pytest.raises(ModelError, match="not those of ink on paper"):
        scan_of(grey, Damage("auto"), assumed=True)
    assert scan_of(grey, Damage("auto"), assumed=True, force=True) is None
    assert scan_of(grey, Damage("scan"), assumed=False) is not None


BLANK = {
    "white": np.ones(SHAPE),
    "grey": np.full(SHAPE, 0.4),
    "shaded": 0.9 * LIGHT,
    "noisy": 0.9 * LIGHT + 0.05 * np.random.default_rng(0).standard_normal(SHAPE),
    "noise": np.random.default_rng(0).random(SHAPE),
    "one-pixel": np.full((1, 1), 0.3),
    "one-row": np.linspace(0, 1, 50)[None],
}


@pytest.mark.parametrize("grey", BLANK.values(), ids=BLANK)
def test_a_blank_page_is_refused(grey: np.ndarray) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ModelError, match="not those of ink on paper"):
            scan_of(grey, Damage("scan"), assumed=False)


@pytest.mark.parametrize("shape", [(1, 40), (40, 1), (5, 7), (300, 3)])
def test_small_and_narrow_pictures_have_an_answer(shape: tuple[int, int]) -> None:
    grey = np.where(np.arange(shape[0] * shape[1]).reshape(shape) % 5 == 0, 0.1, 0.9)
    found = tones_of(grey)
    assert found is not None and np.isfinite(found.channel.log_odds(grey)).all()


def test_black_and_white_and_what_is_told_are_no_scan() -> None:
    assert scan_of(INK.astype(float), Damage("auto"), assumed=True) is None
    assert scan_of(scanned(0.1), Damage(0.1), assumed=False) is None


def test_evidence_is_kept_by_the_flip_probabilities() -> None:
    grey = scanned(0.1)
    scan, tones = scan_of(grey, Damage("scan"), assumed=False), tones_of(grey)
    assert scan is not None and tones is not None
    p = np.asarray(scan.damage.p)
    told = (2 * scan.pixels - 1) * (np.log1p(-p) - np.log(p))
    np.testing.assert_allclose(told, tones.channel.log_odds(grey), rtol=1e-9, atol=1e-9)
    assert scan.pixels.shape == p.shape == SHAPE and "read as a scan" in scan.note


def test_sums_are_those_of_the_gaussian() -> None:
    values = np.random.default_rng(0).random((20, 30)).astype(np.float32)
    found = Local(values.shape).sums(values)
    # Brute force at the cell in row 1, column 2: its centre is at (11.5, 19.5). Weights that are even within cells of 8
    # pixels are those of a Gaussian whose variance is 8² / 12 wider, of 30²: 0.6 % of it in two dimensions, at most.
    rows, columns = np.mgrid[0:20, 0:30]
    weights = np.exp(-((rows - 11.5) ** 2 + (columns - 19.5) ** 2) / (2 * 30.0**2))
    assert found.shape == (3, 4) and found[1, 2] == pytest.approx((weights * values).sum(), rel=5e-3)
    assert np.ptp(Local(values.shape).image(np.full((3, 4), 2.0, np.float32))) < 1e-6


@pytest.mark.thorough
def test_a_scan_is_restored_without_options_with_either_engine() -> None:
    grey = scanned(0.15)
    by_itself = ((grey < 0.55 * LIGHT) != INK).mean()
    found = {}
    for engine in ("onnx", "torch"):
        prior = restore.load("tap-text", engine=engine)  # type: ignore[arg-type]
        found[engine] = prior.denoise(grey.clip(0, 1))
        assert ((found[engine] < 0.5) != INK).mean() < 0.5 * by_itself
        assert set(np.unique(found[engine])) == {0, 1}
    assert (found["onnx"] != found["torch"]).mean() < 1e-3
    soft = prior.denoise(grey.clip(0, 1), "scan", soft=True)
    np.testing.assert_array_equal(soft > 0.5, found["torch"] > 0.5)
    assert ((soft > 0) & (soft < 1)).any()


def test_scans_are_for_priors_of_black_and_white() -> None:
    grey = scanned(0.1)
    with pytest.raises(UsageError, match="knows grey images, and p scan reads black and white"):
        restore.denoise(grey.clip(0, 1), "tap-mnist-real", "scan")
    with pytest.raises(UsageError):
        restore.denoise(grey.clip(0, 1), "crbm-bp-mnist-flip10", "scan")
    with pytest.raises(UsageError, match="auto or scan, not photo"):
        restore.denoise(grey.clip(0, 1), "tap-text", "photo")  # type: ignore[arg-type]


def test_holes_of_a_scan_are_filled() -> None:
    grey, hole = scanned(0.05).clip(0, 1), np.zeros(SHAPE, bool)
    hole[80:84, 60:90] = True
    found = restore.complete(np.where(hole, 0.5, grey), hole, "tap-text", "scan")
    assert set(np.unique(found)) == {0, 1}
    assert ((found < 0.5) != INK)[~hole].mean() < 0.01


@pytest.mark.thorough
def test_some_images_may_be_scans_and_others_not() -> None:
    grey, prior = scanned(0.1).clip(0, 1), restore.load("tap-text")
    plain = INK.astype(float)
    both, solution = prior.denoise([grey, plain], return_solution=True)
    assert len(both) == 2 and solution.noise is None
    np.testing.assert_array_equal(both[0], prior.denoise(grey))
    np.testing.assert_array_equal(both[1], prior.denoise(plain))
