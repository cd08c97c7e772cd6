"""Training by gradient steps: from mini-batch to learner to optimizer, through `restore.learning.loop`."""

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
from restore.learning.run.running import Run, numbers, restore_run, snapshot
from restore.learning.run.session import Session
from restore.progress import Passed

# Share of images for which the solver of a conditional prior should converge.
MOSTLY = 0.5

# How many epochs a time lets expect: the share of it, the least and the largest number of steps by which speed is
# measured; and how much longer a trained prior takes to be judged than one whose solver converges at once.
MEASURED = 0.01
FIRST_STEPS = 4
MOST_STEPS = 200
LATER = 2.0

# Steps after which a moving average of parameters may have a memory of as many steps.
WARM_UP = 10


@dataclass(frozen=True)
class Fitted(Generic[PriorT]):
    """The outcome of a training run.

    Attributes:
        prior: what was trained.
        epoch: the epoch, from 0, that it is from.
        error: its validation error; None where nothing was judged.
        epochs: how many there were to be.
        last: how many there were, if fewer for want of time, or because the recipe says so; otherwise 0.
        verdict: why there were fewer, if it was for want of time; and what was changed on the way.
    """

    prior: PriorT
    epoch: int
    error: float | None = None
    epochs: int = 0
    last: int = 0
    verdict: str = ""


class Steps(Generic[PriorT]):
    """Gradient steps, an epoch of which goes through all mini-batches: see `restore.learning.loop.Work`."""

    run: Run[PriorT]

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
        if position == 0:
            run.order = torch.randperm(len(course.images), generator=run.generator, device=course.images.device)
            run.sums = {}
        rate = scheduled_rate(recipe.optimizer, run.step / (run.epochs * self.batches))
        index = run.order[position * recipe.training.batch : (position + 1) * recipe.training.batch]
        _advance(run, recipe, course.batch(index, run.generator), rate, epoch, self.session.folder)
        run.seconds = elapsed()
        return self._lap(epoch, rate, elapsed) if position + 1 == self.batches else None

    def _lap(self, epoch: int, rate: float, elapsed: Callable[[], float]) -> Lap:
        """The epoch that has just ended: its averages, what time says, and the verdict on it."""
        run, training = self.run, self.recipe.training
        averages = {name: value / self.batches for name, value in numbers(run.sums).items()}
        _check_finite(run, self.session.folder)
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
        _check_finite(self.run, self.session.folder)
        return snapshot(self.run, identity)


def fit(recipe: Recipe, course: Course[PriorT, Any], session: Session) -> Fitted[PriorT]:
    """Train a prior as a recipe says.

    Args:
        recipe: how.
        course: what to train, and on what.
        session: where, and who hears of it. Its budget is kept at the ends of epochs. Where the recipe has a limit of
            time, there are as many epochs as the first steps let expect to fit, but no more than it says, if it does; a
            resumed run keeps to that number, unless the limit is another: then as many as those before let expect.

    Returns:
        The prior after the last epoch, or where the course has validation images, the one with the lowest error.

    Raises:
        TrainingError: the folder is in use, holds another run, or cannot be written; or training diverged.
        Stopped: SIGINT or SIGTERM arrived; a checkpoint has been written.
    """
    work: Steps[PriorT] = Steps(recipe, course, session)
    drive(work, session, recipe.training_facts, recipe.training.checkpoint_every)
    run: Run[PriorT] = work.run
    last = work.done if run.late else 0
    said = last in (0, recipe.training.last)
    ended = "" if said else f"the time was over after {last} of {run.epochs} epochs"
    verdict = "; ".join(filter(None, (*run.changes, ended)))
    with torch.inference_mode():
        if run.best:
            best = run.prior.with_parameters(run.best)
            return Fitted(best, run.best_epoch, run.best_error, run.epochs, last, verdict)
        return Fitted(run.current, work.done - 1, epochs=run.epochs, last=last, verdict=verdict)


def _length(recipe: Recipe, course: Course[Any, Any], session: Session) -> int:
    """How many epochs there are to be."""
    wanted = recipe.training.epochs
    if not recipe.training.minutes:
        return wanted
    found = _affordable(recipe, course, session)
    return min(wanted, found) if wanted else found


def _affordable(recipe: Recipe, course: Course[Any, Any], session: Session) -> int:
    """The number of epochs that fit into a time, by the speed of first steps, which are then forgotten."""
    run, elapsed, taken = _begin(recipe, course), session.timer(), list[float]()
    index = torch.arange(min(recipe.training.batch, len(course.images)), device=course.images.device)
    while len(taken) < FIRST_STEPS or (
        len(taken) < MOST_STEPS and highest(taken[-1] - taken[0] < MEASURED * session.budget)
    ):
        _advance(run, recipe, course.batch(index, run.generator), recipe.optimizer.rate, 0, session.folder)
        # Fetching numbers waits for a device that works asynchronously.
        numbers(run.sums)
        taken.append(elapsed())
    _judge(run, recipe, course, 0)
    # The first step is slower than any other.
    step = (taken[-1] - taken[0]) / (len(taken) - 1)
    judging = LATER * (elapsed() - taken[-1]) / recipe.training.watch_every
    batches = math.ceil(len(course.images) / recipe.training.batch)
    left = SPARE * (session.budget - elapsed())
    return highest(epochs_within(left, batches * step + judging, batches * step * slowing(recipe)))


