"""The denoising study: Matthews correlation over the flip probability (TAP machine, sec. VII.D, Fig. 8).

Beside the paper's curves (one start, from the pointwise estimate) stand those of several starts, and what tells why the
first fail at strong noise: log Z of the solution found, against that of the solution next to the clean image.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import torch
from harness import Asked, finish, main, panels, publish, write
from torch import Tensor

from restore.channels import BitFlip, parse_task
from restore.console import say
from restore.errors import UsageError
from restore.evaluation import metrics
from restore.evaluation.baselines import NearestNeighbour, PointwiseEstimate
from restore.evaluation.markdown import table
from restore.inference.torch_engine import Engine, machine_under
from restore.solvers import SeveralStarts, Solution

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PROBABILITIES = tuple(round(0.05 * step, 2) for step in range(11))

# Test images, but where others are asked for.
IMAGES = 1000

# Pixels whose probability of ink is above this are surely ink, a method says.
SURE = 0.8

# What distinguishes the curves of a prior: a single start, or one that no user has.
ONE, CLEAN = ", one start", ", from the clean image"


@dataclass(frozen=True)
class Curve:
    """One method, over the flip probability.

    Attributes:
        name: of the method.
        mcc: mean Matthews correlation and its standard error.
        error: the same for the share of wrong pixels, in per cent.
        log_partition: mean log Z of the solutions found; None for methods that have none.
        sure: of the pixels whose probability is above `SURE`, the mean probability and the share that is ink; None
            where there is no such pixel, and empty for methods without probabilities.
    """

    name: str
    mcc: tuple[metrics.Score, ...]
    error: tuple[metrics.Score, ...]
    log_partition: tuple[float, ...] | None = None
    sure: tuple[tuple[float, float] | None, ...] = ()


def measured(
    engines: Mapping[str, Engine],
    training: Tensor,
    truth: Tensor,
    image_shape: tuple[int, int],
    seed: int,
) -> list[Curve]:
    """Curves of the baselines, and of every prior from one start, from several, and from the clean image.

    Args:
        engines: priors by name.
        training: binary training images for the baselines, (N, D).
        truth: binary test images, (n, D).
        image_shape: (H, W).
        seed: of the flips, which are the same for every method.
    """
    pointwise, nearest = PointwiseEstimate.fit(training), NearestNeighbour(training, keep_known=False)
    methods: dict[str, Callable[[Tensor, BitFlip], Tensor | Solution]] = {
        "OPE": pointwise.restore,
        "1-NN": nearest.restore,
    }
    for name, engine in engines.items():
        methods[name + ONE] = one_start(engine).restore
        methods[name] = engine.restore
        methods[name + CLEAN] = partial(_from, engine, truth)
    curves = []
    for name, method in methods.items():
        curves.append(_curve(name, method, truth, image_shape, seed))
        say(f"{name}: " + " ".join(f"{score.mean:.3f}" for score in curves[-1].mcc))
    return curves


def one_start(engine: Engine) -> Engine:
    """The same prior, started from the pointwise estimate alone, as in the paper."""
    header = engine.trained.description
    alone = replace(header, inference=replace(header.inference, starts=1))
    return Engine(replace(engine.trained, description=alone), engine.device)


def _from(engine: Engine, start: Tensor, observed: Tensor, channel: BitFlip) -> Solution:
    """The solutions that starts of one's own lead to."""
    with torch.inference_mode():
        machine = machine_under(engine.trained, channel.evidence(observed.to(engine.device)))
        return SeveralStarts(engine.solver).solve(machine, start[:, None].to(engine.device))


def _curve(
    name: str,
    method: Callable[[Tensor, BitFlip], Tensor | Solution],
    truth: Tensor,
    image_shape: tuple[int, int],
    seed: int,
) -> Curve:
    correlations, errors, depths, sure = [], [], [], []
    for p in PROBABILITIES:
        observed, _ = parse_task(f"flip:{p}").damage(truth, image_shape, torch.Generator().manual_seed(seed))
        found = method(observed, BitFlip(p))
        restored = (found.means[0] if isinstance(found, Solution) else found).cpu()
        correlations.append(metrics.summary(metrics.matthews(truth, restored)))
        errors.append(metrics.summary(100 * metrics.error_all(truth, restored)))
        if isinstance(found, Solution):
            depths.append(float(found.log_partition.mean()))
            above = restored > SURE
            sure.append((float(restored[above].mean()), float(truth[above].mean())) if bool(above.any()) else None)
    return Curve(name, tuple(correlations), tuple(errors), tuple(depths) or None, tuple(sure))


