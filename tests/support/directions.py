"""Images to learn from, and what learners make of them: directions, machines of spins, growth by Frank-Wolfe."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from bslm_covariance import rounds_of
from machines import bars_and_stripes, seeded
from torch import Tensor
from torch.nn.functional import logsigmoid

from restore.learning.gradients.pseudo_likelihood import Spins
from restore.learning.rules.bslm import PseudoLikelihoodAscent, spins_of
from restore.learning.rules.contract import Gradient, Round
from restore.learning.rules.frank_wolfe import FrankWolfe
from restore.priors import RBM, BoltzmannMachine, FullyVisible

EXACTLY = {"iterations": 5000, "tol": 1e-14, "damping": 0.5}
RATE = 0.4


def some_images(count: int, size: int, seed: int = 5) -> Tensor:
    return torch.bernoulli(torch.full((count, size), 0.4, dtype=torch.float64), generator=seeded(seed))


def grey_images(count: int, size: int, seed: int = 5) -> Tensor:
    """Grey levels, of which a third are exactly 0."""
    levels = torch.rand(2, count, size, generator=seeded(seed), dtype=torch.float64)
    return torch.where(levels[0] < 1 / 3, 0.0, levels[1])


def assert_close(got: Gradient, wanted: Gradient, atol: float) -> None:
    assert got.keys() == wanted.keys()
    for name, value in wanted.items():
        torch.testing.assert_close(got[name], value, rtol=0, atol=atol, msg=lambda text, name=name: f"{name}: {text}")


def assert_slopes(
    got: Gradient,
    function: Callable[[BoltzmannMachine], Tensor],
    machine: BoltzmannMachine,
    atol: float,
    step: float = 1e-5,
) -> None:
    """Compare a gradient with central differences of a function, along one random direction of each parameter.

    An error in any entry shows along almost every direction.
    """
    named, draw = machine.parameters, seeded(17)
    assert got.keys() == named.keys()
    for name, value in named.items():
        shift = step * torch.randn(value.shape, generator=draw, dtype=value.dtype)
        above, below = (
            float(function(machine.with_parameters(named | {name: value + part}))) for part in (shift, -shift)
        )
        slope = float((got[name] * shift).sum()) / step
        assert slope == pytest.approx((above - below) / (2 * step), rel=0, abs=atol), name


def moved_by(machine: RBM, direction: Gradient, rate: float = RATE) -> RBM:
    return machine.with_parameters({name: value + rate * direction[name] for name, value in machine.parameters.items()})


def fitted(learner: PseudoLikelihoodAscent, images: Tensor, start: Spins | None = None) -> list[Round]:
    if start is None:
        start = spins_of(learner.begin(images, seeded()))
    return list(rounds_of(learner, images, start))


def log_pseudo_likelihood(machine: FullyVisible, images: Tensor) -> Tensor:
    """Exact log-pseudo-likelihood of each image (batch, D) in {0, 1}; shape (batch,), at most 0."""
    log_odds = machine.inputs(0, (images,)) + machine.visible.parameters["bias"]
    return logsigmoid((2 * images - 1) * log_odds).sum(-1)


IMAGES = bars_and_stripes(3)


def growth_of(units: int = 8, penalty: float = 0.003, **constants: Any) -> FrankWolfe:
    """Settings of a growth under other constants, by their names."""
    usual = {"samples": 4000, "bias_steps": 20, "bias_rate": 0.3, "away_every": 4}
    return type("Small", (FrankWolfe,), usual | constants)(units, penalty)
