"""The training loop: data to learner to optimizer, with checkpoints and a log.

Training is a function of the recipe, the data and the numbers of threads and processes. Everything that decides about
the next step is in a checkpoint, so a run stopped at any step and resumed ends with the same bits as one that was left
alone.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Generic

import torch
from torch import Tensor

from restore.errors import TrainingError, shown
from restore.learning import checkpoint as checkpoints
from restore.learning.checkpoint import Checkpoint
from restore.learning.contract import LearnerState, Step
from restore.learning.course import Course, PriorT
from restore.learning.matched import CONVERGED
from restore.learning.optimizers import optimizer_of
from restore.learning.parallel import from_first, highest
from restore.learning.recipe import Recipe
from restore.learning.run_folder import Stopped, circumstances, cut_log, log, set_generator, sitting
from restore.learning.tables import Optimizer
from restore.progress import Meter, Passed

# Share of images for which the solver of a conditional prior should converge.
MOSTLY = 0.5

# How many epochs a time lets expect: the share of it, the least and the largest number of steps by which speed is
# measured; how much longer a trained prior takes to be judged than an untrained one, whose solver converges at once;
# and the share of the time to be planned with, as machines have other work too.
MEASURED = 0.01
FIRST_STEPS = 4
MOST_STEPS = 200
LATER = 2.0
SPARE = 0.9

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
        verdict: why there were fewer, if it was for want of time.
    """

    prior: PriorT
    epoch: int
    error: float | None = None
    epochs: int = 0
    last: int = 0
    verdict: str = ""


@dataclass
class Run(Generic[PriorT]):
    """A training run in the middle of its work.

    Attributes:
        average: moving average of the parameters, by name; empty where the recipe wants none.
        best: parameters with the lowest validation error so far; empty before there is one.
        best_error, best_epoch: that error, and the epoch it was reached in.
        mostly_converged: whether the solver converged for most images of the epoch before.
        epochs: how many there are to be.
        late: whether there is no time for all of them, or was none in a run that this one repeats.
    """

    prior: PriorT
    optimizer: torch.optim.Optimizer
    learner_state: LearnerState
    generator: torch.Generator
    order: Tensor
    average: dict[str, Tensor]
    best: dict[str, Tensor] = field(default_factory=dict)
    best_error: float = math.inf
    best_epoch: int = 0
    mostly_converged: bool = True
    epochs: int = 0
    late: bool = False
    step: int = 0
    seconds: float = 0.0
    sums: dict[str, Tensor | float] = field(default_factory=dict)

    @property
    def current(self) -> PriorT:
        """The prior that training has come to: the average where there is one."""
        return self.prior.with_parameters(self.average) if self.average else self.prior


