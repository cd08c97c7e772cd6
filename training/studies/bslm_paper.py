"""BSLM to the letter: couplings in lexicographic order, until the paper's tolerance, and gradient ascent beside it.

`bslm.py` takes the couplings in another order and cuts its sequences off. Here the same sequences go on as far as
100,000 sweeps, and the steps of gradient ascent (eqs. 4.1-4.2) have a factor μ, which is 1 for BSLM. The errors of the
fits tell whether the paper's could be its formula divided by the number of its terms twice. How fast the sweeps
converge depends on the machine: a hundred of each size, from one start each, give the distribution.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
from bslm import IMAGES, REPORTED, STARTS, TOLERANCE, VARIANCE, normal_parameters
from bslm_covariance import flattened, rounds_of
from harness import Asked, main, publish, read, write
from oracle import exact_samples

from restore.console import say
from restore.errors import TrainingError
from restore.evaluation.card import table
from restore.learning.gradients.pseudo_likelihood import Sample, Spins, refuse_unbounded
from restore.learning.rules.bslm import BSLM, spins_of
from restore.priors import FullyVisible

# The most sweeps of a sequence; with more units than these a sweep takes too long for so many.
LIMIT, UNITS = 100_000, (5, 10)

# Factors of the steps, and the most sweeps with each.
FACTORS, ASCENTS = (0.5, 1.0, 1.5, 1.9, 2.1), 2000

# Variances of the parameters whose estimates are compared with the paper's, and samples of each.
VARIANCES, SAMPLES = (0.5, 0.25, 0.1, 0.05, 0.025), 5

# Machines of each number of units, and the most sweeps from the start of each: more units take longer for a sweep. A
# hundred of 20 units would take an hour.
INSTANCES, CUTS = 100, {5: LIMIT, 10: 20_000, 15: 3000}

# Numbers of sweeps at which the instances that have ended are counted.
ENDED = (100, 1000, 3000)


@dataclass(frozen=True)
class Ascent:
    """Sweeps from one start.

    Attributes:
        units: of the machine.
        start: number of the start, from 0.
        factor: μ.
        sweeps: how many were made.
        value: log-pseudo-likelihood summed over images, after the last.
        half: sweeps after which half of the whole rise was made.
        near: sweeps after which all but 1 nat of it was.
        least: smallest rise in a sweep, negative for a fall.
        last: rise in the last sweep.
    """

    units: int
    start: int
    factor: float
    sweeps: int
    value: float
    half: int
    near: int
    least: float
    last: float


@dataclass(frozen=True)
class Fits:
    """Mean squared errors of a parameter, one of each sample that has a maximum.

    Attributes:
        units, variance: of the machines.
        errors: mean over the parameters, by sample.
    """

    units: int
    variance: float
    errors: tuple[float, ...]


@dataclass(frozen=True)
class Instance:
    """Sweeps of one machine and sample, with μ = 1 from its first start.

    Attributes:
        units, seed: of the machine.
        bounded: False if there is proof that the log-pseudo-likelihood of the sample has no maximum.
        sweeps, half, near, last: as in `Ascent`.
    """

    units: int
    seed: int
    bounded: bool
    sweeps: int
    half: int
    near: int
    last: float


def values_along(sample: Sample, at: Spins, factor: float) -> Iterator[float]:
    """The mean log-pseudo-likelihood at a start, and after each sweep (eqs. 2.4, 2.7) in the paper's order."""
    spins, shares = sample.spins.numpy(), sample.shares.numpy()
    weighted, means, pairs = spins * shares, sample.means.numpy(), sample.pairs.numpy()
    couplings, bias = at.couplings.numpy().copy(), at.bias.numpy().copy()
    order = list(zip(*np.triu_indices(len(bias), 1), strict=True))
    while True:
        fields = couplings @ spins + bias[:, None]
        terms = spins * fields - np.abs(fields) - np.log1p(np.exp(-2 * np.abs(fields)))
        yield float(terms.sum(0) @ shares)
        bias += factor * (means - np.tanh(fields) @ shares)
        predicted = np.tanh(couplings @ spins + bias[:, None])
        for one, two in order:
            explained = weighted[two] @ predicted[one] + weighted[one] @ predicted[two]
            step = factor * (pairs[one, two] - explained / 2)
            couplings[one, two] += step
            couplings[two, one] += step
            # tanh(f + x δ) from tanh f and tanh δ, for spins x.
            moved = np.tanh(step)
            for unit, other in ((one, two), (two, one)):
                shift = moved * spins[other]
                predicted[unit] = (predicted[unit] + shift) / (1 + predicted[unit] * shift)


