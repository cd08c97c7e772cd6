"""Training by gradient steps, many to an epoch."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from restore.errors import RestoreWarning, TrainingError, shown
from restore.learning.loop import Lap, drive
from restore.learning.optimizers import optimizer_of, scheduled_rate
from restore.learning.recipe.spec import TIMES_JUDGED
from restore.learning.rules.conditional.likelihood import CONVERGED_MONITOR
from restore.learning.rules.contract import LearnerState, Step
from restore.learning.run import checkpoint as checkpoints
from restore.learning.run.checkpoint import Checkpoint
from restore.learning.run.folder import set_generator
from restore.learning.run.parallel import collected, from_first, highest, own_numbers, own_rows, processes, rank, summed
from restore.learning.run.session import LATE, Machine, Progress, Session

if TYPE_CHECKING:
    from restore.learning.recipe.recipe import Recipe

# A moving average of parameters remembers fewer steps until this many are done.
WARM_UP = 10

# A solver of a conditional prior should converge for at least this share of images.
MOSTLY = 0.5

# The most times that training goes back after it diverged.
MOST_HALVINGS = 8

# The tensors of a checkpoint that each process has for itself.
OWN_TENSORS = ("generator", "learner_state.", "sums.")

# The share of a limited time that judging may take.
JUDGING = 0.1


def fit(recipe: Recipe, course: Any, session: Session) -> Progress:
    """Train a prior by gradient steps: the best if the course judges, or the last; see `drive`."""
    return drive(Steps(recipe, course, session), recipe.training_facts)


class Diverged(Exception):
    """A parameter, or a field computed from parameters, is no longer finite."""

    def __init__(self, step: int, what: str) -> None:
        super().__init__(f"{what} is no longer finite at step {step}")


@dataclass
class StepsState:
    """All that decides the next gradient step; a checkpoint holds its fields, see `checkpoint.of`.

    Attributes:
        prior: the parameters, by name, which the optimizer changes in place.
        average: their moving average; empty if the recipe has none.
        order: the images in the order of this epoch, by number.
        sums: sums of this epoch's monitors; in several processes the sums over them count.
        best_parameters, best_error, best_epoch: those with the lowest validation error so far; none at first.
        mostly_converged: whether the solver converged for most images of the epoch before.
        halvings: how often training diverged, went back to the start of an epoch, and halved its rate.
        began, stepping, judging: seconds used when this stage began, and of the last step and judging.
    """

    prior: dict[str, Tensor]
    optimizer: torch.optim.Optimizer
    learner_state: LearnerState
    average: dict[str, Tensor]
    generator: torch.Generator
    order: Tensor
    began: float
    sums: dict[str, Tensor] = field(default_factory=dict)
    best_parameters: dict[str, Tensor] = field(default_factory=dict)
    best_error: float = math.inf
    best_epoch: int = 0
    mostly_converged: bool = True
    halvings: int = 0
    stepping: float = 0.0
    judging: float = 0.0
    step: int = 0


class Steps:
    """Training by gradient steps; an epoch goes through all mini-batches."""

    state: StepsState
    machine: Machine
    # The state at the start of the epoch, or where the run was resumed in it.
    safe: Checkpoint | None = None

    def __init__(self, recipe: Recipe, course: Any, session: Session) -> None:
        self.recipe, self.session, self.course = recipe, session, course
        self.batches = math.ceil(len(course.images) / recipe.training.batch)
        self.judged_at = -math.inf
        self.learner = recipe.learner.divided(processes())

    @property
    def done(self) -> int:
        return self.state.step // self.batches

    def progress(self, soon: float = 0.0) -> float:
        """The share of the epochs or of the time used, `soon` seconds from now; the larger."""
        steps = self.recipe.training.epochs * self.batches
        return self.session.progress(self.state.step / steps if steps else 0.0, self.state.began, soon)

    @property
    def finished(self) -> bool:
        state = self.state
        # Another step and judging would take as long as they did the last time.
        late = state.step > 0 and self.progress(state.stepping + state.judging) >= 1
        return late or self.done == (self.recipe.training.last or -1)

    @property
    def judged(self) -> bool:
        return bool(self.state.best_parameters)

    @property
    def ended(self) -> str:
        epochs = self.state.step / self.batches
        planned = self.recipe.training.last or self.recipe.training.epochs
        halvings = self.state.halvings
        slowed = f"training diverged; its rate is now 1/{2**halvings} of the recipe's" if halvings else ""
        late = f"time ended training after {epochs:.4g} epochs" if epochs != planned else ""
        return "; ".join(filter(None, (slowed, late)))

    def begin(self) -> None:
        recipe, course = self.recipe, self.course
        generator = torch.Generator(course.images.device).manual_seed(recipe.seed)
        # If the size is not given, the course knows the prior to start from.
        hidden = 0 if recipe.prior.hidden == "auto" else recipe.prior.hidden
        try:
            initial = course.initial(hidden, recipe.prior.weight_scale, generator)
        except RuntimeError as fault:
            # torch has no special exception for lack of main memory.
            if not any(word in str(fault) for word in ("memory", "Storage size")):
                raise
            raise TrainingError(f"{hidden} hidden units do not fit into memory; lower [prior] hidden") from fault
        # Copies, because steps change tensors in place, and several runs may start from the same grown prior.
        prior = _copied(initial.parameters)
        own_numbers(generator)
        self.machine = initial.with_parameters(prior)
        self.state = StepsState(
            prior=prior,
            optimizer=optimizer_of(recipe.optimizer, prior),
            learner_state=self.learner.init(self.machine, course.images, generator),
            average=_copied(prior) if recipe.optimizer.average else {},
            generator=generator,
            order=torch.empty(0, dtype=torch.int64),
            began=highest(self.session.clock.used),
        )

    @property
    def current(self) -> Machine:
        """The present prior: the average if there is one."""
        return self.machine.with_parameters(self.state.average or self.state.prior)

    def advance(self) -> Lap | None:
        course = self.course
        state = self.state
        before = self.session.clock.used
        epoch, position = divmod(state.step, self.batches)
        if position == 0 or self.safe is None:
            self.safe = checkpoints.of(state).copy()
        if position == 0:
            count = len(course.images)
            device = course.images.device
            order = from_first(lambda: torch.randperm(count, generator=state.generator, device=device))
            state.order = order.to(device)
            state.sums = {}
        rate = scheduled_rate(self.recipe.optimizer, self.progress()) / 2**state.halvings
        batch = self.recipe.training.batch
        index = state.order[position * batch : (position + 1) * batch]
        try:
            rows, weight = own_rows(index)
            self._step(course.batch(rows, state.generator), weight, rate, epoch)
            state.stepping = self.session.clock.used - before
            ended = position + 1 == self.batches or self.finished
            if ended:
                self._check_finite()
        except Diverged as fault:
            self._go_back(fault)
            return None
        return self._lap(epoch, position + 1, rate) if ended else None

    def _step(self, batch: Any, weight: float, rate: float, epoch: int) -> None:
        """Take the steps of a mini-batch; this process has some of its rows, with a weight.

        The optimizer changes the parameters in place, once for each step of the learner.
        """
        state = self.state
        for group in state.optimizer.param_groups:
            group["lr"] = rate * group["share"]
        try:

            def take(prior: Any) -> Step:
                made: Step = self.learner.step(prior, batch, state.learner_state, state.generator, epoch)
                return made

            again: Callable[[Any], Step] | None = take
            while again is not None:
                # A new prior object for each step, so that nothing computed from old weights is reused.
                step = again(self.machine.with_parameters(state.prior))
                again = step.again
                gradient = self.learner.direction(summed(step.gradient, weight))
                for name, parameter in state.prior.items():
                    # A fused optimizer reads both in the order of memory, in which gradients of convolutions differ.
                    parameter.grad = gradient[name].contiguous()
                state.optimizer.step()
        except RuntimeError as fault:
            # Sampling refuses NaN probabilities, so diverging weights may show here first. If the magnitudes of all
            # parameters have a finite sum, no field is NaN.
            if math.isfinite(sum(value.abs().sum() for value in state.prior.values())):
                raise
            raise Diverged(state.step, "a field") from fault
        state.learner_state = dict(step.state)
        for name, value in step.monitors.items():
            state.sums[name] = state.sums.get(name, 0.0) + value.double() * weight
        state.step += 1
        # The first steps are far from the result, so the average forgets them faster.
        keep = min(self.recipe.optimizer.average, state.step / (state.step + WARM_UP))
        for name, value in state.average.items():
            value.lerp_(state.prior[name], 1 - keep)

    def _check_finite(self) -> None:
        for name, value in self.state.prior.items():
            if not bool(torch.isfinite(value).all()):
                raise Diverged(self.state.step, name)

    def _go_back(self, fault: Diverged) -> None:
        """Go on from the last state known to be sound, with half the rate."""
        halvings = self.state.halvings + 1
        if halvings > MOST_HALVINGS:
            raise TrainingError(f"training diverged ({fault}); lower the rate", self.session.folder) from fault
        assert self.safe is not None  # nothing diverges before the first step
        self._set(self.safe.copy())
        self.state.halvings = halvings
        self._warn(f"training diverged ({fault}); it goes on from step {self.state.step} with half the rate")

    def _lap(self, epoch: int, steps: int, rate: float) -> Lap:
        """End an epoch, or what there was time for: average its numbers, judge the prior."""
        clock = self.session.clock
        training = self.recipe.training
        state = self.state
        averages = {name: float(value) / steps for name, value in summed(state.sums).items()}
        due, keep = (epoch + 1) % training.watch_every == 0, (epoch + 1) % training.checkpoint_every == 0
        if clock.limited:
            rest = max(state.judging / JUDGING, clock.limit / TIMES_JUDGED)
            due = keep = bool(highest(clock.used - self.judged_at >= rest))
        # Judging must not begin when even the time after learning begins to run out.
        late = bool(highest(clock.used + state.judging > clock.end(LATE)))
        if (due or self.finished) and not late:
            averages |= self._judge(epoch)
        record: dict[str, Any] = {"epoch": epoch + 1, "step": state.step, "rate": rate, "seconds": clock.used}
        record |= averages
        share = averages.get(CONVERGED_MONITOR, 1.0)
        if state.mostly_converged and share < MOSTLY:
            # Its gradient is not one any more.
            kept = f"; the best prior so far, from epoch {state.best_epoch + 1}, is kept" if self.judged else ""
            record["warning"] = (
                f"the solver converged for only {share:.0%} of the images of epoch {epoch + 1}: lower the rate, "
                f"raise weight_decay, or allow more iterations{kept}"
            )
            self._warn(record["warning"])
        state.mostly_converged = share >= MOSTLY
        best = state.best_epoch == epoch and "validation_error" in averages
        return Lap(record, self._report(epoch + 1, averages, self.current), best, keep)

    def _judge(self, epoch: int) -> dict[str, float]:
        """Judge an epoch, if there is anything to judge it by, and keep the best parameters so far."""
        state = self.state
        before = self.session.clock.used
        inference = self.recipe.inference_after(epoch)
        # Judged by one process, so that all agree exactly on which epoch was the best.
        judged = from_first(lambda: self.course.judged(self.current, inference))
        self.judged_at = self.session.clock.used
        state.judging = self.judged_at - before
        if judged is None:
            return {}
        if judged.error < state.best_error:
            state.best_parameters = _copied(self.current.parameters)
            state.best_error = judged.error
            state.best_epoch = epoch
        return {"validation_error": judged.error, "validation_converged": judged.converged}

    def _warn(self, said: str) -> None:
        warnings.warn(f"{shown(self.session.folder)}: {said}", RestoreWarning, stacklevel=5)

    def _report(self, done: int, monitors: Mapping[str, float], machine: Machine) -> Progress:
        session = self.session
        total = self.recipe.training.epochs
        return Progress(done, total, self.progress(), session.clock.used, monitors, machine, session.stage)

    def best(self) -> Progress:
        state = self.state
        if not self.judged:
            return self._report(math.ceil(state.step / self.batches), {}, self.current)
        machine = self.machine.with_parameters(state.best_parameters)
        return self._report(state.best_epoch + 1, {"validation_error": state.best_error}, machine)

    def snapshot(self, facts: Mapping[str, Any]) -> Checkpoint:
        try:
            self._check_finite()
        except Diverged as fault:
            self._go_back(fault)
        made = checkpoints.of(self.state, facts)
        ours = {name: value for name, value in made.tensors.items() if name.startswith(OWN_TENSORS)}
        for number, tensors in enumerate(collected(ours)[1:], 1):
            made.tensors.update({f"process.{number}.{name}": value for name, value in tensors.items()})
        return made

    def restore(self, checkpoint: Checkpoint) -> str:
        self.begin()
        return self._set(replace(checkpoint, tensors=checkpoint.tensors | checkpoint.under(f"process.{rank()}")))

    def _set(self, checkpoint: Checkpoint) -> str:
        prior = self.state.prior
        self.state = checkpoints.set_state(self.state, checkpoint, self.course.images.device)
        # In place: the optimizer knows these tensors, and their layout in memory decides the last bits.
        for name, value in prior.items():
            value.copy_(self.state.prior[name])
        self.state.prior = prior
        return set_generator(self.state.generator, checkpoint, self.recipe.seed)


def _copied(named: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in named.items()}
