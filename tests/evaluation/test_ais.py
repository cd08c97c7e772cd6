"""Annealed importance sampling against enumeration: log Z, its interval, and what it refuses."""

from __future__ import annotations

import math

import pytest
import torch
from machines import random_rbm, seeded
from oracle import exact_moments

from restore.errors import ModelError, UsageError
from restore.evaluation.likelihoods.ais import SCHEDULES, estimate, log_weights, temperatures
from restore.fields import Fields
from restore.priors import RBM

# Couplings from weak to strong: at the last, single weights change log-odds by 3.
SCALES = [0.1 * 30 ** (index / 19) for index in range(20)]

RUNS = 100


def machine_of(index: int) -> RBM:
    return random_rbm(12, 9, scale=SCALES[index], seed=index)


@pytest.mark.parametrize(
    "index", [*range(5), *(pytest.param(each, marks=pytest.mark.thorough) for each in range(5, 20))]
)
def test_log_z_is_within_a_tenth_of_a_nat_of_enumeration(index: int) -> None:
    machine = machine_of(index)
    estimated = estimate(log_weights(machine, "linear:2000", RUNS, seeded(index)))
    assert estimated.log_partition == pytest.approx(float(exact_moments(machine).log_partition), abs=0.1)
    assert estimated.warning == ""


@pytest.mark.parametrize("deviation", [0.1, 0.5, 1.0, 2.0, 3.0])
def test_the_interval_of_log_normal_weights_has_the_width_that_their_estimator_has(deviation: float) -> None:
    """Log-weights from N(m, s^2) have log Z = m + s^2 / 2, which their own mean and variance estimate.

    Mean and variance of R normal numbers are independent, so that the estimator's variance is s^2 / R + s^4 / (2 (R -
    1)), exactly. The second term decides for uneven weights: at s = 3 it is five sixths of the sum.
    """
    runs, repeats = 20, 1000
    drawn = 7 + deviation * torch.randn(repeats, runs, generator=seeded(), dtype=torch.float64)
    results = [estimate(part).interval for part in drawn]
    low, high = torch.tensor(results, dtype=torch.float64).T
    truth = 7 + deviation**2 / 2
    # 95 %, of skewed weights a little less from so few runs; wider than promised is a fault too.
    assert 0.91 <= float(((low <= truth) & (truth <= high)).double().mean()) <= 0.98
    centre = drawn.mean(1) + drawn.var(1) / 2
    exact = math.sqrt(deviation**2 / runs + deviation**4 / (2 * (runs - 1)))
    # What 95 % of Student's t with 19 degrees of freedom lie within.
    quantile = 2.0930
    for side in (high - centre, centre - low):
        assert float((side / quantile).median()) == pytest.approx(exact, rel=0.06)


def test_weights_are_unbiased() -> None:
    """E[w] = Z holds for any schedule, even one of two temperatures, which is plain importance sampling."""
    machine = random_rbm(6, 4, scale=0.5, seed=3)
    truth = float(exact_moments(machine).log_partition)
    for schedule in ([0, 1], [0, 0.3, 1], "linear:10"):
        ratio = torch.exp(log_weights(machine, schedule, 50_000, seeded()) - truth)
        error = float(ratio.std()) / math.sqrt(len(ratio))
        assert float(ratio.mean()) == pytest.approx(1, abs=4 * error)
        assert error < 0.04


@pytest.mark.thorough
def test_single_precision_suffices() -> None:
    """On a machine as large as the published ones, and driven as hard, rounding must not add up over temperatures."""
    wide = random_rbm(784, 200, scale=0.1, bias=2.0, seed=5)
    single = wide.to(torch.float32)
    base = wide.visible.parameters["bias"]
    doubles = estimate(log_weights(wide, "linear:200", 20, seeded(), base))
    singles = estimate(log_weights(single, "linear:200", 20, seeded(), base))
    combined = math.hypot(doubles.standard_error, singles.standard_error)
    assert singles.log_partition == pytest.approx(doubles.log_partition, abs=4 * combined)
    # Weights of a machine without couplings do not depend on the states: what differs from the truth is rounding.
    alone = single.with_parameters(single.parameters | {"weights.0": torch.zeros(784, 200)})
    exact = float(sum(layer.log_partition(Fields(torch.zeros(()))).double().sum() for layer in alone.layers))
    estimated = estimate(log_weights(alone, "linear:5000", 2, seeded(), alone.visible.parameters["bias"]))
    assert estimated.log_partition == pytest.approx(exact, abs=1e-3)


def test_few_effective_runs_are_warned_of() -> None:
    estimated = estimate(log_weights(random_rbm(12, 9, scale=3.0, bias=3.0, seed=4), [0, 1], RUNS, seeded()))
    assert estimated.effective_runs < 20
    assert "more temperatures" in estimated.warning


# --- schedules ---


def test_the_schedules_of_the_papers() -> None:
    for name in ("salakhutdinov", "frank-wolfe", "tap-machine"):
        schedule = temperatures(name)
        assert len(schedule) == 14_500
        counts = [
            int(((schedule >= low) & (schedule < high)).sum()) for low, high in ((0, 0.5), (0.5, 0.9), (0.9, 1.1))
        ]
        assert counts == [500, 4_000, 10_000]
    assert len(temperatures("s-dcp")) == 10_000
    for name in SCHEDULES:
        schedule = temperatures(name)
        assert schedule[0] == 0 and schedule[-1] == 1 and bool((schedule.diff() > 0).all())
    assert temperatures("linear:5").tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert temperatures([0, 0.1, 1]).tolist() == [0, 0.1, 1]


@pytest.mark.parametrize(
    "schedule",
    [
        [1],
        [0, 0.5],
        [0.1, 1],
        [0, 0.5, 0.5, 1],
        [0, math.nan, 1],
        "linear:1",
        "linear:-3",
        "linear",
        "linear:99999999",
        "no-such",
    ],
    ids=str,
)
def test_other_schedules_are_refused(schedule: str | list[float]) -> None:
    with pytest.raises(UsageError):
        estimate(log_weights(machine_of(0), schedule, RUNS, seeded()))


# --- what it refuses ---


def test_other_runs_levels_and_machines_are_refused() -> None:
    machine = machine_of(0)
    infinite = machine.with_parameters(machine.parameters | {"units.0.bias": torch.full((12,), torch.inf).double()})
    with pytest.raises(UsageError):
        estimate(log_weights(machine, "linear:10", 1, seeded()))
    with pytest.raises(UsageError):
        estimate(torch.zeros(3), 1.0)
    for other, base in (
        (machine.tilt(Fields(torch.zeros(5, 12).double())), None),
        (machine, torch.zeros(11)),
        (infinite, None),
    ):
        with pytest.raises(ModelError):
            estimate(log_weights(other, "linear:10", 10, seeded(), base))
