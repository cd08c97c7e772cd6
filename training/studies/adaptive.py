"""Learning by adaptive TAP against learning by TAP: pseudo-likelihood along training (TAP machine, Fig. 10 left)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby, product
from pathlib import Path

import torch
from harness import Asked, kept_of, main, publish, read, tell_missing, with_others, write
from opened import plain_machine
from pseudo import pseudo_likelihood
from torch import Tensor

from restore.console import say
from restore.errors import InputError
from restore.evaluation.card import table
from restore.evaluation.likelihoods.exact import Model
from restore.fields import Fields
from restore.inference.torch_engine import Engine
from restore.learning.course import CleanImages
from restore.learning.recipe.recipe import Recipe, read_recipe
from restore.learning.rules.contract import LearnerState
from restore.learning.rules.tap_likelihood import TAPLikelihood
from restore.learning.run.folder import epoch_records
from restore.learning.run.session import Progress, Session
from restore.learning.steps import fit
from restore.priors import RBM, LayeredPrior

# By the fixed point of a recipe: what it is called here.
METHODS = {"tap": "TAP", "adaptive_tap": "adaptive TAP"}

# Where else solutions may start than from the batch: by what the first fields are of the biases. In Alg. 3 B counts a
# unit's bias; in this project's solvers it does not.
STARTS: Mapping[str, float] = {"A = B = 0": -1.0, "A = 0, B = biases": 0.0}

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
        start: a key of `STARTS`; empty where solutions start from the batch.
    """

    name: str
    recipe: str
    method: str
    iterations: int
    rate: float
    epochs: int
    points: tuple[Point, ...]
    start: str = ""

    @property
    def label(self) -> str:
        start = f", from {self.start}" if self.start else ""
        return f"{METHODS[self.method]}, {self.iterations} iterations{start}"


@dataclass(frozen=True)
class FromFields(TAPLikelihood):
    """Learn by solutions that start from fields without any image.

    All solutions of a step are then the same, so that one is enough.

    Attributes:
        times: what the biases are multiplied by to give the first fields.
    """

    times: float = 0.0

    def _start(
        self, prior: LayeredPrior, batch: Tensor, state: LearnerState, generator: torch.Generator
    ) -> tuple[Tensor, ...]:
        linear = [self.times * layer.parameters["bias"][None] for layer in prior.layers]
        quadratic = [torch.zeros_like(field) for field in linear]
        moments = [layer.moments(Fields(*f)) for layer, *f in zip(prior.layers, linear, quadratic, strict=True)]
        means, variances = zip(*moments, strict=True)
        return (*means, *variances, *linear, *quadratic) if self.fixed_point == "adaptive_tap" else (*means, *variances)


def measured_epochs(epochs: int) -> range:
    """After which epochs of a run a prior is measured, the last among them where their number is a round one."""
    every = max(1, epochs // POINTS)
    return range(every, epochs + 1, every)


def shown_epochs(epochs: int) -> list[int]:
    """Those of them that are in the table, after each third of the run."""
    measured = measured_epochs(epochs)
    return [measured[len(measured) * third // 3 - 1] for third in (1, 2, 3)]


def pseudo_likelihood_of(machine: Model, images: Tensor) -> float:
    """Mean pseudo-likelihood of binary images (N, D), all pixels counted."""
    generator = torch.Generator(images.device).manual_seed(0)
    return pseudo_likelihood(machine, images, images.shape[1], generator).mean


def _by_rate(curves: Sequence[Curve]) -> list[list[Curve]]:
    """Those of one rate together, slowest first, in the order of the figure's legend."""
    ordered = sorted(
        curves, key=lambda curve: (curve.rate, list(METHODS).index(curve.method), curve.start, curve.iterations)
    )
    return [list(group) for _, group in groupby(ordered, key=lambda curve: curve.rate)]


def as_tables(curves: Sequence[Curve]) -> str:
    """Markdown: a table per rate, a row per strategy; a dash where training did not get so far."""
    parts = []
    for group in _by_rate(curves):
        chosen = shown_epochs(group[0].epochs)
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
    for curve in _from_fields(known, asked):
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
    images, records = _images(plan, asked), epoch_records(folder)
    for epoch in chosen:
        engine, record = Engine.load(str(kept[epoch]), asked.device), records[epoch - 1]
        pseudo = pseudo_likelihood_of(plain_machine(engine, "likelihood"), images.to(engine.device))
        points[epoch] = Point(epoch, record["seconds"] / 60, pseudo, record["solution_change"], record.get("lawless"))
        say(f"{plan.name}, epoch {epoch}: {pseudo:.2f} nats")
    return tuple(points[epoch] for epoch in sorted(points))


def _images(plan: Recipe, asked: Asked) -> Tensor:
    """The images that a recipe learns from."""
    return asked.images(plan.data.source, "train", asked.n or plan.data.count or None, cut=plan.data.threshold)


def _from_fields(known: Sequence[Curve], asked: Asked) -> Iterator[Curve]:
    """The curves from other starts, known or, if so asked, learnt now, of the recipes with the highest rate."""
    plans = [read_recipe(recipe) for recipe in sorted(asked.recipes.rglob("adaptive-*.toml"))]
    plans.sort(key=lambda plan: plan.learner.iterations)
    highest = max((plan.optimizer.rate for plan in plans), default=0.0)
    for start, plan in product(STARTS, plans):
        if plan.optimizer.rate < highest:
            continue
        name = f"{plan.name}, from {start}"
        there = [curve for curve in known if (curve.name, curve.recipe) == (name, plan.digest)]
        if there:
            yield there[0]
        elif asked.train_missing:
            yield _learn_from(start, plan, name, asked)


def _learn_from(start: str, plan: Recipe, name: str, asked: Asked) -> Curve:
    """Learn by a recipe, with solutions from another start."""
    images, points = _images(plan, asked), list[Point]()

    def measure(passed: Progress) -> None:
        if passed.done in shown_epochs(plan.training.epochs):
            assert isinstance(passed.machine, RBM)
            pseudo, found = pseudo_likelihood_of(passed.machine, images), passed.monitors
            points.append(
                Point(passed.done, passed.seconds / 60, pseudo, found["solution_change"], found.get("lawless"))
            )
            say(f"{name}, epoch {passed.done}: {pseudo:.2f} nats")

    torch.set_num_threads(1)
    learner = FromFields(**asdict(plan.learner), times=STARTS[start])
    fit(replace(plan, learner=learner), CleanImages(images), Session(asked.runs / name, name, watch=measure))
    rate, epochs = plan.optimizer.rate, plan.training.epochs
    return Curve(name, plan.digest, learner.fixed_point, learner.iterations, rate, epochs, tuple(points), start)


if __name__ == "__main__":
    main(study)
