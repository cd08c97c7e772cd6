"""The denoising study: Matthews correlation over the flip probability (TAP machine, sec. VII.D, Fig. 8).

Beside the paper's curves (one start, from the pointwise estimate) stand those of several starts, and what tells why the
first fail at strong noise: log Z of the solution found, against that of the solution next to the clean image.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from restore.channels import BitFlip
from restore.engine import Engine
from restore.evaluation import metrics
from restore.evaluation.baselines import NearestNeighbours, PointwiseEstimate
from restore.evaluation.tasks import Flip

PROBABILITIES = tuple(round(0.05 * step, 2) for step in range(11))

Restorer = Callable[[Tensor, BitFlip], Tensor]


@dataclass(frozen=True)
class Curve:
    """One method: mean MCC and share of wrong pixels (in per cent) per flip probability, each with a standard error."""

    name: str
    mcc: tuple[metrics.Score, ...]
    error: tuple[metrics.Score, ...]


@dataclass(frozen=True)
class Depth:
    """Mean log Z, per flip probability, of the solutions found from one start, several, and from the clean image."""

    name: str
    one: tuple[float, ...]
    several: tuple[float, ...]
    clean: tuple[float, ...]


def one_start(engine: Engine) -> Engine:
    """The same prior, started from the pointwise estimate alone, as in the paper."""
    about = engine.trained.description
    alone = replace(about, inference=replace(about.inference, starts=1))
    return Engine(replace(engine.trained, description=alone), engine.device)


def study(
    engines: Mapping[str, Engine],
    training: Tensor,
    truth: Tensor,
    image_shape: tuple[int, int],
    seed: int,
    say: Callable[[str], None] = lambda line: None,
) -> list[Curve]:
    """Curves of the baselines, and of every prior from one start and from several.

    Args:
        engines: priors by name.
        training: binary training images for the baselines, (N, D).
        truth: binary test images, (n, D).
        image_shape: (H, W).
        seed: of the flips, which are the same for every method.
        say: told when a curve is done.
    """
    pointwise, nearest = PointwiseEstimate.fit(training), NearestNeighbours(training, keep_known=False)
    methods: dict[str, Restorer] = {"OPE": pointwise.restore, "1-NN": nearest.restore}
    for name, engine in engines.items():
        methods[f"{name}, one start"] = _means(one_start(engine))
        methods[name] = _means(engine)
    curves = []
    for name, restorer in methods.items():
        curves.append(_curve(name, restorer, truth, image_shape, seed))
        say(f"{name}: " + " ".join(f"{score.mean:.3f}" for score in curves[-1].mcc))
    return curves


def depths(name: str, engine: Engine, truth: Tensor, image_shape: tuple[int, int], seed: int) -> Depth:
    """How deep the solutions are that the starts lead to."""
    one, several, clean = [], [], []
    for p in PROBABILITIES:
        observed, channel = _flipped(truth, p, image_shape, seed)
        one.append(float(one_start(engine).restore(observed, channel).log_partition.mean()))
        several.append(float(engine.restore(observed, channel).log_partition.mean()))
        with torch.inference_mode():
            machine = engine.trained.machine.tilt(channel.evidence(observed.to(engine.device)))
            found = engine.solver.solve(machine, truth[:, None].to(engine.device))
        clean.append(float(found.log_partition.mean()))
    return Depth(name, tuple(one), tuple(several), tuple(clean))


def _means(engine: Engine) -> Restorer:
    return lambda observed, channel: engine.restore(observed, channel).means[0]


def _flipped(truth: Tensor, p: float, image_shape: tuple[int, int], seed: int) -> tuple[Tensor, BitFlip]:
    observed, _ = Flip(p).damage(truth, image_shape, torch.Generator().manual_seed(seed))
    return observed, BitFlip(p)


def _curve(name: str, restorer: Restorer, truth: Tensor, image_shape: tuple[int, int], seed: int) -> Curve:
    correlations, errors = [], []
    for p in PROBABILITIES:
        observed, channel = _flipped(truth, p, image_shape, seed)
        restored = restorer(observed, channel).cpu()
        correlations.append(metrics.summary(metrics.matthews(truth, restored)))
        errors.append(metrics.summary(100 * metrics.error_all(truth, restored)))
    return Curve(name, tuple(correlations), tuple(errors))


def as_table(curves: Sequence[Curve]) -> str:
    """Markdown: a row per method, a column per flip probability, the best of each column in bold."""
    best = [max(curve.mcc[column].mean for curve in curves) for column in range(len(PROBABILITIES))]
    rows = [["MCC at p ="] + [f"{p:g}" for p in PROBABILITIES], ["---"] + ["---:"] * len(PROBABILITIES)]
    for curve in curves:
        cells = [
            f"**{score.mean:.3f}**" if score.mean == top else f"{score.mean:.3f}"
            for score, top in zip(curve.mcc, best, strict=True)
        ]
        rows.append([curve.name, *cells])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def depth_table(found: Depth) -> str:
    """Markdown: mean log Z of the three kinds of starts per flip probability."""
    rows = [[f"log Z of {found.name}"] + [f"{p:g}" for p in PROBABILITIES[1:]]]
    rows.append(["---"] + ["---:"] * (len(PROBABILITIES) - 1))
    named = (("one start", found.one), ("several starts", found.several), ("from the clean image", found.clean))
    for name, values in named:
        rows.append([name, *(f"{value:.1f}" for value in values[1:])])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def as_figure(curves: Sequence[Curve], path: Path) -> None:
    """Draw MCC over p: baselines black, each prior in its colour, one start dashed."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    axes: Any = figure.add_subplot()
    colours: dict[str, str] = {}
    for curve in curves:
        prior, _, variant = curve.name.partition(",")
        baseline = curve.name in ("OPE", "1-NN")
        colour = "black" if baseline else colours.setdefault(prior, f"C{len(colours)}")
        style = "--" if variant or curve.name == "OPE" else "-"
        means = [score.mean for score in curve.mcc]
        axes.plot(PROBABILITIES, means, style, color=colour, label=curve.name, linewidth=2.0 if baseline else 1.3)
    axes.set(xlabel="flip probability p", ylabel="Matthews correlation", ylim=(-0.02, 1.02), xlim=(0, 0.5))
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, ncols=2)
    figure.savefig(path, dpi=110)
