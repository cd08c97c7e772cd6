"""Engines of random priors, for the tests of engines."""

from __future__ import annotations

from dataclasses import replace

import torch
from machines import random_rbm, seeded
from oracle import exact_moments
from torch import Tensor

from restore.inference.torch_engine import Engine
from restore.priors.bits import pack
from restore.zoo import TrainedPrior
from restore.zoo.description import Description
from restore.zoo.inference import Inference

SHAPE = (3, 4)

PIXELS = 12


def trained(scale: float = 0.3, **settings: object) -> TrainedPrior:
    machine = random_rbm(PIXELS, 6, scale=scale, dtype=torch.float32)
    inference = Inference(**{"modes": 5, "starts": 4, "max_iter": 500, "tol": 1e-6} | settings)  # type: ignore[arg-type]
    return TrainedPrior(
        Description("tiny", SHAPE, 127, "made up", "tap", inference=inference, hidden=6),
        machine,
        exact_moments(machine).visible,
        pack(torch.bernoulli(torch.full((5, PIXELS), 0.5), generator=seeded(2))),
    )


def engine_of(**settings: object) -> Engine:
    return Engine.of(trained(**settings), torch.device("cpu"))


def unstarted(**settings: object) -> Engine:
    """An engine whose solver starts by itself."""
    prior = trained(modes=0, starts=0, **settings)
    return Engine.of(replace(prior, modes=prior.modes[:0]), torch.device("cpu"))


def some_images(count: int, seed: int = 1) -> Tensor:
    return torch.bernoulli(torch.full((count, PIXELS), 0.5), generator=seeded(seed))


MASK = torch.zeros(PIXELS, dtype=torch.bool).index_fill(0, torch.tensor([1, 5, 6, 10]), True)
