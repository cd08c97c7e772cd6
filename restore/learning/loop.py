"""One drive for all training: by gradient steps, many to an epoch, or in rounds over all images.

Without a time limit, training is a function of the recipe, the data and the numbers of threads and processes: a run
that was stopped at any moment and resumed from its checkpoint ends with the same bits as one that was left alone.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from restore.errors import RestoreWarning, TrainingError, shown
from restore.learning.optimizers import optimizer_of, scheduled_rate
from restore.learning.recipe.spec import JUDGED
from restore.learning.rules.conditional.likelihood import CONVERGED
from restore.learning.rules.contract import LearnerState, RoundLearner, Step
from restore.learning.run import checkpoint as checkpoints
from restore.learning.run.checkpoint import Checkpoint
from restore.learning.run.folder import Stopped, circumstances, cut_log, log, set_generator, sitting
from restore.learning.run.parallel import from_first, highest
from restore.learning.run.session import LATE, Passed, Session

if TYPE_CHECKING:
    from restore.learning.recipe.recipe import Recipe
    from restore.learning.rules.contract import InRounds

# A moving average of parameters remembers fewer steps until this many are done.
WARM_UP = 10
# A solver of a conditional prior should converge for at least this share of images.
MOSTLY = 0.5
# Training that diverges goes back at most so many times.
MOST_HALVINGS = 8
# The share of a limited time that judging may take.
JUDGING = 0.1


class Lap(NamedTuple):
    """A finished epoch or round: its line of the log, what to report, if it is the best so far, or to be kept."""

    record: dict[str, Any]
    passed: Passed
    best: bool
    keep: bool


def drive(work: Steps | Rounds, facts: Mapping[str, Any]) -> Passed:
    """Advance work until it is finished; returns the prior to restore with.

    A run cannot be resumed under other facts, the parts of the recipe that decide the outcome. After SIGINT or SIGTERM
    a checkpoint is written, and Stopped raised; what else fails is a TrainingError.
    """
    session, folder = work.session, work.session.folder
    identity = {"recipe": facts, "data": session.data, **circumstances()}

    def use() -> None:
        from_first(lambda: session.usable(work.best()))

    def keep() -> None:
        header = {"identity": identity, "used": session.clock.used}
        from_first(lambda: checkpoints.save(folder, work.snapshot(header)))
        if not work.judged:
            use()

    with sitting(folder, identity, session.resume, session.overwrite) as held, torch.inference_mode():
        if held.found is None:
            work.begin()
        else:
            session.clock.spent = max(session.clock.spent, held.found.facts["used"])
            changed = work.restore(held.found)
            if not work.finished:
                for change in filter(None, (changed, held.threads)):
                    warnings.warn(
                        f"{shown(folder)}: {change}; the bits of what follows differ", RestoreWarning, stacklevel=3
                    )
                use()
        if not work.finished:
            from_first(lambda: cut_log(folder, work.done))
        while not work.finished:
            kept, lap = False, work.advance()
            if lap is not None:
                from_first(partial(log, folder, lap.record))
                session.watch(lap.passed)
                if lap.best:
                    use()
                kept = lap.keep or work.finished
                if kept:
                    keep()
            if stop := held.stop():
                if not kept:
                    keep()
                raise Stopped(stop)
        return replace(work.best(), ended=work.ended)


def fit(recipe: Recipe, course: Any, session: Session) -> Passed:
    """Train a prior by gradient steps: the best if the course judges, or the last; see `drive`."""
    return drive(Steps(recipe, course, session), recipe.training_facts)


class Diverged(Exception):
    """A parameter, or a field computed from parameters, is no longer finite."""

    def __init__(self, step: int, what: str) -> None:
        super().__init__(f"{what} is no longer finite at step {step}")


# What a checkpoint of gradient steps holds besides parameters: tensors by name, and numbers.
_TENSORS = ("learner_state", "average", "best_parameters")
_MEMORIES = ("best_error", "best_epoch", "mostly_converged", "halvings", "began", "stepping", "judging")


class Steps:
    """Training by gradient steps; an epoch goes through all mini-batches.

    Attributes:
        average: moving average of the parameters, by name; empty if the recipe has none.
        best_parameters, best_error, best_epoch: those with the lowest validation error so far; none at first.
        halvings: how often training diverged, went back to the start of an epoch, and halved its rate.
        began, stepping, judging: seconds used when this stage began, and of the last step and judging.
        sums: sums of this epoch's monitors.
    """

    prior: Any
    optimizer: torch.optim.Optimizer
    learner_state: LearnerState
    generator: torch.Generator
    average: dict[str, Tensor]
    best_parameters: dict[str, Tensor]
    # The state at the start of the epoch, or where the run was resumed in it.
    safe: Checkpoint | None = None

    def __init__(self, recipe: Recipe, course: Any, session: Session) -> None:
        self.recipe, self.session, self.course = recipe, session, course
        self.batches = math.ceil(len(course.images) / recipe.training.batch)
        self.best_parameters, self.sums = {}, dict[str, Tensor | float]()
        self.best_error, self.best_epoch, self.mostly_converged, self.halvings = math.inf, 0, True, 0
        self.began = self.stepping = self.judging = 0.0
        self.judged_at = -math.inf
        self.step = 0
        self.order = torch.empty(0, dtype=torch.int64)

    @property
    def done(self) -> int:
        return self.step // self.batches

    def progress(self, soon: float = 0.0) -> float:
        """The share of epochs or time used in so many seconds, whichever is larger."""
        steps = self.recipe.training.epochs * self.batches
        return self.session.progress(self.step / steps if steps else 0.0, self.began, soon)

    @property
    def finished(self) -> bool:
        # Another step and judging would take as long as they did the last time.
        return (self.step > 0 and self.progress(self.stepping + self.judging) >= 1) or self.done == (
            self.recipe.training.last or -1
        )

    @property
    def judged(self) -> bool:
        return bool(self.best_parameters)

    @property
    def ended(self) -> str:
        epochs, planned = self.step / self.batches, self.recipe.training.last or self.recipe.training.epochs
        slowed = f"training diverged; its rate is now 1/{2**self.halvings} of the recipe's" if self.halvings else ""
        late = f"time ended training after {epochs:.4g} epochs" if epochs != planned else ""
        return "; ".join(filter(None, (slowed, late)))

    def begin(self) -> None:
        recipe, course = self.recipe, self.course
        self.generator = torch.Generator(course.images.device).manual_seed(recipe.seed)
        # If the size is not given, the course knows the prior to start from.
        hidden = 0 if recipe.prior.hidden == "auto" else recipe.prior.hidden
        try:
            prior = course.initial(hidden, recipe.prior.weight_scale, self.generator)
        except RuntimeError as fault:
            # torch has no special exception for lack of main memory.
            if not any(word in str(fault) for word in ("memory", "Storage size")):
                raise
            raise TrainingError(f"{hidden} hidden units do not fit into memory; lower [prior] hidden") from fault
        # Copies, because steps change tensors in place, and several runs may start from the same grown prior.
        self.prior = prior.with_parameters(_copied(prior.parameters))
        self.learner_state = recipe.learner.init(self.prior, course.images, self.generator)
        named = self.prior.parameters
        self.optimizer = optimizer_of(recipe.optimizer, named)
        self.average = _copied(named) if recipe.optimizer.average else {}
        self.began = self.session.clock.used

    @property
    def current(self) -> Any:
        """The present prior: the average if there is one."""
        return self.prior.with_parameters(self.average or self.prior.parameters)

    def advance(self) -> Lap | None:
        course, before = self.course, self.session.clock.used
        epoch, position = divmod(self.step, self.batches)
        if position == 0 or self.safe is None:
            self.safe = self._state({}).copy()
        if position == 0:
            self.order = torch.randperm(len(course.images), generator=self.generator, device=course.images.device)
            self.sums = {}
        rate = scheduled_rate(self.recipe.optimizer, self.progress()) / 2**self.halvings
        batch = self.recipe.training.batch
        index = self.order[position * batch : (position + 1) * batch]
        try:
            self._step(course.batch(index, self.generator), rate, epoch)
            self.stepping = self.session.clock.used - before
            ended = position + 1 == self.batches or self.finished
            if ended:
                self._check_finite()
        except Diverged as fault:
            self._go_back(fault)
            return None
        return self._lap(epoch, position + 1, rate) if ended else None

    def _step(self, batch: Any, rate: float, epoch: int) -> None:
        """One mini-batch: the optimizer changes the prior's tensors in place, once for each step of the learner."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate * group["share"]
        try:

            def take(prior: Any) -> Step:
                made: Step = self.recipe.learner.step(prior, batch, self.learner_state, self.generator, epoch)
                return made

            again: Callable[[Any], Step] | None = take
            while again is not None:
                # A new prior object for each step, so that nothing computed from old weights is reused.
                step = again(self.prior.with_parameters(self.prior.parameters))
                again = step.again
                for name, parameter in self.prior.parameters.items():
                    # A fused optimizer reads both in the order of memory, in which gradients of convolutions differ.
                    parameter.grad = step.gradient[name].contiguous()
                self.optimizer.step()
        except RuntimeError as fault:
            # Sampling refuses NaN probabilities, so diverging weights may show here first. If the magnitudes of all
            # parameters have a finite sum, no field is NaN.
            if math.isfinite(sum(value.abs().sum() for value in self.prior.parameters.values())):
                raise
            raise Diverged(self.step, "a field") from fault
        self.learner_state = dict(step.state)
        for name, value in step.monitors.items():
            self.sums[name] = self.sums.get(name, 0.0) + value.double()
        self.step += 1
        # The first steps are far from the result, so the average forgets them faster.
        keep = min(self.recipe.optimizer.average, self.step / (self.step + WARM_UP))
        for name, value in self.average.items():
            value.lerp_(self.prior.parameters[name], 1 - keep)

    def _check_finite(self) -> None:
        for name, value in self.prior.parameters.items():
            if not bool(torch.isfinite(value).all()):
                raise Diverged(self.step, name)

    def _go_back(self, fault: Diverged) -> None:
        """Go on from the last state known to be sound, with half the rate."""
        halvings = self.halvings + 1
        if halvings > MOST_HALVINGS:
            raise TrainingError(f"training diverged ({fault}); lower the rate", self.session.folder) from fault
        assert self.safe is not None  # nothing diverges before the first step
        self._set(self.safe.copy())
        self.halvings = halvings
        self._warn(f"training diverged ({fault}); it goes on from step {self.step} with half the rate")

    def _lap(self, epoch: int, steps: int, rate: float) -> Lap:
        """End an epoch, or what there was time for: average its numbers, judge the prior."""
        clock, training = self.session.clock, self.recipe.training
        averages = {name: float(value) / steps for name, value in self.sums.items()}
        due, keep = (epoch + 1) % training.watch_every == 0, (epoch + 1) % training.checkpoint_every == 0
        if clock.limited:
            rest = max(self.judging / JUDGING, clock.limit / JUDGED)
            due = keep = bool(highest(clock.used - self.judged_at >= rest))
        # Judging must not begin when even the time after learning begins to run out.
        late = bool(highest(clock.used + self.judging > clock.end(LATE)))
        if (due or self.finished) and not late:
            averages |= self._judge(epoch)
        record: dict[str, Any] = {"epoch": epoch + 1, "step": self.step, "rate": rate, "seconds": clock.used}
        record |= averages
        share = averages.get(CONVERGED, 1.0)
        if self.mostly_converged and share < MOSTLY:
            # Its gradient is not one any more.
            kept = f"; the best prior so far, from epoch {self.best_epoch + 1}, is kept" if self.judged else ""
            record["warning"] = (
                f"the solver converged for only {share:.0%} of the images of epoch {epoch + 1}: lower the rate, "
                f"raise weight_decay, or allow more iterations{kept}"
            )
            self._warn(record["warning"])
        self.mostly_converged = share >= MOSTLY
        best = self.best_epoch == epoch and "validation_error" in averages
        return Lap(record, self._passed(epoch + 1, averages, self.current), best, keep)

    def _judge(self, epoch: int) -> dict[str, float]:
        """Judge an epoch, if there is anything to judge it by, and keep the best parameters so far."""
        recipe, before = self.recipe, self.session.clock.used
        inference = recipe.inference_after(epoch)
        # Judged by one process, so that all agree exactly on which epoch was the best.
        judged = from_first(lambda: self.course.judged(self.current, inference))
        self.judged_at = self.session.clock.used
        self.judging = self.judged_at - before
        if judged is None:
            return {}
        if judged.error < self.best_error:
            self.best_parameters = _copied(self.current.parameters)
            self.best_error, self.best_epoch = judged.error, epoch
        return {"validation_error": judged.error, "validation_converged": judged.converged}

    def _warn(self, said: str) -> None:
        warnings.warn(f"{shown(self.session.folder)}: {said}", RestoreWarning, stacklevel=5)

    def _passed(self, done: int, monitors: Mapping[str, float], machine: Any) -> Passed:
        session, total = self.session, self.recipe.training.epochs
        return Passed(done, total, self.progress(), session.clock.used, monitors, machine, session.stage)

    def best(self) -> Passed:
        if not self.judged:
            return self._passed(math.ceil(self.step / self.batches), {}, self.current)
        machine = self.prior.with_parameters(self.best_parameters)
        return self._passed(self.best_epoch + 1, {"validation_error": self.best_error}, machine)

    def snapshot(self, facts: Mapping[str, Any]) -> Checkpoint:
        try:
            self._check_finite()
        except Diverged as fault:
            self._go_back(fault)
        return self._state(facts)

    def _state(self, facts: Mapping[str, Any]) -> Checkpoint:
        tensors = {f"prior.{name}": value for name, value in self.prior.parameters.items()}
        for prefix in _TENSORS:
            tensors |= {f"{prefix}.{name}": value for name, value in getattr(self, prefix).items()}
        tensors |= {"order": self.order, "generator": self.generator.get_state()}
        for index, moments in self.optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer.{index}.{name}": value for name, value in moments.items() if value is not None}
        sums = {name: float(value) for name, value in self.sums.items()}
        memories = {name: getattr(self, name) for name in _MEMORIES}
        return Checkpoint(self.step, tensors, {**facts, "sums": sums, **memories})

    def restore(self, found: Checkpoint) -> str:
        self.begin()
        return self._set(found)

    def _set(self, found: Checkpoint) -> str:
        for name, value in self.prior.parameters.items():
            value.copy_(found.tensors[f"prior.{name}"])
        device = self.course.images.device
        self.order = found.tensors["order"].to(device)
        for prefix in _TENSORS:
            setattr(self, prefix, {name: value.to(device) for name, value in found.under(prefix).items()})
        for name in _MEMORIES:
            setattr(self, name, found.facts[name])
        self.step, self.sums = found.step, dict(found.facts["sums"])
        state: dict[int, dict[str, Tensor]] = {}
        for name, value in found.under("optimizer").items():
            index, moment = name.split(".", 1)
            state.setdefault(int(index), {})[moment] = value
        self.optimizer.load_state_dict(self.optimizer.state_dict() | {"state": state})
        return set_generator(self.generator, found, self.recipe.seed)


