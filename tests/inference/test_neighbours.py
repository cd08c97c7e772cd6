"""The mean field of neighbours against its equation."""

from __future__ import annotations

import numpy as np
import pytest

from restore.channels.damage import Damage, Observed
from restore.inference.candidates import (
    MOST_STEPS,
    NEIGHBOURS_CONVERGED,
    NEIGHBOURS_TOLERANCE,
    Neighbours,
    mean_field,
)
from restore.status import Status


def pixels(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2, shape).astype(float)


@pytest.mark.parametrize("coupling", [0.0, 0.3, 0.8])
def test_the_mean_field_solves_its_equation(coupling: float) -> None:
    """m = tanh(coupling · sum of the four neighbours + evidence / 2), written out pixel by pixel."""
    evidence = np.random.default_rng(1).normal(0, 2, (7, 9))
    actual, steps, change = mean_field(evidence[None], coupling, 5000)
    wanted = np.empty((7, 9))
    for row, column in np.ndindex(7, 9):
        near = [(row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)]
        pull = sum(actual[0][index] for index in near if 0 <= index[0] < 7 and 0 <= index[1] < 9)
        wanted[row, column] = np.tanh(coupling * pull + evidence[row, column] / 2)
    # Half of the way is left out at each step, the last one was of 1e-6 or less, and so it stopped before its limit.
    np.testing.assert_allclose(actual[0], wanted, atol=5e-6)
    assert change[0] <= NEIGHBOURS_TOLERANCE and steps < 5000


def test_the_mean_field_stops_after_its_steps_and_says_how_far_it_was() -> None:
    evidence = np.random.default_rng(1).normal(0, 2, (2, 7, 9))
    evidence[1] = 3.0
    actual, steps, change = mean_field(evidence, 0.8)
    assert steps == MOST_STEPS and change[0] > NEIGHBOURS_TOLERANCE > change[1]
    whole = Neighbours(0.8).solve((evidence > 0).astype(float), Damage(1 / (1 + np.exp(np.abs(evidence)))))
    np.testing.assert_allclose(whole.means, (1 + actual) / 2, atol=1e-5)
    assert (whole.status == Status.CONVERGED).tolist() == (change < NEIGHBOURS_CONVERGED).tolist()


def test_a_hole_in_a_large_picture_is_filled_to_its_middle() -> None:
    """However little it changes the whole."""
    evidence = np.full((1, 900, 900), 3.0)
    evidence[0, 400:412, 500:512] = 0
    assert mean_field(evidence, 0.8)[0].min() > 0.9


@pytest.mark.parametrize("p", [0.1, np.linspace(0.01, 0.4, 63).reshape(7, 9)], ids=["one", "each"])
def test_the_field_hears_the_evidence_of_every_pixel(p: float | np.ndarray) -> None:
    picture, hidden = pixels(7, 9), pixels(7, 9, seed=1) > 0
    posterior = Neighbours(0.7).posterior(Observed(picture, Damage(p, hidden=hidden)), lambda share: None)
    known = np.where(picture > 0, np.log((1 - p) / p), np.log(p / (1 - p)))
    wanted, _, _ = mean_field(np.where(hidden, 0, known)[None], 0.7)
    np.testing.assert_allclose(posterior.means, (1 + wanted) / 2, atol=1e-5)
    np.testing.assert_allclose(posterior.variances, posterior.means * (1 - posterior.means), atol=1e-6)
    assert 0 < posterior.iterations[0] <= MOST_STEPS
