"""The study of S-DCP: learners of RBMs at equal numbers of Gibbs sweeps (Upadhya & Sastry, ACML 2017, sec. 4 and 5).

Small sets, whose likelihood is exact (Figs. 1 and 2): many trials side by side, as lanes of one batch, so that there is
one implementation of the learners only. Large sets (Figs. 3, 4, 6 and 7): one recipe per curve, trained by
`restore.learning.fit`; after every epoch log Z is estimated by annealing.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from restore.errors import TrainingError
from restore.evaluation.likelihoods.ais import log_partition, mean_log_likelihood
from restore.evaluation.markdown import plus_minus, table
from restore.files import write_atomically
from restore.learning.contract import Learner, LearnerState
from restore.learning.contrastive import ContrastiveDivergence
from restore.learning.course import CleanImages, initial_prior, pixel_means
from restore.learning.fit import fit
from restore.learning.recipe import Data, Optimizer, PriorShape, Recipe, Training
from restore.learning.run_folder import epoch_seconds
from restore.learning.spectral import SpectralDescent
from restore.priors import RBM
from restore.priors.exact import log_likelihood
from restore.progress import Meter

# Mean log-likelihood, in nats, of a model that is the distribution of a computed set: see `restore.data.patterns`.
BEST = {"shifting-bar": -math.log(9), "bars-and-stripes": -0.75 * math.log(16) - 0.25 * math.log(8)}
TITLES = {
    "shifting-bar": "Shifting Bar",
    "bars-and-stripes": "Bars & Stripes",
    "mnist": "MNIST",
    "omniglot": "Omniglot",
}

# The same for a model with `SMALL_HIDDEN` hidden units. On Bars & Stripes it is the highest of 400 ascents of the exact
# likelihood (L-BFGS from random starts), five of which ended there; five hidden units reach the bound.
REACHABLE = {"shifting-bar": BEST["shifting-bar"], "bars-and-stripes": -3.1192}

# How near a trial has to come to what is reachable, in nats, to have learnt a small set.
NEAR = 0.05

# A curve has arrived when it is 90 % of the way up: at its target divided by this, since log-likelihoods are negative.
ARRIVED = 0.9

WEIGHT_SCALE = 0.01

# Small sets, as in the paper (but for the epochs, which are 50,000 there): hidden units, sweeps per mini-batch, and how
# many gradient steps share them.
SMALL_HIDDEN, SMALL_SWEEPS, SMALL_INNER = 4, 12, 3
SMALL_RATES = (0.3, 0.5)
SMALL_EPOCHS, SMALL_EVERY = 20_000, 200

# Trials by the number of copies of each pattern, of which the paper does not tell. Each copy starts a chain, so that
# more of them make gradients less noisy.
TRIALS = {1: 25, 10: 10}

# Large sets, likewise.
LARGE_HIDDEN, LARGE_SWEEPS, LARGE_INNER, LARGE_BATCH = 500, 24, 6, 200

# A tenth of these temperatures finds log Z 6 nats too small after eight epochs of CD on MNIST.
RUNS, SCHEDULE = 100, "s-dcp"


def learner_of(algorithm: str, sweeps: int, inner: int, chains: int) -> Learner[RBM, Tensor]:
    """A learner with so many Gibbs sweeps per mini-batch, which S-DCP and CS-DCP divide among `inner` steps.

    Args:
        algorithm: of `ALGORITHMS`.
        sweeps: a multiple of `inner`.
        inner: d.
        chains: of PCD; as many as a mini-batch has images makes its sweeps cost what those of the others cost.
    """
    learners: dict[str, Learner[RBM, Tensor]] = {
        "CD": ContrastiveDivergence(steps=sweeps, centring=False),
        "PCD": ContrastiveDivergence("persistent", chains, sweeps, centring=False),
        "CG": ContrastiveDivergence(steps=sweeps),
        "SSD": SpectralDescent(steps=sweeps),
        "S-DCP": ContrastiveDivergence(steps=sweeps // inner, centring=False, inner_steps=inner),
        "CS-DCP": ContrastiveDivergence(steps=sweeps // inner, inner_steps=inner),
    }
    return learners[algorithm]


ALGORITHMS = ("CD", "PCD", "CG", "SSD", "S-DCP", "CS-DCP")


# --- small sets ---


@dataclass(frozen=True)
class Small:
    """Trials of one algorithm on a small set.

    Attributes:
        data, algorithm: of `BEST` and of `ALGORITHMS`.
        copies: how often each image of the set was in the batch.
        rates: learning rates.
        epochs: at which the likelihood was summed.
        likelihood: exact mean log-likelihood per rate, trial and entry of `epochs`, in nats; NaN where one diverged.
    """

    data: str
    algorithm: str
    copies: int
    rates: tuple[float, ...]
    epochs: tuple[int, ...]
    likelihood: list[list[list[float]]]

    @property
    def values(self) -> Tensor:
        return torch.tensor(self.likelihood, dtype=torch.float64)


@torch.inference_mode()
def small(
    data: str,
    algorithm: str,
    images: Tensor,
    *,
    copies: int,
    rates: Sequence[float],
    trials: int,
    epochs: int,
    every: int,
    seed: int,
    meter: Meter = lambda done, note="": None,
) -> Small:
    """Learn a small set from so many copies of all its images (N, D) at once, by plain ascent; all trials at all rates.

    Trial t starts from the same weights for every rate and algorithm. The likelihood is summed every so many epochs.
    """
    batch = images.repeat(copies, 1)
    learner = learner_of(algorithm, SMALL_SWEEPS, SMALL_INNER, len(batch))
    first = torch.Generator().manual_seed(seed)
    machines = [initial_prior(batch, SMALL_HIDDEN, WEIGHT_SCALE, first) for _ in range(trials)]
    kind, count = machines[0], len(rates) * trials
    generator = torch.Generator().manual_seed(seed + 1)
    state = {name: value.expand(count, *value.shape) for name, value in learner.init(kind, batch, generator).items()}
    parameters = {
        name: torch.stack([machine.parameters[name] for machine in machines]).repeat(len(rates), *[1] * value.dim())
        for name, value in kind.parameters.items()
    }
    lane_rates = torch.tensor(rates).repeat_interleave(trials)

    def epoch(
        parameters: Mapping[str, Tensor], state: LearnerState, rate: Tensor
    ) -> tuple[Mapping[str, Tensor], LearnerState]:
        step = learner.step(kind.with_parameters(parameters), batch, state, generator, 0)
        parameters = {name: value + rate * step.gradient[name] for name, value in parameters.items()}
        while step.again is not None:
            step = step.again(kind.with_parameters(parameters))
            parameters = {name: value + rate * step.gradient[name] for name, value in parameters.items()}
        return parameters, step.state

    lanes: Callable[..., Any] = torch.func.vmap(epoch, randomness="different")
    exact = torch.func.vmap(lambda parameters: log_likelihood(kind.with_parameters(parameters), images).mean())
    found = [exact(parameters)]
    for done in range(1, epochs + 1):
        parameters, state = lanes(parameters, state, lane_rates)
        if done % every == 0:
            found.append(exact(parameters))
            meter(done, f"{algorithm} {float(found[-1].mean()):.3f}")
    likelihood = torch.stack(found, 1).view(len(rates), trials, len(found))
    return Small(data, algorithm, copies, tuple(rates), tuple(range(0, epochs + 1, every)), likelihood.tolist())


def learnt(found: Small) -> Tensor:
    """Per rate and trial the first epoch at which it was within `NEAR` of what is reachable; infinite if never."""
    near = found.values >= REACHABLE[found.data] - NEAR
    epochs = torch.tensor(found.epochs, dtype=torch.float64)
    return torch.where(near, epochs, torch.inf).amin(-1)


def small_tables(results: Sequence[Small]) -> str:
    """A table for every set and number of copies that there are trials of."""
    keys = sorted({(list(BEST).index(found.data), found.copies) for found in results})
    groups = [[found for found in results if found.data == list(BEST)[data] and found.copies == n] for data, n in keys]
    return "\n\n".join(small_table(group) for group in groups)


def small_table(results: Sequence[Small]) -> str:
    """Markdown: mean likelihood at the end, and how many trials came near what is reachable, per algorithm and rate.

    Args:
        results: of one set and number of copies.
    """
    rows = []
    data, copies = results[0].data, results[0].copies
    for found in results:
        for index, rate in enumerate(found.rates):
            ends, first = found.values[index, :, -1], learnt(found)[index]
            near = torch.isfinite(first)
            stays = ends >= REACHABLE[data] - NEAR
            middle = f"{float(first.median()):,.0f}" if float(near.double().mean()) > 0.5 else "-"
            high = found.values[index].mean(0) >= REACHABLE[data] / ARRIVED
            arrived = f"{found.epochs[int(high.int().argmax())]:,}" if bool(high.any()) else "-"
            top, when = found.values[index].mean(0).max(0)
            rows.append(
                [
                    found.algorithm,
                    f"{rate:g}",
                    arrived,
                    f"{float(top):.3f} ({found.epochs[int(when)]:,})",
                    f"{float(ends.mean()):.3f}",
                    f"{float(ends.min()):.3f}",
                    f"{float(ends.max()):.3f}",
                    f"{int(near.sum())} of {len(near)}",
                    f"{int(stays.sum())} of {len(near)}",
                    middle,
                ]
            )
    rows.sort(key=lambda row: (float(row[1]), ALGORITHMS.index(row[0])))
    title = f"{TITLES[data]}, reachable {REACHABLE[data]:.3f}, each pattern x {copies}"
    level = f"epochs of the mean to {REACHABLE[data] / ARRIVED:.3f}"
    head = [title, "rate", level, "highest mean (epoch)", "mean at the end", "worst", "best"]
    head += [f"came within {NEAR}", "end there", "median epoch"]
    return table(head, rows)


# --- large sets ---


@dataclass(frozen=True)
class Plan:
    """A curve to be trained on a large set.

    Attributes:
        data: name of the set.
        images: how many of its training images are used; 0 is all.
        algorithm, rate, batch: what distinguishes it, beside:
        inner: gradient steps that share the sweeps of a mini-batch, for S-DCP and CS-DCP.
        weight_scale: standard deviation of the first weights.
        zero_bias: whether the first visible biases are 0 instead of the log-odds of the pixels' means.
        epochs: passes over the images.
        every: epochs between two estimates of the likelihood.
    """

    data: str
    algorithm: str
    rate: float
    epochs: int
    every: int = 1
    images: int = 0
    batch: int = LARGE_BATCH
    inner: int = LARGE_INNER
    weight_scale: float = WEIGHT_SCALE
    zero_bias: bool = False

    @property
    def name(self) -> str:
        parts = [self.data, self.algorithm.lower(), f"rate{self.rate:g}"]
        told = {
            "images": (self.images, 0),
            "batch": (self.batch, LARGE_BATCH),
            "inner": (self.inner, LARGE_INNER),
            "scale": (self.weight_scale, WEIGHT_SCALE),
        }
        parts += [f"{key}{value:g}" for key, (value, usual) in told.items() if value != usual]
        return "-".join(parts + ["zero"] * self.zero_bias)

    def recipe(self, seed: int) -> Recipe:
        """Plain ascent at a constant rate: no momentum, no weight decay."""
        return Recipe(
            name=self.name,
            data=Data(self.data, binarisation="sampled"),
            prior=PriorShape(LARGE_HIDDEN, weight_scale=self.weight_scale),
            method="contrastive",
            learner=learner_of(self.algorithm, LARGE_SWEEPS, self.inner, self.batch),
            training=Training(self.epochs, self.batch),
            optimizer=Optimizer("sgd", self.rate, 0.0, 0.0, "constant"),
            seed=seed,
            storage="float32",
        )


def plans() -> dict[str, tuple[Plan, ...]]:
    """The curves of each figure, in the order to train them; some belong to several."""
    pair, four = ("S-DCP", "CS-DCP"), ("CD", "CG", "S-DCP", "CS-DCP")
    few: dict[str, Any] = {"data": "mnist", "images": 10_000, "epochs": 10, "every": 5}
    return {
        "3": tuple(Plan("mnist", name, rate, 8, every=2) for rate in (0.05, 0.01) for name in four),
        "4": tuple(Plan("omniglot", name, rate, 60, every=15) for rate in (0.05, 0.01) for name in four),
        "6a": tuple(Plan(algorithm=name, rate=rate, **few) for rate in (0.01, 0.05, 0.1) for name in pair),
        "6b": tuple(Plan(algorithm=name, rate=0.05, inner=inner, **few) for inner in (2, 6, 24) for name in pair),
        "7a": tuple(Plan(algorithm="S-DCP", rate=0.05, batch=batch, **few) for batch in (100, 200, 400)),
        "7b": tuple(
            Plan(algorithm=name, rate=0.05, weight_scale=scale, zero_bias=zero, **few)
            for zero in (True, False)
            for scale in (0.001, 0.01)
            for name in pair
        ),
    }


@dataclass(frozen=True)
class ZeroBias(CleanImages):
    """Clean images, and a first prior that does not know their pixels' means."""

    def initial(self, hidden: int, weight_scale: float, generator: torch.Generator) -> RBM:
        prior = super().initial(hidden, weight_scale, generator)
        return prior.with_parameters(prior.parameters | {"units.0.bias": torch.zeros(self.images.shape[1])})