def _copied(named: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in named.items()}


class Rounds:
    """A learner that changes a prior itself, in rounds over all images: it has no gradient for an optimizer.

    With several processes only the first works, and the others copy it. `began` and `pace` are the seconds used when
    the rounds began, and those of the last one.
    """

    judged = False

    def __init__(
        self, rule: InRounds, learner: RoundLearner, images: Tensor, session: Session, *, seed: int, every: int = 1
    ) -> None:
        self.rule, self.learner, self.images, self.session = rule, learner, images, session
        self.seed, self.every = seed, every
        self.state: LearnerState = {}
        self.monitors: Mapping[str, float] = {}
        self.done, self.verdict, self.began, self.pace = 0, "", 0.0, 0.0
        self.generator = torch.Generator(images.device).manual_seed(seed)

    @property
    def progress(self) -> float:
        """The share of rounds or time that is used if another round takes as long as the last."""
        return self.session.progress(self.done / self.learner.rounds, self.began, self.pace)

    @property
    def finished(self) -> bool:
        return bool(self.verdict) or (self.progress >= 1 and self.done > 0)

    @property
    def ended(self) -> str:
        return self.verdict or (f"time ran out after {self.done} rounds" if self.done < self.learner.rounds else "")

    def begin(self) -> None:
        self.began = self.session.clock.used
        self.state = from_first(lambda: self.learner.begin(self.images, self.generator))

    def restore(self, found: Checkpoint) -> str:
        self.done = found.step
        self.began, self.pace, self.verdict = (found.facts[name] for name in ("began", "pace", "verdict"))
        self.state = {name: value.to(self.images.device) for name, value in found.under("state").items()}
        return set_generator(self.generator, found, self.seed)

    def advance(self) -> Lap:
        before = self.session.clock.used
        result = from_first(lambda: self.learner.advance(self.images, self.state, self.generator))
        # What the first process made may be on its device.
        self.state = {name: value.to(self.images.device) for name, value in result.state.items()}
        self.monitors, self.verdict = result.monitors, result.verdict
        self.done += 1
        used = self.session.clock.used
        self.pace = used - before
        record = {"round": self.done, "seconds": used, **result.monitors}
        return Lap(record, self.best(), best=False, keep=self.done % self.every == 0)

    def best(self) -> Passed:
        session, machine = self.session, self.rule.machine(self.state)
        used, rounds = session.clock.used, self.learner.rounds
        return Passed(self.done, rounds, self.progress, used, self.monitors, machine, session.stage)

    def snapshot(self, facts: Mapping[str, Any]) -> Checkpoint:
        tensors = {f"state.{name}": value for name, value in self.state.items()}
        tensors["generator"] = self.generator.get_state()
        own = {"began": self.began, "pace": self.pace, "verdict": self.verdict}
        return Checkpoint(self.done, tensors, {**facts, **own})
