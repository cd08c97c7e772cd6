"""Inference in the training of conditional RBMs against models written out, and what a course refuses."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from conditionals import (
    assert_close,
    exact_clamped,
    mean_field,
    random_prior,
    some_pairs,
    statistics,
    step_of,
    to_the_end,
    worst,
)

from restore.learning.rules.conditional.divergence import ConditionalDivergence, PerceptronLoss
from restore.learning.rules.conditional.likelihood import (
    BeliefPropagationLikelihood,
    MeanFieldLikelihood,
)
from restore.learning.rules.conditional.max_margin import LatentMaxMargin, MarginalMaxMargin
from restore.learning.rules.contract import Pairs
from restore.solvers import BeliefPropagation
from restore.zoo.inference import Inference

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
