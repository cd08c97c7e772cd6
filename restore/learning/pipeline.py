"""From images and a recipe to a prior that restores: fit, round to its storage, find its modes, describe it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from restore.description import Description, Inference
from restore.errors import TrainingError, UsageError
from restore.learning.course import CleanImages, Course, DamagedImages, pixel_means
from restore.learning.fit import fit
from restore.learning.modes import own_modes
from restore.learning.recipe import Recipe
from restore.priors import RBM, ConditionalRBM
from restore.priors.bits import pack
from restore.progress import Meter
from restore.solvers import TAP
from restore.tasks import parse_task
from restore.zoo import TrainedPrior, save


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
    every: int = 0,
    meter: Meter = lambda done, note="": None,
) -> Trained:
    """Train a prior as a recipe says; see `restore.learning.fit.fit` for arguments and errors.

    Args:
        recipe: what to train and how.
        images: binary training images (N, H * W), on the device to train on.
        image_shape: (H, W).
        folder: run folder.
        every: keep the prior after every so many epochs too, as `epoch_folder` says; 0 keeps none.
    """
    if every < 0:
        raise UsageError(f"priors can be kept every 1, 2, ... epochs, or 0 for never, not every {every}")
    course = course_of(recipe, images, image_shape)

    def keep(epoch: int, machine: RBM | ConditionalRBM) -> None:
        if every and epoch % every == 0:
            prior = _without_modes(recipe, course, image_shape, epoch, machine)
            save(epoch_folder(folder, epoch), prior, f"# {prior.description.name}\n", TrainingError)

    fitted = fit(recipe, course, folder, fingerprint=fingerprint, resume=resume, meter=meter, after_epoch=keep)
    with torch.inference_mode():
        machine = _as_stored(recipe, fitted.prior)
        inference = recipe.learner.inference(fitted.epoch) if recipe.conditional else recipe.inference
        modes = _modes(machine, course.images, inference, recipe.seed)
    description = _description(recipe, image_shape, inference)
    prior = TrainedPrior(description, machine, pixel_means(course.images), modes)
    return Trained(prior, fitted.epoch + 1, fitted.error)


def epoch_folder(folder: Path, epoch: int) -> Path:
    """Where in a run folder the prior after so many epochs is kept."""
    return folder / "epochs" / f"{epoch:04d}"


def _without_modes(
    recipe: Recipe, course: Course[Any, Any], image_shape: tuple[int, int], epoch: int, machine: RBM | ConditionalRBM
) -> TrainedPrior:
    """The prior in the middle of its training. To find its modes may take as long as an epoch, so it has none."""
    inference = recipe.learner.inference(epoch - 1) if recipe.conditional else recipe.inference
    inference = replace(inference, modes=0, starts=min(inference.starts, 1))
    about = replace(_description(recipe, image_shape, inference), name=f"{recipe.name}-epoch-{epoch}")
    return TrainedPrior(about, _as_stored(recipe, machine), pixel_means(course.images), pack(course.images[:0]))


def _as_stored(recipe: Recipe, machine: Any) -> Any:
    """A machine with its weights in the precision they are kept in."""
    if recipe.storage != "float16":
        return machine
    return machine.with_parameters(
        {
            name: value if name.startswith("units") else value.half().float()
            for name, value in machine.parameters.items()
        }
    )


def _description(recipe: Recipe, image_shape: tuple[int, int], inference: Inference) -> Description:
    return Description(
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
