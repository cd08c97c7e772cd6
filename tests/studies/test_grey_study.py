"""Grey images: the study that holds priors of them against other denoisers, and those denoisers."""

from __future__ import annotations

import grey as study
import pytest
import torch
from machines import seeded
from textbook import log_likelihood
from torch import Tensor

from benchmarks.filters.denoisers import DENOISERS, Denoiser
from restore.channels import Damage, GaussianNoise
from restore.evaluation import metrics
from restore.units import Spiked

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


def test_the_pixelwise_estimate_is_the_posterior_mean_of_each_pixel() -> None:
    training = images(400, 3)
    estimate = study.pixelwise_estimate(training)
    assert isinstance(estimate.units, Spiked)
    restored = estimate.restore(NOISY, DAMAGE)
    # By its definition, on a grid of values with the atom at 0 beside it.
    x = (torch.arange(4000) + 0.5) / 4000
    log_prior = estimate.units.log_weight(x[:, None].expand(-1, NOISY.shape[1])).double()
    for row, mean in zip(NOISY, restored, strict=True):
        weight = (log_prior + log_likelihood(NOISE, row[None].double(), x[:, None].double())).exp() / 4000
        atom = log_likelihood(NOISE, row.double(), torch.zeros_like(row).double()).exp()
        expected = (weight * x[:, None]).sum(0) / (weight.sum(0) + atom)
        torch.testing.assert_close(mean.double(), expected, rtol=0, atol=1e-4)
    # Optimal on average: it beats the noisy image, and the mean image.
    squares = {
        "noisy": (NOISY.clamp(0, 1) - CLEAN).square().mean(),
        "mean": (training.mean(0) - CLEAN).square().mean(),
        "pixelwise": (restored - CLEAN).square().mean(),
    }
    assert min(squares, key=squares.__getitem__) == "pixelwise"


@pytest.mark.parametrize("name", DENOISERS)
def test_denoisers_denoise(name: str) -> None:
    denoiser = Denoiser(name, SHAPE, middle(name))
    restored = denoiser.restore(NOISY, DAMAGE)
    assert (restored.shape, restored.dtype) == (NOISY.shape, NOISY.dtype)
    assert float(restored.min()) >= 0 and float(restored.max()) <= 1
    gain = metrics.psnr(CLEAN, restored) - metrics.psnr(CLEAN, NOISY.clamp(0, 1))
    assert float(gain.min()) > 1
    torch.testing.assert_close(denoiser.restore(NOISY[2:3], DAMAGE), restored[2:3])
