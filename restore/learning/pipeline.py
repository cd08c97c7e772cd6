"""From images and a recipe to a prior that restores: fit, round to its storage, find its modes, describe it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from restore.description import Description, Inference
from restore.errors import TrainingError
from restore.learning.course import CleanImages, Course, DamagedImages, pixel_means
from restore.learning.fit import fit
from restore.learning.modes import own_modes
from restore.learning.recipe import Recipe
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
    """

    prior: TrainedPrior
    epoch: int
    error: float | None


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
    course = course_of(recipe, images, image_shape)
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
        hidden=recipe.prior.hidden,
        threshold=recipe.data.threshold,
        data=recipe.data.source,
        method=recipe.method,
        recipe=recipe.digest,
        inference=inference,
        family=recipe.prior.family,
        task=recipe.data.task,
    )
    prior = TrainedPrior(description, machine, pixel_means(course.images), modes)
    return Trained(prior, fitted.epoch + 1, fitted.error)


def course_of(recipe: Recipe, images: Tensor, image_shape: tuple[int, int]) -> Course[Any, Any]:
    """What a recipe makes of training images; see `train`.

    Raises:
        TrainingError: if there are not enough images to hold some out.
    """
    if not recipe.conditional:
        return CleanImages(images)
    held_out = recipe.data.validation
    if len(images) - held_out < 2:
        raise TrainingError(
            f"{recipe.data.source}: {len(images)} images, of which {held_out} are for validation, leave too few to "
            "train on; lower [data] validation"
        )
    # Drawn on the processor, so that every device holds out the same images.
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(recipe.seed)).to(images.device)
    return DamagedImages(
        images[order[held_out:]], images[order[:held_out]], image_shape, parse_task(recipe.data.task), recipe.seed
    )


def _modes(machine: RBM | ConditionalRBM, images: Tensor, inference: Inference, seed: int) -> Tensor:
    """Modes of the machine as starts for its solver; none for a solver that needs no start."""
    if isinstance(machine, ConditionalRBM) or not inference.modes:
        return pack(images[:0])
    solver = TAP(max_iter=inference.max_iter, tol=inference.tol, damping=inference.damping)
    # Seeded apart from training, so that the modes do not depend on where a run was interrupted.
    generator = torch.Generator(images.device).manual_seed(seed)
    return own_modes(machine, images, inference.modes, solver, generator)
