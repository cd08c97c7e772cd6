"""Growth against random starts: likelihood and features over the number of hidden units (FW, sec. 4, Figs. 1-2)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

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
from mean_likelihoods import LEAST_RUNS, ais_likelihood
from opened import plain_machine
from torch import Tensor

from restore import zoo
from restore.console import say
from restore.data import Split
from restore.errors import InputError
from restore.evaluation.card import table
from restore.inference.torch_engine import Engine
from restore.learning.recipe.recipe import Recipe, read_recipe
from restore.learning.run.folder import epoch_seconds

# As in the paper, with a fifth of its runs.
SCHEDULE, RUNS = "frank-wolfe", 100

# Sizes at which the growing machine is measured, beside those of the other priors.
SIZES = (100, 300, 500)

# Training images that a classifier is fitted to.
LABELLED = 10_000

SPLITS: tuple[Split, Split] = ("train", "test")

GROWN, TUNED, RANDOM, FURTHER = "FW", "CD-10 from FW", "CD-10 from random weights", "FW from tap-mnist-25"
METHODS = (GROWN, TUNED, RANDOM, FURTHER)

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
        error: share of test images that a classifier on its hidden units gets wrong; None where not measured.
        recipe: digest of its recipe.
        weights: SHA-256 of its tensors.
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


def kind_of(name: str) -> tuple[str, str] | None:
    """The method and the data of a recipe of this study by its name; None for others."""
    found = re.fullmatch(r"(cd-fw|fw-on|cd|fw)-(mnist|caltech)((-\d+){0,2})", name)
    if not found or (found[1] == "cd" and not found[3]):
        return None
    return {"fw": GROWN, "cd-fw": TUNED, "cd": RANDOM, "fw-on": FURTHER}[found[1]], found[2]


def likelihood_of(engine: Engine, images: Tensor, seed: int) -> tuple[float, tuple[float, float], float]:
    """Mean log-likelihood of binary images (N, D) by AIS, its interval, and the effective number of runs."""
    machine = plain_machine(engine, "likelihood")
    generator = torch.Generator(engine.device).manual_seed(seed)
    base = torch.logit(engine.trained.pixel_means)
    found = ais_likelihood(machine, images.to(engine.device), SCHEDULE, RUNS, generator, base)
    assert found.interval is not None
    return found.mean, found.interval, dict(found.details)["effective_runs"]


def as_tables(points: Sequence[Point], sizes: Mapping[str, int]) -> str:
    """Markdown: a table per data set, a row per prior, those of a size together.

    Args:
        points: what was measured.
        sizes: where growth stopped by itself, by data set.
    """
    parts = []
    for data, label in DATA.items():
        rows = []
        chosen = sorted(
            (point for point in points if point.data == data), key=lambda p: (p.hidden, METHODS.index(p.method), p.name)
        )
        for point in chosen:
            low, high = point.interval
            stopped = " (stopped here)" if point.method == GROWN and point.hidden == sizes.get(data) else ""
            rows.append(
                [
                    f"{point.hidden}{stopped}",
                    point.method,
                    f"{point.likelihood:.2f}",
                    f"{low:.2f} ... {high:.2f}" if point.effective >= LEAST_RUNS else "-",
                    f"{point.effective:.0f}",
                    "-" if point.error is None else f"{100 * point.error:.2f}",
                    f"{point.minutes:.1f}",
                ]
            )
        header = ["hidden units", "training", "test log-likelihood", "95 % interval", "effective runs"]
        if rows:
            parts.append(f"{label}:\n\n" + table([*header, "classification error, %", "minutes"], rows))
    return "\n\n".join(parts)


def study(asked: Asked) -> None:
    """Measure the priors of the recipes fw-*, cd-fw-* and cd-*, and write growth.json and a table.

    What was measured before is read from growth.json.
    """
    path = asked.records / "growth.json"
    settings = {"seed": asked.seed, "n": asked.n, "schedule": SCHEDULE, "runs": RUNS}
    known: list[Point] = read(path, settings, points=Point)["points"]
    points: list[Point] = []
    sizes: dict[str, int] = {}
    missing = []
    for recipe in sorted(path for path in asked.recipes.rglob("*.toml") if kind_of(path.stem)):
        name, plan = recipe.stem, read_recipe(recipe)
        earlier = [point for point in known if (point.name, point.recipe) == (name, plan.digest)]
        wanted = replace(asked, train_missing=asked.train_missing and not earlier)
        folder = wanted.prior(recipe, every=20 if plan.in_rounds else 0)
        if folder is None or any(point.weights == checksum(folder) for point in earlier):
            found = earlier
        else:
            found = [_point(part, plan, asked) for part in _parts(folder, plan, asked.runs / name)]
        if not found:
            missing.append(name)
            continue
        points += found
        if plan.in_rounds and plan.prior.grows:
            sizes[found[0].data] = max(point.hidden for point in found)
        write(path, settings | {"points": with_others(points, known)})
    tell_missing(missing)
    if not points:
        raise InputError(f"{asked.recipes}: no recipe fw-*, cd-fw-*, cd-* there has a trained prior; give --train")
    publish(asked, {"growth": as_tables(points, sizes)})


def _parts(folder: Path, plan: Recipe, grown: Path) -> list[Path]:
    """The folders of the prior, and before it of those that were kept while it grew."""
    whole = zoo.describe(folder).hidden
    return [*(kept for size, kept in kept_of(plan, grown).items() if size in SIZES and size < whole), folder]


def _point(folder: Path, plan: Recipe, asked: Asked) -> Point:
    """What a prior is worth."""
    engine = Engine.load(str(folder), asked.device)
    header, name = engine.header, plan.name
    method, data = kind_of(name) or ("", "")
    # A prior that was kept on the way is as old as the round it is from. A run that is gone ends the study here, before
    # minutes of measuring.
    grown = asked.runs / name
    minutes = epoch_seconds(grown)[int(folder.name) - 1 if folder.parent.parent == grown else -1] / 60
    images = asked.images(header.data, "test", asked.n, cut=header.threshold)
    mean, interval, effective = likelihood_of(engine, images, asked.seed)
    count = min(asked.n or LABELLED, LABELLED)
    training, test = (examples_of(engine, header.data, split, count, asked.data) for split in SPLITS)
    error = wrong_share(training, test, np.random.default_rng(asked.seed))
    say(f"{name}, {header.hidden} units: {mean:.2f} nats")
    return Point(
        name, data, method, header.hidden, minutes, mean, interval, effective, error, header.recipe, checksum(folder)
    )


if __name__ == "__main__":
    main(study)
