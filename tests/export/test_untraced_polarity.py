"""What a module that becomes a graph says of inverted images is what the engine says; untraced, which takes no time."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from exports import SHAPE, settled
from grey_priors import grey_prior
from priors import random_conditional

from restore.export.graph import Alike, Graph, Grey, Learnt
from restore.inference.damage import Damage
from restore.inference.torch_engine import Engine
from restore.zoo import TrainedPrior

IMAGES = np.random.default_rng(1).random((3, *SHAPE)).astype(np.float32)
HIDDEN = np.random.default_rng(2).random(SHAPE) < 0.3
ONE = torch.ones(1, 1, 1)


def inversion(kind: type[Graph], prior: TrainedPrior, *inputs: torch.Tensor) -> np.ndarray:
    pointwise = {} if prior.grey_pixels is None else prior.grey_pixels.parameters
    stored = prior.machine.parameters | {"pixel_means": prior.pixel_means, "modes": prior.modes}
    stored |= {f"pointwise.{name}": value for name, value in pointwise.items()}
    settings = (torch.tensor(9), torch.tensor(0.01), torch.tensor(0.25))
    *_, found = kind(prior.description, stored)(torch.from_numpy(IMAGES), *inputs, *settings)
    return np.asarray(found)


@pytest.mark.parametrize("kind", [Grey, Alike])
def test_of_grey_images(kind: type[Graph]) -> None:
    prior, damage = grey_prior(shape=SHAPE), Damage(sigma=0.3, hidden=HIDDEN)
    wanted = Engine.of(prior, torch.device("cpu")).solve(IMAGES, damage).inversion
    noise = (0.3 * ONE, 0 * ONE) if kind is Grey else (0.3 * ONE,)
    np.testing.assert_allclose(inversion(kind, prior, *noise, torch.from_numpy(HIDDEN)[None]), wanted, rtol=1e-4)
    assert np.abs(wanted).min() > 0.01


def test_of_images_whose_damage_was_learnt() -> None:
    prior = settled(random_conditional(SHAPE), 0.3)
    wanted = Engine.of(prior, torch.device("cpu")).solve((IMAGES > 0.5).astype(np.float32), Damage()).inversion
    np.testing.assert_allclose(inversion(Learnt, prior), wanted, rtol=1e-5)
    assert np.abs(wanted).min() > 0.01