@dataclass(frozen=True)
class Large:
    """A curve on a large set.

    Attributes:
        plan: how it was trained.
        epochs: after which the likelihood was estimated.
        likelihood: mean log-likelihood of the test images then, in nats, by annealing.
        errors: standard errors of its log Z.
        seconds: training time, the estimates included.
    """

    plan: Plan
    epochs: tuple[int, ...]
    likelihood: tuple[float, ...]
    errors: tuple[float, ...]
    seconds: float


def train_large(
    plan: Plan, training: Tensor, test: Tensor, folder: Path, seed: int, meter: Meter = lambda done, note="": None
) -> Large:
    """Train a curve, or go on with it, and estimate the likelihood of the test images along the way.

    Args:
        plan: what to train.
        training, test: binary images (N, D) and (M, D).
        folder: of the run; beside the files of `fit` it gets `likelihood.json`.
        seed: of the training and the annealing.
    """
    course = (ZeroBias if plan.zero_bias else CleanImages)(training)
    base = torch.logit(pixel_means(training))
    record = _read(folder)

    def after_epoch(epoch: int, machine: RBM) -> None:
        if epoch % plan.every == 0:
            found = log_partition(machine, SCHEDULE, RUNS, torch.Generator().manual_seed(seed), base)
            record[str(epoch)] = (mean_log_likelihood(machine, test, found), found.standard_error)
            write_atomically(folder / "likelihood.json", json.dumps(record).encode(), TrainingError)
            meter(epoch, f"{record[str(epoch)][0]:.2f}")

    fingerprint = hashlib.sha256(training.to(torch.uint8).numpy().tobytes()).hexdigest()
    with _products_as_fast_as_may_be(), torch.inference_mode():
        fit(plan.recipe(seed), course, folder, fingerprint=fingerprint, resume=True, after_epoch=after_epoch)
    large = read_large(plan, folder)
    assert large is not None
    return large


