"""Fit the temperature of a published prior anew, as training does; it is printed, and nothing is changed.

    python training/temperature.py conv-art --data PATH
    python training/temperature.py conv-mnist --data PATH --test 5000

The images are those that the recipe holds out; of a recipe that holds out none, test images from some number on.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import torch
import typer

from restore import zoo
from restore.data import load
from restore.errors import UsageError
from restore.learning.finish import TEMPERATURE_IMAGES, fitted
from restore.learning.lesson import lesson_of
from restore.learning.options import TrainOptions
from restore.learning.recipe.recipe import read_recipe

RECIPES = Path(__file__).parent / "recipes"


def main(
    name: Annotated[str, typer.Argument(help="A published prior that has learnt by restoring.")],
    data: Annotated[Path | None, typer.Option(help="Where data sets lie [RESTORE_DATA].")] = None,
    test: Annotated[int | None, typer.Option(min=0, help="Take test images, from this one on.")] = None,
) -> None:
    path, device = RECIPES / f"{name}.toml", torch.device("cpu")
    recipe = read_recipe(path)
    lesson = lesson_of(recipe, TrainOptions(data=data))
    held_out = lesson.held_out_pixels(device)
    if test is not None:
        images = load(recipe.data.source, split="test", root=data).images[test : test + TEMPERATURE_IMAGES]
        held_out = lesson.as_pixels(images, device)
    if held_out is None:
        raise UsageError(f"{path.name} holds out no images; give --test")
    tasks = () if recipe.prior.kind.pages else tuple(map(recipe.prior.task_of, recipe.learner.restores))
    print(f"{name}: {fitted(zoo.load(zoo.find(name)), held_out, tasks, recipe.seed):g}")


if __name__ == "__main__":
    typer.run(main)
