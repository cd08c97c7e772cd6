"""BSLM: its sweeps, and that all learners by pseudo-likelihood find the one maximum."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from bslm_covariance import flattened, unflattened
from directions import drawn, fitted, random_spins, same
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import seeded
from torch import Tensor

from restore.learning.gradients.pseudo_likelihood import Objective, Sample, Spins
from restore.learning.rules.bslm import BSLM, GradientAscent, QuasiNewton, climb, spins_of, sweep, tournament

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
