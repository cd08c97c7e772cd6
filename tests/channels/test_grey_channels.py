"""Channels of grey images: what they do to them, what they say about them, and that the two are the same."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import seeded
from scipy.stats import kstest, norm
from textbook import log_likelihood
from torch import Tensor

from restore.channels import BitFlip, Channel, Damage, GaussianNoise, Occlusion, SaltAndPepper, parse_task
from restore.channels.noise import CERTAIN_PRECISION
from restore.errors import UsageError
from restore.units import Spiked, TruncatedGaussian


def values(*numbers: float) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


# The atom of a spiked unit, and values that have a density.
GREY = values(0, 1e-3, 0.2, 0.55, 0.97)
# What a pixel may show: impulses, and what only noise does.
SEEN = values(-0.4, 0, 1e-3, 0.3, 0.99, 1, 1.2)
# One number per pixel, of as many pixels as there are values.
PER_PIXEL = values(0.01, 0.1, 0.2, 0.5, 3)
SHARES = values(0, 0.02, 0.3, 0.8, 1)
MASK = torch.tensor([True, False, False, True, False])
NOISE, IMPULSES = GaussianNoise(0.1), SaltAndPepper(0.2)

NOISY: dict[str, Channel] = {
    "noise": NOISE,
    "noise-per-pixel": GaussianNoise(PER_PIXEL),
    "noise-and-impulses": SaltAndPepper(0.2, NOISE),
    "noise-and-impulses-per-pixel": SaltAndPepper(SHARES[1:-1].repeat(2)[:5], GaussianNoise(PER_PIXEL)),
    "noise-and-occlusion": Occlusion(MASK, NOISE),
    "noise-impulses-and-occlusion": Occlusion(MASK, SaltAndPepper(0.3, NOISE)),
    "damage": Damage(sigma=0.1).channel(grey=True),
    "damage-and-impulses": Damage(0.2, 0.1).channel(grey=True),
    "damage-and-holes": Damage(sigma=0.1, hidden=MASK.numpy()[None]).channel(grey=True),
    "damage-impulses-and-holes": Damage(0.3, 0.1, hidden=MASK.numpy()[None]).channel(grey=True),
}


@given(
    mean=st.floats(0, 1), deviation=st.floats(0, 0.4), p=st.floats(0, 1), sigma=st.floats(0, 0.3)
)  # fmt: skip
def test_what_is_predicted_of_the_levels_of_a_file_adds_up_to_one(
    mean: float, deviation: float, p: float, sigma: float
) -> None:
    levels = np.arange(256) / 255
    log_p = SaltAndPepper(p, GaussianNoise(sigma)).log_predictive(
        levels, np.full(256, mean), np.full(256, deviation**2)
    )
    # A density at the middle of a level stands for the mass of the level: the resolution is added to the deviation.
    assert np.exp(log_p).sum() == pytest.approx(1, abs=0.01)


def assert_law(channel: Channel, y: float) -> None:
    """evidence(y) of x is log p(y|x) up to a constant in x; a row per value of x, a column per pixel."""
    x = GREY[:, None].expand(-1, 5)
    picture = torch.full_like(x, y)
    fields = channel.evidence(picture)
    exponent = fields.linear * x - fields.quadratic * x * x / 2
    if fields.presence is not None:
        exponent = exponent + fields.presence * (x != 0)
    constant = exponent - log_likelihood(channel, picture, x)
    scale = float(exponent.abs().max())
    torch.testing.assert_close(constant, constant[:1].expand_as(constant), rtol=0, atol=1e-12 * max(scale, 1))


@pytest.mark.parametrize("channel", NOISY.values(), ids=NOISY)
@pytest.mark.parametrize("y", SEEN.tolist())
def test_evidence_is_the_log_likelihood_up_to_a_constant(channel: Channel, y: float) -> None:
    assert_law(channel, y)


@settings(max_examples=30)
@given(
    sigma=st.lists(st.floats(0.02, 5), min_size=5, max_size=5),
    p=st.floats(0, 0.99),
    mask=st.lists(st.booleans(), min_size=5, max_size=5),
    y=st.sampled_from(SEEN.tolist()),
)
def test_law_for_any_mixture(sigma: list[float], p: float, mask: list[bool], y: float) -> None:
    noise = GaussianNoise(values(*sigma))
    assert_law(noise, y)
    assert_law(SaltAndPepper(p, noise), y)
    assert_law(Occlusion(torch.tensor(mask), SaltAndPepper(p, noise)), y)
    assert_law(Damage(p, np.array([sigma]), hidden=np.array([mask])).channel(grey=True), y)


@pytest.mark.parametrize("y", [0.0, 1.0])
@pytest.mark.parametrize("p", [1e-9, 0.02, 0.5, 1.0])
def test_law_of_impulses_where_the_other_pixels_are_exact(p: float, y: float) -> None:
    assert_law(SaltAndPepper(p), y)
    assert_law(Occlusion(MASK, SaltAndPepper(p)), y)
    assert_law(Damage(p, hidden=MASK.numpy()[None]).channel(grey=True), y)


# --- what evidence makes of a unit ---


UNIT = Spiked(values(-0.6), TruncatedGaussian(values(4), values(9)))


def posterior_by_quadrature(likelihood: Callable[[Tensor], Tensor]) -> tuple[float, float, float]:
    """P(x != 0), mean and variance of UNIT from log p(y|x), by its definition: an atom at 0 and a density on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(200)
    x, weight = torch.from_numpy((nodes + 1) / 2), torch.from_numpy(weights / 2)
    density = weight * (UNIT.log_weight(x[:, None])[:, 0] + likelihood(x)).exp()
    atom = likelihood(values(0)).exp()
    total = density.sum() + atom.sum()
    mean, square = (density * x).sum() / total, (density * x * x).sum() / total
    return float(density.sum() / total), float(mean), float(square - mean**2)


