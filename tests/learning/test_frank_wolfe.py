"""Frank-Wolfe: the inner problem, against enumeration."""

from __future__ import annotations

import math

import pytest
import torch
from directions import IMAGES
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import numerical_gradient, random_rbm, seeded
from oracle import binary_states, log_likelihood
from refusals import refused
from torch import Tensor

from restore.errors import TrainingError
from restore.learning.gradients import hidden_unit
from restore.learning.gradients.hidden_unit import (
    OBJECTIVES,
    Unit,
    change,
    factor,
    find_unit,
    fitting_scale,
    linear,
    objective,
)
from restore.priors import RBM
from restore.units import log_one_plus_exp


def exact_samples(machine: RBM, count: int, seed: int = 0) -> Tensor:
    """Independent samples of a small machine."""
    states = binary_states(machine.visible.size, machine.weights)
    probabilities = log_likelihood(machine, states).exp()
    return states[torch.multinomial(probabilities, count, replacement=True, generator=seeded(seed))]


def random_unit(size: int, seed: int = 0, scale: float = 1.0) -> Unit:
    draw = scale * torch.randn(size + 1, generator=seeded(seed), dtype=torch.float64)
    return Unit(draw[:-1], draw[-1])


def with_unit(machine: RBM, unit: Unit, share: float) -> RBM:
    """The machine and the unit, of which the visible bias takes back what it adds to the means."""
    return RBM.binary(
        torch.cat([machine.weights, unit.weights[:, None]], 1),
        machine.visible.parameters["bias"] - share * unit.weights,
        torch.cat([machine.hidden.parameters["bias"], unit.bias[None]]),
    )


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.01, 1.0]), st.sampled_from(sorted(OBJECTIVES)))
def test_the_gradient_of_an_objective_is_that_of_finite_differences(seed: int, penalty: float, name: str) -> None:
    objective = OBJECTIVES[name]
    images, samples = IMAGES.double(), exact_samples(random_rbm(9, 3, seed=seed), 30, seed)
    unit = random_unit(9, seed, 2.0)

    def value(weights: Tensor, bias: Tensor) -> float:
        return objective(Unit(weights, bias), images, samples, penalty)[0]

    _, slope = objective(unit, images, samples, penalty)
    by_weights = numerical_gradient(lambda moved: value(moved, unit.bias), unit.weights)
    by_bias = numerical_gradient(lambda moved: value(unit.weights, moved[0]), unit.bias[None])
    torch.testing.assert_close(slope.weights, by_weights, rtol=0, atol=1e-7)
    torch.testing.assert_close(slope.bias[None], by_bias, rtol=0, atol=1e-7)


def test_the_linear_objective_is_the_slope_of_the_likelihood_in_the_share_of_a_unit() -> None:
    """Eq. 9: a unit in a small share e of q changes log p by e softplus(w'v), less what log Z grows by."""
    machine, unit, share = random_rbm(9, 3), random_unit(9, 1, 2.0), 1e-5
    images, samples = IMAGES.double(), exact_samples(machine, 2000)
    images_at, samples_at = (share * log_one_plus_exp(unit.inputs(visible))[:, None] for visible in (images, samples))
    slope = float(change(images_at.mean(0), samples_at).gain) / share
    assert abs(slope) > 0.05
    assert linear(unit, images, samples, 0.0)[0] == pytest.approx(-slope, abs=1e-3)
    assert linear(unit, images, samples, 0.3)[0] == pytest.approx(0.15 * unit.square - slope, abs=1e-3)


def test_a_unit_sought_by_the_linear_objective_has_lowered_it() -> None:
    samples, fresh = (exact_samples(independent(IMAGES), 4000, seed) for seed in (0, 1))
    found = find_unit(IMAGES, samples.float(), fresh.float(), 0.003, 0.3, seeded(), "linear")
    assert found is not None and found.fitting.gain > 0
    sought = found.unit.scaled(1 / found.fitting.scale)
    still = [random_unit(9, seed) for seed in range(20)]
    values = [linear(Unit(*(part.float() for part in each)), IMAGES, samples.float(), 0.003)[0] for each in still]
    assert linear(sought, IMAGES, samples.float(), 0.003)[0] < min(values)


def test_minus_the_objective_is_what_the_unit_adds_to_the_penalised_likelihood() -> None:
    machine, images = independent(IMAGES), IMAGES.double()
    many = exact_samples(machine, 400_000)
    found = find_unit(images, exact_samples(machine, 5000), many, 0.003, 0.3, seeded())
    assert found is not None
    unit = found.unit
    share = float(torch.sigmoid(unit.inputs(images)).mean())
    rise = float((log_likelihood(with_unit(machine, unit, share), images) - log_likelihood(machine, images)).mean())
    assert abs(rise) > 0.2
    assert objective(unit, images, many, 0.0)[0] == pytest.approx(-rise, abs=0.01)
    assert objective(unit, images, many, 0.3)[0] == pytest.approx(0.15 * unit.square - rise, abs=0.01)


