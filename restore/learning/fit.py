"""Train by gradient steps: from mini-batch to learner to optimizer, through `restore.learning.loop`."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic

import torch

from restore.errors import shown
from restore.learning.course import Course, PriorT
from restore.learning.gradients.matched import CONVERGED
from restore.learning.loop import Lap, drive
from restore.learning.measuring import speed, use_fastest_threads
from restore.learning.recipes.recipe import Recipe
from restore.learning.run.checkpoint import Checkpoint, identity
from restore.learning.run.folder import THREADS
from restore.learning.run.pace import epochs_in_all, slowing
from restore.learning.run.parallel import processes
from restore.learning.run.running import Diverged, Run, check_finite, numbers, restore_run, snapshot
from restore.learning.run.session import Session
from restore.learning.stepping import advance, begin, hopeless, judge, scheduled_rate
from restore.progress import Passed, clock

# A solver of a conditional prior should converge for at least this share of images.
MOSTLY = 0.5

# Training that diverges goes back at most so many times.
MOST_HALVINGS = 8


@dataclass(frozen=True)
class Fitted(Generic[PriorT]):
    """The outcome of a training run.

    Attributes:
        prior: the trained prior.
        epoch: the epoch, from 0, that it is from.
        error: its validation error; None if it was not judged.
        epochs: how many were planned.
        last: how many there were, if time or the recipe ended training earlier; else 0.
        watch_every: every how many of them the prior was judged.
        verdict: that time ended training, if so, and what changed during the run.
    """

    prior: PriorT
    epoch: int
    error: float | None = None
    epochs: int = 0
    last: int = 0
    watch_every: int = 1
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
        self.run = begin(self.recipe, self.course)

    def restore(self, found: Checkpoint) -> str:
        self.begin()
        return restore_run(self.run, found, self.recipe.seed)

    def relimited(self) -> str:
        run = self.run
        if self.finished:
            warnings.warn(
                f"{shown(self.session.folder)}: its training has ended, which no other limit changes; give another "
                "--run for a longer one, and --overwrite if it is to replace this prior",
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
        run, training = self.run, self.recipe.training
        run.watch_every = run.watch_every or training.watch_every
        if run.epochs or not training.minutes:
            run.epochs = run.epochs or training.epochs
            return
        elapsed = self.session.timer()
        found, slower = speed(self.recipe, self.course, self.session), slowing(self.recipe)
        if training.watch:
            run.watch_every = found.judged_every(training.watch_every)
        fitting = found.epochs(self.session.budget - elapsed(), run.watch_every, slower)
        run.epochs = min(training.epochs or fitting, fitting)
        seconds = elapsed() + found.forecast(run.epochs, run.watch_every, slower)
        on = f" on {_counted(torch.get_num_threads(), 'thread')}" if self.course.images.device.type == "cpu" else ""
        self.session.announce(f"{_counted(run.epochs, 'epoch')}{on}, about {clock(seconds)} of training")

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
            advance(run, recipe, course.batch(index, run.generator), rate, epoch)
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
            raise hopeless(self.session.folder, fault) from fault
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
        if (epoch + 1) % run.watch_every == 0 or epoch + 1 == run.epochs or run.late:
            averages |= judge(run, self.recipe, self.course, epoch)
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
    session = _on_threads(recipe, course, session)
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
            return Fitted(best, run.best_epoch, run.best_error, run.epochs, last, run.watch_every, verdict)
        return Fitted(
            run.current, work.done - 1, epochs=run.epochs, last=last, watch_every=run.watch_every, verdict=verdict
        )


def _on_threads(recipe: Recipe, course: Course[Any, Any], session: Session) -> Session:
    """Use as many threads as a resumed run did, or as train fastest; the session has the rest of the time."""
    if not (recipe.training.minutes and session.any_threads) or processes() > 1 or course.images.is_cuda:
        return session
    elapsed, found = session.timer(), identity(session.folder)
    if found:
        torch.set_num_threads(found.get(THREADS, torch.get_num_threads()))
        return session
    with torch.inference_mode():
        use_fastest_threads(recipe, course, session)
    return replace(session, budget=session.budget - elapsed())


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


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
