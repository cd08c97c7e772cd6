"""The denoising study: Matthews correlation over the flip probability (TAP machine, sec. VII.D, Fig. 8).

Beside the paper's curves (one start, from the pointwise estimate) stand those of several starts, and what tells why the
first fail at strong noise: log Z of the solution found, against that of the solution next to the clean image.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from baselines import NearestNeighbour, PointwiseEstimate
from harness import Asked, main, publish, read, write
from torch import Tensor

from restore.channels import Damage, parse_task
from restore.console import say
from restore.errors import UsageError
from restore.evaluation import metrics
from restore.evaluation.card import table
from restore.inference.torch_engine import Engine, machine_under
from restore.solvers import SeveralStarts, Solution

PROBABILITIES = tuple(round(0.05 * step, 2) for step in range(11))

# Test images, but where others are asked for.
IMAGES = 1000

# Recipes of the paper's own machines, and of machines that learn from other starts; all are measured from one start.
ALONE = (
    *(f"dynamics/dynamics-mnist-{hidden}.toml" for hidden in (25, 50, 100, 500)),
    *(f"starts/tap-mnist-{hidden}-data.toml" for hidden in (25, 50)),
)

# Priors whose solutions' log Z is told.
DEPTHS = ("tap-mnist-100", "tap-mnist-500")

# How many images 1-NN chooses among, beside all of them.
EXEMPLARS = (1000, 10_000)

# What distinguishes the curves of a prior: a single start, or one that no user has.
ONE, CLEAN = ", one start", ", from the clean image"

# What distinguishes those of the two baselines that the paper compares, after flips by the next seed.
AGAIN = ", other flips"


@dataclass(frozen=True)
class Curve:
    """One method, over the flip probability.

    Attributes:
        name: of the method.
        mcc: mean Matthews correlation and its standard error.
        error: the same for the share of wrong pixels, in per cent.
        log_partition: mean log Z of the solutions found; None for methods that have none.
    """

    name: str
    mcc: tuple[metrics.Score, ...]
    error: tuple[metrics.Score, ...]
    log_partition: tuple[float, ...] | None = None


def measured(
    engines: Mapping[str, Engine],
    training: Tensor,
    truth: Tensor,
    image_shape: tuple[int, int],
    seed: int,
    alone: Mapping[str, Engine] | None = None,
    known: Collection[str] = (),
) -> list[Curve]:
    """Curves of the baselines, and of every prior from one start, from several, and from the clean image.

    Args:
        engines: priors by name.
        training: binary training images for the baselines, (N, D).
        truth: binary test images, (n, D).
        image_shape: (H, W).
        seed: of the flips, which are the same for every method, but for the two that are measured with others, too.
        alone: priors by name that are measured from one start only.
        known: names of curves that need not be measured.
    """
    methods: dict[str, Callable[[Tensor, Damage], Tensor | Solution]] = {
        "OPE": PointwiseEstimate.fit(training).restore,
        "1-NN": NearestNeighbour(training, keep_known=False).restore,
    }
    methods |= {name + AGAIN: method for name, method in methods.items()}
    for count in EXEMPLARS:
        methods[f"1-NN of {count:,}"] = NearestNeighbour(training[:count], keep_known=False).restore
    for name, engine in engines.items():
        methods[name + ONE] = by(one_start(engine))
        methods[name] = by(engine)
        methods[name + CLEAN] = partial(_from, engine, truth)
    methods |= {name + ONE: by(one_start(engine)) for name, engine in (alone or {}).items()}
    curves = []
    for name, method in methods.items():
        if name in known:
            continue
        curves.append(_curve(name, method, truth, image_shape, seed + name.endswith(AGAIN)))
        say(f"{name}: " + " ".join(f"{score.mean:.3f}" for score in curves[-1].mcc))
    return curves


def one_start(engine: Engine) -> Engine:
    """The same prior, started from the pointwise estimate alone, as in the paper."""
    header = engine.trained.description
    alone = replace(header, inference=replace(header.inference, starts=1))
    return Engine(replace(engine.trained, description=alone), engine.device)


def by(engine: Engine) -> Callable[[Tensor, Damage], Solution]:
    """A prior of binary images as a method."""
    return lambda observed, damage: engine.restore(observed, damage.channel(grey=False))


def _from(engine: Engine, start: Tensor, observed: Tensor, damage: Damage) -> Solution:
    """The solutions that starts of one's own lead to."""
    with torch.inference_mode():
        evidence = damage.channel(grey=False).evidence(observed.to(engine.device))
        machine = machine_under(engine.trained, evidence)
        return SeveralStarts(engine.solver).solve(machine, start[:, None].to(engine.device))


