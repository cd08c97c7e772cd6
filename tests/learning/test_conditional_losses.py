"""Learners of conditional RBMs by losses of wrong pixels and by likelihood, against models written out."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from conditionals import (
    SIZES,
    all_states,
    log_weight,
    log_z,
    mean_field,
    plain,
    random_prior,
    scores,
    sigmoid,
    some_pairs,
)
from directions import assert_slopes
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import forest_edges, numerical_gradients, seeded
from textbook import total
from torch import Tensor

from restore.fields import Fields
from restore.learning.rules.conditional.divergence import ConditionalDivergence, PerceptronLoss
from restore.learning.rules.conditional.likelihood import (
    BeliefPropagationLikelihood,
    LogisticRegression,
    Matched,
    MeanFieldLikelihood,
)
from restore.learning.rules.conditional.max_margin import LatentMaxMargin, MarginalMaxMargin
from restore.learning.rules.contract import Gradient, Pairs, Step
from restore.priors import ConditionalRBM
from restore.solvers import BeliefPropagation
from restore.zoo.inference import Inference

NAMES = ["weights.0", "units.0.bias", "units.1.bias", "inputs.0", "inputs.1"]


def to_the_end(kind: type[Any], tol: float, **settings: Any) -> Any:
    """A learner whose images converge at another tolerance."""
    return type(kind.__name__, (kind,), {"tol": tol})(**settings)


def with_weights(prior: ConditionalRBM, weights: Tensor) -> ConditionalRBM:
    return prior.with_parameters(prior.parameters | {"weights.0": weights})


def step_of(learner: Matched, prior: ConditionalRBM, pairs: Pairs, epoch: int = 0, seed: int = 0) -> Step:
    draw = seeded(seed)
    return learner.step(prior, pairs, learner.init(prior, pairs.clean, draw), draw, epoch)


def worst(got: Gradient, wanted: Gradient) -> dict[str, float]:
    """Largest error per parameter."""
    assert set(got) == set(wanted) == set(NAMES)
    return {name: float((got[name].double() - wanted[name]).abs().max()) for name in NAMES}


def assert_close(got: Gradient, wanted: Gradient, atol: float) -> None:
    errors = worst(got, wanted)
    assert max(errors.values()) <= atol, errors


def exact_clamped(prior: ConditionalRBM, visible: np.ndarray, observed: Tensor) -> Gradient:
    """Mean statistics of visible states with the hidden units summed out, one by one."""
    own, x = plain(prior), observed.double().numpy()
    hidden = sigmoid(own["units.1.bias"] + x @ own["inputs.1"].T + visible @ own["weights.0"])
    return statistics(visible, hidden, x)


def statistics(visible: np.ndarray, hidden: np.ndarray, x: np.ndarray) -> Gradient:
    found = {
        "weights.0": np.einsum("ni,nj->ij", visible, hidden),
        "units.0.bias": visible.sum(0),
        "units.1.bias": hidden.sum(0),
        "inputs.0": np.einsum("ni,nk->ik", visible, x),
        "inputs.1": np.einsum("nj,nk->jk", hidden, x),
    }
    return {name: torch.from_numpy(value / len(x)) for name, value in found.items()}


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
        assert_slopes(
            step.gradient,
            lambda moved, wrong=wrong, pairs=pairs: (log_weight(moved, pairs) - log_weight(moved, wrong)).sum(),
            prior,
            1e-8,
        )
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
    assert_slopes(step.gradient, lambda moved: -objective(moved, pairs)[0].mean(), prior, 1e-8)
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


# --- likelihoods, exact or not ---


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
    edges = forest_edges(*sizes[:2], seed)
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


# --- inference in training ---

MATCHED = [
    (BeliefPropagationLikelihood, "sum_product"),
    (MeanFieldLikelihood, "mean_field"),
    (ConditionalDivergence, "mean_field"),
    (PerceptronLoss, "mean_field"),
    (MarginalMaxMargin, "mixed_product"),
    (LatentMaxMargin, "max_product"),
]


@pytest.mark.parametrize(("learner", "solver"), MATCHED, ids=[learner.__name__ for learner, _ in MATCHED])
def test_iterations_grow_with_the_epochs(learner: Any, solver: str) -> None:
    for epoch in (0, 1, 49):
        header = learner().inference(epoch)
        assert header == Inference(solver=solver, max_iter=7 + epoch, tol=1e-3, damping=0.0, modes=0, starts=0)  # type: ignore[arg-type]
    assert learner(iterations=3, growth=2).inference(4).max_iter == 11
    assert learner(growth=0).inference(1000).max_iter == 7


@pytest.mark.parametrize("epoch", [0, 3])
def test_mean_field_of_an_epoch_has_its_number_of_iterations(epoch: int) -> None:
    prior, pairs = random_prior(scale=2.0), some_pairs()
    step = step_of(to_the_end(MeanFieldLikelihood, 0.0), prior, pairs, epoch)
    data = exact_clamped(prior, pairs.clean.numpy(), pairs.observed)
    found = [
        statistics(*mean_field(prior, pairs.observed, 7 + epoch + more), pairs.observed.numpy()) for more in (0, 1)
    ]
    wanted, other = ({name: data[name] - model[name] for name in data} for model in found)
    assert_close(step.gradient, wanted, 1e-12)
    assert max(worst(step.gradient, other).values()) > 1e-6
    assert float(step.monitors["iterations"]) == 7 + epoch


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("epoch", [0, 1])
def test_belief_propagation_of_an_epoch_has_its_number_of_iterations(epoch: int, dtype: torch.dtype) -> None:
    prior, pairs = random_prior(scale=2.0), some_pairs()
    cast = Pairs(pairs.observed.to(dtype), pairs.clean.to(dtype))
    step = step_of(to_the_end(BeliefPropagationLikelihood, 0.0, iterations=2), prior.to(dtype), cast, epoch)
    data = exact_clamped(prior, pairs.clean.numpy(), pairs.observed)
    errors = []
    for more in (0, 1):
        # Image by image, as nothing is shared between them.
        solver, model = BeliefPropagation("sum", 2 + epoch + more, 0.0), []
        for x in pairs.observed.split(1):
            found = solver.solve(prior.given(x), pairs=True)
            visible, hidden = (mean.numpy() for mean in found.means)
            assert found.pairs is not None
            model.append(statistics(visible, hidden, x.numpy()) | {"weights.0": found.pairs})
        wanted = {name: data[name] - torch.stack([each[name] for each in model]).mean(0) for name in data}
        errors.append(max(worst(step.gradient, wanted).values()))
    close = 1e-12 if dtype == torch.float64 else 1e-5
    assert errors[0] < close < 10 * close < errors[1], errors
    assert float(step.monitors["iterations"]) == 2 + epoch
    assert float(step.monitors["converged"]) == 0