@contextmanager
def _products_as_fast_as_may_be() -> Iterator[None]:
    """Let products of float32 matrices be rounded as bfloat16 is, where that is faster.

    On processors that can it leads torch to another library, which on AMD's takes half the time of the usual one, with
    or without rounding; either is far below the noise of the samples.
    """
    backend: Any = torch.backends.mkldnn
    before = backend.matmul.fp32_precision
    backend.matmul.fp32_precision = "bf16"
    try:
        yield
    finally:
        backend.matmul.fp32_precision = before


def read_large(plan: Plan, folder: Path) -> Large | None:
    """What there is of a curve, finished or not; None if there is nothing."""
    record = _read(folder)
    epochs = tuple(epoch for epoch in range(1, plan.epochs + 1) if str(epoch) in record)
    if not epochs:
        return None
    values, errors = zip(*(record[str(epoch)] for epoch in epochs), strict=True)
    return Large(plan, epochs, values, errors, epoch_seconds(folder)[-1])


def _read(folder: Path) -> dict[str, tuple[float, float]]:
    """Likelihood and standard error by epoch, as far as they have been estimated."""
    path = folder / "likelihood.json"
    return dict(json.loads(path.read_text())) if path.exists() else {}


def arrival(curve: Large, target: float) -> float | None:
    """The number of epochs, interpolated between estimates, after which a curve is at `ARRIVED` of a target.

    Log-likelihoods are negative, and 90 % of -90 is -100: so the level is target / ARRIVED.
    """
    level = target / ARRIVED
    points = list(zip(curve.epochs, curve.likelihood, strict=True))
    for (before, low), (epoch, value) in pairwise(points):
        if low < level <= value:
            return before + (epoch - before) * (level - low) / (value - low)
    return float(points[0][0]) if points[0][1] >= level else None


