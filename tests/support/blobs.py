"""Grey images made on the spot: soft blobs on black ground, and denoisers that are tuned quickly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from machines import seeded
from torch import Tensor

from benchmarks.denoisers import DENOISERS
from restore.channels import Damage, GaussianNoise

SHAPE = (12, 14)
SIGMA = 0.2
NOISE, DAMAGE = GaussianNoise(SIGMA), Damage(sigma=SIGMA)


def images(n: int, seed: int) -> Tensor:
    """Soft blobs on black ground, of which many pixels are exactly black."""
    draw = seeded(seed)
    y, x = torch.meshgrid(torch.arange(SHAPE[0]), torch.arange(SHAPE[1]), indexing="ij")
    centre = torch.rand(n, 2, 1, 1, generator=draw) * 6 + 3
    distance = (y - centre[:, 0]).square() + (x - centre[:, 1]).square()
    return (1.2 * torch.exp(-distance / 12) - 0.2).clamp(0, 1).flatten(1)


CLEAN = images(6, 0)
NOISY = NOISE.corrupt(CLEAN, seeded(1))


def middle(name: str) -> dict[str, object]:
    """A choice of parameters from the middle of the grid."""
    return {key: values[len(values) // 2] for key, values in DENOISERS[name].values.items()}


@pytest.fixture(scope="module")
def few() -> Iterator[None]:
    """Grids of two points."""
    with pytest.MonkeyPatch.context() as patch:
        for name, method in list(DENOISERS.items()):
            values = {key: (value,) for key, value in middle(name).items()}
            first = next(iter(values))
            patch.setitem(DENOISERS, name, replace(method, values={**values, first: method.values[first][:2]}))
        yield
