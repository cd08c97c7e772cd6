"""BSLM and the pseudo-likelihood: its sweeps, its maximum, and images for which there is none."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from bslm_covariance import flattened, rounds_of, standard_errors, unflattened
from directions import fitted, log_pseudo_likelihood
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import numerical_gradient, seeded
from oracle import binary_states, exact_samples
from refusals import refused
from torch import Tensor

from restore.errors import TrainingError
from restore.learning.gradients.pseudo_likelihood import Objective, Sample, Spins, separated_units
from restore.learning.rules.bslm import BSLM, GradientAscent, QuasiNewton, climb, spins_of, sweep, tournament
from restore.priors import FullyVisible


def random_spins(units: int, variance: float = 0.5, seed: int = 0) -> Spins:
    draw = seeded(seed)
    parameters = variance**0.5 * torch.randn(units * (units + 1) // 2, generator=draw, dtype=torch.float64)
    return unflattened(parameters)


def drawn(truth: Spins, count: int, seed: int = 0) -> Tensor:
    return exact_samples(FullyVisible.from_spins(*truth), count, seeded(seed))


def same(units: int, images: int = 60) -> Tensor:
    """Images that are mostly of one colour, so that every pixel tells all others."""
    noise = torch.rand(images, units, generator=seeded(1)) < 0.1
    colour = torch.rand(images, 1, generator=seeded(2)) < 0.5
    return (noise ^ colour).double()


# --- the sweep ---


@pytest.mark.parametrize("units", [1, 2, 3, 4, 7, 8, 11])
def test_every_pair_meets_once_and_no_unit_twice_in_a_round(units: int) -> None:
    rounds = tournament(units)
    met = sorted(tuple(sorted(pair)) for pair in rounds.movedim(1, 2).flatten(0, 1).tolist())
    assert met == [(j, k) for j in range(units) for k in range(j + 1, units)]
    for pairs in rounds:
        assert len(set(pairs.flatten().tolist())) == pairs.numel()


def slow_sweep(images: Tensor, at: Spins, l2: float) -> Spins:
    """Eq. 2.4 and 2.7 one parameter after the other, with everything computed anew for each."""
    spins = (2 * images - 1).numpy()
    couplings, bias = at.couplings.numpy().copy(), at.bias.numpy().copy()

    def predicted() -> np.ndarray:
        return np.tanh(spins @ couplings + bias)

    for unit in range(len(bias)):
        bias[unit] += ((spins - predicted())[:, unit].mean() - l2 * bias[unit]) / (1 + l2)
    for pairs in tournament(len(bias)):
        for j, k in pairs.T.tolist():
            error = spins - predicted()
            slope = (error[:, j] * spins[:, k] + error[:, k] * spins[:, j]).mean() - 2 * l2 * couplings[j, k]
            couplings[j, k] = couplings[k, j] = couplings[j, k] + slope / (2 * (1 + l2))
    return Spins(torch.from_numpy(couplings), torch.from_numpy(bias))


@pytest.mark.parametrize("units", [1, 5, 6])
@pytest.mark.parametrize("l2", [0.0, 0.2])
def test_sweep_is_that_of_the_paper(units: int, l2: float) -> None:
    images, at = same(units), random_spins(units)
    found = sweep(Objective(Sample.of(images), l2), at)
    for got, wanted in zip(found, slow_sweep(images, at, l2), strict=True):
        torch.testing.assert_close(got, wanted, rtol=0, atol=1e-12)


@settings(max_examples=25)
@given(st.integers(1, 8), st.integers(0, 10_000))
def test_no_spacer_lowers_the_objective(units: int, seed: int) -> None:
    images = (torch.rand(15, units, generator=seeded(seed)) < 0.4).double()
    objective, at = Objective(Sample.of(images), 0.01), random_spins(units, 4.0, seed)
    for steps in (1, 2, 8):
        assert objective.value(climb(objective, at, steps)) >= objective.value(at) - 1e-13


# --- convergence ---


def test_all_learners_find_the_one_maximum() -> None:
    images = drawn(random_spins(5, 0.1), 2000)
    ends = []
    sweeps, ascent = BSLM(spacers=0, tol=1e-15, rounds=5000), GradientAscent(tol=1e-15, rounds=5000)
    for learner in (sweeps, BSLM(tol=1e-15), ascent, QuasiNewton(tol=1e-15)):
        ends.append(flattened(spins_of(fitted(learner, images)[-1].state)))
    for end in ends[1:]:
        torch.testing.assert_close(end, ends[0], rtol=0, atol=1e-6)
    objective = Objective(Sample.of(images))
    assert float(flattened(objective.evaluate(unflattened(ends[1])).gradient).abs().max()) < 1e-8


# --- the objective ---


def plain_value(images: Tensor, at: Spins) -> float:
    """Eq. 2.1 over the number of images, written out."""
    total = 0.0
    for x in (2 * images - 1).numpy():
        for unit, spin in enumerate(x):
            field = float(at.couplings[unit].numpy() @ x + float(at.bias[unit]))
            total += spin * field - math.log(math.cosh(field)) - math.log(2)
    return total / len(images)


@pytest.mark.parametrize("units", [1, 4, 65], ids=["one", "few", "not-coded"])
def test_value_is_that_of_the_paper(units: int) -> None:
    images = (torch.rand(30, units, generator=seeded(1)) < 0.4).double()
    at = random_spins(units, 0.1)
    objective = Objective(Sample.of(images))
    assert objective.value(at) == pytest.approx(plain_value(images, at), abs=1e-12)
    bits = log_pseudo_likelihood(FullyVisible.from_spins(*at), images).mean()
    assert objective.value(at) == pytest.approx(float(bits), abs=1e-12)


@pytest.mark.parametrize("l2", [0.0, 0.3])
def test_gradient_against_finite_differences(l2: float) -> None:
    images = (torch.rand(50, 5, generator=seeded(1)) < 0.4).double()
    objective, at = Objective(Sample.of(images), l2), random_spins(5)
    gradient = objective.evaluate(at).gradient
    wanted = numerical_gradient(lambda moved: objective.value(unflattened(moved)), flattened(at))
    # A coupling stands in two entries of M, each of which has half its derivative.
    told = flattened(Spins(2 * gradient.couplings, gradient.bias))
    torch.testing.assert_close(told, wanted, rtol=0, atol=1e-8)
    assert objective.evaluate(at).value == objective.value(at)


def test_penalty_counts_every_entry() -> None:
    images, at = same(4), random_spins(4)
    free, bound = (Objective(Sample.of(images), l2).value(at) for l2 in (0.0, 0.5))
    assert free - bound == pytest.approx(0.25 * float((at.couplings**2).sum() + (at.bias**2).sum()), abs=1e-12)


@pytest.mark.parametrize("images", [torch.zeros(0, 3), torch.tensor([[0.5, 1.0]]), torch.tensor([[math.nan, 1.0]])])
def test_other_images_are_refused(images: Tensor) -> None:
    with refused(TrainingError, "images"):
        Sample.of(images)


# --- standard errors ---


def test_standard_errors_predict_the_error() -> None:
    truth = random_spins(5, 0.1)
    squares, predicted = [], []
    for seed in range(40):
        images = drawn(truth, 2000, seed)
        at = spins_of(fitted(BSLM(), images)[-1].state)
        squares.append((flattened(at) - flattened(truth)).square())
        predicted.append(flattened(standard_errors(images, at)).square())
    assert float(torch.stack(squares).mean() / torch.stack(predicted).mean()) == pytest.approx(1, abs=0.2)


def test_simultaneous_steps_with_mu_of_one_are_not_monotone() -> None:
    """The bound that the paper gives for gradient ascent holds for sweeps alone."""
    images = same(30)
    objective = Objective(Sample.of(images))
    at = Spins(torch.zeros(30, 30).double(), torch.zeros(30).double())
    gains = []
    for _ in range(4):
        moved = at.plus(objective.evaluate(at).gradient)
        gains.append(objective.value(moved) - objective.value(at))
        at = moved
    assert min(gains) < -1
    learner = GradientAscent(tol=0.0, rounds=40, l2=1e-3)
    assert all(found.monitors["gained"] > 0 for found in fitted(learner, images))


def refusal(images: Tensor, **settings: float) -> str:
    with pytest.raises(TrainingError) as caught:
        fitted(BSLM(**settings), images)  # type: ignore[arg-type]
    return str(caught.value)


def test_constant_pixels_are_named() -> None:
    images = (torch.rand(200, 8, generator=seeded(1)) < 0.5).double()
    images[:, 2], images[:, 5] = 0, 1
    message = refusal(images)
    assert message.startswith("pixels 2, 5 never change")
    assert "l2" in message


@pytest.mark.parametrize("kind", ["equal", "opposite", "one-implies-the-other"])
def test_pixels_that_lack_a_combination_are_named(kind: str) -> None:
    images = (torch.rand(400, 5, generator=seeded(1)) < 0.5).double()
    first = images[:, 1]
    images[:, 3] = {"equal": first, "opposite": 1 - first}.get(kind, torch.maximum(first, images[:, 3]))
    assert refusal(images).startswith("pixels 1 and 3 never show")


def test_fewer_images_than_pixels() -> None:
    images = (torch.rand(25, 40, generator=seeded(1)) < 0.5).double()
    # Enough of them that every pair shows all combinations would be too many to be separable; so only ascent tells.
    learner = BSLM()
    objective = learner.objective(images)
    start = Spins(torch.zeros(40, 40).double(), torch.zeros(40).double())
    with refused(TrainingError, "[learner] l2"):
        list(rounds_of(learner, images, start))
    assert float(objective.value(start)) == pytest.approx(-40 * math.log(2))


def test_a_penalty_gives_every_sample_a_maximum() -> None:
    images = (torch.rand(25, 40, generator=seeded(1)) < 0.5).double()
    images[:, 3] = 0
    found = fitted(BSLM(l2=1e-3), images)
    assert found[-1].verdict
    at = spins_of(found[-1].state)
    assert bool(torch.isfinite(flattened(at)).all())
    gradient = BSLM(l2=1e-3).objective(images).evaluate(at).gradient
    assert float(flattened(gradient).abs().max()) < 1e-4


def test_one_unit_that_is_always_predicted_is_no_proof() -> None:
    """A pixel that is the majority of five others can be told from them, but they cannot be told from it."""
    images = majority_beside(5)
    at = Spins(torch.zeros(6, 6).double(), torch.zeros(6).double())
    at.couplings[5, :5] = at.couplings[:5, 5] = 1.0
    objective = Objective(Sample.of(images))
    spins = objective.sample.spins
    assert bool((spins * objective.fields(at) > 0)[5].all())
    assert not len(separated_units(objective, at))
    found = fitted(BSLM(tol=1e-14, rounds=500), images)
    assert "less than" in found[-1].verdict
    assert float(spins_of(found[-1].state).couplings.abs().max()) < 5


def majority_beside(count: int) -> Tensor:
    """All states of some pixels, an odd number, and their majority beside them."""
    others = binary_states(count, torch.zeros((), dtype=torch.float64))
    return torch.cat([others, (others.mean(1, keepdim=True) > 0.5).double()], 1)


def test_couplings_on_their_way_to_infinity_are_told() -> None:
    """The majority of three: couplings of 1 to it and -1/2 among them have no negative margin, but some that are 0."""
    images = majority_beside(3)
    direction = torch.tensor([[0, -1, -1, 2], [-1, 0, -1, 2], [-1, -1, 0, 2], [2, 2, 2, 0]]).double()
    objective = Objective(Sample.of(images))
    margins = objective.sample.spins * objective.fields(Spins(direction, torch.zeros(4).double()))
    assert float(margins.min()) == 0
    assert float(margins.max()) > 0
    assert "set [learner] l2" in fitted(BSLM(tol=0.0, rounds=500), images)[-1].verdict