def large_table(
    curves: Sequence[Large], title: str, label: Callable[[Plan], Sequence[str]], head: Sequence[str]
) -> str:
    """Markdown: likelihood along training and at the end, and when a curve arrives at 90 % of the highest end.

    Args:
        curves: those of one figure.
        title: the head of the first column.
        label: the first columns of a row.
        head: heads of the columns that the label has beyond the first.
    """
    target = max(curve.likelihood[-1] for curve in curves)
    longest = max(curves, key=lambda curve: len(curve.epochs)).epochs
    shown = sorted({longest[round((len(longest) - 1) * share)] for share in (0, 0.25, 0.5, 1)})
    rows = []
    for curve in curves:
        when = arrival(curve, target)
        along = dict(zip(curve.epochs, curve.likelihood, strict=True))
        errors = dict(zip(curve.epochs, curve.errors, strict=True))
        values = [plus_minus(along[epoch], errors[epoch], 1) if epoch in along else "-" for epoch in shown]
        rows.append([*label(curve.plan), *values, "-" if when is None else f"{when:.1f}"])
    epochs = [f"epoch {epoch}" for epoch in shown]
    return table([title, *head, *epochs, f"epochs to {target / ARRIVED:.1f}"], rows)


def large_tables(found: Mapping[str, Sequence[Large]]) -> str:
    """The tables of all figures of which there is a curve."""
    labels: dict[str, tuple[str, Sequence[str], Callable[[Plan], Sequence[str]]]] = {
        "3": ("Fig. 3, MNIST", ["rate"], lambda plan: [plan.algorithm, f"{plan.rate:g}"]),
        "4": ("Fig. 4, Omniglot", ["rate"], lambda plan: [plan.algorithm, f"{plan.rate:g}"]),
        "6a": ("Fig. 6a, MNIST", ["rate"], lambda plan: [plan.algorithm, f"{plan.rate:g}"]),
        "6b": (
            "Fig. 6b, MNIST",
            ["d x K'"],
            lambda plan: [plan.algorithm, f"{plan.inner} x {LARGE_SWEEPS // plan.inner}"],
        ),
        "7a": ("Fig. 7a, MNIST", ["batch"], lambda plan: [plan.algorithm, str(plan.batch)]),
        "7b": (
            "Fig. 7b, MNIST",
            ["σ", "visible bias"],
            lambda plan: [plan.algorithm, f"{plan.weight_scale:g}", "0" if plan.zero_bias else "base rate"],
        ),
    }
    parts = []
    for figure, (title, head, label) in labels.items():
        curves = found.get(figure, ())
        for rate in sorted({curve.plan.rate for curve in curves}) if figure in ("3", "4") else [None]:
            some = [curve for curve in curves if rate is None or curve.plan.rate == rate]
            if some:
                parts.append(large_table(some, title, label, head))
    return "\n\n".join(parts)


