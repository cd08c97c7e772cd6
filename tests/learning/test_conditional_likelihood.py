"""Learners of conditional RBMs by likelihood, exact or not, against models written out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from conditionals import (
    SIZES,
    all_states,
    assert_close,
    exact_clamped,
    forest,
    log_weight,
    log_z,
    random_prior,
    scores,
    some_pairs,
    step_of,
    to_the_end,
    total,
    with_weights,
    worst,
)
from machines import numerical_gradients

from restore.learning.rules.conditional.divergence import ConditionalDivergence
from restore.learning.rules.conditional.likelihood import (
    BeliefPropagationLikelihood,
    LogisticRegression,
)
from restore.learning.rules.contract import Pairs
from restore.priors import ConditionalRBM

# To a fixed point, for gradients that are exact there only.
EXACTLY: dict[str, Any] = {"tol": 1e-15, "iterations": 20000}


def likelihood(prior: ConditionalRBM, pairs: Pairs) -> float:
    """Mean log p(v | x)."""
    return float((log_weight(prior, pairs) - log_z(prior, pairs.observed)).mean())


# --- logistic regression ---


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_logistic_regression_climbs_the_likelihood_of_independent_pixels(sizes: tuple[int, int, int]) -> None:
    prior, pairs = random_prior(sizes, scale=0.0), some_pairs(sizes)
    step = step_of(LogisticRegression(), prior, pairs)
    wanted = numerical_gradients(lambda moved: likelihood(moved, pairs), prior)
    for name in ("weights.0", "units.1.bias", "inputs.1"):
        assert bool((step.gradient[name] == 0).all()), name
    # Without couplings what hidden units do cannot be seen.
    assert float(wanted["units.1.bias"].abs().max()) < 1e-9 and float(wanted["inputs.1"].abs().max()) < 1e-9
    learnt = {name: step.gradient[name] for name in ("units.0.bias", "inputs.0")}
    assert_close(step.gradient | learnt, step.gradient | {name: wanted[name] for name in learnt}, 1e-9)
    assert float(step.monitors["loss"]) == pytest.approx(-likelihood(prior, pairs), abs=1e-12)


# --- maximum likelihood ---


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_belief_propagation_has_the_exact_gradient_on_forests(sizes: tuple[int, int, int], seed: int) -> None:
    edges = forest(*sizes[:2], seed)
    prior, pairs = random_prior(sizes, scale=2.0, seed=seed), some_pairs(sizes)
    prior = with_weights(prior, prior.weights * edges)
    step = step_of(to_the_end(BeliefPropagationLikelihood, **EXACTLY), prior, pairs)
    wanted = numerical_gradients(lambda moved: likelihood(moved, pairs), prior)
    # Units without an edge are not independent, which a pairwise belief cannot say.
    on_edges = {"weights.0": step.gradient["weights.0"] * edges}
    assert_close(step.gradient | on_edges, wanted | {"weights.0": wanted["weights.0"] * edges}, 1e-9)
    single = Pairs(pairs.observed.float(), pairs.clean.float())
    fused = step_of(to_the_end(BeliefPropagationLikelihood, 0.0, iterations=50), prior.to(torch.float32), single)
    assert_close(fused.gradient, step.gradient, 1e-5)


# --- contrastive divergence ---


def repeated(pairs: Pairs, times: int) -> Pairs:
    return Pairs(pairs.observed.repeat(times, 1), pairs.clean.repeat(times, 1))


def one_step(prior: ConditionalRBM, pairs: Pairs) -> np.ndarray:
    """Probability of every visible state one Gibbs step from the clean image, (images, 2**D)."""
    joint = scores(prior, pairs.observed)
    answers = scores(prior, pairs.observed, pairs.clean)
    answers = np.exp(answers - total(answers)[:, None])
    given_hidden = np.exp(joint - total(joint.swapaxes(1, 2))[:, None, :])
    return np.einsum("nm,nsm->ns", answers, given_hidden)


def test_contrastive_divergence_is_one_gibbs_step() -> None:
    prior, pairs, times = random_prior(scale=1.5), some_pairs(binary=True), 20_000
    chances, visible = one_step(prior, pairs), all_states(5)
    np.testing.assert_allclose(chances.sum(1), 1)
    data = exact_clamped(prior, pairs.clean.numpy(), pairs.observed)
    model = {name: torch.zeros_like(value) for name, value in data.items()}
    for row, x in enumerate(pairs.observed.split(1)):
        for state, chance in zip(visible, chances[row], strict=True):
            for name, value in exact_clamped(prior, state[None], x).items():
                model[name] += chance * value / len(chances)
    wanted = {name: data[name] - model[name] for name in data}
    step = step_of(ConditionalDivergence(), prior, repeated(pairs, times), seed=4)
    # Every statistic lies in [0, 1], so its standard deviation is at most 1/2.
    noise = 5 * 0.5 / math.sqrt(times * len(pairs.clean))
    assert_close(step.gradient, wanted, noise)
    exact = numerical_gradients(lambda moved: likelihood(moved, pairs), prior)
    assert max(worst(step.gradient, exact).values()) > 2 * noise
    gap = float(step.gradient["units.0.bias"].square().mean().sqrt())
    assert float(step.monitors["pixel_mean_gap"]) == pytest.approx(gap)
