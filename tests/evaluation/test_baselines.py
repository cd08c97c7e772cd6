"""Baselines against brute force, and against the published order of magnitude on MNIST."""

from __future__ import annotations

from typing import Any

import baselines
import numpy as np
import pytest
import torch
from baselines import NearestNeighbour, PointwiseEstimate
from textbook import log_likelihood

from restore.channels import BitFlip, Damage
from restore.evaluation.baselines import Median

SHAPE = (5, 7)
SIZE = SHAPE[0] * SHAPE[1]


def binary(n: int, seed: int, p: float = 0.4) -> torch.Tensor:
    return (torch.rand(n, SIZE, generator=torch.Generator().manual_seed(seed)) < p).float()


TRAIN, CLEAN = binary(200, 0), binary(23, 1)
NOISY = BitFlip(0.2).corrupt(CLEAN, torch.Generator().manual_seed(2))
HIDDEN = torch.zeros(SHAPE, dtype=torch.bool)
HIDDEN[1:4, 2:6] = True
HOLE = Damage(hidden=HIDDEN[None].numpy())
VISIBLE = ~HIDDEN.flatten()
WITH_HOLE = CLEAN * VISIBLE
RATES = torch.linspace(0.05, 0.45, SIZE)
UNEVEN = Damage(RATES.reshape(1, *SHAPE).numpy())


MODELS = {"ope": PointwiseEstimate.fit(TRAIN), "nn": NearestNeighbour(TRAIN), "median": Median(SHAPE)}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_what_is_known_exactly_is_returned(model: Any) -> None:
    assert torch.equal(model.restore(CLEAN, Damage(0.0)).round(), CLEAN)
    assert torch.equal(model.restore(1 - CLEAN, Damage(1.0)).round(), CLEAN)
    completed = model.restore(WITH_HOLE, HOLE)
    assert torch.equal(completed.round()[:, VISIBLE], CLEAN[:, VISIBLE])


# --- the pointwise estimate ---


@pytest.mark.parametrize("p", [0.05, 0.3, 0.7])
def test_ope_is_bayes_for_independent_pixels(p: float) -> None:
    mean = (TRAIN.double().numpy().sum(axis=0) + 1) / (len(TRAIN) + 2)
    seen = NOISY.double().numpy()
    ink, paper = mean * np.where(seen == 1, 1 - p, p), (1 - mean) * np.where(seen == 0, 1 - p, p)
    np.testing.assert_allclose(PointwiseEstimate.fit(TRAIN).restore(NOISY, Damage(p)), ink / (ink + paper), rtol=1e-5)


# --- nearest neighbours ---


@pytest.mark.parametrize("p", [0.03, 0.4])
def test_one_neighbour_under_flips_is_the_hamming_nearest(p: float) -> None:
    distance = (NOISY.numpy()[:, None] != TRAIN.numpy()[None]).sum(axis=2)
    expected = TRAIN.numpy()[distance.argmin(axis=1)]
    np.testing.assert_array_equal(NearestNeighbour(TRAIN).restore(NOISY, Damage(p)), expected)
    np.testing.assert_array_equal(NearestNeighbour(TRAIN).restore(1 - NOISY, Damage(1 - p)), expected)


def test_the_nearest_is_the_likeliest_in_blocks_of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    likelihood = log_likelihood(BitFlip(RATES), NOISY[:, None].double(), TRAIN[None].double()).sum(dim=2)
    for block in (baselines.BLOCK, 4):
        monkeypatch.setattr(baselines, "BLOCK", block)
        assert torch.equal(NearestNeighbour(TRAIN).restore(NOISY, UNEVEN), TRAIN[likelihood.argmax(1)])


def test_a_hole_is_filled_by_the_nearest_on_visible_pixels() -> None:
    seen, observed = VISIBLE.numpy(), WITH_HOLE
    distance = (observed.numpy()[:, None, seen] != TRAIN.numpy()[None][:, :, seen]).sum(axis=2)
    exemplar = TRAIN.numpy()[distance.argmin(axis=1)]
    expected = np.where(seen, CLEAN.numpy(), exemplar)
    np.testing.assert_array_equal(NearestNeighbour(TRAIN).restore(observed, HOLE), expected)
    unchanged = NearestNeighbour(TRAIN, keep_known=False).restore(observed, HOLE)
    np.testing.assert_array_equal(unchanged, exemplar)


# --- the median ---


def test_median_within_the_image_is_numpys() -> None:
    restored = Median(SHAPE).restore(NOISY, Damage(0.2)).reshape(-1, *SHAPE)
    windows = np.lib.stride_tricks.sliding_window_view(NOISY.reshape(-1, *SHAPE).numpy(), (3, 3), axis=(1, 2))
    expected = np.median(windows, axis=(-2, -1))
    np.testing.assert_array_equal((restored > 0.5).float()[:, 1:-1, 1:-1], expected)


def votes(ink: np.ndarray, voting: np.ndarray, row: int, column: int) -> float | None:
    window = (slice(max(row - 1, 0), row + 2), slice(max(column - 1, 0), column + 2))
    return float(ink[window][voting[window]].mean()) if voting[window].any() else None


def test_median_fills_a_hole_from_its_rim() -> None:
    """Against the definition, pixel by pixel and ring by ring; of a tie the result is paper."""
    restored = Median(SHAPE).restore(WITH_HOLE, HOLE).reshape(-1, *SHAPE)
    for clean, image in zip(CLEAN.reshape(-1, *SHAPE).numpy(), restored.numpy(), strict=True):
        ink, voting, expected = clean > 0.5, ~HIDDEN.numpy(), clean.astype(float)
        while not voting.all():
            ring = {
                place: share
                for place in zip(*np.nonzero(~voting), strict=True)
                if (share := votes(ink, voting, *place)) is not None
            }
            for place, share in ring.items():
                expected[place], ink[place], voting[place] = share > 0.5, share > 0.5, True
        np.testing.assert_allclose(image, expected)