# --- what is written ---


def as_record(results: Sequence[Small], found: Mapping[str, Sequence[Large]], seed: int) -> dict[str, Any]:
    """What the study found, as JSON has it: of trials their mean curve and their ends."""
    small_sets = [
        {
            "data": one.data,
            "algorithm": one.algorithm,
            "copies": one.copies,
            "rate": rate,
            "epochs": one.epochs,
            "mean": _rounded(one.values[index].mean(0)),
            "ends": _rounded(one.values[index, :, -1]),
            "learnt": [epoch if math.isfinite(epoch) else None for epoch in learnt(one)[index].tolist()],
        }
        for one in results
        for index, rate in enumerate(one.rates)
    ]
    curves = {curve.plan.name: curve for some in found.values() for curve in some}
    return {"seed": seed, "small": small_sets, "large": [asdict(curve) for curve in curves.values()]}


def _rounded(values: Tensor) -> list[float]:
    return [round(value, 4) for value in values.tolist()]


def small_figure(results: Sequence[Small], path: Path) -> None:
    """Figs. 1 and 2: mean exact likelihood over epochs, a row per set and number of copies, a column per rate."""
    from matplotlib.figure import Figure

    rows = [(data, n) for data in BEST for n in TRIALS if any((one.data, one.copies) == (data, n) for one in results)]
    rates = sorted({rate for found in results for rate in found.rates})
    figure = Figure(figsize=(5.5 * len(rates), 3.6 * len(rows)), layout="constrained")
    for row, (data, copies) in enumerate(rows):
        for column, rate in enumerate(rates):
            axes: Any = figure.add_subplot(len(rows), len(rates), row * len(rates) + column + 1)
            for found in results:
                if (found.data, found.copies) == (data, copies) and rate in found.rates:
                    mean = found.values[found.rates.index(rate)].mean(0)
                    colour = f"C{ALGORITHMS.index(found.algorithm)}"
                    axes.plot(found.epochs, mean, label=found.algorithm, linewidth=1.3, color=colour)
            axes.axhline(REACHABLE[data], color="black", linestyle=":", linewidth=1)
            title = f"{TITLES[data]}, each pattern x {copies}, rate {rate:g}"
            axes.set(xlabel="epoch", ylabel="log-likelihood, nats", title=title)
            axes.set_ylim(REACHABLE[data] - 1.6, REACHABLE[data] + 0.1)
            axes.grid(alpha=0.3)
            axes.legend(fontsize=8, loc="lower right")
    figure.savefig(path, dpi=110)