def as_tables(curves: Sequence[Curve]) -> list[str]:
    """Markdown: Matthews correlations, wrong pixels in per cent, and what is ink of what is surely ink, over p.

    Curves that start from the clean image are left out: no restorer has it.
    """
    curves = [curve for curve in curves if not curve.name.endswith(CLEAN)]
    sure = [
        [curve.name, *("-" if each is None else f"{each[0]:.2f}: {each[1]:.2f}" for each in curve.sure[1:])]
        for curve in curves
        if curve.sure and not curve.name.endswith(ONE)
    ]
    columns = [f"{p:g}" for p in PROBABILITIES]
    return [
        _scores("MCC at p =", {curve.name: curve.mcc for curve in curves}, max, 3),
        _scores("wrong pixels, %, at p =", {curve.name: curve.error for curve in curves}, min, 2),
        table(["said: true", *columns[1:]], sure),
    ]


def _scores(
    head: str,
    scores: Mapping[str, Sequence[metrics.Score]],
    best: Callable[[Sequence[float]], float],
    digits: int,
) -> str:
    """A row per method, a column per flip probability, the best of each column in bold."""
    tops = [best([each[column].mean for each in scores.values()]) for column in range(len(PROBABILITIES))]

    def cell(score: metrics.Score, top: float) -> str:
        mark = "**" if score.mean == top else ""
        return f"{mark}{score.mean:.{digits}f}{mark}"

    rows = [[name, *(cell(*pair) for pair in zip(each, tops, strict=True))] for name, each in scores.items()]
    return table([head, *(f"{p:g}" for p in PROBABILITIES)], rows)


def depth_table(curves: Sequence[Curve], name: str) -> str:
    """Markdown: log Z of the solutions of a prior by where they started, per flip probability above zero."""
    labels = {name + ONE: "one start", name: "several starts", name + CLEAN: "from the clean image"}
    rows = [
        [labels[curve.name], *(f"{value:.1f}" for value in curve.log_partition[1:])]
        for curve in curves
        if curve.name in labels and curve.log_partition is not None
    ]
    return table([f"log Z of {name}", *(f"{p:g}" for p in PROBABILITIES[1:])], rows)


def figure_of(curves: Sequence[Curve]) -> Figure:
    """MCC over p: baselines black, each prior in its colour, one start dashed."""
    curves = [curve for curve in curves if not curve.name.endswith(CLEAN)]
    figure, ((axes,),) = panels(1, 1, (8, 5))
    colours: dict[str, str] = {}
    for curve in curves:
        prior, _, variant = curve.name.partition(",")
        baseline = curve.name in ("OPE", "1-NN")
        colour = "black" if baseline else colours.setdefault(prior, f"C{len(colours)}")
        style = "--" if variant or curve.name == "OPE" else "-"
        means = [score.mean for score in curve.mcc]
        axes.plot(PROBABILITIES, means, style, color=colour, label=curve.name, linewidth=2.0 if baseline else 1.3)
    axes.set(xlabel="flip probability p", ylabel="Matthews correlation", ylim=(-0.02, 1.02), xlim=(0, 0.5))
    finish(axes, ncols=2)
    return figure


def study(asked: Asked) -> None:
    """Measure the unconditional priors of MNIST on flipped pixels; write denoising.json, denoising.png and tables."""
    engines = {
        name: engine
        for name, engine in asked.engines().items()
        if not engine.description.task and engine.description.data == "mnist"
    }
    if not engines:
        raise UsageError("none of these priors is an unconditional one of mnist; name others with --model")
    shape = next(iter(engines.values())).description.image_shape
    truth = asked.images("mnist", "test", asked.n or IMAGES)
    curves = measured(engines, asked.images("mnist", "train"), truth, shape, asked.seed)
    write(asked.records / "denoising.json", {"n": len(truth), "seed": asked.seed, "curves": curves})
    tables = [*as_tables(curves), *(depth_table(curves, name) for name in engines)]
    publish(asked, {"denoising": "\n\n".join(tables)}, {"denoising.png": figure_of(curves)})


if __name__ == "__main__":
    main(study)
