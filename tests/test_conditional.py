"""Conditional RBMs and their learners, against every joint state of small machines, and what they learn to restore."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import bars_and_stripes, brute_force, numerical_gradients, seeded
from torch import Tensor

import restore
from restore import zoo
from restore.channels import BitFlip
from restore.description import Inference
from restore.engine import Engine
from restore.errors import InputError, TrainingError, UsageError
from restore.learning.conditional_divergence import ConditionalDivergence
from restore.learning.conditional_likelihood import BeliefPropagationLikelihood, MeanFieldLikelihood
from restore.learning.contract import ConditionalLearner, Gradient, Pairs, Step
from restore.learning.course import DamagedImages
from restore.learning.logistic import LogisticRegression
from restore.learning.max_margin import LatentMaxMargin, MarginalMaxMargin
from restore.learning.perceptron import PerceptronLoss
from restore.learning.pipeline import Trained, course_of, train
from restore.learning.recipe import LEARNERS, Recipe
from restore.learning.tables import Data, Optimizer, PriorShape, Training
from restore.priors import RBM, ConditionalRBM
from restore.solvers import FIXED_POINTS, BeliefPropagation
from restore.tasks import Flip, parse_task

# D visible units, H hidden units, and pixels of the observed image.
SIZES = [(4, 3, 4), (5, 3, 2), (6, 3, 7)]
NAMES = ["weights.0", "units.0.bias", "units.1.bias", "inputs.0", "inputs.1"]

# To a fixed point, for gradients that are exact there only.
EXACTLY: dict[str, Any] = {"iterations": 20000, "tol": 1e-15}


# --- the model, written out ---


def all_states(count: int) -> np.ndarray:
    return np.array(list(itertools.product((0.0, 1.0), repeat=count)))


def plain(prior: ConditionalRBM) -> dict[str, np.ndarray]:
    return {name: value.double().numpy() for name, value in prior.parameters.items()}


def scores(prior: ConditionalRBM, observed: Tensor, clean: Tensor | None = None) -> np.ndarray:
    """vᵀWh + vᵀ(b + Wvx x) + hᵀ(c + Whx x) of every v and h, (images, 2**D, 2**H); or of one v each, (images, 2**H)."""
    own, x = plain(prior), observed.double().numpy()
    hidden = all_states(prior.weights.shape[1])
    visible_own = own["units.0.bias"] + np.einsum("ik,nk->ni", own["inputs.0"], x)
    hidden_own = own["units.1.bias"] + np.einsum("jk,nk->nj", own["inputs.1"], x)
    answered = np.einsum("nj,mj->nm", hidden_own, hidden)
    if clean is not None:
        truth = clean.double().numpy()
        joint = np.einsum("ni,ij,mj->nm", truth, own["weights.0"], hidden)
        return joint + answered + (truth * visible_own).sum(1, keepdims=True)
    visible = all_states(prior.weights.shape[0])
    joint = np.einsum("si,ij,mj->sm", visible, own["weights.0"], hidden)
    return joint + np.einsum("ni,si->ns", visible_own, visible)[:, :, None] + answered[:, None, :]


def total(logs: np.ndarray) -> np.ndarray:
    """Log of a sum over the last axis."""
    top = logs.max(-1, keepdims=True)
    return np.log(np.exp(logs - top).sum(-1)) + top[..., 0]


def log_weight(prior: ConditionalRBM, pairs: Pairs) -> np.ndarray:
    """log of the unnormalised p(v | x), (images,)."""
    return total(scores(prior, pairs.observed, pairs.clean))


def log_z(prior: ConditionalRBM, observed: Tensor) -> np.ndarray:
    return total(total(scores(prior, observed)))


def likelihood(prior: ConditionalRBM, pairs: Pairs) -> float:
    """Mean log p(v | x)."""
    return float((log_weight(prior, pairs) - log_z(prior, pairs.observed)).mean())


def wrong_pixels(clean: Tensor) -> np.ndarray:
    """Of every visible state, against each image: (images, 2**D)."""
    return (all_states(clean.shape[1])[None] != clean.numpy()[:, None]).sum(-1).astype(float)


def sigmoid(values: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-values))


def random_prior(
    sizes: tuple[int, int, int] = (5, 3, 4), scale: float = 1.0, inputs: float = 0.6, seed: int = 0
) -> ConditionalRBM:
    """A conditional machine in float64; `scale` is that of W alone."""
    visible, hidden, pixels = sizes
    shapes = ((visible, hidden), (visible,), (hidden,), (visible, pixels), (hidden, pixels))
    draw = seeded(seed)
    weights, b, c, wvx, whx = (torch.randn(shape, generator=draw, dtype=torch.float64) for shape in shapes)
    return ConditionalRBM(RBM.binary(scale * weights, 0.7 * b, 0.7 * c), inputs * wvx, inputs * whx)


def some_pairs(sizes: tuple[int, int, int] = (5, 3, 4), count: int = 4, seed: int = 1, binary: bool = False) -> Pairs:
    """Observed images, of any value unless binary, and binary clean ones."""
    draw = seeded(seed)
    observed = torch.randn(count, sizes[2], generator=draw, dtype=torch.float64)
    clean = torch.bernoulli(torch.full((count, sizes[0]), 0.5, dtype=torch.float64), generator=draw)
    return Pairs((observed > 0).double() if binary else observed, clean)


def forest(visible: int, hidden: int, seed: int) -> Tensor:
    """A mask of edges without loops, as many as there can be, (visible, hidden)."""
    edges = list(itertools.product(range(visible), range(hidden)))
    tree = list(range(visible + hidden))
    mask = torch.zeros(visible, hidden, dtype=torch.float64)
    for index in torch.randperm(len(edges), generator=seeded(seed)).tolist():
        i, j = edges[index]
        first, second = tree[i], tree[visible + j]
        if first != second:
            mask[i, j] = 1
            tree = [first if label == second else label for label in tree]
    assert int(mask.sum()) == visible + hidden - 1
    return mask


def with_weights(prior: ConditionalRBM, weights: Tensor) -> ConditionalRBM:
    return prior.with_parameters(prior.parameters | {"weights.0": weights})


def step_of(learner: ConditionalLearner, prior: ConditionalRBM, pairs: Pairs, epoch: int = 0, seed: int = 0) -> Step:
    draw = seeded(seed)
    return learner.step(prior, pairs, learner.init(prior, pairs.clean, draw), draw, epoch)


def worst(got: Gradient, wanted: Gradient) -> dict[str, float]:
    """Largest error per parameter."""
    assert set(got) == set(wanted) == set(NAMES)
    return {name: float((got[name].double() - wanted[name]).abs().max()) for name in NAMES}


def assert_close(got: Gradient, wanted: Gradient, atol: float) -> None:
    errors = worst(got, wanted)
    assert max(errors.values()) <= atol, errors


# --- the prior ---


@settings(deadline=None, max_examples=20)
@given(st.sampled_from(SIZES), st.integers(0, 1000), st.sampled_from([torch.float64, torch.float32]))
def test_given_is_the_conditional_distribution(sizes: tuple[int, int, int], seed: int, dtype: torch.dtype) -> None:
    prior, pairs = random_prior(sizes, seed=seed), some_pairs(sizes, 3, seed)
    wanted = scores(prior, pairs.observed)
    given = prior.to(dtype).given(pairs.observed.to(dtype))
    assert given.weights.dtype == given.layers[0].parameters["bias"].dtype == dtype
    close = 1e-12 if dtype == torch.float64 else 1e-4
    visible, hidden = (torch.from_numpy(all_states(size)).to(dtype) for size in sizes[:2])
    for row in range(3):
        machine = given.rows(torch.tensor([row]))
        energies = [machine.energy((v.expand(len(hidden), -1), hidden)).double().numpy() for v in visible]
        np.testing.assert_allclose(-np.array(energies), wanted[row], rtol=0, atol=close)
        found = -machine.free_energy(visible).double().numpy()
        np.testing.assert_allclose(found, total(wanted[row]), rtol=0, atol=close)
        assert brute_force(given, row).log_partition == pytest.approx(log_z(prior, pairs.observed)[row], abs=close)
    np.testing.assert_allclose(
        -given.free_energy(pairs.clean.to(dtype)).double().numpy(), log_weight(prior, pairs), rtol=0, atol=close
    )


def test_an_empty_observation_leaves_the_machine() -> None:
    prior = random_prior()
    machine = prior.given(torch.zeros(2, 4, dtype=torch.float64))
    assert torch.equal(machine.weights, prior.machine.weights)
    for layer, own in zip(machine.layers, prior.machine.layers, strict=True):
        assert torch.equal(layer.parameters["bias"], own.parameters["bias"].expand(2, -1))


def test_parameters_by_name() -> None:
    prior = random_prior((6, 3, 7))
    assert sorted(prior.parameters) == sorted(NAMES)
    assert {name: tuple(value.shape) for name, value in prior.parameters.items()} == {
        "weights.0": (6, 3),
        "units.0.bias": (6,),
        "units.1.bias": (3,),
        "inputs.0": (6, 7),
        "inputs.1": (3, 7),
    }
    moved = {name: value + index for index, (name, value) in enumerate(prior.parameters.items())}
    again = prior.with_parameters(moved)
    assert isinstance(again, ConditionalRBM)
    assert all(again.parameters[name] is value for name, value in moved.items())
    assert torch.equal(again.weights, moved["weights.0"])
    assert {value.dtype for value in prior.to(torch.float32).parameters.values()} == {torch.float32}


@pytest.mark.parametrize(
    ("visible", "hidden"),
    [((4, 5), (3, 5)), ((5, 5), (2, 5)), ((5, 5), (3, 4)), ((5,), (3, 5)), ((5, 5), (3,)), ((5, 5, 1), (3, 5, 1))],
    ids=str,
)
def test_inputs_that_do_not_lead_to_the_layers(visible: tuple[int, ...], hidden: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="do not lead to layers of sizes") as caught:
        ConditionalRBM(random_prior().machine, torch.zeros(visible), torch.zeros(hidden))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(
    ("observed", "says"),
    [
        (torch.zeros(2, 5), r"shape \(2, 5\) do not fit; give \(N, 4\)"),
        (torch.zeros(2, 0), r"shape \(2, 0\) do not fit; give \(N, 4\)"),
        (torch.zeros(4), r"shape \(4,\) do not fit; give \(N, 4\)"),
        (torch.zeros(1, 2, 4), r"shape \(1, 2, 4\) do not fit; give \(N, 4\)"),
        (torch.tensor([[0, 1, 0, math.nan]]), "NaN or infinite"),
        (torch.tensor([[0, 1, 0, 0], [math.inf, 1, 0, 0]]), "NaN or infinite"),
        (torch.tensor([[0, -math.inf, 0, 0]]), "NaN or infinite"),
    ],
    ids=["size", "nothing", "flat", "3d", "nan", "inf", "-inf"],
)
def test_observed_images_that_cannot_be_used(observed: Tensor, says: str, dtype: torch.dtype) -> None:
    with pytest.raises(InputError, match=says) as caught:
        random_prior().to(dtype).given(observed.to(dtype))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("kind", ["sum", "max", "mixed"])
def test_no_images_are_refused_by_the_solver(kind: Any, dtype: torch.dtype) -> None:
    with pytest.raises(UsageError, match="a batch of 0 images"):
        BeliefPropagation(kind).solve(random_prior().to(dtype).given(torch.zeros(0, 4, dtype=dtype)))


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
        about = learner().inference(epoch)
        assert about == Inference(solver=solver, max_iter=7 + epoch, tol=1e-3, damping=0.0, modes=0, starts=0)  # type: ignore[arg-type]
    assert learner(iterations=3, growth=2, tol=0.1).inference(4).max_iter == 11
    assert learner(growth=0).inference(1000).max_iter == 7


def test_logistic_regression_needs_one_iteration() -> None:
    about = LogisticRegression().inference(30)
    assert (about.solver, about.max_iter) == ("mean_field", 1)


@pytest.mark.parametrize("learner", [learner for learner, _ in MATCHED] + [LogisticRegression])
@pytest.mark.parametrize(
    "wrong", [{"iterations": 0}, {"growth": -1}, {"tol": -1e-3}, {"tol": math.nan}], ids=lambda wrong: str(*wrong)
)
def test_impossible_inference_is_refused(learner: Any, wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        learner(**wrong)


@pytest.mark.parametrize("learner", [ConditionalDivergence, PerceptronLoss])
def test_a_chain_has_steps(learner: Any) -> None:
    with pytest.raises(UsageError, match="steps must be at least 1, not 0"):
        learner(steps=0)


def mean_field(prior: ConditionalRBM, observed: Tensor, iterations: int) -> tuple[np.ndarray, np.ndarray]:
    """Visible and hidden means after as many iterations from what x alone says of the pixels."""
    own, x = plain(prior), observed.double().numpy()
    visible_own, hidden_own = own["units.0.bias"] + x @ own["inputs.0"].T, own["units.1.bias"] + x @ own["inputs.1"].T
    visible = sigmoid(visible_own)
    for _ in range(iterations):
        hidden = sigmoid(hidden_own + visible @ own["weights.0"])
        visible = sigmoid(visible_own + hidden @ own["weights.0"].T)
    return visible, hidden


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


@pytest.mark.parametrize("epoch", [0, 3])
def test_mean_field_of_an_epoch_has_its_number_of_iterations(epoch: int) -> None:
    prior, pairs = random_prior(scale=2.0), some_pairs()
    step = step_of(MeanFieldLikelihood(tol=0.0), prior, pairs, epoch)
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
    step = step_of(BeliefPropagationLikelihood(iterations=2, tol=0.0), prior.to(dtype), cast, epoch)
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
    step = step_of(BeliefPropagationLikelihood(**EXACTLY), prior, pairs)
    wanted = numerical_gradients(lambda moved: likelihood(moved, pairs), prior)
    # Units without an edge are not independent, which a pairwise belief cannot say.
    on_edges = {"weights.0": step.gradient["weights.0"] * edges}
    assert_close(step.gradient | on_edges, wanted | {"weights.0": wanted["weights.0"] * edges}, 1e-9)
    single = Pairs(pairs.observed.float(), pairs.clean.float())
    fused = step_of(BeliefPropagationLikelihood(iterations=50, tol=0.0), prior.to(torch.float32), single)
    assert_close(fused.gradient, step.gradient, 1e-5)


def test_on_loops_the_error_is_of_the_order_of_the_smallest_loop() -> None:
    pairs, errors = some_pairs(), []
    for scale in (0.2, 0.1):
        prior = random_prior(scale=scale)
        step = step_of(BeliefPropagationLikelihood(**EXACTLY), prior, pairs)
        errors.append(worst(step.gradient, numerical_gradients(lambda moved: likelihood(moved, pairs), prior)))
    # log Z is wrong by a product of four couplings, its slope in one of them by one of three.
    orders = {name: math.log2(errors[0][name] / errors[1][name]) for name in NAMES}
    assert orders["weights.0"] == pytest.approx(3, abs=0.4), orders
    for name in NAMES[1:]:
        assert orders[name] == pytest.approx(4, abs=0.4), orders


def test_mean_field_has_an_error_of_lower_order() -> None:
    pairs, errors = some_pairs(), []
    for scale in (0.1, 0.05):
        prior = random_prior(scale=scale)
        step = step_of(MeanFieldLikelihood(**EXACTLY), prior, pairs)
        errors.append(worst(step.gradient, numerical_gradients(lambda moved: likelihood(moved, pairs), prior)))
    orders = {name: math.log2(errors[0][name] / errors[1][name]) for name in NAMES}
    assert orders["weights.0"] == pytest.approx(1, abs=0.2), orders
    for name in NAMES[1:]:
        assert orders[name] == pytest.approx(2, abs=0.3), orders


@pytest.mark.parametrize("seed", range(3))
def test_belief_propagation_climbs_the_bethe_likelihood(seed: int) -> None:
    prior, pairs = random_prior(scale=1.2, seed=seed), some_pairs(seed=seed + 1)
    solver = BeliefPropagation("sum", 20000, 1e-15)

    def bethe(moved: ConditionalRBM) -> float:
        free = solver.solve(moved.given(pairs.observed)).log_partition.numpy()
        return float((log_weight(moved, pairs) - free).mean())

    step = step_of(BeliefPropagationLikelihood(**EXACTLY), prior, pairs)
    assert float(step.monitors["converged"]) == 1
    assert_close(step.gradient, numerical_gradients(bethe, prior), 1e-8)
    # Which is another one than the exact gradient.
    assert max(worst(step.gradient, numerical_gradients(lambda moved: likelihood(moved, pairs), prior)).values()) > 1e-4


def mean_field_log_z(prior: ConditionalRBM, observed: Tensor) -> np.ndarray:
    """Energy plus entropy of independent units at the fixed point, (images,)."""
    visible, hidden = mean_field(prior, observed, 300)
    own, x = plain(prior), observed.double().numpy()
    energy = np.einsum("ni,ij,nj->n", visible, own["weights.0"], hidden)
    energy += (visible * (own["units.0.bias"] + x @ own["inputs.0"].T)).sum(1)
    energy += (hidden * (own["units.1.bias"] + x @ own["inputs.1"].T)).sum(1)
    return energy - sum((m * np.log(m) + (1 - m) * np.log1p(-m)).sum(1) for m in (visible, hidden))


@pytest.mark.parametrize("seed", range(3))
def test_mean_field_climbs_a_likelihood_with_a_bound_for_log_z(seed: int) -> None:
    prior, pairs = random_prior(scale=0.8, seed=seed), some_pairs(seed=seed + 1)
    assert (mean_field_log_z(prior, pairs.observed) <= log_z(prior, pairs.observed)).all()
    step = step_of(MeanFieldLikelihood(**EXACTLY), prior, pairs)
    assert float(step.monitors["converged"]) == 1
    numerical = numerical_gradients(
        lambda moved: float((log_weight(moved, pairs) - mean_field_log_z(moved, pairs.observed)).mean()), prior
    )
    assert_close(step.gradient, numerical, 1e-8)


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


def test_long_chains_forget_the_data() -> None:
    prior, pairs, times = random_prior(), some_pairs(binary=True), 10_000
    exact = numerical_gradients(lambda moved: likelihood(moved, pairs), prior)
    noise = 5 * 0.5 / math.sqrt(times * len(pairs.clean))
    step = step_of(ConditionalDivergence(steps=25), prior, repeated(pairs, times), seed=4)
    assert_close(step.gradient, exact, noise)
    assert max(worst(step_of(ConditionalDivergence(), prior, repeated(pairs, times)).gradient, exact).values()) > noise


# --- perceptron loss ---


def found_state(step: Step, pairs: Pairs) -> Tensor:
    """The negative of a batch of one: the gradient in b is the truth minus it."""
    assert len(pairs.clean) == 1
    negative = pairs.clean - step.gradient["units.0.bias"]
    assert set(negative.unique().tolist()) <= {0.0, 1.0}
    return negative


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6), st.sampled_from([1, 10]))
def test_the_negative_is_never_less_probable_than_the_truth(seed: int, steps: int) -> None:
    prior, pairs = random_prior(scale=1.5, seed=seed), some_pairs(count=1, seed=seed)
    step = step_of(PerceptronLoss(steps=steps), prior, pairs, seed=seed)
    negative = found_state(step, pairs)
    better = log_weight(prior, Pairs(pairs.observed, negative)) - log_weight(prior, pairs)
    beaten = not torch.equal(negative, pairs.clean)
    assert (better > 0) == beaten and bool(better == 0) == (not beaten)
    assert float(step.monitors["truth_beaten"]) == beaten
    assert beaten or all(float(value.abs().max()) == 0 for value in step.gradient.values())


@pytest.mark.parametrize("bias", [-1.0, 1.0])
def test_the_search_starts_at_the_logistic_prediction(bias: float) -> None:
    # b(x) alone predicts x itself. A hidden unit per pixel holds it at whatever it is: some where x is 0, others where
    # x is 1. So no chain leaves x, and none from elsewhere comes there.
    eye, signs = torch.eye(5, dtype=torch.float64), torch.tensor([1.0, 1, 1, -1, -1], dtype=torch.float64)
    machine = RBM.binary(400 * signs * eye, -150 - 50 * signs + bias, -200 * signs)
    prior = ConditionalRBM(machine, 300 * eye, 0 * eye)
    answers = set()
    for seed in range(20):
        drawn = some_pairs((5, 5, 5), count=1, seed=seed, binary=True)
        negative = found_state(step_of(PerceptronLoss(), prior, drawn), drawn)
        better = log_weight(prior, Pairs(drawn.observed, drawn.observed)) > log_weight(prior, drawn)
        assert torch.equal(negative, drawn.observed if better else drawn.clean)
        answers.add(bool(better))
    assert True in answers


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


def test_the_perceptron_gradient_is_averaged_over_the_batch() -> None:
    # A search that settles at once: without couplings the logistic prediction is the most probable state.
    prior, pairs = random_prior(scale=0.0), some_pairs(count=6)
    step = step_of(PerceptronLoss(), prior, pairs)
    alone = [
        step_of(PerceptronLoss(), prior, Pairs(x, clean)).gradient
        for x, clean in zip(pairs.observed.split(1), pairs.clean.split(1), strict=True)
    ]
    assert_close(step.gradient, {name: torch.stack([each[name] for each in alone]).mean(0) for name in NAMES}, 1e-12)


def test_a_long_search_finds_the_most_probable_state() -> None:
    for seed in range(5):
        prior, pairs = random_prior(seed=seed), some_pairs(count=1, seed=seed)
        negative = found_state(step_of(PerceptronLoss(steps=1500), prior, pairs, seed=seed), pairs)
        best = total(scores(prior, pairs.observed))[0].argmax()
        assert (negative[0].numpy() == all_states(5)[best]).all()


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
    step = step_of(learner(iterations=200, tol=1e-12), prior, pairs)
    assert float(step.monitors["margin_loss"]) == pytest.approx(losses.mean(), abs=1e-10)
    assert_close(
        step.gradient, numerical_gradients(lambda moved: -float(objective(moved, pairs)[0].mean()), prior), 1e-8
    )
    single = Pairs(pairs.observed.float(), pairs.clean.float())
    fused = step_of(learner(iterations=200, tol=1e-6), prior.to(torch.float32), single)
    assert float(fused.monitors["margin_loss"]) == pytest.approx(losses.mean(), abs=1e-4)
    assert_close(fused.gradient, step.gradient, 1e-5)


@margins
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("sizes", [*SIZES, (4, 8, 4)], ids=str)
def test_margin_loss_and_gradient_where_the_search_is_exact(kind: str, sizes: tuple[int, int, int], seed: int) -> None:
    prior, pairs = random_prior(sizes, scale=2.0, seed=seed), some_pairs(sizes, seed=seed)
    assert_margin(kind, with_weights(prior, prior.weights * star(*sizes[:2])), pairs)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_latent_margin_on_forests(sizes: tuple[int, int, int], seed: int) -> None:
    prior, pairs = random_prior(sizes, scale=2.0, seed=seed), some_pairs(sizes, seed=seed)
    assert_margin("latent", with_weights(prior, prior.weights * forest(*sizes[:2], seed)), pairs)


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


@margins
def test_a_truth_that_leads_by_more_than_its_margin_teaches_nothing(kind: str) -> None:
    learner, objective = MARGINS[kind]
    pairs = some_pairs((5, 3, 5), binary=True)
    pairs = Pairs(pairs.clean, pairs.clean)
    eye = torch.eye(5, dtype=torch.float64)
    prior = random_prior((5, 3, 5), scale=0.1)
    certain = {"units.0.bias": torch.full((5,), -2.5).double(), "inputs.0": 5 * eye}
    step = step_of(learner(), prior.with_parameters(prior.parameters | certain), pairs)
    assert float(step.monitors["margin_loss"]) == pytest.approx(0, abs=1e-12)
    assert max(float(value.abs().max()) for value in step.gradient.values()) < 1e-12
    unsure = prior.with_parameters(prior.parameters | {name: value / 10 for name, value in certain.items()})
    assert float(step_of(learner(), unsure, pairs).monitors["margin_loss"]) > 1
    assert objective(unsure, pairs)[0].mean() > 1


# --- every learner ---

ALL: dict[str, Any] = {name: kind() for name, kind in LEARNERS["crbm"].items()}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("name", ALL)
def test_a_gradient_has_the_shape_and_type_of_the_parameters(name: str, dtype: torch.dtype) -> None:
    for sizes in [*SIZES, (1, 1, 1)]:
        prior, pairs = random_prior(sizes, seed=3).to(dtype), some_pairs(sizes, count=1)
        before = {key: value.clone() for key, value in prior.parameters.items()}
        step = step_of(ALL[name], prior, Pairs(*(part.to(dtype) for part in pairs)))
        assert step.gradient.keys() == prior.parameters.keys()
        for key, value in step.gradient.items():
            assert (value.shape, value.dtype) == (before[key].shape, dtype)
            assert bool(torch.isfinite(value).all())
            assert torch.equal(prior.parameters[key], before[key])
        assert step.state == {}
        assert all(value.dim() == 0 and bool(torch.isfinite(value)) for value in step.monitors.values())


# --- from a recipe to restored images ---


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """No waiting for the disk: nothing here pulls the plug."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def recipe_of(method: str = "belief_propagation", **changed: Any) -> Recipe:
    settings: dict[str, Any] = {
        "name": f"crbm-{method}",
        "data": Data("bars-and-stripes", task="flip:0.1", validation=3),
        "prior": PriorShape(5, "crbm", 0.0 if method == "logistic" else 0.3),
        "method": method,
        "learner": ALL[method],
        "training": Training(epochs=2, batch=4),
        "optimizer": Optimizer(rate=0.3),
    }
    return Recipe(**settings | changed)