def large_figure(found: Mapping[str, Sequence[Large]], path: Path) -> None:
    """Figs. 3, 4, 6 and 7: likelihood of the test images over epochs."""
    from matplotlib.figure import Figure

    panels: list[tuple[str, Sequence[Large], Callable[[Plan], str]]] = [
        ("MNIST (Fig. 3)", found.get("3", ()), lambda plan: f"{plan.algorithm}, {plan.rate:g}"),
        ("Omniglot (Fig. 4)", found.get("4", ()), lambda plan: f"{plan.algorithm}, {plan.rate:g}"),
        ("Rates (Fig. 6a)", found.get("6a", ()), lambda plan: f"{plan.algorithm}, {plan.rate:g}"),
        ("d (Fig. 6b)", found.get("6b", ()), lambda plan: f"{plan.algorithm}, {plan.inner}"),
        ("Batches (Fig. 7a)", found.get("7a", ()), lambda plan: f"{plan.algorithm}, {plan.batch}"),
        (
            "First values (Fig. 7b)",
            found.get("7b", ()),
            lambda plan: f"{plan.algorithm}, {plan.weight_scale:g}, {'0' if plan.zero_bias else 'base rate'}",
        ),
    ]
    panels = [panel for panel in panels if panel[1]]
    columns = min(3, len(panels))
    rows = math.ceil(len(panels) / columns)
    figure = Figure(figsize=(5 * columns, 4 * rows), layout="constrained")
    for place, (title, curves, label) in enumerate(panels, 1):
        axes: Any = figure.add_subplot(rows, columns, place)
        for curve in curves:
            axes.plot(curve.epochs, curve.likelihood, marker=".", linewidth=1.2, label=label(curve.plan))
        axes.set(xlabel="epoch", ylabel="test log-likelihood (AIS), nats", title=title)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7, loc="lower right")
    figure.savefig(path, dpi=110)
