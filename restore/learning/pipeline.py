"""From images and a recipe to a prior that restores: fit, round to its storage, find its modes, describe it."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from restore.description import Description
from restore.learning.fit import fit, pixel_means
from restore.learning.modes import own_modes
from restore.learning.recipe import Recipe
from restore.priors import RBM
from restore.progress import Meter
from restore.solvers import TAP
from restore.zoo import TrainedPrior


def train(
    recipe: Recipe,
    images: Tensor,
    image_shape: tuple[int, int],
    folder: Path,
    *,
    fingerprint: str,
    resume: bool = False,
    meter: Meter = lambda done, note="": None,
) -> TrainedPrior:
    """Train a prior as a recipe says; see `restore.learning.fit.fit` for arguments and errors.

    Args:
        recipe: what to train and how.
        images: binary training images (N, H * W), on the device to train on.
        image_shape: (H, W).
        folder: run folder.
    """
    machine = fit(recipe, images, folder, fingerprint=fingerprint, resume=resume, meter=meter)
    with torch.inference_mode():
        if recipe.storage == "float16":
            rounded = machine.weights.half().float()
            machine = RBM(machine.layers, (rounded,))
        settings = recipe.inference
        solver = TAP(max_iter=settings.max_iter, tol=settings.tol, damping=settings.damping)
        # Seeded apart from training, so that the modes do not depend on where a run was interrupted.
        generator = torch.Generator(images.device).manual_seed(recipe.seed)
        modes = own_modes(machine, images, settings.modes, solver, generator)
        means = pixel_means(images)
    description = Description(
        name=recipe.name,
        image_shape=image_shape,
        hidden=recipe.prior.hidden,
        threshold=recipe.data.threshold,
        data=recipe.data.source,
        method=recipe.method,
        recipe=recipe.digest,
        inference=settings,
        family=recipe.prior.family,
    )
    return TrainedPrior(description, machine, means, modes)
