"""From images and a recipe to a prior that restores: fit, round to its storage, find its modes, describe it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from restore.description import Description, Inference
from restore.errors import TrainingError
from restore.learning.course import CleanImages, Course, DamagedImages, pixel_means
from restore.learning.fit import Fitted, fit
from restore.learning.frank_wolfe import FrankWolfe, Growth, rbm_of
from restore.learning.modes import own_modes
from restore.learning.recipe import Recipe
from restore.learning.rounds import run_rounds
from restore.learning.run_folder import GROWTH
from restore.priors import RBM, ConditionalRBM
from restore.priors.bits import pack
from restore.progress import Meter
from restore.solvers import TAP
from restore.tasks import parse_task
from restore.zoo import TrainedPrior


@dataclass(frozen=True)
class Trained:
    """The outcome of a recipe.

    Attributes:
        prior: what was trained, with all that restoring with it takes.
        epoch: the epoch its parameters are from, counted from 1.
        error: share of wrong pixels of the validation images then; None where there were none.
        verdict: why there are as many hidden units as there are, in words; empty where the recipe says how many.
    """

    prior: TrainedPrior
    epoch: int
    error: float | None
    verdict: str = ""


def train(
    recipe: Recipe,
    images: Tensor,
    image_shape: tuple[int, int],
    folder: Path,
    *,
    fingerprint: str,
    resume: bool = False,
    meter: Meter = lambda done, note="": None,
) -> Trained:
    """Train a prior as a recipe says; see `restore.learning.fit.fit` for arguments and errors.

    Args:
        recipe: what to train and how.
        images: binary training images (N, H * W), on the device to train on.
        image_shape: (H, W).
        folder: run folder.
    """
    start, verdict = None, ""
    if recipe.auto or recipe.in_rounds:
        place = folder if recipe.in_rounds else folder / GROWTH
        start, rounds, verdict = grow(recipe, images, place, fingerprint=fingerprint, resume=resume, meter=meter)
    course = course_of(recipe, images, image_shape, start)
    if start is not None and recipe.in_rounds:
        fitted: Fitted[Any] = Fitted(start, rounds - 1)
    else:
        fitted = fit(recipe, course, folder, fingerprint=fingerprint, resume=resume, meter=meter)
    with torch.inference_mode():
        machine = fitted.prior
        if recipe.storage == "float16":
            machine = machine.with_parameters(
                {
                    name: value if name.startswith("units") else value.half().float()
                    for name, value in machine.parameters.items()
                }
            )
        inference = recipe.learner.inference(fitted.epoch) if recipe.conditional else recipe.inference
        modes = _modes(machine, course.images, inference, recipe.seed)
    description = Description(
        name=recipe.name,
        image_shape=image_shape,
        hidden=machine.layers[1].size,
        threshold=recipe.data.threshold,
        data=recipe.data.source,
        method=recipe.method,
        recipe=recipe.digest,
        inference=inference,
        family=recipe.prior.family,
        task=recipe.data.task,
    )
    prior = TrainedPrior(description, machine, pixel_means(course.images), modes)
    return Trained(prior, fitted.epoch + 1, fitted.error, verdict)


def grow(
    recipe: Recipe, images: Tensor, folder: Path, *, fingerprint: str, resume: bool, meter: Meter
) -> tuple[RBM, int, str]:
    """The machine that grew to the size it needs, after how many rounds, and why it stopped; see `train`."""
    settings: FrankWolfe = recipe.learner if recipe.in_rounds else recipe.growth
    if recipe.prior.hidden != "auto":
        settings = replace(settings, units=recipe.prior.hidden)
    training, validation = split(recipe, images)
    told = meter if recipe.in_rounds else lambda done, note="": meter(0, f"growing: {done} units, {note}")
    outcome = run_rounds(
        Growth(settings, validation),
        training,
        folder,
        seed=recipe.seed,
        identity={"recipe": recipe.growth_facts, "data": fingerprint},
        checkpoint_every=recipe.training.checkpoint_every,
        resume=resume,
        meter=told,
    )
    limit = f"the limit of {settings.units} units was reached before the validation images stopped gaining; raise units"
    verdict = outcome.verdict or (limit if recipe.auto else "")
    return rbm_of(outcome.state), outcome.rounds, verdict


def course_of(
    recipe: Recipe, images: Tensor, image_shape: tuple[int, int], start: RBM | None = None
) -> Course[Any, Any]:
    """What a recipe makes of training images; see `train` and `split`.

    Args:
        start: the machine before the first step; by default one without correlations.
    """
    training, validation = split(recipe, images)
    if not recipe.conditional:
        return CleanImages(training, start)
    return DamagedImages(training, validation, image_shape, parse_task(recipe.data.task), recipe.seed, start)


def split(recipe: Recipe, images: Tensor) -> tuple[Tensor, Tensor]:
    """Training and validation images.

    Raises:
        TrainingError: if there are not enough images to hold some out.
    """
    held_out = recipe.data.validation
    if not held_out and not recipe.conditional:
        return images, images[:0]
    if len(images) - held_out < 2:
        raise TrainingError(
            f"{recipe.data.source}: {len(images)} images, of which {held_out} are for validation, leave too few to "
            "train on; lower [data] validation"
        )
    # Drawn on the processor, so that every device holds out the same images.
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(recipe.seed)).to(images.device)
    return images[order[held_out:]], images[order[:held_out]]


def _modes(machine: RBM | ConditionalRBM, images: Tensor, inference: Inference, seed: int) -> Tensor:
    """Modes of the machine as starts for its solver; none for a solver that needs no start."""
    if isinstance(machine, ConditionalRBM) or not inference.modes:
        return pack(images[:0])
    solver = TAP(max_iter=inference.max_iter, tol=inference.tol, damping=inference.damping)
    # Seeded apart from training, so that the modes do not depend on where a run was interrupted.
    generator = torch.Generator(images.device).manual_seed(seed)
    return own_modes(machine, images, inference.modes, solver, generator)
