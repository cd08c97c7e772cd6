"""The study of BSLM: its sequences of log-pseudo-likelihoods (Fig. 1), and its errors beside what theory predicts.

Images are drawn exactly, from all states of machines whose parameters are normal. The paper's variance is 1/2 for any
number D of units; its machines are then so strongly coupled that some samples have no maximum. With 1 / (2D) the field
on a unit keeps the variance that one parameter has in the paper.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count as naturals
from itertools import takewhile
from typing import Any

import torch
from bslm_covariance import covariance, flattened, rounds_of, unflattened
from harness import Asked, main, publish, write
from oracle import exact_samples

from restore.console import say
from restore.errors import TrainingError
from restore.evaluation.card import table
from restore.learning.gradients.pseudo_likelihood import Spins, refuse_unbounded
from restore.learning.rules.bslm import BSLM, spins_of
from restore.priors import FullyVisible

UNITS = (5, 10, 15, 20)
IMAGES = 16_000
STARTS = 5
DATA_SETS = 20

# Of the log-pseudo-likelihood summed over images.
TOLERANCE = 1e-5

# Sweeps after which a sequence is cut off.
LIMIT = 3000

# Of parameters.
VARIANCE = 0.5

# Mean squared errors that the paper reports, by number of units.
REPORTED = {5: 2.09e-6, 10: 5.96e-7, 15: 4.64e-7, 20: 2.89e-7}


@dataclass(frozen=True)
class Run:
    """One run of BSLM: the log-pseudo-likelihood summed over images after each sweep."""

    units: int
    values: list[float]


@dataclass(frozen=True)
class Errors:
    """Errors over data sets, each with parameters of its own.

    Attributes:
        units, variance: of the machines.
        data_sets: number of them.
        unbounded: how many had no maximum; the others are averaged.
        error: mean squared error of a parameter.
        predicted: its mean sandwich variance, estimated at the maximum.
        bound: mean of 1 / (n F_jj), which no variance of an unbiased estimate is below, and the Cramér-Rao bound
            (F⁻¹)_jj / n is not either; the Fisher information F_jj is the variance of x_j or x_j x_k.
        standardised: mean squared error over variance, parameter by parameter.
        worst: smallest rise of the log-pseudo-likelihood in a round, per image.
    """

    units: int
    variance: float
    data_sets: int
    unbounded: int
    error: float
    predicted: float
    bound: float
    standardised: float
    worst: float


def normal_parameters(units: int, variance: float, generator: torch.Generator) -> Spins:
    """Biases and couplings drawn from N(0, variance)."""
    draw = torch.randn(units * (units + 1) // 2, generator=generator, dtype=torch.float64)
    return unflattened(variance**0.5 * draw)


def sequences(units: int, images: int, seed: int) -> list[Run]:
    """The paper's experiment: one machine and sample, BSLM from several starts drawn like the machine."""
    generator = torch.Generator().manual_seed(seed)
    truth = normal_parameters(units, VARIANCE, generator)
    drawn = exact_samples(FullyVisible.from_spins(*truth), images, generator)
    learner = BSLM(tol=TOLERANCE / images, rounds=LIMIT, spacers=0)
    found = []
    for _ in range(STARTS):
        start = normal_parameters(units, VARIANCE, generator)
        first = learner.objective(drawn).value(start)
        rounds = [one.monitors["log_pseudo_likelihood"] for one in rounds_of(learner, drawn, start)]
        found.append(Run(units, [images * value for value in (first, *rounds)]))
    return found


