"""The denoisers that priors of grey images are held against."""

from __future__ import annotations

import pytest
import torch
from machines import seeded
from torch import Tensor

from benchmarks.filters.denoisers import DENOISERS, Denoiser
from restore.channels import Damage, GaussianNoise
from restore.evaluation import metrics

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


@pytest.mark.parametrize("name", DENOISERS)
def test_denoisers_denoise(name: str) -> None:
    denoiser = Denoiser(name, SHAPE, middle(name))
    restored = denoiser.restore(NOISY, DAMAGE)
    assert (restored.shape, restored.dtype) == (NOISY.shape, NOISY.dtype)
    assert float(restored.min()) >= 0 and float(restored.max()) <= 1
    gain = metrics.psnr(CLEAN, restored) - metrics.psnr(CLEAN, NOISY.clamp(0, 1))
    assert float(gain.min()) > 1
    torch.testing.assert_close(denoiser.restore(NOISY[2:3], DAMAGE), restored[2:3])