def trained_on(recipe: Recipe, size: int, folder: Path, times: int = 1) -> Trained:
    images = bars_and_stripes(size).repeat(times, 1)
    return train(recipe, images, (size, size), folder, fingerprint="data")


@pytest.mark.parametrize("storage", ["float16", "float32"])
@pytest.mark.parametrize("method", ALL)
def test_a_trained_prior_restores_as_it_was_trained(method: str, storage: Any, tmp_path: Path) -> None:
    recipe = recipe_of(method, storage=storage)
    trained = trained_on(recipe, 3, tmp_path / "run")
    zoo.save(tmp_path / "model", trained.prior, "# card\n")
    loaded = zoo.load(tmp_path / "model")
    assert loaded.description == trained.prior.description
    about = loaded.description.inference
    wanted = recipe.learner.inference(trained.epoch - 1)
    assert about == wanted
    assert about.max_iter == (1 if method == "logistic" else 7 + trained.epoch - 1)
    assert isinstance(loaded.machine, ConditionalRBM)
    for name, value in trained.prior.machine.parameters.items():
        assert torch.equal(loaded.machine.parameters[name], value), name
        assert storage == "float32" or name.startswith("units") or torch.equal(value.half().float(), value)
    engine = Engine.load(str(tmp_path / "model"), "cpu")
    observed = DamagedImages(bars_and_stripes(3), bars_and_stripes(3), (3, 3), Flip(0.2)).damaged
    solution = engine.restore(observed)
    by_hand = FIXED_POINTS[wanted.solver](max_iter=wanted.max_iter, tol=wanted.tol, damping=0.0)
    means = by_hand.solve(loaded.machine.given(observed)).means[0]
    assert torch.equal(solution.means[0], means)
    assert int(solution.iterations.max()) <= wanted.max_iter
    if wanted.solver == "mean_field":
        exhausted = solution.status != 0
        visible, _ = mean_field(loaded.machine, observed, wanted.max_iter)
        torch.testing.assert_close(means[exhausted].double(), torch.from_numpy(visible)[exhausted], rtol=0, atol=1e-5)
    with pytest.raises(UsageError, match=rf"{recipe.name} has learnt to undo flip:0\.1 from the damaged image alone"):
        engine.restore(observed, BitFlip(0.1))
    # What was validated is what restores; rounding may turn a pixel or two.
    course = course_of(recipe, bars_and_stripes(3), (3, 3))
    assert isinstance(course, DamagedImages)
    judged = ((engine.restore(course.damaged).means[0] > 0.5) != (course.validation > 0.5)).float().mean()
    assert trained.error is not None and abs(float(judged) - trained.error) <= (
        2 / 27 if storage == "float16" else 1e-6
    )