def _curve(
    name: str,
    method: Callable[[Tensor, Damage], Tensor | Solution],
    truth: Tensor,
    image_shape: tuple[int, int],
    seed: int,
) -> Curve:
    correlations, errors, depths = [], [], []
    for p in PROBABILITIES:
        found = method(*parse_task(f"flip:{p}").damage(truth, image_shape, torch.Generator().manual_seed(seed)))
        restored = (found.means[0] if isinstance(found, Solution) else found).cpu()
        correlations.append(metrics.summary(metrics.matthews(truth, restored)))
        errors.append(metrics.summary(100 * metrics.error_all(truth, restored)))
        if isinstance(found, Solution):
            depths.append(float(found.log_partition.mean()))
    return Curve(name, tuple(correlations), tuple(errors), tuple(depths) or None)


def as_tables(curves: Sequence[Curve]) -> str:
    """Markdown: Matthews correlations over p, the best of each column in bold, and the log Z of solutions."""
    shown = [curve for curve in curves if not curve.name.endswith(CLEAN)]
    tops = [max(curve.mcc[column].mean for curve in shown) for column in range(len(PROBABILITIES))]

    def cell(score: metrics.Score, top: float) -> str:
        mark = "**" if score.mean == top else ""
        return f"{mark}{score.mean:.3f}{mark}"

    rows = [[curve.name, *(cell(*pair) for pair in zip(curve.mcc, tops, strict=True))] for curve in shown]
    columns = [f"{p:g}" for p in PROBABILITIES]
    return "\n\n".join([table(["MCC at p =", *columns], rows), depth_table(curves)])


def depth_table(curves: Sequence[Curve]) -> str:
    """Markdown: mean log Z of the solutions by where they started, per flip probability above zero."""
    rows = [
        [curve.name, *(f"{value:.1f}" for value in curve.log_partition[1:])]
        for curve in curves
        if curve.log_partition and curve.name.partition(",")[0] in DEPTHS
    ]
    return table(["mean log Z at p =", *(f"{p:g}" for p in PROBABILITIES[1:])], rows)


def study(asked: Asked) -> None:
    """Measure the unconditional priors of MNIST on flipped pixels; write denoising.json and a table.

    Curves that are in denoising.json are not measured again.
    """
    engines = {
        name: engine
        for name, engine in asked.engines().items()
        if not engine.header.task and engine.header.data == "mnist"
    }
    if not engines:
        raise UsageError("none of these priors is an unconditional one of mnist; name others with --model")
    shape = next(iter(engines.values())).header.image_shape
    truth = asked.images("mnist", "test", asked.n or IMAGES)
    path, settings = asked.records / "denoising.json", {"n": len(truth), "seed": asked.seed}
    known: list[Curve] = read(path, settings, curves=Curve)["curves"]
    folders = {recipe.stem: asked.prior(recipe) for recipe in map(asked.recipes.joinpath, ALONE)}
    alone = {name: Engine.load(str(folder), asked.device) for name, folder in folders.items() if folder}
    curves = measured(
        engines,
        asked.images("mnist", "train"),
        truth,
        shape,
        asked.seed,
        alone,
        [curve.name for curve in known],
    )
    found = {curve.name for curve in curves}
    curves = [*(curve for curve in known if curve.name not in found), *curves]
    write(path, settings | {"curves": curves})
    publish(asked, {"denoising": as_tables(curves)})


if __name__ == "__main__":
    main(study)
