"""The study of training: likelihood per unit, solutions and features of TAP machines along it (Figs. 3-7 and 11)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import dynamics_kept as kept
import dynamics_maps as maps
import dynamics_measure as measure
import dynamics_show as show
import numpy as np
import sklearn.manifold  # noqa: F401 - so that it is not missing only after the work is done
import torch
from dynamics_maps import Course, Features
from dynamics_measure import Moment
from harness import Asked, checksum, kept_of, main, publish, read, spread, write
from kept import epoch_seconds
from labels import load_labels
from opened import free_machine
from probing.findings import Findings
from probing.receptive import receptive_fields
from probing.solutions import Solutions, tap_solutions
from torch import Tensor

from restore import zoo
from restore.console import progress, say
from restore.data import Split
from restore.errors import InputError
from restore.inference.devices import pick_device
from restore.inference.torch_engine import Engine
from restore.learning.recipe.recipe import Recipe, read_recipe
from restore.zoo.description import Description

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Where the recipes lie among the others.
FOLDER = "dynamics"

# Images that solutions are seen among are some of the first of a set: of MNIST, as in the paper, those of three digits.
MAPPED, SHOWN = 10_000, (3, 6, 7)


def study(asked: Asked) -> None:
    """Measure the runs of the recipes dynamics-*, and write dynamics.json, three pictures and a table.

    What was measured before is read from dynamics.json.
    """
    path = asked.records / "dynamics.json"
    settings = {"seed": asked.seed, "n": asked.n or measure.IMAGES, "starts": measure.STARTS}
    known: list[Moment] = read(path, settings, moments=Moment)["moments"]
    runs = [_run(recipe, asked, known) for recipe in sorted((asked.recipes / FOLDER).glob("*.toml"))]
    record = {one.key: one for one_run in runs for one in one_run.known}

    def keep() -> None:
        write(path, settings | {"moments": list(record.values())}, indent=None)

    for run in runs:
        done: list[Moment] = []
        for moment in _moments(run):
            done.append(moment)
            record[moment.key] = moment
            # At once, so that a study that is stopped loses one measurement at most.
            keep()
        # Without those of epochs that are not among the chosen ones any more.
        record = {key: one for key, one in record.items() if one.run != run.name or not done or one in done}
    missing = [run.name for run in runs if not any(one.run == run.name for one in record.values())]
    if missing:
        say(f"no epochs kept yet of {', '.join(missing)}; train them with --train")
    if not record:
        raise InputError(f"{asked.recipes / FOLDER}: no recipe there has a run with epochs/; give --train, or --runs")
    keep()
    moments = list(record.values())
    figures = _figures(runs, moments, asked.records) | show.figures(moments)
    publish(asked, {"dynamics": show.as_table(moments)}, figures)


@dataclass(frozen=True)
class Run:
    """A training run of the study.

    Attributes:
        plan: its recipe.
        folder: where it lies.
        kept: folders of the priors that it has kept, by epoch; empty for a run that is not there.
        known: what was measured of it before.
        asked: of the study.
    """

    plan: Recipe
    folder: Path
    kept: Mapping[int, Path]
    known: Sequence[Moment]
    asked: Asked

    @property
    def name(self) -> str:
        return self.plan.name

    @property
    def header(self) -> Description:
        """What the last prior says about itself."""
        return zoo.describe(self.kept[max(self.kept)])

    def engine(self, epoch: int) -> Engine:
        return Engine.load(str(self.kept[epoch]), self.asked.device)

    def images(self, split: Split) -> Tensor:
        """The images that the run learns from, or test images like them, (N, D)."""
        data, header = self.plan.data, self.header
        count = data.count if split == "train" and data.count else None
        images = self.asked.images(data.source, split, count, grey=header.grey, cut=header.threshold)
        return images.to(pick_device(self.asked.device))

    def drawn(self, split: Split) -> Tensor:
        """The same in an order of the seed's."""
        images = self.images(split)
        return images[torch.randperm(len(images), generator=torch.Generator().manual_seed(self.asked.seed))]


def _run(recipe: Path, asked: Asked, known: Sequence[Moment]) -> Run:
    """The run of a recipe, which is trained if it is asked for and was neither kept nor measured to its end."""
    plan, folder = read_recipe(recipe), asked.runs / recipe.stem
    earlier = [one for one in known if (one.run, one.recipe) == (plan.name, plan.digest)]
    finished = {one.epoch for one in earlier} | set(kept_of(plan, folder))
    if asked.train_missing and plan.training.epochs not in finished:
        asked.train(recipe, folder / "prior", folder, every=1)
    return Run(plan, folder, kept_of(plan, folder), earlier, asked)