@pytest.mark.parametrize(
    ("channel", "y"),
    [
        *((GaussianNoise(0.3), y) for y in (-0.4, 0.0, 0.5, 1.3)),
        *((SaltAndPepper(0.4, GaussianNoise(0.1)), y) for y in (0.0, 0.5, 1.0)),
        *((SaltAndPepper(p), y) for p in (0.05, 0.6, 1.0) for y in (0.0, 1.0)),
    ],
    ids=str,
)
def test_the_posterior_of_a_unit_with_an_atom_is_that_of_bayes(channel: Channel, y: float) -> None:
    present, mean, variance = posterior_by_quadrature(lambda x: log_likelihood(channel, torch.full_like(x, y), x))
    fields = channel.evidence(values(y))
    actual = UNIT.moments(fields)
    assert float(UNIT.expected_statistics(fields)["presence"]) == pytest.approx(present, rel=1e-9)
    assert (float(actual[0]), float(actual[1])) == pytest.approx((mean, variance), rel=1e-7)


@pytest.mark.parametrize(
    ("channel", "y"),
    [
        *((channel, y) for channel in (GaussianNoise(0.0), SaltAndPepper(0.0)) for y in (0.004, 0.25, 1.0)),
        *((SaltAndPepper(0.3), y) for y in (0.004, 0.25, 0.9)),
    ],
    ids=str,
)
def test_an_exact_pixel_is_known_to_a_hundredth(channel: Channel, y: float) -> None:
    fields = channel.evidence(values(y))
    assert (float(fields.linear), float(fields.quadratic)) == (y * CERTAIN_PRECISION, CERTAIN_PRECISION)
    mean, variance = UNIT.slab.moments(fields)
    assert float(mean) == pytest.approx(y, abs=0.01)
    assert float(variance) <= 1 / CERTAIN_PRECISION


def test_impulses_alone_say_nothing() -> None:
    for noise in (GaussianNoise(0.0), GaussianNoise(0.2)):
        fields = SaltAndPepper(1.0, noise).evidence(values(0, 1))
        assert fields.presence is not None
        for part in (fields.linear, fields.quadratic, fields.presence):
            assert torch.equal(part, torch.zeros_like(part))


@pytest.mark.parametrize("sigma", [0.0, 1e-30, 1e-4, 0.01, 1e30])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_evidence_of_every_sigma_is_finite(sigma: float, dtype: torch.dtype) -> None:
    fields = GaussianNoise(sigma).evidence(torch.tensor([-1.0, 0.0, 2.0], dtype=dtype))
    assert (fields.linear.dtype, fields.quadratic.dtype) == (dtype, dtype)
    assert float(fields.quadratic) == pytest.approx(
        min(CERTAIN_PRECISION, 1 / max(sigma, 1e-30) ** 2), rel=1e-6, abs=1e-40
    )
    assert bool(torch.isfinite(fields.linear).all())


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int64, torch.bool])
@pytest.mark.parametrize("channel", [NOISE, IMPULSES, Occlusion(MASK, SaltAndPepper(0.2, NOISE))], ids=str)
def test_images_of_whole_numbers_give_the_same_evidence(channel: Channel, dtype: torch.dtype) -> None:
    y = torch.tensor([0, 1, 1, 0, 1])
    wanted, actual = channel.evidence(y.float()), channel.evidence(y.to(dtype))
    torch.testing.assert_close(actual.linear, wanted.linear, rtol=0, atol=0)
    torch.testing.assert_close(actual.quadratic, wanted.quadratic, rtol=0, atol=0)


