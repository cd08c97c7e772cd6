"""What comes of training: the prior with all that restoring takes, and while training goes on what it has come to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from torch import Tensor

from restore.errors import shown
from restore.learning.course import grey_pixels, pixel_means
from restore.learning.recipes.recipe import Recipe
from restore.learning.recipes.tables import Pretraining
from restore.priors import ConditionalRBM, FullyVisible, LayeredPrior
from restore.priors.bits import pack
from restore.progress import Passed
from restore.units import Units
from restore.zoo import TrainedPrior
from restore.zoo.description import Description, Inference

# What recipes train.
Machine = LayeredPrior | ConditionalRBM | FullyVisible


@dataclass(frozen=True)
class Trained:
    """The outcome of a recipe.

    Attributes:
        prior: what was trained, with all that restoring with it takes.
        epoch: the epoch its parameters are from, counted from 1.
        error: share of wrong pixels of the validation images then; None where there were none.
        verdict: why training ended, or hidden units were added no longer, in words; empty where the recipe says when.
        settled: the recipe with what training has found in place of a limit of time: it gives the same prior again.
    """

    prior: TrainedPrior
    epoch: int
    error: float | None
    verdict: str
    settled: Recipe


def settled_recipe(recipe: Recipe, limited: bool, epochs: int, last: int, grown: int, layered: int) -> Recipe:
    """A recipe without a limit of time, but with the numbers that it came to.

    Args:
        recipe: as it is.
        limited: whether there was such a limit, in an earlier sitting if not in this one.
        epochs: of these, or of rounds.
        last: of epochs that there was time for, where it was over before all of them; otherwise 0.
        grown: of units that were grown before.
        layered: of epochs by which each layer was trained before.
    """
    settled = recipe
    if limited:
        learner, prior = recipe.learner.settled(recipe.prior, epochs)
        growth = replace(recipe.growth, units=grown) if grown else recipe.growth
        settled = replace(recipe, learner=learner, prior=prior, growth=growth)
    training = replace(recipe.training, minutes=0.0, epochs=0 if recipe.in_rounds else epochs, last=last)
    return replace(settled, training=training, pretraining=Pretraining(layered))


@dataclass(frozen=True)
class Midway:
    """What a training run has come to. To find modes may take as long as an epoch, so these priors have none.

    Attributes:
        recipe: of the run.
        images: learnt from, (N, D).
        image_shape: (H, W).
    """

    recipe: Recipe
    images: Tensor
    image_shape: tuple[int, int]

    @cached_property
    def _of_pixels(self) -> tuple[Tensor, Units | None]:
        return pixel_means(self.images), grey_pixels_of(self.recipe, self.images)

    def prior(self, machine: Machine, epoch: int, **told: Any) -> TrainedPrior:
        """The prior with a machine, which had so many epochs; what is told goes into its description."""
        recipe = self.recipe
        inference = recipe.learner.inference(max(epoch, 1) - 1) if recipe.conditional else recipe.inference
        inference = replace(inference, modes=0, starts=min(inference.starts, 1))
        about = replace(description_of(recipe, self.image_shape, machine, inference), **told)
        means, grey = self._of_pixels
        return TrainedPrior(about, as_stored(recipe, machine), means, pack(self.images[:0]), grey)

    def usable(self, passed: Passed, folder: Path) -> TrainedPrior:
        """The prior of a run in a folder, if it were to end here."""
        return self.prior(passed.machine, passed.done, unfinished=self._said(passed), run=shown(str(folder.resolve())))

    def _said(self, passed: Passed) -> str:
        """How far training had come, and how well the prior did then."""
        recipe = self.recipe
        if passed.stage or recipe.in_rounds:
            stage = f"{passed.stage}, " if passed.stage else ""
            return f"{stage}round {passed.done} of at most {passed.total}"
        said = f"epoch {passed.done} of {passed.total}"
        if passed.score is None:
            return f"{said}, not judged"
        damage = recipe.training.watch or recipe.data.task
        error = f"a squared error of {passed.score:.5f}" if recipe.prior.grey else f"{passed.score:.2%} wrong pixels"
        return f"{said}, {error} after {damage}"


def grey_pixels_of(recipe: Recipe, training: Tensor) -> Units | None:
    """The pixels without neighbours, where they are grey levels."""
    return grey_pixels(recipe.prior.visible, training) if recipe.prior.grey else None


def as_stored(recipe: Recipe, machine: Any) -> Any:
    """A machine with its weights in the precision they are kept in."""
    if recipe.storage != "float16":
        return machine
    return machine.with_parameters(
        {
            name: value if name.startswith("units") else value.half().float()
            for name, value in machine.parameters.items()
        }
    )


def description_of(recipe: Recipe, image_shape: tuple[int, int], machine: Machine, inference: Inference) -> Description:
    return Description(
        name=recipe.name,
        image_shape=image_shape,
        hidden=0 if isinstance(machine, FullyVisible) else machine.parameters["weights.0"].shape[1],
        threshold=recipe.data.threshold,
        data=recipe.data.source,
        method=recipe.method,
        recipe=recipe.digest,
        inference=inference,
        family=recipe.prior.family,
        visible=recipe.prior.visible,
        hidden_type=recipe.prior.hidden_type,
        task=recipe.data.task,
        deeper=recipe.prior.deeper,
    )
