"""Begin training from another prior."""

from __future__ import annotations

from dataclasses import replace

from restore import zoo
from restore.errors import TrainingError
from restore.families import Spec
from restore.learning.course import wider
from restore.learning.recipes.tables import PriorShape
from restore.priors import RBM, LayeredPrior


def started(shape: PriorShape, image_shape: tuple[int, int], seed: int) -> LayeredPrior:
    """The machine of the prior that a recipe starts from, with the recipe's number of hidden units.

    Args:
        shape: the machine to train; `start` is given.
        image_shape: (H, W).
        seed: seed of the weights of units that are added.

    Raises:
        ModelError: if there is no such prior.
        TrainingError: if it is another kind of machine, or for images of another size.
    """
    folder = zoo.find(shape.start)
    about = zoo.describe(folder)
    if replace(about.alone, hidden=1) != replace(shape.alone, hidden=1) or about.image_shape != image_shape:
        raise TrainingError(
            f"{shape.start}: {_in_words(about, about.image_shape)} cannot be the start of "
            f"{_in_words(shape, image_shape)}; give another [prior] start"
        )
    machine = zoo.load(folder).machine
    assert isinstance(machine, LayeredPrior) and isinstance(shape.hidden, int)
    missing = shape.hidden - machine.layers[1].size
    if missing == 0:
        return machine
    grows = isinstance(machine, RBM) and shape.plain
    if missing < 0 or not grows:
        raise TrainingError(
            f"{shape.start}: has {machine.layers[1].size} hidden units; give [prior] hidden as many"
            f"{' or more' if grows else ''}"
        )
    assert isinstance(machine, RBM)
    return wider(machine, missing, shape.weight_scale, seed)


def _in_words(spec: Spec, image_shape: tuple[int, int]) -> str:
    layers = "-".join([spec.visible, spec.hidden_type, *map(str, spec.deeper)])
    height, width = image_shape
    return f"a {spec.kind.words} ({layers}) for images of {width}x{height} pixels"
