"""Find how windows of larger images should exchange messages, on images that a prior has not learnt from.

The tiling of a published prior is written to its header: `dataclasses.replace(header, tiling=...)`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from restore.channels import Task, parse_task
from restore.evaluation.whole import by_prior
from restore.inference.torch_engine import Engine
from restore.zoo.tiling import Tiling

# How often messages are sent, and the share of their log-odds that they are worth.
ROUNDS_AND_WORTH = ((0, 0.0), (1, 0.15), (1, 0.3), (2, 0.15), (2, 0.3))

# Windows that overlap are also tried so many along an axis, and need some four times as long.
DENSE = 4

# The damage that it is tried on.
TASKS = ("flip:0.1", "flip:0.2", "holes:8:0.1")

# How many images are tried.
IMAGES = 2

# Sides of the pieces of them that are tried, in windows.
WINDOWS = 4

# Share of the wrong pixels, on average over tasks, that another choice than the prior's has to spare.
WORTHWHILE = 0.03

# The same for a choice that takes longer.
WORTH_WAITING = 0.1

SEED = 0


def best_tiling(engine: Engine, images: Sequence[Tensor]) -> Tiling:
    """The tiling with which a prior of windows leaves fewest wrong pixels.

    Args:
        engine: an unconditional prior of black and white images.
        images: whole images (H, W) as the prior knows them, of which it has learnt nothing; at least one.

    Returns:
        The prior's own tiling, if none is clearly better.

    >>> from restore.inference.torch_engine import Engine
    >>> engine = Engine.load("tap-text")
    >>> best_tiling(engine, [torch.zeros(32, 32)]) == engine.description.tiling  # there is nothing to be gained
    True
    """
    own = engine.description.tiling
    height, width = engine.description.image_shape
    pieces = [_fullest(image, (WINDOWS * height, WINDOWS * width)) for image in images[:IMAGES]]
    tasks = [parse_task(text) for text in TASKS]
    before = _wrong(engine, own, pieces, tasks)
    best = own, 0.0
    for overlap, least in _overlaps(own):
        others = [replace(own, overlap=overlap, rounds=rounds, worth=worth) for rounds, worth in ROUNDS_AND_WORTH]
        found = {each: np.mean(np.log(_wrong(engine, each, pieces, tasks) / before)) for each in others if each != own}
        tiling = min(found, key=lambda tiling: found[tiling])
        if found[tiling] < best[1] + np.log(1 - least):
            best = tiling, float(found[tiling])
    return best[0]


def _overlaps(own: Tiling) -> Iterator[tuple[int, float]]:
    """The overlaps to try, and the least gain of each over those before it."""
    yield own.overlap, WORTHWHILE
    if 1 < own.overlap < DENSE:
        yield DENSE, WORTH_WAITING


def _wrong(engine: Engine, tiling: Tiling, images: Sequence[Tensor], tasks: Sequence[Task]) -> np.ndarray:
    """Wrong pixels of all images after each task, counted from 1."""
    trained = replace(engine.trained, description=replace(engine.description, tiling=tiling))
    restorer, counts = by_prior(replace(engine, trained=trained)), np.ones(len(tasks))
    for number, task in enumerate(tasks):
        generator = torch.Generator().manual_seed(SEED)
        for image in images:
            shape, row = (image.shape[0], image.shape[1]), image.reshape(1, -1)
            found = restorer(*task.damage(row, shape, generator), shape, lambda share: None)
            counts[number] += float(((found > 0.5) != (row > 0.5)).sum())
    return counts


def _fullest(image: Tensor, shape: tuple[int, int]) -> Tensor:
    """The piece of an image of at most this shape, among those side by side, in which most neighbours differ."""
    height, width = (min(length, side) for length, side in zip(image.shape, shape, strict=True))
    pieces = image.unfold(0, height, height).unfold(1, width, width).reshape(-1, height, width)
    edges = (pieces.diff(dim=1) != 0).sum((1, 2)) + (pieces.diff(dim=2) != 0).sum((1, 2))
    return pieces[int(edges.argmax())]
