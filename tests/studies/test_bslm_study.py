"""The study of BSLM on a small scale: what it measures, and how that is shown."""

from __future__ import annotations

from itertools import combinations, pairwise

import bslm as study
import bslm_paper
import pytest
import torch

from restore.errors import TrainingError
from restore.learning.gradients.pseudo_likelihood import Objective, Spins

# Small matrices: threads only cost.
torch.set_num_threads(1)


@pytest.fixture(scope="module")
def small() -> tuple[list[study.Run], list[study.Errors]]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(study, "UNITS", (5,))
        patched.setattr(study, "LIMIT", 30)
        return study.measured(1, images=16_000, data_sets=16)


@pytest.mark.thorough
def test_sequences_rise_and_errors_are_as_predicted(small: tuple[list[study.Run], list[study.Errors]]) -> None:
    runs, (weak, strong) = small
    assert [len(run.values) for run in runs] == [31] * study.STARTS
    for run in runs:
        assert all(after > before for before, after in pairwise(run.values))
    assert (weak.variance, strong.variance) == (0.1, 0.5)
    assert weak.unbounded == 0
    assert weak.error / weak.predicted == pytest.approx(1, abs=0.5)
    assert weak.standardised == pytest.approx(1, abs=0.5)
    # The bound is below the variance, and no variance of a spin is above 1.
    assert 1 / 16_000 <= weak.bound < weak.predicted * 1.05
    assert weak.worst > -1e-13


@pytest.mark.thorough
def test_the_study_is_shown(small: tuple[list[study.Run], list[study.Errors]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study, "UNITS", (5,))
    monkeypatch.setattr(study, "LIMIT", 30)
    runs, found = small
    assert "| 5 | 30, 30, 30, 30, 30 (cut off) |" in study.sequence_table(study.as_record(runs, found, 1)["sequences"])
    lines = study.errors_table(found).splitlines()
    assert len(lines) == 4
    assert lines[2].endswith("| - |") and "2.09e-06" in lines[3]
    assert study.as_record(runs, found, 1)["errors"][0].units == 5


def test_samples_without_a_maximum_are_counted() -> None:
    with pytest.raises(TrainingError, match="none of 2 samples"):
        study.errors(8, 30.0, 50, 2, seed=0)


def test_a_record_keeps_the_ends_of_a_sequence_and_a_curve_between() -> None:
    values = [float(value) for value in range(3001)]
    (sequence,) = study.as_record([study.Run(5, values)], [], 1)["sequences"]
    assert sequence["sweeps"] == [int(value) for value in sequence["values"]]
    assert sequence["sweeps"][:3] == [0, 1, 2] and sequence["sweeps"][-1] == 3000
    assert 100 < len(sequence["sweeps"]) < 200
    assert study.as_record([study.Run(5, [1.0])], [], 1)["sequences"][0]["sweeps"] == [0]


@pytest.mark.parametrize("factor", [0.5, 1.0])
def test_sweeps_in_the_papers_order_are_those_of_the_loop(factor: float) -> None:
    sample, starts = bslm_paper.drawn(5, 1)
    values = bslm_paper.values_along(sample, starts[0], factor)
    objective, at = Objective(sample), Spins(*(part.clone() for part in starts[0]))
    assert next(values) == pytest.approx(objective.value(at), abs=1e-12)
    # One coordinate after the other, by the gradient at the present parameters.
    for unit in range(5):
        at.bias[unit] += factor * objective.evaluate(at).gradient.bias[unit]
    for one, two in combinations(range(5), 2):
        step = factor * objective.evaluate(at).gradient.couplings[one, two]
        at.couplings[one, two] += step
        at.couplings[two, one] += step
    assert next(values) == pytest.approx(objective.value(at), abs=1e-12)


def test_a_sequence_ends_at_the_tolerance_or_the_limit() -> None:
    sample, starts = bslm_paper.drawn(5, 1)
    cut = bslm_paper.ascent(sample, starts[0], 0, 1.0, 20)
    assert (cut.sweeps, cut.half) == (20, 1) and cut.last > bslm_paper.TOLERANCE
    start = bslm_paper.ascent(sample, starts[0], 0, 1.0, 10_000)
    assert start.sweeps < 10_000 and 0 <= start.last < bslm_paper.TOLERANCE and start.value > cut.value