def _judge(run: Run[PriorT], recipe: Recipe, course: Course[PriorT, Any], epoch: int) -> dict[str, float]:
    """The verdict on an epoch, where there is one; the best parameters so far are kept."""
    inference = recipe.learner.inference(epoch) if recipe.conditional else recipe.inference
    # By one process for all, so that they agree to the last bit on which epoch was the best.
    judged = from_first(partial(course.judged, run.current, inference))
    if judged is None:
        return {}
    if judged.error < run.best_error:
        run.best = {name: value.clone() for name, value in run.current.parameters.items()}
        run.best_error, run.best_epoch = judged.error, epoch
    return {"validation_error": judged.error, "validation_converged": judged.converged}


def _watch(run: Run[Any], averages: Mapping[str, float], epoch: int) -> dict[str, str]:
    """A warning when the solver stops converging for most images: its gradient is then no longer one."""
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
    """Learning rate after a share `progress` of all steps."""
    if settings.schedule == "geometric":
        return settings.rate * settings.end**progress
    left = 1 - progress * (1 - settings.end) if settings.schedule == "linear" else 1.0
    return settings.rate * left


def _begin(recipe: Recipe, course: Course[PriorT, Any]) -> Run[PriorT]:
    generator = torch.Generator(course.images.device).manual_seed(recipe.seed)
    # Where the size is not given, the course knows the prior to start from.
    hidden = 0 if recipe.prior.hidden == "auto" else recipe.prior.hidden
    try:
        prior = course.initial(hidden, recipe.prior.weight_scale, generator)
    except RuntimeError as fault:
        # torch has no exception of its own for a processor's memory.
        if not any(word in str(fault) for word in ("memory", "Storage size")):
            raise
        raise TrainingError(f"{hidden} hidden units do not fit into memory; lower [prior] hidden") from fault
    # Tensors of its own: steps change them in place, and of what was grown before there may be more than one run.
    prior = prior.with_parameters({name: value.clone() for name, value in prior.parameters.items()})
    state = recipe.learner.init(prior, course.images, generator)
    average = {name: value.clone() for name, value in prior.parameters.items()} if recipe.optimizer.average else {}
    order = torch.empty(0, dtype=torch.int64)
    settings = recipe.optimizer
    optimizer = optimizer_of(settings.name, prior.parameters, settings.rate, settings.momentum, settings.weight_decay)
    return Run(prior, optimizer, state, generator, order, average)


def _advance(run: Run[Any], recipe: Recipe, batch: Any, rate: float, epoch: int, folder: Path) -> None:
    """One mini-batch: the optimizer changes the prior's tensors in place, once per step the learner takes on it."""
    for group in run.optimizer.param_groups:
        group["lr"] = rate
    try:
        # A prior of its own for each step, so that nothing derived from the weights outlives them.
        step = recipe.learner.step(_renewed(run.prior), batch, run.learner_state, run.generator, epoch)
        _climb(run, step)
        while step.again is not None:
            step = step.again(_renewed(run.prior))
            _climb(run, step)
    except RuntimeError as fault:
        # Sampling refuses probabilities that are NaN, so that is where weights without bounds may show first. As long
        # as the magnitudes of all parameters have a finite sum, no field is NaN.
        if math.isfinite(sum(value.abs().sum() for value in run.prior.parameters.values())):
            raise
        raise _diverged(run, folder, "a field") from fault
    run.learner_state = dict(step.state)
    for name, value in step.monitors.items():
        run.sums[name] = run.sums.get(name, 0.0) + value.double()
    run.step += 1
    # The first steps come from nowhere near, so the average forgets them faster.
    keep = min(recipe.optimizer.average, run.step / (run.step + WARM_UP))
    for name, value in run.average.items():
        value.lerp_(run.prior.parameters[name], 1 - keep)


def _renewed(prior: PriorT) -> PriorT:
    return prior.with_parameters(prior.parameters)


def _climb(run: Run[Any], step: Step) -> None:
    for name, parameter in run.prior.parameters.items():
        parameter.grad = -step.gradient[name]
    run.optimizer.step()


def _check_finite(run: Run[Any], folder: Path) -> None:
    for name, value in run.prior.parameters.items():
        if not bool(torch.isfinite(value).all()):
            raise _diverged(run, folder, name)


def _diverged(run: Run[Any], folder: Path, what: str) -> TrainingError:
    return TrainingError(
        f"{shown(folder)}: training diverged ({what} is no longer finite at step {run.step}); lower the rate"
    )