def ascent(sample: Sample, at: Spins, start: int, factor: float, limit: int) -> Ascent:
    """Sweep until one raises the sum over images by less than the tolerance, or the limit."""
    values: list[float] = []
    for value in islice(values_along(sample, at, factor), limit + 1):
        values.append(sample.count * value)
        # A fall is looked at, not an end: with μ above 2 falls are what is sought.
        if len(values) > 1 and 0 <= values[-1] - values[-2] < TOLERANCE:
            break
    rises = np.diff(values)
    climbed = np.array(values) - values[0]
    half, near = (int(np.argmax(climbed >= wanted)) for wanted in (climbed.max() / 2, climbed.max() - 1))
    return Ascent(len(at.bias), start, factor, len(rises), values[-1], half, near, float(rises.min()), float(rises[-1]))


def drawn(units: int, seed: int) -> tuple[Sample, list[Spins]]:
    """The sample and the starts of `bslm.sequences`."""
    generator = torch.Generator().manual_seed(seed)
    truth = normal_parameters(units, VARIANCE, generator)
    images = exact_samples(FullyVisible.from_spins(*truth), IMAGES, generator)
    return Sample.of(images), [normal_parameters(units, VARIANCE, generator) for _ in range(STARTS)]


def instance(units: int, seed: int) -> Instance:
    """Draw a machine and sweep from its first start."""
    sample, starts = drawn(units, seed)
    found = ascent(sample, starts[0], 0, 1.0, CUTS[units])
    try:
        refuse_unbounded((1 + sample.spins.T) / 2)
        bounded = True
    except TrainingError:
        bounded = False
    return Instance(units, seed, bounded, found.sweeps, found.half, found.near, found.last)


def fits(units: int, variance: float, seed: int) -> Fits:
    """Fit samples of several machines; those without a maximum are left out."""
    generator = torch.Generator().manual_seed(seed)
    learner = BSLM(tol=1e-12, rounds=100)
    found = []
    for _ in range(SAMPLES):
        truth = normal_parameters(units, variance, generator)
        images = exact_samples(FullyVisible.from_spins(*truth), IMAGES, generator)
        try:
            refuse_unbounded(images)
            *_, last = rounds_of(learner, images, Spins(*map(torch.zeros_like, truth)))
        except TrainingError:
            continue
        found.append(float((flattened(spins_of(last.state)) - flattened(truth)).square().mean()))
    return Fits(units, variance, tuple(found))


def ascents_table(found: list[Ascent]) -> str:
    """Markdown: a row per machine and μ; of several starts the least and the most."""
    rows = []
    for units, factor in sorted({(one.units, one.factor) for one in found}):
        mine = [one for one in found if (one.units, one.factor) == (units, factor)]
        counts = [_range([getattr(one, name) for one in mine], ",d") for name in ("half", "near", "sweeps")]
        if any(one.last >= TOLERANCE for one in mine):
            # Cut off: where the end would be is unknown.
            counts[1] = "-"
        ends = _range([one.value for one in mine], ".4f")
        rows.append([str(units), f"{factor:g}", str(len(mine)), *counts, ends, f"{min(one.least for one in mine):.1e}"])
    head = ["units", "μ", "starts", "sweeps to half of the rise", "to all but 1 nat", "in all", "end"]
    return table([*head, "smallest rise"], rows)


def _range(values: Sequence[float], form: str) -> str:
    low, high = format(min(values), form), format(max(values), form)
    return low if low == high else f"{low} ... {high}"


