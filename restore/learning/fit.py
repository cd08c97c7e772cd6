"""Train by gradient steps: mini-batches, learning rate, judging, and what happens if training diverges."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic

import torch

from restore.errors import TrainingError, shown
from restore.learning.course import Course, PriorT
from restore.learning.gradients.matched import CONVERGED
from restore.learning.loop import Lap, drive
from restore.learning.recipes.recipe import Recipe
from restore.learning.recipes.tables import Optimizer
from restore.learning.run.checkpoint import Checkpoint
from restore.learning.run.parallel import from_first, highest
from restore.learning.run.running import Diverged, Run
from restore.learning.run.session import Passed, Session

# A solver of a conditional prior should converge for at least this share of images.
MOSTLY = 0.5

# Training that diverges goes back at most so many times.
MOST_HALVINGS = 8

# The share of a limited time that judging may take, and how often at most the prior is judged and kept in it.
JUDGING, JUDGED = 0.1, 30


@dataclass(frozen=True)
class Fitted(Generic[PriorT]):
    """The outcome of a training run.

    Attributes:
        prior: the trained prior.
        epoch: the epoch, from 0, that it is from.
        error: its validation error; None if it was not judged.
        verdict: that time ended training, or that the rate was halved, in words; else empty.
    """

    prior: PriorT
    epoch: int
    error: float | None = None
    verdict: str = ""


class Steps(Generic[PriorT]):
    """Training by gradient steps; an epoch goes through all mini-batches. See `restore.learning.loop.Work`."""

    run: Run[PriorT]
    # The state at the start of the epoch, or where the run was resumed in it.
    _safe: Checkpoint | None = None
    # Seconds used when the prior was judged.
    _judged_at = -math.inf

    def __init__(self, recipe: Recipe, course: Course[PriorT, Any], session: Session) -> None:
        self.recipe = recipe
        self.course: Course[PriorT, Any] = course
        self.session = session
        self.batches = math.ceil(len(course.images) / recipe.training.batch)

    @property
    def done(self) -> int:
        return self.run.step // self.batches

    @property
    def progress(self) -> float:
        """The share of epochs or time that is used, whichever is larger: it drives the rate and the end."""
        return self._progress(0.0)

    def _progress(self, soon: float) -> float:
        """The progress in so many seconds."""
        steps = self.recipe.training.epochs * self.batches
        return self.session.progress(self.run.step / steps if steps else 0.0, self.run.began, soon)

    @property
    def finished(self) -> bool:
        # Another step and judging would take as long as they did the last time.
        over = self._progress(self.run.stepping + self.run.judging) >= 1 and self.run.step > 0
        return over or self.done == (self.recipe.training.last or -1)

    @property
    def judged(self) -> bool:
        return bool(self.run.best)

    def begin(self) -> None:
        self.run = Run.begin(self.recipe, self.course)
        self.run.began = self.session.clock.used

    def restore(self, found: Checkpoint) -> str:
        self.begin()
        return self.run.restore(found, self.recipe.seed)

    def advance(self) -> Lap | None:
        run, course, recipe, before = self.run, self.course, self.recipe, self.session.clock.used
        epoch, position = divmod(run.step, self.batches)
        if position == 0 or self._safe is None:
            self._safe = run.snapshot({}).copy()
        if position == 0:
            run.order = torch.randperm(len(course.images), generator=run.generator, device=course.images.device)
            run.sums = {}
        rate = scheduled_rate(recipe.optimizer, self.progress) / 2**run.halvings
        index = run.order[position * recipe.training.batch : (position + 1) * recipe.training.batch]
        try:
            run.advance(recipe, course.batch(index, run.generator), rate, epoch)
            run.stepping = self.session.clock.used - before
            ended = position + 1 == self.batches or self.finished
            if ended:
                run.check_finite()
        except Diverged as fault:
            self._go_back(fault)
            return None
        return self._lap(epoch, position + 1, rate) if ended else None

    def _go_back(self, fault: Diverged) -> None:
        """Go on from the last state known to be sound, with half the rate."""
        run, halvings = self.run, self.run.halvings + 1
        if halvings > MOST_HALVINGS:
            raise TrainingError(f"{shown(self.session.folder)}: training diverged ({fault}); lower the rate") from fault
        assert self._safe is not None  # nothing diverges before the first step
        run.restore(self._safe.copy(), self.recipe.seed)
        run.halvings = halvings
        said = f"training diverged ({fault}); it goes on from step {run.step} with half the rate"
        warnings.warn(f"{shown(self.session.folder)}: {said}", stacklevel=5)

    def _lap(self, epoch: int, steps: int, rate: float) -> Lap:
        """End an epoch, after all its steps or those for which there was time: average its numbers, judge the prior."""
        run, clock, training = self.run, self.session.clock, self.recipe.training
        averages = {name: float(value) / steps for name, value in run.sums.items()}
        due, keep = (epoch + 1) % training.watch_every == 0, (epoch + 1) % training.checkpoint_every == 0
        if clock.limited:
            rest = max(run.judging / JUDGING, clock.limit / JUDGED)
            due = keep = bool(highest(clock.used - self._judged_at >= rest))
        if due or self.finished:
            averages |= self._judge(epoch)
        warning = _watch(run, averages, epoch)
        for text in warning.values():
            warnings.warn(f"{shown(self.session.folder)}: {text}", stacklevel=5)
        record = {"epoch": epoch + 1, "step": run.step, "rate": rate, "seconds": clock.used}
        passed = Passed(epoch + 1, training.epochs, self.progress, clock.used, averages, run.current)
        best = run.best_epoch == epoch and "validation_error" in averages
        return Lap(record | averages | warning, passed, best, keep)

    def _judge(self, epoch: int) -> dict[str, float]:
        """Judge an epoch, if there is anything to judge it by, and keep the best parameters so far."""
        run, recipe, before = self.run, self.recipe, self.session.clock.used
        inference = recipe.inference_after(epoch)
        # Judged by one process, so that all agree exactly on which epoch was the best.
        judged = from_first(partial(self.course.judged, run.current, inference))
        self._judged_at = self.session.clock.used
        run.judging = self._judged_at - before
        if judged is None:
            return {}
        if judged.error < run.best_error:
            run.best = {name: value.clone() for name, value in run.current.parameters.items()}
            run.best_error, run.best_epoch = judged.error, epoch
        return {"validation_error": judged.error, "validation_converged": judged.converged}

    def best(self) -> Passed:
        run, session, total = self.run, self.session, self.recipe.training.epochs
        if not run.best:
            return Passed(self.done, total, self.progress, session.clock.used, {}, run.current)
        machine, judged = run.prior.with_parameters(run.best), {"validation_error": run.best_error}
        return Passed(run.best_epoch + 1, total, self.progress, session.clock.used, judged, machine)

    def snapshot(self, facts: Mapping[str, Any]) -> Checkpoint:
        try:
            self.run.check_finite()
        except Diverged as fault:
            self._go_back(fault)
        return self.run.snapshot(facts)


def fit(recipe: Recipe, course: Course[PriorT, Any], session: Session) -> Fitted[PriorT]:
    """Train a prior as a recipe says.

    Args:
        recipe: how to train.
        course: what to train, and on what.
        session: where, who is told, and how long it may take.

    Returns:
        The prior after the last epoch, or the one with the lowest error if the course has validation images.

    Raises:
        TrainingError: the folder is in use, holds another run, or cannot be written to; or training diverged.
        Stopped: SIGINT or SIGTERM arrived; a checkpoint has been written.
    """
    work: Steps[PriorT] = Steps(recipe, course, session)
    drive(work, session, recipe.training_facts)
    run: Run[PriorT] = work.run
    epochs, planned = run.step / work.batches, recipe.training.last or recipe.training.epochs
    late = f"time ended training after {epochs:.4g} epochs" if epochs != planned else ""
    slowed = f"training diverged; its rate is now 1/{2**run.halvings} of the recipe's" if run.halvings else ""
    verdict = "; ".join(filter(None, (slowed, late)))
    with torch.inference_mode():
        if run.best:
            return Fitted(run.prior.with_parameters(run.best), run.best_epoch, run.best_error, verdict)
        return Fitted(run.current, math.ceil(epochs) - 1, None, verdict)


def scheduled_rate(settings: Optimizer, progress: float) -> float:
    """The learning rate after a share `progress` of training."""
    if settings.schedule == "geometric":
        return settings.rate * settings.end**progress
    left = 1 - progress * (1 - settings.end) if settings.schedule == "linear" else 1.0
    return settings.rate * left


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
