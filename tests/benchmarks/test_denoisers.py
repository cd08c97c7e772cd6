"""Baselines of grey images."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from blobs import CLEAN, DAMAGE, NOISE, NOISY, SHAPE, SIGMA, few, images, middle
from grey import Biharmonic
from machines import seeded

from benchmarks.denoisers import DENOISERS, Denoiser, tuned
from restore.channels import Damage
from restore.errors import UsageError
from restore.evaluation import metrics

__all__ = ["few"]


@pytest.mark.parametrize("name", DENOISERS)
def test_denoisers_denoise(name: str) -> None:
    denoiser = Denoiser(name, SHAPE, middle(name))
    restored = denoiser.restore(NOISY, DAMAGE)
    assert (restored.shape, restored.dtype) == (NOISY.shape, NOISY.dtype)
    assert float(restored.min()) >= 0 and float(restored.max()) <= 1
    gain = metrics.psnr(CLEAN, restored) - metrics.psnr(CLEAN, NOISY.clamp(0, 1))
    assert float(gain.min()) > 1
    torch.testing.assert_close(denoiser.restore(NOISY[2:3], DAMAGE), restored[2:3])


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("name", DENOISERS)
def test_tuned_is_the_best_of_the_grid(name: str) -> None:
    validation = images(4, 2)
    observed = NOISE.corrupt(validation, seeded(7))
    quality = {}
    for chosen in DENOISERS[name].grid():
        restored = Denoiser(name, SHAPE, chosen).restore(observed, DAMAGE)
        quality[float(metrics.psnr(validation, restored).mean())] = chosen
    assert len(quality) == 2
    assert tuned(name, validation, SIGMA, SHAPE, 7).parameters == quality[max(quality)]


@pytest.mark.parametrize(
    "damage",
    [
        Damage(0.1),
        Damage(0.1, 0.1),
        Damage(sigma=np.full((1, *SHAPE), 0.1)),
        Damage(sigma=0.1, hidden=np.ones((6, *SHAPE), bool)),
    ],
)
def test_denoisers_undo_noise_of_one_sigma_alone(damage: Damage) -> None:
    with pytest.raises(UsageError, match="total variation only undoes Gaussian noise"):
        Denoiser("total variation", SHAPE).restore(NOISY, damage)


def test_biharmonic_inpainting_continues_a_slope_and_keeps_what_is_seen() -> None:
    slope = (torch.arange(SHAPE[0])[:, None] * 0.03 + torch.arange(SHAPE[1]) * 0.04).flatten()[None].double()
    hidden = torch.zeros(SHAPE, dtype=torch.bool)
    hidden[4:8, 5:9] = True
    restored = Biharmonic(SHAPE).restore(slope * ~hidden.flatten(), Damage(hidden=hidden[None].numpy()))
    torch.testing.assert_close(restored, slope, rtol=0, atol=1e-6)
    assert torch.equal(restored[:, ~hidden.flatten()], slope[:, ~hidden.flatten()])
    with pytest.raises(UsageError, match="hides none"):
        Biharmonic(SHAPE).restore(slope, DAMAGE)
