"""Learning by adaptive TAP against learning by TAP: pseudo-likelihood along training (TAP machine, Fig. 10 left)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import torch
from harness import Asked, kept_of, main, publish, read, tell_missing, with_others, write
from opened import plain_machine
from pseudo import pseudo_likelihood
from torch import Tensor

from restore.console import say
from restore.errors import InputError
from restore.evaluation.card import table
from restore.inference.torch_engine import Engine
from restore.learning.recipe.recipe import Recipe, read_recipe
from restore.learning.run.folder import epoch_records

# By the fixed point of a recipe: what it is called here.
METHODS = {"tap": "TAP", "adaptive_tap": "adaptive TAP"}

# A curve has about so many points, at least.
POINTS = 10


@dataclass(frozen=True)
class Point:
    """A prior on the way.

    Attributes:
        epoch: after which it was kept.
        minutes: of training until then.
        pseudo: mean pseudo-likelihood of the images it learns from, all pixels counted, in nats.
        unsettled: by how much the last iteration moved a pixel's mean, on average over this epoch.
        lawless: share of solutions in this epoch for which adaptive TAP had no Gaussian law; None for TAP.
    """

    epoch: int
    minutes: float
    pseudo: float
    unsettled: float
    lawless: float | None


@dataclass(frozen=True)
class Curve:
    """A run.

    Attributes:
        name: of its recipe.
        recipe: digest of it.
        method: a key of `METHODS`.
        iterations: in each step.
        rate: of learning.
        epochs: that the recipe has.
        points: by epoch, in order; fewer than the recipe asks for where training was stopped.
    """

    name: str
    recipe: str
    method: str
    iterations: int
    rate: float
    epochs: int
    points: tuple[Point, ...]

    @property
    def label(self) -> str:
        return f"{METHODS[self.method]}, {self.iterations} iterations"


def measured_epochs(epochs: int) -> range:
    """After which epochs of a run a prior is measured, the last among them where their number is a round one."""
    every = max(1, epochs // POINTS)
    return range(every, epochs + 1, every)


def pseudo_likelihood_of(engine: Engine, images: Tensor) -> float:
    """Mean pseudo-likelihood of binary images (N, D), all pixels counted."""
    generator = torch.Generator(engine.device).manual_seed(0)
    machine = plain_machine(engine, "likelihood")
    return pseudo_likelihood(machine, images.to(engine.device), images.shape[1], generator).mean


def _by_rate(curves: Sequence[Curve]) -> list[list[Curve]]:
    """Those of one rate together, slowest first, in the order of the figure's legend."""
    ordered = sorted(curves, key=lambda curve: (curve.rate, list(METHODS).index(curve.method), curve.iterations))
    return [list(group) for _, group in groupby(ordered, key=lambda curve: curve.rate)]


def as_tables(curves: Sequence[Curve]) -> str:
    """Markdown: a table per rate, a row per strategy; a dash where training did not get so far."""
    parts = []
    for group in _by_rate(curves):
        epochs = measured_epochs(group[0].epochs)
        chosen = [epochs[len(epochs) * third // 3 - 1] for third in (1, 2, 3)]
        rows = []
        for curve in group:
            at = {point.epoch: point for point in curve.points}
            last = curve.points[-1]
            rows.append(
                [
                    curve.label,
                    *(f"{at[epoch].pseudo:.2f}" if epoch in at else "-" for epoch in chosen),
                    str(last.epoch),
                    f"{last.pseudo:.2f}",
                    f"{60 * last.minutes / last.epoch:.1f}",
                    f"{last.unsettled:.1e}",
                    "" if last.lawless is None else f"{100 * max(point.lawless or 0 for point in curve.points):.1f}",
                ]
            )
        head = ["strategy", *(f"after {epoch} epochs" for epoch in chosen), "last epoch", "after it"]
        head += ["seconds per epoch", "moved in the last iteration", "without a law, % at most"]
        parts.append(f"Rate {group[0].rate:g}:\n\n" + table(head, rows))
    return "\n\n".join(parts)


def study(asked: Asked) -> None:
    """Measure the runs of the recipes adaptive-*, and write adaptive.json and a table.

    What was measured before is read from adaptive.json, and runs that have been stopped count as far as they got.
    """
    path, settings = asked.records / "adaptive.json", {"n": asked.n}
    known: list[Curve] = read(path, settings, curves=Curve)["curves"]
    curves: list[Curve] = []
    missing = []
    for recipe in sorted(asked.recipes.rglob("adaptive-*.toml")):
        plan = read_recipe(recipe)
        earlier = [curve for curve in known if (curve.name, curve.recipe) == (plan.name, plan.digest)]
        last = measured_epochs(plan.training.epochs)[-1]
        done = any(curve.points[-1].epoch == last for curve in earlier)
        folder = asked.runs / plan.name
        if asked.train_missing and not done and last not in kept_of(plan, folder):
            asked.train(recipe, folder / "prior", folder, every=1)
        points = _points(plan, folder, earlier[0].points if earlier else (), asked)
        if not points:
            missing.append(plan.name)
            continue
        learner, rate, epochs = plan.learner, plan.optimizer.rate, plan.training.epochs
        curve = Curve(plan.name, plan.digest, learner.fixed_point, learner.iterations, rate, epochs, points)
        curves.append(curve)
        write(path, settings | {"curves": with_others(curves, known)})
    tell_missing(missing)
    if not curves:
        raise InputError(f"{asked.recipes}: none of its recipes adaptive-* has been trained; give --train")
    publish(asked, {"adaptive": as_tables(curves)})


def _points(plan: Recipe, folder: Path, earlier: tuple[Point, ...], asked: Asked) -> tuple[Point, ...]:
    """What is known of a run, and what it has kept beyond that."""
    points, kept = {point.epoch: point for point in earlier}, kept_of(plan, folder)
    chosen = [epoch for epoch in measured_epochs(plan.training.epochs) if epoch in kept and epoch not in points]
    if not chosen:
        return earlier
    images = asked.images(plan.data.source, "train", asked.n or plan.data.count or None, cut=plan.data.threshold)
    records = epoch_records(folder)
    for epoch in chosen:
        engine, record = Engine.load(str(kept[epoch]), asked.device), records[epoch - 1]
        pseudo = pseudo_likelihood_of(engine, images)
        points[epoch] = Point(epoch, record["seconds"] / 60, pseudo, record["solution_change"], record.get("lawless"))
        say(f"{plan.name}, epoch {epoch}: {pseudo:.2f} nats")
    return tuple(points[epoch] for epoch in sorted(points))


if __name__ == "__main__":
    main(study)
