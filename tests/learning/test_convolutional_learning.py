"""A convolutional prior from images to restorations: it removes flips from what it has learnt."""

from __future__ import annotations

import numpy as np
import pytest

import restore
from restore.learning.recipe.plan import usual


def blocks(count: int, shape: tuple[int, int], seed: int) -> np.ndarray:
    """Images of squares with sides of 4 pixels, each black or white."""
    draw = np.random.default_rng(seed)
    coarse = draw.random((count, shape[0] // 4, shape[1] // 4)) < 0.5
    return coarse.repeat(4, 1).repeat(4, 2)


@pytest.mark.thorough
def test_it_restores_what_it_has_learnt() -> None:
    # Without a run there is no graph, which would take longest.
    prior = restore.train(blocks(80, (12, 12), 0), epochs=60, device="cpu")
    header = prior.description
    kernel = usual("convolutional")["prior"]["kernel"]
    assert (header.family, header.kernel, header.method) == ("convolutional", kernel, "matched")
    clean = blocks(40, (12, 12), 1)
    flipped = np.random.default_rng(2).random(clean.shape) < 0.1
    restored = prior.denoise(clean ^ flipped, p=0.1)
    # A tenth of the pixels was wrong; a median of 3x3 pixels rounds all corners.
    assert (restored != clean).mean() < 0.5 * flipped.mean()
