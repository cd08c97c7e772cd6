"""The comparison of engines: it sees what it is there to see."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from parity import Parity, parities
from priors import grey_prior, random_conditional, random_prior

from restore.channels.damage import Damage
from restore.inference.engine import Posterior
from restore.inference.torch_engine import Engine
from restore.zoo import TrainedPrior
from restore.zoo.description import Description
from restore.zoo.inference import Effort

SHAPE = (10, 12)
IMAGES = np.random.default_rng(0).random((20, *SHAPE)).round()


@dataclass(frozen=True)
class Altered:
    """An engine whose answers are altered."""

    engine: Engine
    alter: Callable[[Posterior], Posterior]

    backend: str = "altered"
    part: int = 128

    @property
    def header(self) -> Description:
        return self.engine.header

    @property
    def light_ground(self) -> bool:
        return self.engine.light_ground

    def solve(self, pictures: np.ndarray, damage: Damage, effort: Effort = "full") -> Posterior:
        return self.alter(self.engine.solve(pictures, damage, effort))


MADE: dict[str, Callable[[], TrainedPrior]] = {
    "told": lambda: random_prior(SHAPE),
    "conditional": lambda: random_conditional(SHAPE),
    "grey": lambda: grey_prior(shape=SHAPE, scale=0.1, tol=1e-3),
}


@pytest.fixture(params=MADE)
def engine(request: pytest.FixtureRequest) -> Engine:
    return Engine.of(MADE[request.param](), torch.device("cpu"))


def compare(engine: Engine, alter: Callable[[Posterior], Posterior]) -> list[Parity]:
    return list(parities(Altered(engine, alter), engine, IMAGES))


def with_means(found: Posterior, means: np.ndarray) -> Posterior:
    return replace(found, means=means)


def first(count: int, changed: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Changed for some images, kept for all others."""
    some = np.arange(len(kept)) < count
    return np.where(some.reshape(-1, *[1] * (kept.ndim - 1)), changed, kept)


def test_an_engine_agrees_with_itself(engine: Engine) -> None:
    found = compare(engine, lambda found: found)
    assert len(found) == (1 if engine.header.task else 5 if engine.header.grey else 4)
    for parity in found:
        assert parity.agrees
        assert (parity.images, parity.difference, parity.pixels, parity.parted) == (20, 0, 0, 0)


ALTERATIONS: dict[str, Callable[[Posterior], Posterior]] = {
    "a little": lambda found: with_means(found, first(1, found.means + 6e-4, found.means)),
    "inverted": lambda found: with_means(found, 1 - found.means),
    "diverged": lambda found: with_means(found, np.full_like(found.means, np.nan)),
    "one diverged": lambda found: with_means(found, first(1, np.full_like(found.means, np.nan), found.means)),
    "two of another course, inverted": lambda found: replace(
        with_means(found, first(2, 1 - found.means, found.means)),
        iterations=first(2, found.iterations + 1, found.iterations),
    ),
    # By more than two engines may differ in grey values, which else are the same after any number of iterations.
    "many of another course": lambda found: replace(
        with_means(found, first(5, found.means + 6e-4, found.means)),
        iterations=first(5, found.iterations + 1, found.iterations),
    ),
}


@pytest.mark.parametrize("alter", ALTERATIONS.values(), ids=ALTERATIONS)
def test_what_differs_does_not_agree(engine: Engine, alter: Callable[[Posterior], Posterior]) -> None:
    assert not any(parity.agrees for parity in compare(engine, alter))