def errors(units: int, variance: float, images: int, data_sets: int, seed: int) -> Errors:
    """Fit samples of several machines, and compare with their parameters."""
    generator = torch.Generator().manual_seed(seed)
    learner = BSLM(tol=1e-12, rounds=100)
    squares, predicted, bounds, standardised, worst = [], [], [], [], [0.0]
    for _ in range(data_sets):
        truth = normal_parameters(units, variance, generator)
        drawn = exact_samples(FullyVisible.from_spins(*truth), images, generator)
        try:
            refuse_unbounded(drawn)
            rounds = list(rounds_of(learner, drawn, Spins(*map(torch.zeros_like, truth))))
            at, sample = spins_of(rounds[-1].state), learner.objective(drawn).sample
            variances = covariance(sample, at).diagonal() / images
        except TrainingError:
            continue
        square = (flattened(at) - flattened(truth)).square()
        squares.append(float(square.mean()))
        predicted.append(float(variances.mean()))
        told = flattened(Spins(sample.pairs, sample.means))
        bounds.append(float((1 / (1 - told.square())).mean()) / images)
        standardised.append(float((square / variances).mean()))
        worst.append(min(one.monitors["gained"] for one in rounds))
    if not squares:
        raise TrainingError(f"none of {data_sets} samples of {units} units has a maximum; give more images")
    return Errors(
        units,
        variance,
        data_sets,
        data_sets - len(squares),
        statistics.fmean(squares),
        statistics.fmean(predicted),
        statistics.fmean(bounds),
        statistics.fmean(standardised),
        min(worst),
    )


def measured(seed: int, images: int = IMAGES, data_sets: int = DATA_SETS) -> tuple[list[Run], list[Errors]]:
    """Everything, telling what is done."""
    runs: list[Run] = []
    found: list[Errors] = []
    for units in UNITS:
        runs += sequences(units, images, seed)
        say(f"{units} units: {len(runs[-1].values) - 1} sweeps")
        for variance in (VARIANCE / units, VARIANCE):
            found.append(errors(units, variance, images, data_sets, seed))
            say(f"{units} units, variance {variance:g}: {found[-1].error / found[-1].predicted:.2f} of the prediction")
    return runs, found


def sequence_table(sequences: Sequence[dict[str, Any]]) -> str:
    """Markdown: sweeps per start, and how far apart the starts end."""
    rows = []
    for units in UNITS:
        mine = [one for one in sequences if one["units"] == units]
        ends = [one["values"][-1] for one in mine]
        cut = any(one["sweeps"][-1] == LIMIT for one in mine)
        sweeps = ", ".join(str(one["sweeps"][-1]) for one in mine) + (" (cut off)" if cut else "")
        rows.append([str(units), sweeps, f"{max(ends):.4f}", f"{max(ends) - min(ends):.1e}"])
    return table(["units", "sweeps from five starts", "highest end", "spread of ends"], rows)


def errors_table(found: Sequence[Errors]) -> str:
    """Markdown: mean squared errors beside their prediction, the bound, and the paper's."""
    rows = [
        [
            str(one.units),
            f"{one.variance:g}",
            f"{one.data_sets - one.unbounded} of {one.data_sets}",
            f"{one.error:.2e}",
            f"{one.predicted:.2e}",
            f"{one.error / one.predicted:.2f}",
            f"{one.standardised:.2f}",
            f"{one.bound:.2e}",
            f"{REPORTED[one.units]:.2e}" if one.variance == VARIANCE else "-",
        ]
        for one in found
    ]
    head = [
        "units",
        "variance",
        "samples with a maximum",
        "mean squared error",
        "sandwich",
        "ratio",
        "ratio by parameter",
    ]
    return table([*head, "no variance below", "paper"], rows)


def as_record(runs: Sequence[Run], found: Sequence[Errors], seed: int) -> dict[str, Any]:
    """What the study found, as JSON has it; of the sequences so many sweeps as a curve needs."""
    sequences = []
    for one in runs:
        kept = _spread(len(one.values))
        sequences.append({"units": one.units, "sweeps": kept, "values": [one.values[sweep] for sweep in kept]})
    return {"seed": seed, "sequences": sequences, "errors": found}


def _spread(count: int) -> list[int]:
    """Some of the first `count` numbers from 0: the first ones and the last, and between them at equal factors."""
    steps = (round(1.05**power) for power in naturals())
    return sorted({0, *takewhile(lambda sweep: sweep < count, steps), count - 1})


def study(asked: Asked) -> None:
    """Measure BSLM on samples of known machines, and write bslm.json and two tables."""
    runs, found = measured(asked.seed)
    record = as_record(runs, found, asked.seed)
    write(asked.records / "bslm.json", record)
    tables = {"bslm-sequences": sequence_table(record["sequences"]), "bslm-errors": errors_table(found)}
    publish(asked, tables)


if __name__ == "__main__":
    main(study)
