"""The free half of the gradient from adaptive TAP: slopes of its log Z, exact answers, no law, batches, iterations."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from directions import assert_close, assert_slopes
from machines import FLAT, gaussian_answers, gaussian_machine, random_machine, random_rbm, seeded, two_patterns
from torch import Tensor

from restore.fields import Fields
from restore.learning.gradients.statistics import by_adaptive_tap
from restore.learning.rules.contract import Gradient
from restore.learning.rules.tap_likelihood import TAPLikelihood
from restore.priors import RBM, LayeredPrior
from restore.solvers import AdaptiveTAP

PRECISE: dict[str, Any] = {"max_iter": 3000, "tol": 1e-13, "damping": 0.3}


def alone(machine: LayeredPrior) -> Tensor:
    """Where the solver starts by itself."""
    return machine.layers[0].moments(Fields(torch.zeros(1, 1).double()))[0]


def adaptive(machine: LayeredPrior, start: Tensor | None = None, **changed: Any) -> Gradient:
    solver = AdaptiveTAP(**PRECISE | changed)
    start = alone(machine) if start is None else start
    return by_adaptive_tap(solver, machine, solver.init(machine, start)).statistics  # type: ignore[arg-type]


@pytest.mark.thorough
@pytest.mark.parametrize(
    "machine",
    [
        random_rbm(5, 4, scale=0.6, seed=3),
        random_rbm(3, 5, scale=0.8, seed=4),
        random_machine(("symmetric", 3), ("bernoulli", 2), scale=0.5, seed=3),
        random_machine(("spiked-symmetric", 2), ("spin", 3), scale=0.4, seed=5),
    ],
    ids=["rbm", "more-hidden", "symmetric", "spiked-spin"],
)
def test_statistics_are_the_slopes_of_log_partition(machine: LayeredPrior) -> None:
    solver = AdaptiveTAP(**PRECISE | {"tol": FLAT})
    assert_slopes(adaptive(machine), lambda moved: solver.solve(moved, alone(machine)).log_partition, machine, 2e-8)


def test_gaussian_machines_have_exact_statistics() -> None:
    machine, precision, bias = gaussian_machine((4, 3), 0.35)
    mean, covariance, _ = gaussian_answers(precision, bias)
    got = adaptive(machine)
    torch.testing.assert_close(got["weights.0"], (covariance + torch.outer(mean, mean))[:4, 4:], rtol=0, atol=1e-11)
    torch.testing.assert_close(torch.cat([got["units.0.bias"], got["units.1.bias"]]), mean, rtol=0, atol=1e-11)


def lawless_and_lawful() -> tuple[RBM, Tensor]:
    """A machine, and two starts: held between both of its patterns, where there is no law, and at one of them."""
    machine, patterns = two_patterns(strength=1.5)
    return machine, torch.stack([0.5 + 0 * patterns[0], patterns[0]])


def test_images_without_a_law_count_as_those_of_tap() -> None:
    machine, starts = lawless_and_lawful()
    solver = AdaptiveTAP(max_iter=1, damping=0.5)
    state = solver.init(machine, starts)
    assert by_adaptive_tap(solver, machine, state).monitors["lawless"] == 0.5
    for row, share in enumerate((1.0, 0.0)):
        single = by_adaptive_tap(solver, machine, tuple(value[row : row + 1] for value in state))
        assert single.monitors["lawless"] == share
        visible, hidden, *variances = single.state[:4]
        gaussian = single.statistics["weights.0"] - visible.T @ hidden
        of_tap = machine.weights * (variances[0].T @ variances[1])
        assert torch.allclose(gaussian, of_tap, rtol=0, atol=1e-12) == bool(share)


@pytest.mark.parametrize("mixed", [False, True], ids=["lawful", "some-lawless"])
@pytest.mark.parametrize("iterations", [1, 3])
def test_a_batch_counts_as_its_images_do(mixed: bool, iterations: int) -> None:
    machine, starts = (
        lawless_and_lawful() if mixed else (random_rbm(7, 5, scale=0.3), torch.rand(9, 7, generator=seeded(1)).double())
    )
    images = starts[torch.arange(9) % len(starts)]
    solver = AdaptiveTAP(max_iter=iterations, damping=0.5)
    state = solver.init(machine, images)
    together = by_adaptive_tap(solver, machine, state)
    few = replace(solver, max_memory=2 * 8 * solver.numbers(machine))
    assert len(few.parts(machine, images)) == 5
    singles = [by_adaptive_tap(solver, machine, tuple(value[row : row + 1] for value in state)) for row in range(9)]
    wanted = {name: torch.stack([one.statistics[name] for one in singles]).mean(0) for name in together.statistics}
    for got in (together, by_adaptive_tap(few, machine, state)):
        assert_close(got.statistics, wanted, 1e-12)
        assert float(got.monitors["lawless"]) == pytest.approx(np.mean([float(s.monitors["lawless"]) for s in singles]))
        for index, value in enumerate(got.state):
            torch.testing.assert_close(value, torch.cat([one.state[index] for one in singles]), rtol=0, atol=1e-12)
    assert (0 < float(together.monitors["lawless"]) < 1) == mixed


@pytest.mark.thorough
def test_the_learner_takes_these_statistics() -> None:
    machine, images = random_rbm(5, 4, scale=0.6), torch.bernoulli(torch.full((7, 5), 0.4).double())
    learner = TAPLikelihood(
        fixed_point="adaptive_tap", centring=False, iterations=3000, tol=PRECISE["tol"], damping=PRECISE["damping"]
    )
    step = learner.step(machine, images, learner.init(machine, images, seeded()), seeded())
    solver = AdaptiveTAP(**PRECISE | {"tol": FLAT})

    def likelihood(moved: RBM) -> Tensor:
        return -moved.free_energy(images).mean() - solver.solve(moved, images).log_partition.mean()

    assert_slopes(step.gradient, likelihood, machine, 2e-8)
    assert float(step.monitors["solution_change"]) < 1e-12
    assert step.monitors["lawless"] == 0