def test_each_learner_learns_to_restore(tmp_path: Path) -> None:
    clean = bars_and_stripes(4).repeat(20, 1)
    observed = Flip(0.1).damage(clean, (4, 4), seeded(99)).observed
    nothing = float((observed != clean).float().mean())
    assert nothing == pytest.approx(0.1, abs=0.01)
    errors = {}
    for method in ALL:
        recipe = recipe_of(
            method,
            data=Data("bars-and-stripes", task="flip:0.1"),
            prior=PriorShape(12, "crbm", 0.0 if method == "logistic" else 0.1),
            training=Training(epochs=40, batch=20, checkpoint_every=40),
            optimizer=Optimizer(rate=0.2),
        )
        engine = Engine.of(trained_on(recipe, 4, tmp_path / method, times=10).prior, torch.device("cpu"))
        errors[method] = float(((engine.restore(observed).means[0] > 0.5) != (clean > 0.5)).float().mean())
    assert max(errors.values()) < 0.8 * nothing, errors
    assert max(errors["belief_propagation"], errors["marginal_max_margin"]) <= errors["logistic"], errors


# --- what a course refuses ---


@pytest.mark.parametrize("value", [0.5, 2.0, -1.0, math.nan, math.inf])
def test_images_with_other_values_than_0_and_1_are_refused(value: float) -> None:
    good, bad = bars_and_stripes(3), bars_and_stripes(3)
    bad[5, 2] = value
    for images, validation, name in ((bad, good, "training"), (good, bad, "validation"), (bad, good[:0], "training")):
        with pytest.raises(TrainingError, match=f"{name} images hold other values than 0 and 1") as caught:
            DamagedImages(images, validation, (3, 3), parse_task("flip:0.1"))
        assert "\n" not in str(caught.value)
    with pytest.raises(TrainingError, match="other values than 0 and 1"):
        course_of(recipe_of(), bad, (3, 3))
    DamagedImages(good, good[:0], (3, 3), parse_task("flip:0.1"))