def instances_table(found: list[Instance]) -> str:
    """Markdown: a row per number of units, with the distribution of the sweeps over machines."""
    rows = []
    for units in sorted({one.units for one in found}):
        mine = [one for one in found if one.units == units]
        ended = sorted(one.sweeps if one.last < TOLERANCE else CUTS[units] + 1 for one in mine)
        # Where the end of a sequence would be that was cut off is unknown.
        near = sorted(one.near if one.last < TOLERANCE else CUTS[units] + 1 for one in mine)
        cells = [_quantile(values, share, CUTS[units]) for values in (ended, near) for share in (0.1, 0.5, 0.9)]
        counts = [str(sum(sweeps <= limit for sweeps in ended)) for limit in ENDED]
        half = max(one.half for one in mine)
        rows.append([str(units), str(len(mine)), str(sum(one.bounded for one in mine)), *counts])
        rows[-1] += [" / ".join(cells[:3]), " / ".join(cells[3:]), str(half)]
    head = ["units", "machines", "with a maximum", *(f"ended within {limit:,d} sweeps" for limit in ENDED)]
    head += ["sweeps: 10 %, median, 90 %", "to all but 1 nat: 10 %, median, 90 %", "to half of the rise, at most"]
    return table(head, rows)


def _quantile(values: Sequence[int], share: float, cut: int) -> str:
    """A quantile of sorted numbers of sweeps; those above a cut are only known to be larger."""
    value = values[min(int(share * len(values)), len(values) - 1)]
    return f"{value:,d}" if value <= cut else f"> {cut:,d}"


def fits_table(found: list[Fits]) -> str:
    """Markdown: mean squared errors by variance, beside the paper's times the number of its terms."""
    columns = [f"variance {variance:g}" for variance in VARIANCES]
    rows = []
    for units, reported in REPORTED.items():
        mine = {one.variance: one.errors for one in found if one.units == units}
        cells = [
            f"{statistics.median(mine[variance]):.1e} ({len(mine[variance])})" if mine.get(variance) else "-"
            for variance in VARIANCES
        ]
        terms = units * (units + 1) // 2 * STARTS
        rows.append([str(units), *cells, f"{reported:.2e}", str(terms), f"{reported * terms:.2e}"])
    return table(["units", *columns, "paper", "q R", "paper x q R"], rows)


def study(asked: Asked) -> None:
    """Measure BSLM to the letter; write bslm-paper.json and its tables. What is in the record is not measured again."""
    path, settings = asked.records / "bslm-paper.json", {"seed": asked.seed, "limit": LIMIT}
    known = read(path, settings, ascents=Ascent, fits=Fits, instances=Instance)
    ascents: list[Ascent] = known["ascents"]
    errors: list[Fits] = known["fits"]
    instances: list[Instance] = known["instances"]

    def keep() -> None:
        write(path, settings | {"ascents": ascents, "fits": errors, "instances": instances})

    plans = [(units, 0, factor, ASCENTS) for units in UNITS for factor in FACTORS if factor != 1]
    plans += [(units, start, 1.0, LIMIT) for units in UNITS for start in range(STARTS)]
    for units, start, factor, limit in plans:
        if not any((one.units, one.start, one.factor) == (units, start, factor) for one in ascents):
            sample, starts = drawn(units, asked.seed)
            ascents.append(ascent(sample, starts[start], start, factor, limit))
            say(f"{ascents[-1]}")
            keep()
    for units in REPORTED:
        for variance in VARIANCES:
            if not any((one.units, one.variance) == (units, variance) for one in errors):
                errors.append(fits(units, variance, asked.seed))
                say(f"{errors[-1]}")
                keep()
    for units in CUTS:
        for seed in range(asked.seed, asked.seed + INSTANCES):
            if not any((one.units, one.seed) == (units, seed) for one in instances):
                instances.append(instance(units, seed))
                say(f"{instances[-1]}")
                keep()
    tables = {"ascents": ascents_table(ascents), "fits": fits_table(errors), "instances": instances_table(instances)}
    publish(asked, {f"bslm-paper-{name}": text for name, text in tables.items()})


if __name__ == "__main__":
    main(study)