def _moments(run: Run) -> Iterator[Moment]:
    """What the study knows of a run's priors, one by one: what was not measured before, or of other weights, now."""
    if not run.kept:
        return
    images, tested = run.drawn("train"), run.drawn("test")
    for epoch, starts in measure.wanted(run.name, list(run.kept), len(images)):
        weights = checksum(run.kept[epoch])
        earlier = [one for one in run.known if (one.key, one.weights) == ((run.name, epoch, starts), weights)]
        if earlier:
            yield earlier[0]
            continue
        engine, started = run.engine(epoch), time.perf_counter()
        machine, header = free_machine(engine, "TAP solutions"), engine.header
        solutions = _probed(run, engine, epoch, images[:starts])
        found = Findings.of(header.name, epoch, solutions, time.perf_counter() - started)
        n = run.asked.n or measure.IMAGES
        train, test = (measure.per_unit(machine, part[:n], solutions) for part in (images, tested))
        minutes = epoch_seconds(run.folder)[epoch - 1] / 60
        say(f"{run.name}, epoch {epoch}: {found.verdict}")
        yield measure.Moment(
            run.name,
            run.plan.digest,
            weights,
            header.data,
            header.grey,
            header.sizes,
            minutes,
            measure.compact(found),
            train,
            test,
        )


def _probed(run: Run, engine: Engine, epoch: int, starts: Tensor) -> Solutions:
    """The solutions of a prior that was kept, found now and kept beside it."""
    with progress(f"{run.name}, epoch {epoch}: starts", len(starts)) as meter:
        found = tap_solutions(free_machine(engine, "TAP solutions"), starts, meter=meter)
    kept.write(*_place(run, epoch, len(starts)), found)
    return found


def _place(run: Run, epoch: int, starts: int) -> tuple[Path, dict[str, str]]:
    """The file in which solutions are kept beside a run, and what they are of."""
    of = {"weights": checksum(run.kept[epoch]), "seed": str(run.asked.seed)}
    return run.folder / "solutions" / f"{epoch:04d}-{starts}.safetensors", of


def _figures(runs: Sequence[Run], moments: Sequence[Moment], records: Path) -> dict[str, Figure]:
    """The pictures that take machines and their solutions, of the runs that are there, by the name of the file.

    One that there is already is left as it is where runs that were measured are gone: it would lose their panels.
    """
    there = {run.name: run for run in runs if run.kept}
    plain = {name: course for name, course in measure.courses(moments).items() if not course[0].deep}
    probed = {name: course for name, course in plain.items() if name in measure.PROBED}
    figures = {}
    for file, courses, draw in (("dynamics-fields.png", plain, _fields), ("dynamics-isomap.png", probed, _maps)):
        gone = [name for name in courses if name not in there]
        if gone and (records / file).exists():
            say(f"{file}: left as it is, for the runs of {', '.join(gone)} are gone")
        elif figure := draw([(there[name], course) for name, course in courses.items() if name in there]):
            figures[file] = figure
    return figures


def _fields(courses: Sequence[tuple[Run, Sequence[Moment]]]) -> Figure | None:
    """The receptive fields of machines at their last epochs; None if there are no machines."""
    found = {f"{course[0].title}, {course[0].sizes[1]} hidden units": _features(run) for run, course in courses}
    return maps.fields(found) if found else None


def _maps(courses: Sequence[tuple[Run, Sequence[Moment]]]) -> Figure | None:
    """Maps of the solutions of machines at a few epochs; None if there are no solutions."""
    found = {course[0].title: _course(run, course) for run, course in courses}
    several = {title: course for title, course in found.items() if course.solutions}
    return maps.isomaps(several) if several else None


def _features(run: Run) -> Features:
    """The receptive fields at the last epoch."""
    machine = free_machine(run.engine(max(run.kept)), "receptive fields")
    found = receptive_fields(machine, run.drawn("train")[:MAPPED])
    assert found is not None
    return Features(found, run.header.image_shape)


def _course(run: Run, moments: Sequence[Moment]) -> Course:
    """The solutions at a few epochs, read or found again, and images to see them among."""

    images, source = run.images("train")[:MAPPED].cpu().double().numpy(), run.plan.data.source
    if source == "mnist":
        images = images[np.isin(load_labels(source, root=run.asked.data)[: len(images)], SHOWN)]
    starts = {one.epoch: one.probe.starts for one in moments if one.probe.solutions}
    solutions = {}
    for epoch in spread(list(starts), maps.MAPS) if starts else []:
        found = kept.read(*_place(run, epoch, starts[epoch]))
        solutions[epoch] = found or _probed(run, run.engine(epoch), epoch, run.drawn("train")[: starts[epoch]])
    return Course(solutions, images)


if __name__ == "__main__":
    main(study)
