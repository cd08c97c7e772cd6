"""Growth against random starts: likelihood and features over the number of hidden units (FW, sec. 4, Figs. 1-2)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from classification import examples_of, wrong_share
from harness import (
    Asked,
    checksum,
    kept_of,
    main,
    publish,
    read,
    tell_missing,
    with_others,
    write,
)
from kept import epoch_seconds
from mean_likelihoods import LEAST_RUNS, Likelihood, ais_likelihood
from opened import plain_machine
from torch import Tensor

from restore import zoo
from restore.console import say
from restore.data import Split
from restore.errors import InputError
from restore.evaluation.card import table
from restore.evaluation.likelihoods.ais import temperatures
from restore.inference.torch_engine import Engine
from restore.learning.course import split
from restore.learning.recipe.recipe import Recipe, read_recipe

# As in the paper, with a fifth of its runs.
SCHEDULE, RUNS = "frank-wolfe", 100

# A prior of whose runs fewer count is annealed again, with so many times as many temperatures: the first if at least
# `LEAST_RUNS` count, else the second, which is the last.
ENOUGH, SLOWER = 20, (2, 10)

# Sizes at which the growing machine is measured, beside those of the other priors.
SIZES = (100, 300, 500)

# Training images that a classifier is fitted to.
LABELLED = 10_000

SPLITS: tuple[Split, Split] = ("train", "test")

GROWN, TUNED, RANDOM, FURTHER = "FW", "CD-10 from FW", "CD-10 from random weights", "FW from tap-mnist-25"
PERSISTENT = "PCD-10 from FW"
METHODS = (GROWN, TUNED, PERSISTENT, RANDOM, FURTHER)

# Data sets by the word that names of recipes have for them.
DATA = {"mnist": "MNIST", "caltech": "Caltech-101 Silhouettes"}


@dataclass(frozen=True)
class Point:
    """One prior.

    Attributes:
        name: of its recipe.
        data: a key of `DATA`.
        method: one of `METHODS`.
        hidden: number of hidden units.
        minutes: how long its training took, growth included.
        likelihood: mean log-likelihood of the test images, in nats, by AIS.
        interval: for it, from that of log Z.
        effective: effective number of AIS runs.
        error: share of test images that a classifier on its hidden units gets wrong; None of further seeds.
        recipe: digest of its recipe.
        weights: SHA-256 of its tensors.
        slower: annealed with so many times the paper's temperatures.
        gap: mean log-probability of training images minus that of validation images, in nats, by which the paper stops
            growth; None where the weights are gone.
    """

    name: str
    data: str
    method: str
    hidden: int
    minutes: float
    likelihood: float
    interval: tuple[float, float]
    effective: float
    error: float | None
    recipe: str
    weights: str
    slower: int = 1
    gap: float | None = None


def kind_of(name: str) -> tuple[str, str] | None:
    """The method and the data of a recipe of this study by its name; None for others."""
    found = re.fullmatch(r"(p?cd-fw|fw-on|cd|fw)-(mnist|caltech)((-\d+){0,2})", name)
    if not found or (found[1] == "cd" and not found[3]):
        return None
    methods = {"fw": GROWN, "cd-fw": TUNED, "pcd-fw": PERSISTENT, "cd": RANDOM, "fw-on": FURTHER}
    return methods[found[1]], found[2]


def refined(betas: Tensor, factor: int) -> list[float]:
    """The inverse temperatures of a schedule, and between any two of them others at equal distances.

    >>> refined(torch.tensor([0.0, 0.5, 1.0]), 2)
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    steps = len(betas) - 1
    return np.interp(np.arange(steps * factor + 1) / factor, np.arange(steps + 1), betas.numpy()).tolist()


def likelihood_of(engine: Engine, images: Tensor, seed: int, slower: int = 1) -> Likelihood:
    """Mean log-likelihood of binary images (N, D) by AIS, with the paper's temperatures or more."""
    machine = plain_machine(engine, "likelihood")
    generator = torch.Generator(engine.device).manual_seed(seed)
    base = torch.logit(engine.trained.pixel_means)
    schedule = refined(temperatures(SCHEDULE), slower)
    return ais_likelihood(machine, images.to(engine.device), schedule, RUNS, generator, base)


def as_tables(points: Sequence[Point]) -> str:
    """Markdown: a table per data set, a row per size and method; of several seeds the best, and what the worst has."""
    parts = []
    for data, label in DATA.items():
        stop = max((point.hidden for point in points if point.name == f"fw-{data}"), default=0)
        trials: dict[tuple[int, str], list[Point]] = {}
        for point in points:
            if point.data == data:
                trials.setdefault((point.hidden, point.method), []).append(point)
        rows = []
        for (hidden, method), each in sorted(trials.items(), key=lambda item: (item[0][0], METHODS.index(item[0][1]))):
            worst, best = (choose(each, key=lambda point: point.likelihood) for choose in (min, max))
            (low, high), errors = best.interval, [point.error for point in each if point.error is not None]
            runs = f"{best.effective:.{1 if best.effective < 10 else 0}f}"
            rows.append(
                [
                    f"{hidden}{' (stopped here)' if (hidden, method) == (stop, GROWN) else ''}",
                    method if len(each) == 1 else f"{method}, best of {len(each)}",
                    f"{best.likelihood:.2f}{f' (worst {worst.likelihood:.2f})' if len(each) > 1 else ''}",
                    f"{low:.2f} ... {high:.2f}" if best.effective >= LEAST_RUNS else "-",
                    runs if best.slower == 1 else f"{runs} ({best.slower}x slower)",
                    "-" if best.gap is None else f"{best.gap:.2f}",
                    f"{100 * errors[0]:.2f}" if errors else "-",
                    f"{best.minutes:.1f}",
                ]
            )
        header = ["hidden units", "training", "test log-likelihood", "95 % interval", "effective runs", "gap"]
        if rows:
            parts.append(f"{label}:\n\n" + table([*header, "classification error, %", "minutes"], rows))
    return "\n\n".join(parts)


