"""Learners of conditional RBMs by losses of wrong pixels, against models written out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from conditionals import (
    SIZES,
    all_states,
    assert_close,
    log_weight,
    random_prior,
    scores,
    some_pairs,
    step_of,
    to_the_end,
    total,
    with_weights,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import numerical_gradients, seeded
from torch import Tensor

from restore.fields import Fields
from restore.learning.rules.conditional.divergence import PerceptronLoss
from restore.learning.rules.conditional.max_margin import LatentMaxMargin, MarginalMaxMargin
from restore.learning.rules.contract import Pairs, Step
from restore.priors import ConditionalRBM


def wrong_pixels(clean: Tensor) -> np.ndarray:
    """In how many pixels each visible state differs from each image, (images, 2**D)."""
    return (all_states(clean.shape[1])[None] != clean.numpy()[:, None]).sum(-1).astype(float)


# --- perceptron loss ---


def found_state(step: Step, pairs: Pairs) -> Tensor:
    """The negative of a batch of one: the gradient in b is the truth minus it."""
    assert len(pairs.clean) == 1
    negative = pairs.clean - step.gradient["units.0.bias"]
    assert set(negative.unique().tolist()) <= {0.0, 1.0}
    return negative


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.sampled_from([1, 10]))
def test_the_negative_is_the_most_probable_state_of_the_chain(seed: int, steps: int) -> None:
    prior, pairs = random_prior(scale=1.5, seed=seed), some_pairs(count=1, seed=seed)
    step = step_of(PerceptronLoss(steps=steps), prior, pairs, seed=seed)
    # The same chain, written out: a sample of what b(x) alone predicts, and sweeps from there.
    draw, machine = seeded(seed), prior.given(pairs.observed)
    visited = [machine.visible.sample(Fields(torch.zeros_like(pairs.clean)), draw)]
    for _ in range(steps):
        visited.append(machine.gibbs_sweep(visited[-1], draw))
    weights = [float(log_weight(prior, Pairs(pairs.observed, state))[0]) for state in visited]
    best = int(np.argmax(weights))
    negative = found_state(step, pairs)
    assert weights[best] == pytest.approx(float(log_weight(prior, Pairs(pairs.observed, negative))[0]), abs=1e-12)
    assert any(torch.equal(negative, state) for state in visited)
    assert float(step.monitors["start_beaten"]) == (not torch.equal(visited[0], negative))
    lead = weights[best] - float(log_weight(prior, pairs)[0])
    assert float(step.monitors["truth_beaten"]) == (lead > 0 and not torch.equal(negative, pairs.clean))


def test_the_perceptron_gradient_with_the_negative_held_fixed() -> None:
    moved_any = 0
    for seed in range(6):
        prior, pairs = random_prior(scale=1.5, seed=seed), some_pairs(count=1, seed=seed)
        step = step_of(PerceptronLoss(), prior, pairs)
        wrong = Pairs(pairs.observed, found_state(step, pairs))
        moved_any += not torch.equal(wrong.clean, pairs.clean)
        numerical = numerical_gradients(
            lambda moved, wrong=wrong, pairs=pairs: float((log_weight(moved, pairs) - log_weight(moved, wrong)).sum()),
            prior,
        )
        assert_close(step.gradient, numerical, 1e-8)
    assert moved_any >= 4


# --- max margin ---


def marginal_objective(prior: ConditionalRBM, pairs: Pairs) -> tuple[np.ndarray, np.ndarray]:
    """Per image max over v of [wrong pixels + log p(v)] - log p(truth), and the lead of the best v over the next."""
    values = np.sort(wrong_pixels(pairs.clean) + total(scores(prior, pairs.observed)), axis=1)
    return values[:, -1] - log_weight(prior, pairs), values[:, -1] - values[:, -2]


def latent_objective(prior: ConditionalRBM, pairs: Pairs) -> tuple[np.ndarray, np.ndarray]:
    """The same with hidden units maximised on both sides; the lead is the smaller one of the two."""
    joint = wrong_pixels(pairs.clean)[:, :, None] + scores(prior, pairs.observed)
    values = np.sort(joint.reshape(len(joint), -1), axis=1)
    truth = np.sort(scores(prior, pairs.observed, pairs.clean), axis=1)
    lead = np.minimum(values[:, -1] - values[:, -2], truth[:, -1] - truth[:, -2])
    return values[:, -1] - truth[:, -1], lead


Objective = Callable[[ConditionalRBM, Pairs], tuple[np.ndarray, np.ndarray]]

MARGINS: dict[str, tuple[Any, Objective]] = {
    "marginal": (MarginalMaxMargin, marginal_objective),
    "latent": (LatentMaxMargin, latent_objective),
}

margins = pytest.mark.parametrize("kind", MARGINS)


def star(visible: int, hidden: int) -> Tensor:
    """Edges with which no hidden unit has two neighbours: there mixed-product is exact, as max-product is."""
    mask = torch.zeros(visible, hidden, dtype=torch.float64)
    mask[torch.arange(hidden) % visible, torch.arange(hidden)] = 1
    return mask


def assert_margin(kind: str, prior: ConditionalRBM, pairs: Pairs) -> None:
    """The loss is the enumerated one and the gradient its negative slope."""
    learner, objective = MARGINS[kind]
    losses, leads = objective(prior, pairs)
    assert leads.min() > 1e-4
    step = step_of(to_the_end(learner, 1e-12, iterations=200), prior, pairs)
    assert float(step.monitors["margin_loss"]) == pytest.approx(losses.mean(), abs=1e-10)
    assert_close(
        step.gradient, numerical_gradients(lambda moved: -float(objective(moved, pairs)[0].mean()), prior), 1e-8
    )
    single = Pairs(pairs.observed.float(), pairs.clean.float())
    fused = step_of(to_the_end(learner, 1e-6, iterations=200), prior.to(torch.float32), single)
    assert float(fused.monitors["margin_loss"]) == pytest.approx(losses.mean(), abs=1e-4)
    assert_close(fused.gradient, step.gradient, 1e-5)


@margins
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("sizes", [*SIZES, (4, 8, 4)], ids=str)
def test_margin_loss_and_gradient_where_the_search_is_exact(kind: str, sizes: tuple[int, int, int], seed: int) -> None:
    prior, pairs = random_prior(sizes, scale=2.0, seed=seed), some_pairs(sizes, seed=seed)
    assert_margin(kind, with_weights(prior, prior.weights * star(*sizes[:2])), pairs)


@margins
def test_margin_loss_and_gradient_on_loops(kind: str) -> None:
    learner, objective = MARGINS[kind]
    exact = 0
    for seed in range(20):
        prior, pairs = random_prior(scale=0.7, seed=seed), some_pairs(count=1, seed=seed)
        (loss,), (lead,) = objective(prior, pairs)
        found = float(step_of(learner(iterations=200), prior, pairs).monitors["margin_loss"])
        # A search cannot find more than there is.
        assert found <= loss + 1e-10 and loss >= -1e-10
        if found > loss - 1e-10 and lead > 1e-3:
            exact += 1
            if exact <= 5:
                assert_margin(kind, prior, pairs)
    assert exact >= 15, exact