def fit(
    recipe: Recipe,
    course: Course[PriorT, Any],
    folder: Path,
    *,
    fingerprint: str,
    resume: bool = False,
    meter: Meter = lambda done, note="": None,
    after_epoch: Callable[[Passed], None] = lambda passed: None,
    budget: float = math.inf,
    clock: Callable[[], float] = time.monotonic,
) -> Fitted[PriorT]:
    """Train a prior as a recipe says.

    Args:
        recipe: how.
        course: what to train, and on what.
        folder: run folder for checkpoints and `log.jsonl`; made if it is missing.
        fingerprint: names the data, so that a run is not resumed on other data.
        resume: go on from the newest checkpoint in the folder, if there is one.
        meter: told the epochs done.
        after_epoch: told of each; of the one from which a stopped run goes on perhaps twice, with the same. Of several
            processes the first calls it alone.
        budget: seconds for all of it, to be kept at the ends of epochs. Where the recipe has a limit of time, there are
            as many epochs as the first steps let expect to fit, but no more than it says, if it does; a resumed run
            keeps to that number.
        clock: seconds since whenever.

    Returns:
        The prior after the last epoch, or where the course has validation images, the one with the lowest error.

    Raises:
        TrainingError: the folder is in use, holds another run, or cannot be written; or training diverged.
        Stopped: SIGINT or SIGTERM arrived; a checkpoint has been written.
    """
    batches = math.ceil(len(course.images) / recipe.training.batch)
    identity = {"recipe": recipe.training_facts, "data": fingerprint, **circumstances()}
    with sitting(folder, identity, resume) as held, torch.inference_mode():
        run = _begin(recipe, course)
        if held.found is not None:
            _restore(run, held.found, folder)
        from_first(partial(cut_log, folder, run.step // batches))
        started = clock() - run.seconds
        run.epochs = run.epochs or _length(recipe, course, folder, budget, clock)
        total = run.epochs * batches
        while not _finished(run, recipe, batches):
            epoch, position = divmod(run.step, batches)
            if position == 0:
                run.order = torch.randperm(len(course.images), generator=run.generator, device=course.images.device)
                run.sums = {}
            rate = scheduled_rate(recipe.optimizer, run.step / total)
            index = run.order[position * recipe.training.batch : (position + 1) * recipe.training.batch]
            _advance(run, recipe, course.batch(index, run.generator), rate, epoch, folder)
            run.seconds = clock() - started
            if position + 1 == batches:
                averages = {name: value / batches for name, value in _numbers(run.sums).items()}
                _check_finite(run, folder)
                # Clocks differ between processes, and what follows from them must not.
                over = bool(highest(run.seconds * (epoch + 2) / (epoch + 1) > budget))
                run.late = epoch + 1 < run.epochs and (over or epoch + 1 == recipe.training.last)
                if (epoch + 1) % recipe.training.watch_every == 0 or epoch + 1 == run.epochs or run.late:
                    averages |= _judge(run, recipe, course, epoch)
                run.seconds = clock() - started
                warning = _watch(run, averages, epoch)
                for text in warning.values():
                    warnings.warn(f"{shown(folder)}: {text}", stacklevel=2)
                record = {"epoch": epoch + 1, "step": run.step, "rate": rate, "seconds": run.seconds}
                from_first(partial(log, folder, record | averages | warning))
                meter(epoch + 1, " ".join(f"{name} {value:.4g}" for name, value in averages.items()))
                passed = Passed(epoch + 1, run.epochs, run.seconds, averages, run.current)
                from_first(partial(after_epoch, passed))
                if (epoch + 1) % recipe.training.checkpoint_every == 0 or _finished(run, recipe, batches):
                    from_first(partial(checkpoints.save, folder, _snapshot(run, identity)))
            stop = held.stop()
            if stop and not _finished(run, recipe, batches):
                _check_finite(run, folder)
                from_first(partial(checkpoints.save, folder, _snapshot(run, identity)))
                raise Stopped(stop)
        done = run.step // batches
        last = done if run.late else 0
        said = last in (0, recipe.training.last)
        verdict = "" if said else f"the time was over after {last} of {run.epochs} epochs"
        if run.best:
            best = run.prior.with_parameters(run.best)
            return Fitted(best, run.best_epoch, run.best_error, run.epochs, last, verdict)
        return Fitted(run.current, done - 1, epochs=run.epochs, last=last, verdict=verdict)


def _finished(run: Run[Any], recipe: Recipe, batches: int) -> bool:
    """Whether all epochs are done, or as many as there is time or patience for without a lower validation error."""
    epochs, patience = run.step // batches, recipe.training.patience
    return run.late or epochs == run.epochs or (bool(run.best) and 0 < patience < epochs - run.best_epoch)


def _length(recipe: Recipe, course: Course[Any, Any], folder: Path, budget: float, clock: Callable[[], float]) -> int:
    """How many epochs there are to be."""
    wanted = recipe.training.epochs
    if not recipe.training.minutes:
        return wanted
    found = _affordable(recipe, course, folder, budget, clock)
    return min(wanted, found) if wanted else found


def _affordable(
    recipe: Recipe, course: Course[Any, Any], folder: Path, budget: float, clock: Callable[[], float]
) -> int:
    """The number of epochs that fit into a time, by the speed of first steps, which are then forgotten."""
    run, started, taken = _begin(recipe, course), clock(), list[float]()
    index = torch.arange(min(recipe.training.batch, len(course.images)), device=course.images.device)
    while len(taken) < FIRST_STEPS or (len(taken) < MOST_STEPS and highest(taken[-1] - taken[0] < MEASURED * budget)):
        _advance(run, recipe, course.batch(index, run.generator), recipe.optimizer.rate, 0, folder)
        # Fetching numbers waits for a device that works asynchronously.
        _numbers(run.sums)
        taken.append(clock() - started)
    _judge(run, recipe, course, 0)
    # The first step is slower than any other.
    step = (taken[-1] - taken[0]) / (len(taken) - 1)
    judging = LATER * (clock() - started - taken[-1]) / recipe.training.watch_every
    batches = math.ceil(len(course.images) / recipe.training.batch)
    left = SPARE * (budget - (clock() - started))
    limits = [recipe.learner.inference(epoch).max_iter if recipe.conditional else 1 for epoch in (0, 1)]
    return highest(epochs_within(left, batches * step + judging, batches * step * (limits[1] / limits[0] - 1)))


def epochs_within(seconds: float, first: float, growth: float) -> int:
    """How many epochs fit into so many seconds, at least one, if each takes `growth` more than the one before."""
    if growth <= 0:
        return max(1, int(seconds / first))
    # The sum over n epochs is n first + n (n - 1) growth / 2.
    half = first / growth - 0.5
    return max(1, int(math.sqrt(half**2 + 2 * max(seconds, 0.0) / growth) - half))


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
    optimizer = optimizer_of(
        settings.name,
        prior.parameters,
        rate=settings.rate,
        momentum=settings.momentum,
        weight_decay=settings.weight_decay,
        options=settings.options,
    )
    return Run(prior, optimizer, state, generator, order, average)


def _advance(run: Run[Any], recipe: Recipe, batch: Any, rate: float, epoch: int, folder: Path) -> None:
    """One mini-batch: the optimizer changes the prior's tensors in place, once per step the learner takes on it."""
    for group in run.optimizer.param_groups:
        group["lr"] = rate
    try:
        # A prior of its own for each step, so that nothing derived from the weights outlives them.
        step = recipe.learner.step(_renewed(run.prior), batch, run.learner_state, run.generator, epoch)
        _climb(run, step, recipe.optimizer.shrinkage)
        while step.again is not None:
            step = step.again(_renewed(run.prior))
            _climb(run, step, recipe.optimizer.shrinkage)
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


def _climb(run: Run[Any], step: Step, shrinkage: float) -> None:
    for name, parameter in run.prior.parameters.items():
        parameter.grad = -step.gradient[name]
        if shrinkage and not name.startswith("units"):
            parameter.grad.add_(parameter.sign(), alpha=shrinkage)
    run.optimizer.step()


def _numbers(sums: Mapping[str, Tensor | float]) -> dict[str, float]:
    return {name: float(value) for name, value in sums.items()}


def _check_finite(run: Run[Any], folder: Path) -> None:
    for name, value in run.prior.parameters.items():
        if not bool(torch.isfinite(value).all()):
            raise _diverged(run, folder, name)


def _diverged(run: Run[Any], folder: Path, what: str) -> TrainingError:
    return TrainingError(
        f"{shown(folder)}: training diverged ({what} is no longer finite at step {run.step}); lower the rate"
    )


# Numbers of a run that go into a checkpoint as they are.
_MEMORIES = ("best_error", "best_epoch", "mostly_converged", "epochs", "late")


def _snapshot(run: Run[Any], identity: Mapping[str, Any]) -> Checkpoint:
    tensors = {f"prior.{name}": value for name, value in run.prior.parameters.items()}
    tensors |= {f"learner.{name}": value for name, value in run.learner_state.items()}
    tensors |= {f"average.{name}": value for name, value in run.average.items()}
    tensors |= {f"best.{name}": value for name, value in run.best.items()}
    tensors |= {"order": run.order, "generator": run.generator.get_state()}
    for index, moments in run.optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{index}.{name}": value for name, value in moments.items() if value is not None}
    facts = {"identity": dict(identity), "seconds": run.seconds, "sums": _numbers(run.sums)}
    facts |= {name: getattr(run, name) for name in _MEMORIES}
    return Checkpoint(run.step, tensors, facts)


def _restore(run: Run[Any], found: Checkpoint, folder: Path) -> None:
    set_generator(run.generator, found, folder)
    for name, value in run.prior.parameters.items():
        value.copy_(found.tensors[f"prior.{name}"])
    device = run.prior.parameters["weights.0"].device
    run.learner_state = {name: value.to(device) for name, value in _under(found.tensors, "learner.").items()}
    run.order = found.tensors["order"].to(device)
    run.average = {name: value.to(device) for name, value in _under(found.tensors, "average.").items()}
    run.best = {name: value.to(device) for name, value in _under(found.tensors, "best.").items()}
    for name in _MEMORIES:
        # Earlier versions knew neither of a limit of time nor of its number of epochs.
        setattr(run, name, found.facts.get(name, getattr(run, name)))
    run.step, run.seconds, run.sums = found.step, found.facts["seconds"], dict(found.facts["sums"])
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in _under(found.tensors, "optimizer.").items():
        index, moment = name.split(".", 1)
        state.setdefault(int(index), {})[moment] = value
    run.optimizer.load_state_dict(run.optimizer.state_dict() | {"state": state})


def _under(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
