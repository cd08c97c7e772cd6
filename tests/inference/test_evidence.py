"""The noise level that has the highest evidence: the evidence against enumeration, and the search."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from grey_priors import SPIKED, TRUNCATED
from hypothesis import given
from hypothesis import strategies as st
from machines import brute_force, random_fully_visible, random_machine, random_rbm
from restore.inference.noise.levels import choose_level

from restore.channels import bit_flip, gaussian_noise, salt_and_pepper
from restore.channels.levels import Scale
from restore.inference.damage import Damage
from restore.marginals import NoiseLevel
from restore.units import Bernoulli, TruncatedGaussian
from restore.zoo.description import Description

FLIPS, IMPULSES, NOISE = bit_flip.LEVELS, salt_and_pepper.LEVELS, gaussian_noise.LEVELS

ASSETS = Path(__file__).parents[2] / "assets"
CPU = torch.device("cpu")

# Binary images, and grey ones in which impulses are among the values.
INK = np.array([[[0, 1, 1], [0, 0, 1]], [[0, 0, 0], [0, 0, 0]], [[1, 1, 1], [1, 0, 1]]], dtype=np.float64)
GREY = np.array([[[0.2, -0.1]], [[0, 1]], [[0, 0.3]]])

# --------------------------------------------------------------------------------------- the evidence, by enumeration


def about(machine: Any, shape: tuple[int, ...]) -> Description:
    visible = {Bernoulli: "bernoulli", TruncatedGaussian: TRUNCATED}.get(type(machine.layers[0]), SPIKED)
    return Description("enumerated", (shape[1], shape[2]), 1, 127, "none", "none", visible=visible)


def assert_log_evidence(machine: Any, seen: np.ndarray, hidden: np.ndarray | None, p: Any, sigma: Any = None) -> None:
    """log Z and the constant are the log of the sum of p(x) p(y | x) over all x, for every image y.

    Grey values x are the nodes of a quadrature, the same on both sides: so the equation holds at each.
    """
    kind = about(machine, seen.shape)
    damage = Damage(p, sigma, hidden)
    black = damage.log_black(kind, seen)
    prior = brute_force(machine, nodes=8)
    states = torch.from_numpy(prior.states[:, : machine.layers[0].size])
    for row in range(len(seen)):
        image = torch.from_numpy(seen[row : row + 1]).flatten(1)
        channel = damage.rows(np.array([row])).channel(kind.grey)
        likelihood = channel.log_likelihood(image, states).sum(-1).numpy()
        with np.errstate(divide="ignore"):
            wanted = np.log(prior.probabilities @ np.exp(likelihood))
        tilted = brute_force(machine.tilt(channel.evidence(image)), nodes=8)
        found = tilted.log_partition + black[row] - prior.log_partition
        assert found == pytest.approx(wanted, abs=1e-9)


PER_IMAGE = np.array([0.05, 0.3, 0.6])[:, None, None]
FLIPPED = {
    "0": 0.0,
    "0.1": 0.1,
    "0.5": 0.5,
    "1": 1.0,
    "per-pixel": np.array([[0.1, 0.5, 0], [0.9, 0.2, 1]]),
    "per-image": PER_IMAGE,
}


@pytest.mark.parametrize("hidden", [None, np.array([[[1, 0, 0], [0, 1, 0]]] * 3, dtype=bool)], ids=["whole", "masked"])
@pytest.mark.parametrize("p", FLIPPED.values(), ids=FLIPPED)
@pytest.mark.parametrize("machine", [random_rbm(6, 4), random_fully_visible(6)], ids=["rbm", "fvbm"])
def test_log_z_and_the_constant_are_the_probability_of_a_binary_image(
    machine: Any, p: float | np.ndarray, hidden: np.ndarray | None
) -> None:
    assert_log_evidence(machine, INK, hidden, p)


@pytest.mark.parametrize("hidden", [None, np.array([[[0, 1]]] * 3, dtype=bool)], ids=["whole", "masked"])
@pytest.mark.parametrize("p", [None, 0.2, PER_IMAGE], ids=["none", "0.2", "per-image"])
@pytest.mark.parametrize("sigma", [0.1, 0.5, 4 * PER_IMAGE], ids=["0.1", "0.5", "per-image"])
@pytest.mark.parametrize("kind", ["spiked-truncated", "truncated"])
def test_log_z_and_the_constant_are_the_density_of_a_grey_image(
    kind: str, sigma: float | np.ndarray, p: float | np.ndarray | None, hidden: np.ndarray | None
) -> None:
    assert_log_evidence(random_machine((kind, 2), ("bernoulli", 2)), GREY, hidden, p, sigma)


@pytest.mark.parametrize("sigma", [None, 0.0])
def test_a_black_pixel_among_impulses_is_perhaps_black(sigma: float | None) -> None:
    black_or_white = np.array([[[0.0, 1.0]], [[0.0, 0.0]]])
    assert_log_evidence(random_machine(("spiked-truncated", 2), ("bernoulli", 2)), black_or_white, None, 0.3, sigma)


def test_evidence_is_as_certain_as_that_of_the_channels() -> None:
    assert pytest.approx(gaussian_noise.SHARPEST**-2) == gaussian_noise.CERTAIN
    machine = random_machine(("truncated", 2), ("bernoulli", 2))
    seen = GREY[:1]
    kind = about(machine, seen.shape)
    # What is certain is told alike by all that is as certain.
    sharpest = gaussian_noise.SHARPEST
    exact, sharp, same = (Damage(sigma=sigma).log_black(kind, seen) for sigma in (None, sharpest / 9, sharpest))
    np.testing.assert_array_equal(exact, sharp)
    np.testing.assert_array_equal(exact, same)


# ------------------------------------------------------------------------------------------------ the best of a curve

SCALE = Scale(lambda place: 10 * place, np.arange(5.0))


def chosen(curves: Any, converged: Any = True, scale: Scale = SCALE) -> NoiseLevel:
    """The levels for curves (N, G) given as numbers."""
    curves = np.asarray(curves, dtype=np.float64)
    settled = np.broadcast_to(converged, curves.shape)

    def evidence(rows: np.ndarray, levels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        places = np.searchsorted(scale.levels, levels)
        return curves[rows, places], settled[rows, places]

    return choose_level(evidence, len(curves), scale)


# Where the best of the places is, and not halfway between two.
TOPS = st.integers(0, 4).flatmap(lambda place: st.floats(max(0.0, place - 0.45), min(4.0, place + 0.45)))


@given(st.lists(st.tuples(TOPS, st.floats(0.01, 100), st.floats(-1e3, 1e3)), min_size=1, max_size=150))
def test_the_top_of_a_parabola_is_found_wherever_it_lies(tops: list[tuple[float, float, float]]) -> None:
    top, bend, height = np.array(tops).T[:, :, None]
    found = chosen(height - bend * (SCALE.places - top) ** 2)
    ends = (top[:, 0] < 0.5) | (top[:, 0] > 3.5)
    np.testing.assert_allclose(found.chosen[~ends], 10 * top[~ends, 0], atol=1e-6)
    # Nothing is said beyond the best level at an end.
    np.testing.assert_allclose(found.chosen[ends], 10 * np.rint(top[ends, 0]), atol=1e-6)
    assert found.evidence.shape == found.converged.shape == (len(tops), 5) and found.converged.all()
    assert found.tried.tolist() == [0, 10, 20, 30, 40]


ODD = {
    "rising": ([0, 1, 2, 3, 4], 40.0),
    "falling": ([4, 3, 2, 1, 0], 0.0),
    "the-same-for-all": ([7, 7, 7, 7, 7], 0.0),
    "diverged-elsewhere": ([np.nan, 1, 2, 1, 0], 20.0),
    "diverged-beside": ([0, np.nan, 2, 1.5, 0], 20.0),
    "diverged-where-best": ([0, 1, np.nan, 1.5, 0], 30.0),
    "impossible": ([-np.inf, 1, 2, 1, 0], 20.0),
    "diverged-everywhere": ([np.nan] * 5, 0.0),
    # What has not converged has no log Z, however high the number.
    "restless-where-best": ([0, 1, 9, 1.5, 0], 30.0, [True, True, False, True, True]),
    "restless-at-an-end": ([0, 1, 2, 1, 900], 20.0, [True, True, True, True, False]),
    "restless-everywhere": ([0, 1, 2, 1, 0], 20.0, [False] * 5),
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_levels_that_tell_nothing_are_left_out(odd: tuple[Any, ...]) -> None:
    curve, level, *told = odd
    converged = told[0] if told else [True] * 5
    found = chosen([curve], [converged])
    assert found.chosen.tolist() == [level]
    tried = ~np.isneginf(found.evidence[0])
    np.testing.assert_array_equal(found.evidence[0][tried], np.array(curve, float)[tried])
    assert (found.converged[0] == (np.array(converged) | ~tried)).all()
    # Both neighbours of the best were tried, or there are none.
    beside = np.searchsorted(SCALE.levels, level) + np.array([-1, 1])
    assert np.isfinite(level) and all(tried[place] or np.isneginf(curve[place]) for place in beside if 0 <= place < 5)


@given(st.integers(0, 14), st.lists(st.floats(0.1, 50), min_size=15, max_size=15))
def test_on_the_way_to_the_best_level_few_others_are_tried(best: int, steps: list[float]) -> None:
    # It falls on both sides of the best.
    curve = -np.abs(np.cumsum(steps) - np.cumsum(steps)[best])
    found = chosen([curve], scale=FLIPS)
    tried = ~np.isneginf(found.evidence[0])
    assert tried[max(0, best - 1) : best + 2].all() and tried.sum() <= 10
    assert np.abs(FLIPS.levels - found.chosen[0]).argmin() in (best - 1, best, best + 1)
    # Weak noise is found without trying the strongest, at which solvers take longest.
    assert best > 9 or not tried[13:].any()


@pytest.mark.parametrize(
    ("scale", "ends"),
    [(FLIPS, (0.002, 0.48)), (IMPULSES, (0.002, 0.9)), (NOISE, (0.01, 0.5))],
)
def test_the_scales(scale: Scale, ends: tuple[float, float]) -> None:
    assert (scale.levels[0], scale.levels[-1]) == pytest.approx(ends)
    assert (np.diff(scale.levels) > 0).all()
    np.testing.assert_allclose(np.diff(scale.places), np.diff(scale.places)[0])


@pytest.mark.parametrize(("count", "p"), [(0, 0.002), (3, 0.03), (20, 0.2), (48, 0.48), (70, 0.48)])
def test_a_share_of_flips_that_is_seen_is_found(count: int, p: float) -> None:
    # Of 100 pixels, the truth of which is known: the evidence is a binomial's.
    levels = FLIPS.levels
    found = chosen([count * np.log(levels) + (100 - count) * np.log(1 - levels)], scale=FLIPS)
    assert found.chosen[0] == pytest.approx(p, rel=0.04)


@pytest.mark.parametrize("spread", [0.015, 0.1, 0.37])
def test_a_spread_that_is_seen_is_found(spread: float) -> None:
    levels = NOISE.levels
    found = chosen([-400 * np.log(levels) - 400 * (spread / levels) ** 2 / 2], scale=NOISE)
    assert found.chosen[0] == pytest.approx(spread, rel=0.02)
