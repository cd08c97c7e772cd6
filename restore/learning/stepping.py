"""One step of training by gradients: from mini-batch to learner to optimizer; and how a prior in training is judged."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Any

import torch

from restore.errors import TrainingError, shown
from restore.learning.course import Course, PriorT
from restore.learning.optimizers import optimizer_of
from restore.learning.recipes.recipe import Recipe
from restore.learning.recipes.tables import Optimizer
from restore.learning.rules.contract import Step
from restore.learning.run.parallel import from_first
from restore.learning.run.running import Diverged, Run

# A moving average of parameters remembers fewer steps until this many are done.
WARM_UP = 10


def begin(recipe: Recipe, course: Course[PriorT, Any]) -> Run[PriorT]:
    """The state of a run before the first step."""
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


def advance(run: Run[Any], recipe: Recipe, batch: Any, rate: float, epoch: int) -> None:
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


def scheduled_rate(settings: Optimizer, progress: float) -> float:
    """The learning rate after a share `progress` of all steps."""
    if settings.schedule == "geometric":
        return settings.rate * settings.end**progress
    left = 1 - progress * (1 - settings.end) if settings.schedule == "linear" else 1.0
    return settings.rate * left


def judge(run: Run[PriorT], recipe: Recipe, course: Course[PriorT, Any], epoch: int) -> dict[str, float]:
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


def hopeless(folder: Path, fault: Diverged) -> TrainingError:
    """The error of a run that diverges whatever is done."""
    return TrainingError(f"{shown(folder)}: training diverged ({fault}); lower the rate")