# --- the Python interface ---

PICTURE = (bars_and_stripes(4)[3].reshape(4, 4).numpy() * 255).astype(np.uint8)


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a conditional prior among those of the user."""
    monkeypatch.setattr(zoo, "user_folder", lambda: tmp_path / "models")
    trained = trained_on(recipe_of(), 4, tmp_path / "run")
    zoo.save(tmp_path / "models" / "crbm-tiny", replace_name(trained.prior, "crbm-tiny"), "# card\n")
    return "crbm-tiny"


def replace_name(prior: zoo.TrainedPrior, name: str) -> zoo.TrainedPrior:
    return replace(prior, description=replace(prior.description, name=name))


def test_a_conditional_prior_denoises_without_p(model: str) -> None:
    loaded = restore.load(model, device="cpu")
    wanted = loaded.engine.restore(torch.from_numpy(PICTURE / 255).flatten()[None].float()).means[0] > 0.5
    for found in (
        restore.denoise(PICTURE, model, device="cpu"),
        restore.denoise(PICTURE, model=loaded),
        loaded.denoise(PICTURE),
        loaded.denoise(PICTURE, None),
    ):
        assert (found.dtype, found.shape) == (PICTURE.dtype, PICTURE.shape)
        assert torch.equal(torch.from_numpy(found > 127).flatten(), wanted[0])
    batch, solution = loaded.denoise(np.stack([PICTURE, 255 - PICTURE]), return_solution=True, soft=True)
    assert batch.shape == (2, 4, 4) and len(solution.status) == 2


def test_a_conditional_prior_is_told_nothing(model: str) -> None:
    loaded = restore.load(model, device="cpu")
    mask = np.zeros((4, 4), bool)
    mask[0] = True
    calls: list[Callable[[], Any]] = [
        lambda: restore.denoise(PICTURE, model, p=0.1),
        lambda: restore.denoise(PICTURE, model, p=0.0),
        lambda: restore.denoise(PICTURE, model, p=np.full((4, 4), 0.1)),
        lambda: loaded.denoise(PICTURE, 0.1),
        lambda: restore.complete(PICTURE, mask, model),
        lambda: restore.complete(PICTURE, mask, model, p=0.1),
        lambda: loaded.complete(PICTURE, mask),
    ]
    for call in calls:
        with pytest.raises(UsageError, match=r"crbm-tiny has learnt to undo flip:0\.1 from the damaged") as caught:
            call()
        assert "\n" not in str(caught.value)


def test_other_priors_must_be_told(tmp_path: Path) -> None:
    trained = restore.train(
        [PICTURE, PICTURE.T] * 4, hidden=3, epochs=1, device="cpu", inference={"modes": 0, "starts": 1}
    )
    zoo.save(tmp_path / "plain", trained.engine.trained, "# card\n")
    for call in (
        lambda: restore.denoise(PICTURE, str(tmp_path / "plain")),
        lambda: restore.denoise(PICTURE, trained),
        lambda: trained.denoise(PICTURE),
    ):
        with pytest.raises(UsageError, match=r"p is missing; .* \(or p=0\.1\)"):
            call()
    assert trained.denoise(PICTURE, 0.1).shape == (4, 4)


def test_memory_for_messages_is_limited_on_request(model: str) -> None:
    wanted = restore.load(model, device="cpu").denoise(PICTURE)
    assert (restore.load(model, "cpu", max_memory=10**6).denoise(PICTURE) == wanted).all()
    assert (restore.load(model, "cpu", None).denoise(PICTURE) == wanted).all()
    with pytest.raises(InputError, match=r"raise the limit \(--max-memory or max_memory=\)"):
        restore.load(model, "cpu", max_memory=10).denoise(PICTURE)


@pytest.mark.parametrize("kind", [ConditionalDivergence, PerceptronLoss])
def test_epochs_of_regression_come_first(kind: type[ConditionalDivergence]) -> None:
    prior, draw = random_prior((5, 3, 5)), seeded(1)
    clean, observed = ((torch.rand(8, 5, generator=draw) < 0.5).double() for _ in range(2))
    batch, learner = Pairs(observed, clean), kind(regression=2)
    wanted = LogisticRegression().step(prior, batch, {}, seeded(2), 1).gradient
    found = learner.step(prior, batch, {}, seeded(2), 1).gradient
    assert all(torch.equal(found[name], wanted[name]) for name in wanted)
    after = learner.step(prior, batch, {}, seeded(2), 2).gradient
    without = kind().step(prior, batch, {}, seeded(2), 0).gradient
    assert all(torch.equal(after[name], without[name]) for name in without)
    assert float(after["weights.0"].abs().max()) > 0
    with pytest.raises(UsageError, match="regression"):
        kind(regression=-1)