def study(asked: Asked) -> None:
    """Measure the priors of the recipes fw-*, cd-fw-*, pcd-fw-* and cd-*, and write growth.json and a table.

    What was measured before is read from growth.json. With --model only the recipes of these names are looked at.
    """
    path = asked.records / "growth.json"
    settings = {"seed": asked.seed, "n": asked.n, "schedule": SCHEDULE, "runs": RUNS}
    known: list[Point] = read(path, settings, points=Point)["points"]
    points: list[Point] = []
    missing = []
    for recipe in _recipes(asked):
        name, plan = recipe.stem, read_recipe(recipe)
        earlier = {point.weights: point for point in known if (point.name, point.recipe) == (name, plan.digest)}
        wanted = replace(asked, train_missing=asked.train_missing and not earlier)
        folder = wanted.prior(recipe, every=20 if plan.in_rounds else 0)
        found = list(earlier.values()) if folder is None else _points(folder, plan, earlier, asked)
        if not found:
            missing.append(name)
            continue
        points += found
        write(path, settings | {"points": with_others(points, known)})
    tell_missing(missing)
    if not points:
        raise InputError(f"{asked.recipes}: no recipe fw-*, cd-fw-*, cd-* there has a trained prior; give --train")
    publish(asked, {"growth": as_tables(with_others(points, known))})


def _recipes(asked: Asked) -> list[Path]:
    """The recipes of this study that are asked for, growth first: some others start from what has grown."""
    kinds = {path: kind for path in asked.recipes.rglob("*.toml") if (kind := kind_of(path.stem))}
    chosen = [path for path in kinds if not asked.models or path.stem in asked.models]
    return sorted(chosen, key=lambda path: (METHODS.index(kinds[path][0]), path))


def _points(folder: Path, plan: Recipe, earlier: dict[str, Point], asked: Asked) -> list[Point]:
    """A prior, and those kept while it grew; `earlier` ones, by their weights, are not measured twice."""
    weights = checksum(folder)
    if weights not in earlier:
        kept = {zoo.describe(part).hidden: part for part in kept_of(plan, asked.runs / plan.name).values()}
        parts = [*(part for size, part in kept.items() if size in SIZES), folder]
        return [_point(part, plan, asked) for part in parts]
    # It may be from before there was slower annealing, or a gap.
    point, engine = earlier[weights], Engine.load(str(folder), asked.device)
    if slower := _slower(point.slower, point.effective):
        point = replace(point, **_likelihood(engine, plan.name, slower, asked))
    if point.gap is None:
        point = replace(point, gap=_gap(engine, plan, asked))
    return list((earlier | {weights: point}).values())


def _point(folder: Path, plan: Recipe, asked: Asked) -> Point:
    """What a prior is worth."""
    engine = Engine.load(str(folder), asked.device)
    header, name = engine.header, plan.name
    method, data = kind_of(name) or ("", "")
    # A prior that was kept on the way is as old as the round it is from. A run that is gone ends the study here, before
    # minutes of measuring.
    grown = asked.runs / name
    minutes = epoch_seconds(grown)[int(folder.name) - 1 if folder.parent.parent == grown else -1] / 60
    error = None
    if plan.seed == asked.seed:
        count = min(asked.n or LABELLED, LABELLED)
        training, test = (examples_of(engine, header.data, split, count, asked.data) for split in SPLITS)
        error = wrong_share(training, test, np.random.default_rng(asked.seed))
    return Point(
        name=name,
        data=data,
        method=method,
        hidden=header.hidden,
        minutes=minutes,
        error=error,
        recipe=header.recipe,
        weights=checksum(folder),
        gap=_gap(engine, plan, asked),
        **_likelihood(engine, name, 1, asked),
    )


def _gap(engine: Engine, plan: Recipe, asked: Asked) -> float:
    """How much more probable a prior finds the images it learnt from than those held out, in nats; log Z cancels."""
    machine = plain_machine(engine, "likelihood")
    images = asked.images(engine.header.data, "train", cut=engine.header.threshold).to(engine.device)
    training, validation = (float(-machine.free_energy(part).double().mean()) for part in split(plan, images))
    return training - validation


def _slower(last: int, effective: float) -> int:
    """How many times the paper's temperatures a prior needs next; 0 if no more, as enough runs count, or by now."""
    if effective >= ENOUGH or last == SLOWER[-1]:
        return 0
    return SLOWER[0] if last == 1 and effective >= LEAST_RUNS else SLOWER[-1]


def _likelihood(engine: Engine, name: str, slower: int, asked: Asked) -> dict[str, Any]:
    """What a point says of the likelihood, annealed so many times as slowly, or more if need be."""
    images = asked.images(engine.header.data, "test", asked.n, cut=engine.header.threshold)
    found = likelihood_of(engine, images, asked.seed, slower)
    effective = dict(found.details)["effective_runs"]
    say(f"{name}, {engine.header.hidden} units: {found.mean:.2f} nats, {effective:.1f} effective runs")
    if further := _slower(slower, effective):
        return _likelihood(engine, name, further, asked)
    return {"likelihood": found.mean, "interval": found.interval, "effective": effective, "slower": slower}


if __name__ == "__main__":
    main(study)
