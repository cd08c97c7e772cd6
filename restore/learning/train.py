"""Training from end to end: a lesson becomes a prior kept under a name, with its report, all within its time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from restore import zoo
from restore.console import Meter
from restore.errors import TrainingError, require
from restore.export.beside import add_graph
from restore.files import write_atomically
from restore.learning.course import course_of, pixels_of, split, wider
from restore.learning.finish import fitted, own_modes
from restore.learning.lesson import Lesson
from restore.learning.loop import drive
from restore.learning.options import TrainOptions
from restore.learning.recipe.recipe import Recipe
from restore.learning.rounds import Rounds
from restore.learning.rules.contract import InRounds
from restore.learning.rules.frank_wolfe import Growth
from restore.learning.run.checkpoint import facts
from restore.learning.run.folder import GROWTH, cleared
from restore.learning.run.outcome import Machine, Trained, as_stored, description_of, midway, usable
from restore.learning.run.parallel import from_first, is_first
from restore.learning.run.place import keep, remedy, save
from restore.learning.run.report import write_report
from restore.learning.run.session import SWEEPING, Clock, Progress, Session
from restore.learning.starting import growing_start, pretrained, started
from restore.learning.steps import fit
from restore.priors import RBM, FullyVisible, LayeredPrior
from restore.priors.bits import pack
from restore.zoo import TrainedPrior
from restore.zoo.inference import Inference

# The name of a run's recipe in its folder.
RECIPE = "recipe.toml"
# The share of the time that growth may take if another learner continues from there.
GROWING = 0.25


def train_and_save(
    lesson: Lesson, session: Session, device: torch.device, *, report: bool = True, every: int = 0
) -> Trained:
    """Train a prior, keep it, score it, and add its graph; the best prior so far is kept all the while.

    All but the graph ends within the time limit, and the session's clock counts from the moment that the limit does.
    The recipe is written to the run's folder, to be changed or repeated. Without a `report` nothing is scored or drawn.
    A stop says what to do now, in a note.
    """
    clock = session.clock
    recipe = lesson.recipe
    known = replace(session, data=lesson.fingerprint)
    run = session.kept_in

    def keep_unfinished(prior: TrainedPrior, progress: Progress) -> None:
        if run is not None:
            save(run, Trained(prior, progress.done, progress.score, ""), lesson, session.command, progress.seconds)

    try:
        images, held_out = split(recipe, lesson.pixels(device), lesson.held_out_pixels(device))
        trained = train(
            recipe, images, lesson.image_shape, known, held_out=held_out, every=every, better=keep_unfinished
        )
        from_first(lambda: write_atomically(session.folder / RECIPE, lesson.text.encode(), TrainingError))
        folders = [folder for folder in (session.target, run) if folder is not None]
        if not is_first() or not folders:
            return replace(trained, seconds=clock.used)
        keep(session, lesson, trained, clock.used)
        header = trained.prior.description
        units = f"{header.hidden} hidden units; " if recipe.prior.grows else ""
        lines = [f"{header.name}: {units}{trained.verdict}"] if trained.verdict else []
        if report:
            session.note("scoring it beside simple filters")
            summary, worth = write_report(session.folder, trained, (images, held_out), device, clock)
            lines += summary
            if worth:
                trained = replace(trained, prior=replace(trained.prior, description=replace(header, auto=1)))
                keep(session, lesson, trained, clock.used)
        session.note("making its graph")
        lines += _graph_made(folders, trained.prior.description.name, clock)
        return replace(trained, seconds=clock.used, lines=tuple(lines))
    except BaseException as stop:
        # Errors say themselves what to do.
        if not isinstance(stop, Exception):
            stop.add_note(remedy(session))
        raise


def _graph_made(folders: Sequence[Path], name: str, clock: Clock) -> Iterator[str]:
    """Add the graph of a prior, whatever the time: without one, torch would be loaded to restore. Says what failed."""
    before = clock.used
    fault = add_graph(folders, TrainingError)
    if fault:
        yield f"{name}: without a graph: {fault}; `restore export {name} --beside` makes one"
    if clock.used > clock.limit:
        over = clock.used - clock.limit
        yield f"{name}: its graph was made in {clock.used - before:.0f} s, {over:.0f} s beyond the time limit"


def train(
    recipe: Recipe,
    images: Tensor,
    image_shape: tuple[int, int],
    session: Session,
    *,
    held_out: Tensor | None = None,
    every: int = 0,
    better: Callable[[TrainedPrior, Progress], None] = lambda prior, progress: None,
) -> Trained:
    """Train a prior as a recipe says on images (N, H * W); see `restore.learning.loop.drive` for errors.

    Pixels are binary, or grey levels in [0, 1]. Those held out (M, H * W) judge; None for those that the recipe holds
    out. With `every` the prior after each `every` epochs is kept as well. `better` is called with every better prior.
    """
    require(every >= 0, f"priors can be kept every 1, 2, ... epochs, or 0 for never, not every {every}")
    session.clock.limit = recipe.training.minutes * 60 or math.inf
    training, validation = split(recipe, images, held_out)

    def watch(progress: Progress) -> None:
        if every and progress.done % every == 0 and is_first():
            prior = midway(recipe, training, image_shape, progress, name=f"{recipe.name}-epoch-{progress.done}")
            folder = epoch_folder(session.folder, progress.done)
            zoo.save(folder, prior, f"# {prior.description.name}\n", TrainingError)
        session.watch(progress)

    def use(progress: Progress) -> None:
        better(usable(recipe, training, image_shape, progress, session.folder), progress)

    main = replace(session, watch=watch, usable=use)
    if session.overwrite and not session.resume:
        from_first(lambda: cleared(session.folder))
    begun = ""
    if recipe.in_rounds:
        result = _in_rounds(recipe, recipe.learner, training, validation, image_shape, main)
    else:
        start: Any = None
        if recipe.prior.grows:
            growing = session if recipe.data.task else replace(session, usable=use)
            start, begun = _grown(recipe, training, validation, image_shape, growing)
        if recipe.pretraining.epochs:
            start, begun = pretrained(recipe, training, session)
        if recipe.prior.start:
            start = started(recipe.prior, image_shape, recipe.seed).to(training.device)
        result = fit(recipe, course_of(recipe, training, image_shape, start, validation), main)
    prior = _finished(recipe, result, training, validation, image_shape, session)
    return Trained(prior, result.done, result.score, "; ".join(filter(None, (begun, result.ended))))


def _grown(
    recipe: Recipe, images: Tensor, validation: Tensor, image_shape: tuple[int, int], session: Session
) -> tuple[Machine, str]:
    """The machine that another learner begins with, and what ended its growth."""
    over = from_first(lambda: bool(facts(session.folder)))
    growing = replace(session, folder=session.folder / GROWTH, stage="growing", share=GROWING, over=over)
    grown = _in_rounds(recipe, recipe.growth, images, validation, image_shape, growing)
    return grown.machine, grown.ended


def _finished(
    recipe: Recipe,
    result: Progress,
    images: Tensor,
    validation: Tensor,
    image_shape: tuple[int, int],
    session: Session,
) -> TrainedPrior:
    """The prior of a machine, with its modes and its temperature as far as there is time for them."""
    clock = session.clock
    late = (lambda: clock.later_than(SWEEPING)) if clock.limited else None
    with torch.inference_mode():
        machine = as_stored(recipe, result.machine)
        inference = recipe.inference_after(max(result.done, 1) - 1)
        modes = from_first(lambda: _modes(recipe, machine, images, inference, late)).to(images.device)
    means, grey = pixels_of(recipe, images)
    header = description_of(recipe, image_shape, machine, inference, means)
    prior = TrainedPrior(header, machine, means, modes, grey)
    uncertain = header.stops_as_learnt and not (header.task or header.grey)
    if not (uncertain and len(validation)) or (late and late()):
        return prior
    tasks = () if recipe.prior.kind.pages else tuple(map(recipe.prior.task_of, recipe.learner.restores))
    temperature = from_first(lambda: fitted(prior, validation, tasks, recipe.seed))
    return replace(prior, description=replace(header, temperature=temperature))


def session_of(options: TrainOptions, folder: Path, lesson: Lesson, meter: Meter, **others: Any) -> Session:
    """A session as options say, which tells a meter with a total of 1 what it does; `others` are its attributes."""
    watch = watcher(meter, lesson)
    note = partial(meter, 1.0)
    return Session(folder, resume=options.resume, overwrite=options.overwrite, watch=watch, note=note, **others)


def watcher(meter: Meter, lesson: Lesson) -> Callable[[Progress], None]:
    """Tell a meter with a total of 1 about training: epoch, the newest score and the best one."""
    recipe = lesson.recipe
    damage = recipe.training.watch or recipe.data.task
    judged = f"{'squared error' if recipe.prior.grey else 'wrong pixels'} after {damage}" if damage else "held out"
    newest = ""
    best = float("inf")

    def watch(progress: Progress) -> None:
        nonlocal newest, best
        if progress.score is not None:
            best = min(best, progress.score)
            newest = f", {judged} {progress.score:.5f}, best so far {best:.5f}"
        total = f" of at most {progress.total}" if progress.total else ""
        stage = f"{progress.stage}, " if progress.stage else ""
        meter(0.0 if progress.stage else progress.progress, f"{stage}{progress.done}{total}{newest}")

    return watch


def epoch_folder(folder: Path, epoch: int) -> Path:
    return folder / "epochs" / f"{epoch:04d}"


def _in_rounds(
    recipe: Recipe,
    rule: InRounds,
    images: Tensor,
    validation: Tensor,
    image_shape: tuple[int, int],
    session: Session,
) -> Progress:
    """Train in rounds, or grow a machine from which another learner continues."""
    learner = rule.at_work(recipe.prior, validation)
    training = recipe.training
    if recipe.prior.start:
        assert isinstance(learner, Growth)
        learner = replace(learner, start=growing_start(recipe.prior, image_shape).to(images.device))
    work = Rounds(rule, learner, images, session, seed=recipe.seed, every=training.checkpoint_every)
    result = drive(work, recipe.growth_facts if rule.grows else recipe.training_facts)
    ended = result.ended or rule.cut_short(recipe.prior, work.done)
    machine = result.machine
    missing = recipe.prior.filled - machine.hidden.size if isinstance(machine, RBM) else 0
    if work.state.verdict or missing <= 0:
        return replace(result, ended=ended)
    assert isinstance(machine, RBM)
    machine = wider(machine, missing, recipe.prior.weight_scale, recipe.seed)
    return replace(result, machine=machine, ended=f"{ended}; {missing} units start from random weights")


def _modes(
    recipe: Recipe, machine: Machine, images: Tensor, inference: Inference, late: Callable[[], bool] | None
) -> Tensor:
    """Modes of the machine as starts for its solver; one that learns by restoring takes over those of its start."""
    if not inference.modes:
        return pack(images[:0])
    if recipe.learner.restores and recipe.prior.start:
        modes = zoo.load(zoo.find(recipe.prior.start)).modes[: inference.modes]
        if len(modes) == inference.modes:
            return modes
    assert isinstance(machine, LayeredPrior | FullyVisible)
    # Seeded separately, so that the modes do not depend on interruptions of training.
    generator = torch.Generator(images.device).manual_seed(recipe.seed)
    return own_modes(machine, images, inference, generator, late)
