"""Conditional RBMs and their inference in training against models written out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from conditionals import (
    NAMES,
    SIZES,
    all_states,
    assert_close,
    exact_clamped,
    log_weight,
    log_z,
    mean_field,
    random_prior,
    recipe_of,
    scores,
    some_pairs,
    statistics,
    step_of,
    to_the_end,
    total,
    worst,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import bars_and_stripes, brute_force
from torch import Tensor

from restore.channels import parse_task
from restore.errors import InputError, TrainingError, UsageError
from restore.learning.course import DamagedImages, course_of
from restore.learning.rules.conditional.divergence import ConditionalDivergence
from restore.learning.rules.conditional.likelihood import (
    BeliefPropagationLikelihood,
    LogisticRegression,
    MeanFieldLikelihood,
)
from restore.learning.rules.conditional.max_margin import LatentMaxMargin, MarginalMaxMargin
from restore.learning.rules.conditional.perceptron import PerceptronLoss
from restore.learning.rules.contract import Pairs
from restore.priors import ConditionalRBM
from restore.solvers import BeliefPropagation
from restore.zoo.inference import Inference

# --- the prior ---


@settings(max_examples=20)
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
    with pytest.raises(ValueError) as caught:
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
    with pytest.raises(InputError) as caught:
        random_prior().to(dtype).given(observed.to(dtype))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("kind", ["sum", "max", "mixed"])
def test_no_images_are_refused_by_the_solver(kind: Any, dtype: torch.dtype) -> None:
    with pytest.raises(UsageError):
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
    assert learner(iterations=3, growth=2).inference(4).max_iter == 11
    assert learner(growth=0).inference(1000).max_iter == 7


def test_logistic_regression_needs_one_iteration() -> None:
    about = LogisticRegression().inference(30)
    assert (about.solver, about.max_iter) == ("mean_field", 1)


@pytest.mark.parametrize("learner", [learner for learner, _ in MATCHED])
@pytest.mark.parametrize("wrong", [{"iterations": 0}, {"growth": -1}], ids=lambda wrong: str(*wrong))
def test_impossible_inference_is_refused(learner: Any, wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        learner(**wrong)


@pytest.mark.parametrize("learner", [ConditionalDivergence, PerceptronLoss])
def test_a_chain_has_steps(learner: Any) -> None:
    with pytest.raises(UsageError):
        learner(steps=0)


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


# --- what a course refuses ---


@pytest.mark.parametrize("value", [0.5, 2.0, -1.0, math.nan, math.inf])
def test_images_with_other_values_than_0_and_1_are_refused(value: float) -> None:
    good, bad = bars_and_stripes(3), bars_and_stripes(3)
    bad[5, 2] = value
    for images, validation, name in ((bad, good, "training"), (good, bad, "validation"), (bad, good[:0], "training")):
        with pytest.raises(TrainingError) as caught:
            DamagedImages(images, validation, (3, 3), parse_task("flip:0.1"))
        assert "\n" not in str(caught.value)
    with pytest.raises(TrainingError):
        course_of(recipe_of(), bad, (3, 3))
    DamagedImages(good, good[:0], (3, 3), parse_task("flip:0.1"))
