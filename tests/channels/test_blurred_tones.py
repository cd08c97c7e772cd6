"""The channel of blurred scans: against brute force, and where relaxed belief propagation is exact."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from restore.channels.blurred_tones import BlurredTones, smoothed
from scipy.ndimage import gaussian_filter
from scipy.special import logsumexp

from restore.channels.two_tone import TwoTone

SHAPE = (3, 4)
IMAGES = np.array(list(itertools.product((0.0, 1.0), repeat=12))).reshape(-1, *SHAPE)


def through(images: np.ndarray, others: np.ndarray, blur: float) -> np.ndarray:
    """Every image after the Gaussian; beyond the edge, pixels are expected to be what others say of those at it."""
    reach = int(np.ceil(3 * blur))
    beyond = np.pad(1 / (1 + np.exp(-others)), reach, "edge")
    whole = np.broadcast_to(beyond, (len(images), *beyond.shape)).copy()
    whole[:, reach : reach + SHAPE[0], reach : reach + SHAPE[1]] = images
    seen = gaussian_filter(whole, (0, blur, blur), mode="nearest", radius=(0, reach, reach))
    return np.asarray(seen[:, reach : reach + SHAPE[0], reach : reach + SHAPE[1]])


def enumerated(channel: BlurredTones, y: np.ndarray, others: np.ndarray) -> np.ndarray:
    """The posterior probability of white of every pixel, by summing over all images."""
    o, level = channel.outliers, channel.black + (channel.white - channel.black) * through(IMAGES, others, channel.blur)
    normal = np.exp(-(((y - level) / channel.noise) ** 2) / 2) / (channel.noise * np.sqrt(2 * np.pi))
    densities = (1 - o) * normal + o / (2 * (channel.white - channel.black))
    joint = np.log(densities).sum((1, 2)) + (others * IMAGES).sum((1, 2))
    return np.asarray((np.exp(joint - logsumexp(joint))[:, None, None] * IMAGES).sum(0))


def drawn(seed: int, channel: BlurredTones, certain: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """An image, its levels, and log-odds of others, drawn so that an image has its posterior probability under them."""
    draw = np.random.default_rng(seed)
    others = draw.normal(0, certain, SHAPE)
    x = (draw.random(SHAPE) < 1 / (1 + np.exp(-others))).astype(float)
    seen = channel.black + (channel.white - channel.black) * through(x[None], others, channel.blur)[0]
    return x, seen + channel.noise * draw.standard_normal(SHAPE), others


@pytest.mark.parametrize("noise", [0.05, 0.15, 0.4])
def test_without_blur_it_is_the_channel_of_two_tones(noise: float) -> None:
    draw = np.random.default_rng(0)
    black, white = draw.uniform(0.1, 0.3, SHAPE), draw.uniform(0.7, 0.9, SHAPE)
    y, others = draw.uniform(-0.3, 1.3, SHAPE), draw.normal(0, 3, SHAPE)
    found = BlurredTones(black, white, noise, 0.0, 0.02).log_odds(y, others)
    # In single precision, relative to squares of up to 1.5 / 0.05.
    np.testing.assert_allclose(found, TwoTone(black, white, noise, 0.02).log_odds(y), rtol=1e-3, atol=2e-3)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.3, 0.8), st.floats(0.1, 0.4))
def test_where_the_other_pixels_are_certain_it_is_exact(seed: int, blur: float, noise: float) -> None:
    draw = np.random.default_rng(seed)
    x, channel = draw.integers(0, 2, SHAPE).astype(float), BlurredTones(0.2, 0.8, noise, blur)
    others = 40 * (2 * x - 1)
    others[1, 2] = draw.normal()
    y = channel.black + 0.6 * through(x[None], others, blur)[0] + noise * draw.standard_normal(SHAPE)
    found = float((channel.log_odds(y, others) + others)[1, 2])
    expected = float(enumerated(channel, y, others)[1, 2])
    # Weights below a thousandth are left out.
    assert 1 / (1 + np.exp(-found)) == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize(("blur", "noise"), [(0.4, 0.1), (0.6, 0.1), (0.6, 0.3), (0.9, 0.2)])
def test_probabilities_are_near_those_of_an_enumeration(blur: float, noise: float) -> None:
    channel, off, without = BlurredTones(0.0, 1.0, noise, blur), [], []
    for seed in range(25):
        _, y, others = drawn(seed, channel, certain=1.5)
        expected = enumerated(channel, y, others)
        found = 1 / (1 + np.exp(-(channel.log_odds(y, others) + others)))
        alone = 1 / (1 + np.exp(-(TwoTone(0.0, 1.0, noise).log_odds(y) + others)))
        off.append(np.abs(found - expected).mean())
        without.append(np.abs(alone - expected).mean())
    # Loopy messages err; over three hundred pixels by far less than a channel does that knows no blur.
    assert np.mean(off) < 0.05 and np.mean(off) < 0.5 * np.mean(without)


def test_a_level_that_was_not_seen_says_nothing() -> None:
    channel = BlurredTones(0.0, 1.0, np.where(np.arange(12).reshape(SHAPE) == 5, np.inf, 0.1), 0.6)
    _, y, others = drawn(1, BlurredTones(0.0, 1.0, 0.1, 0.6), certain=1.5)
    other = y.copy()
    other[1, 1] = 77.0
    np.testing.assert_array_equal(channel.log_odds(y, others), channel.log_odds(other, others))
    nothing = BlurredTones(0.0, 1.0, np.full(SHAPE, np.inf), 0.6).log_odds(y, others)
    np.testing.assert_array_equal(nothing, np.zeros(SHAPE))


def test_turning_the_colours_turns_the_answer() -> None:
    channel = BlurredTones(0.1, 0.8, 0.15, 0.7)
    _, y, others = drawn(2, channel, certain=1.5)
    turned = BlurredTones(-0.8, -0.1, 0.15, 0.7).log_odds(-y, -others)
    np.testing.assert_allclose(turned, -channel.log_odds(y, others), atol=1e-3)


def test_it_draws_what_it_scores() -> None:
    x = np.random.default_rng(0).integers(0, 2, (200, 200)).astype(float)
    seen = BlurredTones(0.2, 0.7, 0.1, 0.6).corrupt(x, np.random.default_rng(0))
    left = seen - 0.2 - 0.5 * gaussian_filter(x, 0.6, mode="nearest", radius=2)
    # Four standard errors of the mean and of the deviation of 40,000 pixels.
    assert left.mean() == pytest.approx(0, abs=4 * 0.1 / 200)
    assert left.std() == pytest.approx(0.1, abs=4 * 0.1 / 200 / 2**0.5)


def test_smoothing_is_the_gaussian_filter() -> None:
    image = np.random.default_rng(0).random((12, 15))
    np.testing.assert_allclose(smoothed(image, 0.8), gaussian_filter(image, 0.8, mode="nearest", radius=3), atol=1e-12)
    assert smoothed(image, 0.0) is image