def test_the_estimated_gain_of_a_unit_is_the_exact_one_within_its_error() -> None:
    machine, images, unit = random_rbm(9, 3), IMAGES.double(), random_unit(9, 4, 0.8)
    # Of two sizes at once, the second a tenth.
    scales, share = torch.tensor([1.0, 0.1], dtype=torch.float64), torch.tensor([0.37, 0.5], dtype=torch.float64)
    before = log_likelihood(machine, images)
    after = [
        log_likelihood(with_unit(machine, unit.scaled(float(scale)), float(part)), images)
        for scale, part in zip(scales, share, strict=True)
    ]
    exact = torch.stack([(each - before).mean() for each in after])
    deviations = []
    for seed in range(40):
        samples = exact_samples(machine, 3000, seed)
        at = lambda v: factor(scales * unit.inputs(v)[:, None], share, scales * unit.bias)  # noqa: E731
        outcome = change(at(images).mean(0), at(samples))
        deviations.append((outcome.gain - exact) / outcome.error)
    spread = torch.stack(deviations)
    # Forty standard normal numbers, if the error is what it says.
    assert bool(((spread.std(0) > 0.7) & (spread.std(0) < 1.3) & (spread.mean(0).abs() < 0.6)).all())


def test_overlap_is_the_effective_share_of_the_samples() -> None:
    lopsided = torch.tensor([50.0] + [0.0] * 9, dtype=torch.float64)
    outcome = change(torch.zeros(2).double(), torch.stack([torch.zeros_like(lopsided), lopsided], 1))
    assert [float(values[0]) for values in outcome] == pytest.approx([0, 0, 1], abs=1e-6)
    assert float(outcome.overlap[1]) == pytest.approx(0.1, abs=1e-6)
    assert float(outcome.gain[1]) == pytest.approx(math.log(10) - 50, abs=1e-6)


def independent(images: Tensor) -> RBM:
    """The machine without correlations that has the images' means."""
    bias = torch.logit(images.mean(0, dtype=torch.float64))
    return RBM.binary(torch.zeros(9, 1, dtype=torch.float64), bias, torch.zeros(1, dtype=torch.float64))


def test_the_scale_gains_most_after_penalty_among_those_with_overlap() -> None:
    machine, images = independent(IMAGES), IMAGES.double()
    samples = exact_samples(machine, 5000)
    found = find_unit(images, exact_samples(machine, 5000, 1), samples, 0.003, 0.3, seeded())
    assert found is not None
    unit = found.unit.scaled(3.0)

    def at(scale: float) -> tuple[float, float]:
        """The gain after penalty, and the overlap, of the unit in this size alone."""
        share = torch.sigmoid(scale * unit.inputs(images)).mean()[None]
        of = [factor(scale * unit.inputs(v)[:, None], share, scale * unit.bias[None]) for v in (images, samples)]
        outcome = change(of[0].mean(0), of[1])
        return float(outcome.gain) - 0.0015 * scale**2 * unit.square, float(outcome.overlap)

    wide, narrow = (fitting_scale(unit, images, samples, 0.003, overlap) for overlap in (0.3, 0.95))
    assert wide is not None and narrow is not None
    assert narrow.scale < wide.scale
    for fitting, least in ((wide, 0.3), (narrow, 0.95)):
        every = {scale: at(scale) for scale in hidden_unit.SCALES}
        best = max((net, scale) for scale, (net, overlap) in every.items() if overlap >= least)
        assert fitting.scale == pytest.approx(best[1])
        assert fitting.overlap == pytest.approx(every[best[1]][1])
    assert fitting_scale(unit, images, samples, 0.003, 0.999999) is None
    assert fitting_scale(unit, images, samples, 10.0, 0.3) is None


@pytest.mark.parametrize("penalty", [1.0, 100.0, 1e6])
def test_a_unit_of_no_size_is_none(penalty: float) -> None:
    # L-BFGS ends beside zero then, where the rounding of both terms decides about the sign of the gain.
    samples, fresh = (exact_samples(independent(IMAGES), 200, seed).float() for seed in (0, 1))
    assert find_unit(IMAGES, samples, fresh, penalty, 0.3, seeded()) is None


def test_a_failing_search_is_begun_again_and_then_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def failing(start: Unit, images: Tensor, samples: Tensor, penalty: float, sought_by: str) -> tuple[Unit, int]:
        tried.append((start, penalty))
        return Unit(10 * torch.ones_like(start.weights), start.bias), 1  # an end far above where it began

    monkeypatch.setattr(hidden_unit, "_descend", failing)
    assert find_unit(IMAGES, IMAGES, IMAGES, 1.0, 0.3, seeded()) is None
    assert [penalty for _, penalty in tried] == list(hidden_unit.STIFFNESS)
    assert not torch.equal(tried[0][0].weights, tried[1][0].weights)


def test_an_objective_that_is_not_finite_is_an_error() -> None:
    with refused(TrainingError, "penalty"):
        find_unit(IMAGES * 1e200, IMAGES, IMAGES, 0.01, 0.3, seeded())
