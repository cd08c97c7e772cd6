"""Train by gradient steps: from mini-batch to learner to optimizer, through `restore.learning.loop`."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic

import torch

from restore.errors import TrainingError, shown
from restore.learning.course import Course, PriorT
from restore.learning.gradients.matched import CONVERGED
from restore.learning.loop import Lap, drive
from restore.learning.optimizers import optimizer_of
from restore.learning.recipes.recipe import Recipe
from restore.learning.recipes.tables import Optimizer
from restore.learning.rules.contract import Step
from restore.learning.run.checkpoint import Checkpoint
from restore.learning.run.pace import SPARE, epochs_in_all, epochs_within, slowing
from restore.learning.run.parallel import from_first, highest
from restore.learning.run.running import Diverged, Run, check_finite, numbers, restore_run, snapshot
from restore.learning.run.session import Session
from restore.progress import Passed

# A solver of a conditional prior should converge for at least this share of images.
MOSTLY = 0.5

# To estimate how many epochs fit into a time, speed is measured for this share of it, with this many steps at least and
# at most. A trained prior takes this much longer to judge than one whose solver converges at once.
MEASURED = 0.01
FIRST_STEPS = 4
MOST_STEPS = 200
LATER = 2.0

# Training that diverges goes back at most so many times.
MOST_HALVINGS = 8

# A moving average of parameters remembers fewer steps until this many are done.
WARM_UP = 10


@dataclass(frozen=True)
class Fitted(Generic[PriorT]):
    """The outcome of a training run.

    Attributes:
        prior: the trained prior.
        epoch: the epoch, from 0, that it is from.
        error: its validation error; None if it was not judged.
        epochs: how many were planned.
        last: how many there were, if time or the recipe ended training earlier; else 0.
        verdict: that time ended training, if so, and what changed during the run.
    """

    prior: PriorT
    epoch: int
    error: float | None = None
    epochs: int = 0
    last: int = 0
    verdict: str = ""


class Steps(Generic[PriorT]):
    """Training by gradient steps; an epoch goes through all mini-batches. See `restore.learning.loop.Work`."""

    run: Run[PriorT]
    # The state at the start of the epoch, or where the run was resumed in it.
    _safe: Checkpoint | None = None

    def __init__(self, recipe: Recipe, course: Course[PriorT, Any], session: Session) -> None:
        self.recipe = recipe
        self.course: Course[PriorT, Any] = course
        self.session = session
        self.batches = math.ceil(len(course.images) / recipe.training.batch)

    @property
    def done(self) -> int:
        return self.run.step // self.batches

    @property
    def place(self) -> str:
        return f"step {self.run.step}"

    @property
    def seconds(self) -> float:
        return self.run.seconds

    @property
    def finished(self) -> bool:
        """Whether all epochs are done, or as many as there is time for."""
        return self.run.late or self.done == self.run.epochs

    @property
    def judged(self) -> bool:
        return bool(self.run.best)

    def begin(self) -> None:
        self.run = _begin(self.recipe, self.course)

    def restore(self, found: Checkpoint) -> str:
        self.begin()
        return restore_run(self.run, found, self.recipe.seed)

    def relimited(self) -> str:
        run = self.run
        if self.finished:
            warnings.warn(
                f"{shown(self.session.folder)}: its training has ended, which no other limit changes; give another "
                "--run for a longer one",
                stacklevel=5,
            )
            return ""
        before = run.epochs
        if before:
            run.epochs = epochs_in_all(run, self.recipe, self.session.budget, self.batches)
        return "" if run.epochs == before else f"another limit of time made {before} epochs {run.epochs}"

    def changed(self, changes: Sequence[str]) -> None:
        self.run.changes = [*self.run.changes, *changes]

    def plan(self) -> None:
        self.run.epochs = self.run.epochs or _length(self.recipe, self.course, self.session)

    def advance(self, elapsed: Callable[[], float]) -> Lap | None:
        run, course, recipe = self.run, self.course, self.recipe
        epoch, position = divmod(run.step, self.batches)
        if position == 0 or self._safe is None:
            self._safe = snapshot(run, {}).copy()
        if position == 0:
            run.order = torch.randperm(len(course.images), generator=run.generator, device=course.images.device)
            run.sums = {}
        rate = scheduled_rate(recipe.optimizer, run.step / (run.epochs * self.batches)) / 2**run.halvings
        index = run.order[position * recipe.training.batch : (position + 1) * recipe.training.batch]
        try:
            _advance(run, recipe, course.batch(index, run.generator), rate, epoch)
            if position + 1 == self.batches:
                check_finite(run)
        except Diverged as fault:
            self._go_back(fault)
            return None
        run.seconds = elapsed()
        return self._lap(epoch, rate, elapsed) if position + 1 == self.batches else None

    def _go_back(self, fault: Diverged) -> None:
        """Go on from the last state known to be sound, with half the rate."""
        run, halvings = self.run, self.run.halvings + 1
        if halvings > MOST_HALVINGS:
            raise _hopeless(self.session.folder, fault) from fault
        assert self._safe is not None  # nothing diverges before the first step
        restore_run(run, self._safe.copy(), self.recipe.seed)
        run.halvings = halvings
        said = f"training diverged ({fault}); it goes on from step {run.step} with half the rate"
        warnings.warn(f"{shown(self.session.folder)}: {said}", stacklevel=5)

    def _lap(self, epoch: int, rate: float, elapsed: Callable[[], float]) -> Lap:
        """End an epoch: average its numbers, check the time, and judge the prior."""
        run, training = self.run, self.recipe.training
        averages = {name: value / self.batches for name, value in numbers(run.sums).items()}
        over = self.session.exceeded(run.seconds * (epoch + 2) / (epoch + 1))
        run.late = epoch + 1 < run.epochs and (over or epoch + 1 == training.last)
        if (epoch + 1) % training.watch_every == 0 or epoch + 1 == run.epochs or run.late:
            averages |= _judge(run, self.recipe, self.course, epoch)
        run.seconds = elapsed()
        warning = _watch(run, averages, epoch)
        for text in warning.values():
            warnings.warn(f"{shown(self.session.folder)}: {text}", stacklevel=5)
        record = {"epoch": epoch + 1, "step": run.step, "rate": rate, "seconds": run.seconds}
        return Lap(record | averages | warning, Passed(epoch + 1, run.epochs, run.seconds, averages, run.current))

    def best(self) -> Passed:
        return self.run.best_so_far(self.batches)

    def snapshot(self, identity: Mapping[str, Any]) -> Checkpoint:
        try:
            check_finite(self.run)
        except Diverged as fault:
            self._go_back(fault)
        return snapshot(self.run, identity)


def fit(recipe: Recipe, course: Course[PriorT, Any], session: Session) -> Fitted[PriorT]:
    """Train a prior as a recipe says.

    Args:
        recipe: how to train.
        course: what to train, and on what.
        session: where, and who is told. Its budget is checked at the ends of epochs. If the recipe has a time limit,
            there are as many epochs as should fit, by the speed of the first steps, and no more than the recipe says.
            A resumed run keeps that number; with another limit it is computed anew from the epochs done.

    Returns:
        The prior after the last epoch, or the one with the lowest error if the course has validation images.

    Raises:
        TrainingError: the folder is in use, holds another run, or cannot be written to; or training diverged.
        Stopped: SIGINT or SIGTERM arrived; a checkpoint has been written.
    """
    work: Steps[PriorT] = Steps(recipe, course, session)
    drive(work, session, recipe.training_facts, recipe.training.checkpoint_every)
    run: Run[PriorT] = work.run
    last = work.done if run.late else 0
    said = last in (0, recipe.training.last)
    ended = "" if said else f"time ran out after {last} of {run.epochs} epochs"
    slowed = f"training diverged, and its rate was halved {_times(run.halvings)}" if run.halvings else ""
    verdict = "; ".join(filter(None, (*run.changes, slowed, ended)))
    with torch.inference_mode():
        if run.best:
            best = run.prior.with_parameters(run.best)
            return Fitted(best, run.best_epoch, run.best_error, run.epochs, last, verdict)
        return Fitted(run.current, work.done - 1, epochs=run.epochs, last=last, verdict=verdict)


def _length(recipe: Recipe, course: Course[Any, Any], session: Session) -> int:
    """How many epochs to plan."""
    wanted = recipe.training.epochs
    if not recipe.training.minutes:
        return wanted
    found = _affordable(recipe, course, session)
    return min(wanted, found) if wanted else found


def _affordable(recipe: Recipe, course: Course[Any, Any], session: Session) -> int:
    """The number of epochs that fit into a time, by the speed of first steps, whose results are discarded."""
    run, elapsed, taken = _begin(recipe, course), session.timer(), list[float]()
    index = torch.arange(min(recipe.training.batch, len(course.images)), device=course.images.device)
    while len(taken) < FIRST_STEPS or (
        len(taken) < MOST_STEPS and highest(taken[-1] - taken[0] < MEASURED * session.budget)
    ):
        try:
            _advance(run, recipe, course.batch(index, run.generator), recipe.optimizer.rate, 0)
        except Diverged as fault:
            raise _hopeless(session.folder, fault) from fault
        numbers(run.sums)  # waits for asynchronous devices
        taken.append(elapsed())
    _judge(run, recipe, course, 0)
    # The first step is slower than all others.
    step = (taken[-1] - taken[0]) / (len(taken) - 1)
    judging = LATER * (elapsed() - taken[-1]) / recipe.training.watch_every
    batches = math.ceil(len(course.images) / recipe.training.batch)
    left = SPARE * (session.budget - elapsed())
    return highest(epochs_within(left, batches * step + judging, batches * step * slowing(recipe)))


def _judge(run: Run[PriorT], recipe: Recipe, course: Course[PriorT, Any], epoch: int) -> dict[str, float]:
    """Judge an epoch, if there is anything to judge it by, and keep the best parameters so far."""
    inference = recipe.learner.inference(epoch) if recipe.conditional else recipe.inference
    # Judged by one process, so that all agree exactly on which epoch was the best.
    judged = from_first(partial(course.judged, run.current, inference))
    if judged is None:
        return {}
    if judged.error < run.best_error:
        run.best = {name: value.clone() for name, value in run.current.parameters.items()}
        run.best_error, run.best_epoch = judged.error, epoch
    return {"validation_error": judged.error, "validation_converged": judged.converged}


def _watch(run: Run[Any], averages: Mapping[str, float], epoch: int) -> dict[str, str]:
    """A warning when the solver no longer converges for most images: then its gradient is not one any more."""
    share = averages.get(CONVERGED, 1.0)
    stopped = run.mostly_converged and share < MOSTLY
    run.mostly_converged = share >= MOSTLY
    if not stopped:
        return {}
    kept = f"; the best prior so far, from epoch {run.best_epoch + 1}, is kept" if run.best else ""
    return {
        "warning": f"the solver converged for only {share:.0%} of the images of epoch {epoch + 1}: lower the rate, "
        f"raise weight_decay, or allow more iterations{kept}"
    }


def scheduled_rate(settings: Optimizer, progress: float) -> float:
    """The learning rate after a share `progress` of all steps."""
    if settings.schedule == "geometric":
        return settings.rate * settings.end**progress
    left = 1 - progress * (1 - settings.end) if settings.schedule == "linear" else 1.0
    return settings.rate * left


def _begin(recipe: Recipe, course: Course[PriorT, Any]) -> Run[PriorT]:
    generator = torch.Generator(course.images.device).manual_seed(recipe.seed)
    # If the size is not given, the course knows the prior to start from.
    hidden = 0 if recipe.prior.hidden == "auto" else recipe.prior.hidden
    try:
        prior = course.initial(hidden, recipe.prior.weight_scale, generator)
    except RuntimeError as fault:
        # torch has no special exception for lack of main memory.
        if not any(word in str(fault) for word in ("memory", "Storage size")):
            raise
        raise TrainingError(f"{hidden} hidden units do not fit into memory; lower [prior] hidden") from fault
    # Copies, because steps change tensors in place, and several runs may start from the same grown prior.
    prior = prior.with_parameters({name: value.clone() for name, value in prior.parameters.items()})
    state = recipe.learner.init(prior, course.images, generator)
    average = {name: value.clone() for name, value in prior.parameters.items()} if recipe.optimizer.average else {}
    order = torch.empty(0, dtype=torch.int64)
    settings = recipe.optimizer
    optimizer = optimizer_of(settings.name, prior.parameters, settings.rate, settings.momentum, settings.weight_decay)
    start = {name: value.clone() for name, value in prior.parameters.items()} if recipe.prior.start_share else {}
    return Run(prior, optimizer, state, generator, order, average, start=start, start_share=recipe.prior.start_share)


def _advance(run: Run[Any], recipe: Recipe, batch: Any, rate: float, epoch: int) -> None:
    """One mini-batch: the optimizer changes the prior's tensors in place, once for each step of the learner."""
    for group in run.optimizer.param_groups:
        group["lr"] = rate
    try:
        # A new prior object for each step, so that nothing computed from old weights is reused.
        step = recipe.learner.step(_renewed(run.prior), batch, run.learner_state, run.generator, epoch)
        _climb(run, step)
        while step.again is not None:
            step = step.again(_renewed(run.prior))
            _climb(run, step)
    except RuntimeError as fault:
        # Sampling refuses NaN probabilities, so diverging weights may show here first. If the magnitudes of all
        # parameters have a finite sum, no field is NaN.
        if math.isfinite(sum(value.abs().sum() for value in run.prior.parameters.values())):
            raise
        raise Diverged(run.step, "a field") from fault
    run.learner_state = dict(step.state)
    for name, value in step.monitors.items():
        run.sums[name] = run.sums.get(name, 0.0) + value.double()
    run.step += 1
    # The first steps are far from the result, so the average forgets them faster.
    keep = min(recipe.optimizer.average, run.step / (run.step + WARM_UP))
    for name, value in run.average.items():
        value.lerp_(run.prior.parameters[name], 1 - keep)


def _renewed(prior: PriorT) -> PriorT:
    return prior.with_parameters(prior.parameters)


def _climb(run: Run[Any], step: Step) -> None:
    for name, parameter in run.prior.parameters.items():
        parameter.grad = step.gradient[name]
    run.optimizer.step()


def _hopeless(folder: Path, fault: Diverged) -> TrainingError:
    return TrainingError(f"{shown(folder)}: training diverged ({fault}); lower the rate")


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
