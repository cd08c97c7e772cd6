"""The outcome of training: a prior with all that restoring needs; and the state of it while training goes on."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from torch import Tensor

from restore.errors import shown
from restore.learning.course import grey_pixels, pixel_means
from restore.learning.recipes.recipe import Recipe
from restore.learning.run.session import Passed
from restore.priors import ConditionalRBM, FullyVisible, GaussianMixture, LayeredPrior
from restore.priors.bits import pack
from restore.units import Units
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


@dataclass(frozen=True)
class Midway:
    """The state of a prior in training. It has no modes, as finding them may take as long as an epoch.

    Attributes:
        recipe: the run's recipe.
        images: training images, (N, D).
        image_shape: (H, W).
    """

    recipe: Recipe
    images: Tensor
    image_shape: tuple[int, int]

    @cached_property
    def _of_pixels(self) -> tuple[Tensor, Units | None]:
        return pixel_means_of(self.recipe, self.images), grey_pixels_of(self.recipe, self.images)

    def prior(self, machine: Machine, epoch: int, **told: Any) -> TrainedPrior:
        """The prior with a machine after an epoch; `told` goes into its description."""
        recipe = self.recipe
        inference = recipe.inference_after(max(epoch, 1) - 1)
        inference = replace(inference, modes=0, starts=min(inference.starts, 1))
        about = replace(description_of(recipe, self.image_shape, machine, inference), **told)
        means, grey = self._of_pixels
        return TrainedPrior(about, as_stored(recipe, machine), means, pack(self.images[:0]), grey)

    def usable(self, passed: Passed, folder: Path) -> TrainedPrior:
        """The prior of a run in a folder if it ended now."""
        return self.prior(passed.machine, passed.done, unfinished=self._said(passed), run=shown(str(folder.resolve())))

    def _said(self, passed: Passed) -> str:
        """How far training has come, and how good the prior is, in words."""
        recipe = self.recipe
        if passed.stage or recipe.in_rounds:
            stage = f"{passed.stage}, " if passed.stage else ""
            return f"{stage}round {passed.done} of at most {passed.total}"
        said = f"epoch {passed.done} of {passed.total}" if passed.total else f"epoch {passed.done}"
        if passed.score is None:
            return f"{said}, not judged"
        damage = recipe.training.watch or recipe.data.task
        return f"{said}, {recipe.prior.in_words(passed.score)} after {damage}"


def pixel_means_of(recipe: Recipe, training: Tensor) -> Tensor:
    """Mean of each pixel; the same for all pixels if places are alike."""
    return recipe.prior.kind.pixel_means(pixel_means(training))


def grey_pixels_of(recipe: Recipe, training: Tensor) -> Units | None:
    """The pixels as independent units, if they are grey."""
    return grey_pixels(recipe.prior.visible, training) if recipe.prior.grey else None


def as_stored(recipe: Recipe, machine: Any) -> Any:
    """A machine with its weights in the precision of storage."""
    if recipe.storage != "float16":
        return machine
    return machine.with_parameters(
        {
            name: value if name.startswith("units") else value.half().float()
            for name, value in machine.parameters.items()
        }
    )


def description_of(recipe: Recipe, image_shape: tuple[int, int], machine: Machine, inference: Inference) -> Description:
    kind, spec = recipe.prior.kind, recipe.prior.alone
    return Description(
        name=recipe.name,
        image_shape=image_shape,
        threshold=recipe.data.threshold,
        data=recipe.data.source,
        method=recipe.method,
        recipe=recipe.digest,
        inference=inference,
        task=recipe.data.task,
        tiling=_tiling(recipe),
        **asdict(replace(spec, hidden=kind.hidden_in(spec, machine))),
    )


def _tiling(recipe: Recipe) -> Tiling:
    """How larger images are restored."""
    if own := recipe.prior.kind.tiling:
        return Tiling(**own)
    return recipe.learner.windows if recipe.data.gathering.patches else Tiling()
