"""The study that holds priors of grey images against other denoisers."""

from __future__ import annotations

import math

import grey as study
import numpy as np
import pytest
import torch
from baselines import PixelwiseEstimate
from blobs import CLEAN, DAMAGE, NOISE, NOISY, SHAPE, few, images
from channel_likelihoods import log_likelihood
from torch import Tensor

from benchmarks.denoisers import DENOISERS
from restore.channels import Damage
from restore.units import Spiked

__all__ = ["few"]


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


def test_the_hole_is_scored_by_its_own_pixels() -> None:
    restored, hidden = CLEAN.clone(), torch.zeros_like(CLEAN, dtype=torch.bool)
    hidden[:, 10:20] = True
    restored[:, 12] += 0.1 * torch.arange(6)
    restored[:, 30] += 0.5  # seen, and so nobody's business
    errors = (0.1 * np.arange(6)) ** 2 / 10
    score = study.hole_psnr(CLEAN, restored, hidden)
    assert score.mean == pytest.approx(-10 * math.log10(errors.mean()), rel=1e-5)
    # The error of a logarithm, by moving the mean.
    step = errors.std(ddof=1) / math.sqrt(6) * 1e-3
    moved = -10 * math.log10(errors.mean() - step)
    assert score.standard_error == pytest.approx((moved - score.mean) / 1e-3, rel=1e-3)


def oracle(observed: Tensor, damage: Damage) -> Tensor:
    """A prior that nobody has: it knows the truth, and is off by a little."""
    return CLEAN + 0.001


@pytest.fixture(scope="module")
def entries(few: None) -> list[study.Entry]:
    priors = {"oracle": oracle, "stand-in": PixelwiseEstimate(study.pixelwise_estimate(CLEAN).units).restore}
    return study.measured(priors, "blobs", images(20, 5), CLEAN, SHAPE, seed=3)


def test_every_method_is_measured_on_every_task(entries: list[study.Entry]) -> None:
    found = {(entry.task, entry.method): entry for entry in entries}
    assert len(found) == len(entries)
    always = {"as observed", "pixelwise", "oracle", "stand-in"}
    for task in study.TASKS:
        others = {"biharmonic"} if task == study.HOLE else set(DENOISERS)
        assert {method for other, method in found if other == task} == always | others
    for sigma in study.SIGMAS:
        # The noise that is cut off at both ends is a little weaker than sigma.
        seen = found[f"noise:{sigma}", "as observed"].psnr.mean
        assert -20 * math.log10(sigma) < seen < -20 * math.log10(sigma) + 3.5
        assert found[f"noise:{sigma}", "wavelets"].parameters.keys() == DENOISERS["wavelets"].values.keys()
    assert found[study.HOLE, "oracle"].psnr.mean == pytest.approx(60, abs=0.2)