# --- what they do ---


@pytest.mark.parametrize("sigma", [0.05, 2.0])
def test_noise_has_the_distribution_that_is_scored(sigma: float) -> None:
    x = values(0, 0.3, 1).repeat(20_000, 1)
    y = GaussianNoise(sigma).corrupt(x, seeded(1))
    assert kstest((y - x).flatten().numpy(), norm(scale=sigma).cdf).pvalue > 1e-3
    covariance = torch.cov((y - x).T)
    torch.testing.assert_close(covariance, sigma**2 * torch.eye(3).double(), rtol=0, atol=0.04 * sigma**2)
    likelihood = log_likelihood(GaussianNoise(sigma), y, x).numpy()
    np.testing.assert_allclose(likelihood, norm.logpdf(y.numpy(), x.numpy(), sigma), rtol=1e-9)


@pytest.mark.parametrize("p", [0.0, 0.1, 0.7, 1.0])
@pytest.mark.parametrize("noise", [GaussianNoise(0.0), GaussianNoise(0.1)], ids=str)
def test_impulses_have_the_distribution_that_is_scored(p: float, noise: GaussianNoise) -> None:
    channel, count = SaltAndPepper(p, noise), 20_000
    for x in (0.0, 0.4):
        clean = torch.full((count,), x, dtype=torch.float64)
        y = channel.corrupt(clean, seeded(2))
        for shown in (0.0, 1.0):
            share = float((y == shown).double().mean())
            wanted = p / 2 + (1 - p if shown == x and noise.sigma == 0 else 0)
            assert share == pytest.approx(wanted, abs=5 * math.sqrt(max(wanted * (1 - wanted), 0) / count) + 1e-12)
            if p > 0:
                score = log_likelihood(channel, values(shown), values(x)).exp()
                assert float(score) == pytest.approx(wanted, rel=1e-12)
        others = y[(y != 0) & (y != 1)]
        if noise.sigma == 0:
            assert others.unique().tolist() == ([x] if x > 0 and p < 1 else [])
        elif p < 1:
            assert kstest(others.numpy(), norm(x, 0.1).cdf).pvalue > 1e-3


@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
def test_the_likelihood_of_impulses_and_noise_is_normalised(p: float) -> None:
    # Whole thousandths, and so 0 and 1 themselves.
    y = torch.arange(-2000, 3001, dtype=torch.float64) / 1000
    for x in (0.0, 0.6):
        log = log_likelihood(SaltAndPepper(p, GaussianNoise(0.2)), y, torch.full_like(y, x))
        impulse = ((y == 0) | (y == 1)) & (p > 0)
        assert int(impulse.sum()) == (2 if p > 0 else 0)
        # The grid hits the impulses themselves; the density beside them stands for that under them.
        density = torch.where(impulse, log.roll(1), log).exp()
        total = torch.trapezoid(density, y) + log[impulse].exp().sum()
        assert float(total) == pytest.approx(1, abs=1e-4)


def test_steps_in_order_have_the_distribution_of_their_channel() -> None:
    count = 10_000
    x = values(0, 0.2, 0.5, 0.7, 1).expand(count, -1)
    after, damage = parse_task("noise:0.1+salt:0.2", grey=True).damage(x, (1, 5), seeded(1))
    assert (damage.p, damage.sigma) == (0.2, 0.1)
    at_once = SaltAndPepper(0.2, NOISE).corrupt(x, seeded(3))
    for pixel in range(5):
        one, other = (drawn[:, pixel].sort().values.numpy() for drawn in (after, at_once))
        # Kolmogorov's distance by hand, since the distributions have atoms: below its quantile of 1e-4.
        steps = np.concatenate([one, other])
        gap = np.searchsorted(one, steps, "right") - np.searchsorted(other, steps, "right")
        assert np.abs(gap).max() / count < 2.23 * math.sqrt(2 / count)


BAD = (-0.1, math.nan, math.inf, torch.tensor([0.1, math.nan]), torch.tensor(-1))


@pytest.mark.parametrize(
    ("make", "level"),
    [*itertools.product([BitFlip, SaltAndPepper, GaussianNoise], BAD), (BitFlip, 1.1), (SaltAndPepper, 1.1)],
)
def test_what_is_no_level_is_refused(make: Callable[[float | Tensor], Channel], level: float | Tensor) -> None:
    with pytest.raises(UsageError):
        make(level)
