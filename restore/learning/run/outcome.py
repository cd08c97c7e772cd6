"""The outcome of training: a prior with all that restoring needs; and the state of it while training goes on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from restore.errors import shown
from restore.learning.course import grey_pixels_of, pixel_means_of
from restore.learning.recipe.recipe import Recipe
from restore.learning.run.session import Passed
from restore.priors import ConditionalRBM, FullyVisible, GaussianMixture, LayeredPrior
from restore.priors.bits import pack
from restore.zoo import TrainedPrior
from restore.zoo.description import Description
from restore.zoo.inference import Inference
from restore.zoo.tiling import Tiling

# The kinds of machine that recipes train.
Machine = LayeredPrior | ConditionalRBM | FullyVisible | GaussianMixture


@dataclass(frozen=True)
class Trained:
    """The outcome of a recipe.

    Attributes:
        prior: the trained prior, with all that restoring needs.
        epoch: the epoch its parameters are from, counted from 1.
        error: share of wrong pixels of the validation images then; None if there were none.
        verdict: why training, or the growth of hidden units, ended, in words; empty if the recipe says when.
    """

    prior: TrainedPrior
    epoch: int
    error: float | None
    verdict: str


def midway(recipe: Recipe, images: Tensor, image_shape: tuple[int, int], passed: Passed, **more: Any) -> TrainedPrior:
    """The prior in training, without modes, as finding them may take as long as an epoch.

    Args:
        recipe: the run's recipe.
        images: training images, (N, D).
        image_shape: (H, W).
        passed: how far training has come.
        more: goes into its description.
    """
    inference = replace(restoring(recipe, passed.done), modes=0)
    inference = replace(inference, starts=min(inference.starts, 1))
    about = replace(description_of(recipe, image_shape, passed.machine, inference), **more)
    means, grey = pixel_means_of(recipe, images), grey_pixels_of(recipe, images)
    return TrainedPrior(about, as_stored(recipe, passed.machine), means, pack(images[:0]), grey)


def usable(recipe: Recipe, images: Tensor, image_shape: tuple[int, int], passed: Passed, run: Path) -> TrainedPrior:
    """The prior of a run in a folder if it ended now; its header says that it is unfinished."""
    unit = "round" if passed.stage or recipe.in_rounds else "epoch"
    said = f"{unit} {passed.done}" + (f" of at most {passed.total}" if passed.total else "")
    said = f"{passed.stage}, {said}" if passed.stage else said
    if unit == "epoch" and passed.score is None:
        said += ", not judged"
    elif passed.score is not None:
        said += f", {scored(recipe, passed.score)}"
    return midway(recipe, images, image_shape, passed, unfinished=said, run=shown(str(run.resolve())))


def scored(recipe: Recipe, error: float) -> str:
    """The validation error of a prior, in words."""
    kind = f"a squared error of {error:.5f}" if recipe.prior.grey else f"{error:.2%} wrong pixels"
    return f"{kind} after {recipe.training.watch or recipe.data.task}"


def restoring(recipe: Recipe, epoch: int) -> Inference:
    """How a prior restores that was trained up to and including an epoch, counted from 1."""
    found: Inference = recipe.learner.inference(max(epoch, 1) - 1) if recipe.conditional else recipe.inference
    return found


def as_stored(recipe: Recipe, machine: Any) -> Any:
    """A machine with its weights in the precision of storage."""
    if recipe.storage != "float16":
        return machine
    halved = {
        name: value if name.startswith("units") else value.half().float() for name, value in machine.parameters.items()
    }
    return machine.with_parameters(halved)


def description_of(recipe: Recipe, image_shape: tuple[int, int], machine: Machine, inference: Inference) -> Description:
    """What a file says of a trained machine."""
    shape, tiling = recipe.prior, Tiling()
    if shape.kernel:
        # Windows that a convolutional machine knows alike tell each other nothing.
        tiling = Tiling(overlap=2, rounds=1, worth=0.0, least=0.0)
    elif recipe.data.gathering.patches:
        tiling = recipe.learner.windows
    hidden = 0
    if not isinstance(machine, FullyVisible):
        rows, columns = machine.parameters["weights.0"].shape
        hidden = rows if shape.kernel else columns // max(1, shape.components)
    return Description(
        name=recipe.name,
        image_shape=image_shape,
        hidden=hidden,
        threshold=recipe.data.threshold,
        data=recipe.data.source,
        method=recipe.method,
        recipe=recipe.digest,
        inference=inference,
        family=shape.family,
        visible=shape.visible,
        hidden_type=shape.hidden_type,
        task=recipe.data.task,
        deeper=shape.deeper,
        tiling=tiling,
        components=shape.components,
        kernel=shape.kernel,
    )
