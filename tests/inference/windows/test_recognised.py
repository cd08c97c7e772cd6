"""With nothing told: which images the published priors explain better than noise does, and which they refuse."""

from __future__ import annotations

import numpy as np
import pytest

import restore
from restore.errors import ModelError
from restore.zoo import candidates

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def disc() -> np.ndarray:
    row, column = np.indices((90, 100))
    return np.hypot(row - 40, column - 55) < 28


def flipped(image: np.ndarray, p: float) -> np.ndarray:
    return image ^ (np.random.default_rng(0).random(image.shape) < p)


@pytest.mark.parametrize("white", [0.5, 0.2, 0.02, 0.0, 1.0])
def test_noise_and_blank_images_are_refused(disc: np.ndarray, white: float) -> None:
    noise = flipped(np.zeros_like(disc), white)
    with pytest.raises(ModelError, match=r"no prior explains it better than independent pixels do.*restore train"):
        restore.denoise(noise)
    # Who knows better says so.
    with pytest.warns(UserWarning, match="less well than independent"):
        restore.denoise(noise, force=True)


@pytest.mark.parametrize("p", [0.05, 0.2])
@pytest.mark.parametrize("inverted", [False, True])
def test_a_silhouette_is_restored_in_either_polarity(disc: np.ndarray, p: float, inverted: bool) -> None:
    mask = disc ^ inverted
    found, solution = restore.denoise(flipped(mask, p), return_solution=True)
    assert solution.model in ("tap-shapes", "ising")
    assert (found != mask).mean() < 0.1 * p


def test_the_ising_field_restores_what_it_explains_best() -> None:
    """A sample of the field itself, by heat-bath sweeps at its own coupling: no trained prior knows it better."""
    from restore.learning.rules.ising import neighbours

    draw = np.random.default_rng(1)
    prior = restore.load("ising").engine.description
    assert prior.log_partition > 0
    side, coupling = 48, 0.22
    weights = neighbours(side, side).numpy()
    spins = draw.choice([-1.0, 1.0], side * side)
    # Pixels two apart in both directions are no neighbours, and can be drawn together.
    row, column = np.divmod(np.arange(side * side), side)
    for _ in range(150):
        for colour in range(4):
            chosen = np.flatnonzero((row % 2) * 2 + column % 2 == colour)
            field = 2 * coupling * weights[chosen] @ spins
            spins[chosen] = np.where(draw.random(chosen.size) < 1 / (1 + np.exp(-field)), 1.0, -1.0)
    field = (spins > 0).reshape(side, side)
    _, solution = restore.denoise(flipped(field, 0.02), return_solution=True, force=True)
    assert solution.model == "ising"


def test_priors_of_whole_objects_are_asked_where_they_fit() -> None:
    assert "tap-mnist" in candidates((56, 84)) and "tap-mnist" in candidates((20, 20))
    assert candidates((512, 512))[:3] == ("tap-text", "tap-shapes", "ising")
