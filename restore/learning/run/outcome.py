"""The outcome of training: a prior with all that restoring needs; and the state of it while training goes on."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from restore.errors import shown
from restore.families import Spec
from restore.learning.course import pixels_of
from restore.learning.recipe.recipe import Recipe
from restore.learning.run.session import Machine, Progress
from restore.priors.bits import pack
from restore.zoo import TrainedPrior
from restore.zoo.description import Description
from restore.zoo.inference import Inference


@dataclass(frozen=True)
class Trained:
    """The outcome of a recipe: a prior, from an epoch counted from 1, with its validation error if it was judged.

    The verdict says why training, or the growth of hidden units, ended; it is empty if the recipe says when. `seconds`
    were used by the whole run, resumes included, and the lines are for the user.
    """

    prior: TrainedPrior
    epoch: int
    error: float | None
    verdict: str
    seconds: float = 0.0
    lines: tuple[str, ...] = ()


def midway(recipe: Recipe, images: Tensor, image_shape: tuple[int, int], state: Progress, **more: Any) -> TrainedPrior:
    """The prior in training, without modes, which may take as long as an epoch; `more` goes into its header."""
    inference = replace(recipe.inference_after(max(state.done, 1) - 1), modes=0)
    inference = replace(inference, starts=min(inference.starts, 1))
    means, grey = pixels_of(recipe, images)
    header = replace(description_of(recipe, image_shape, state.machine, inference, means), **more)
    return TrainedPrior(header, as_stored(recipe, state.machine), means, pack(images[:0]), grey)


def usable(recipe: Recipe, images: Tensor, image_shape: tuple[int, int], state: Progress, run: Path) -> TrainedPrior:
    """The prior of a run in a folder if it ended now; its header says that it is unfinished."""
    unit = "round" if state.stage or recipe.in_rounds else "epoch"
    said = f"{unit} {state.done}" + (f" of at most {state.total}" if state.total else "")
    said = f"{state.stage}, {said}" if state.stage else said
    if unit == "epoch" and state.score is None:
        said += ", not judged"
    elif state.score is not None:
        said += f", {scored(recipe, state.score)}"
    return midway(recipe, images, image_shape, state, unfinished=said, run=shown(str(run.resolve())))


def scored(recipe: Recipe, error: float) -> str:
    damage = recipe.training.watch or recipe.data.task
    left = f"a mean squared error of {error:.5f}" if recipe.prior.grey else f"{error:.3%} wrong pixels"
    return f"{left} {f'after {damage}' if damage else 'of pages'}"


def as_stored(recipe: Recipe, machine: Any) -> Any:
    if recipe.storage != "float16":
        return machine
    halved = {
        name: value if name.startswith("units") else value.half().float() for name, value in machine.parameters.items()
    }
    return machine.with_parameters(halved)


def description_of(
    recipe: Recipe, image_shape: tuple[int, int], machine: Machine, inference: Inference, means: Tensor
) -> Description:
    """The header of a prior, of which `means` are the pixels' over its images, (D,)."""
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
        overlap=recipe.learner.tile_overlap if recipe.data.gathering.patches and not kind.any_size else 1,
        white=share_of_white(spec, means),
        **asdict(replace(spec, hidden=kind.hidden_in(spec, machine))),
    )


def share_of_white(spec: Spec, means: Tensor) -> float:
    """The share of white in the images of a prior whose pixels have these means, as its header has it."""
    return round(float(means.double().mean()), 4) if spec.kind.any_size and not spec.grey else 0.0
