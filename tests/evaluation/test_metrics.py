"""Scores against scikit-learn, scikit-image and brute force."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import torch
from skimage.metrics import peak_signal_noise_ratio, structural_similarity
from sklearn.metrics import matthews_corrcoef

from restore.errors import UsageError
from restore.evaluation.metrics import error_all, error_among, matthews, psnr, ssim, summary


def binary(n: int, d: int, p: float, seed: int) -> torch.Tensor:
    return (torch.rand(n, d, generator=torch.Generator().manual_seed(seed)) < p).float()


def uniform(n: int, d: int, seed: int) -> torch.Tensor:
    return torch.rand(n, d, generator=torch.Generator().manual_seed(seed))


def test_errors_against_brute_force() -> None:
    truth, observed, restored = binary(20, 30, 0.3, 0), binary(20, 30, 0.4, 1), uniform(20, 30, 2)
    observed[3] = truth[3]
    observed[5] = 1 - truth[5]
    every, some = error_all(truth, restored), error_among(truth != observed, truth, restored)
    others = error_among(truth == observed, truth, restored)
    for image in range(20):
        wrong = [(restored[image, i] > 0.5) != (truth[image, i] > 0.5) for i in range(30)]
        changed = [bool(truth[image, i] != observed[image, i]) for i in range(30)]
        assert every[image] == pytest.approx(sum(wrong) / 30)
        if image == 3:
            assert some[image].isnan()
        else:
            both = sum(w and c for w, c in zip(wrong, changed, strict=True))
            assert some[image] == pytest.approx(both / sum(changed))
        if image == 5:
            assert others[image].isnan()
        else:
            neither = sum(w and not c for w, c in zip(wrong, changed, strict=True))
            assert others[image] == pytest.approx(neither / (30 - sum(changed)))


@pytest.mark.parametrize("p", [0.02, 0.3, 0.9])
def test_matthews_against_scikit_learn(p: float) -> None:
    truth, restored = binary(60, 25, p, 0), uniform(60, 25, 1) + (p - 0.5)
    restored[:20] = 0.4 * restored[:20] + 0.6 * truth[:20]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = [matthews_corrcoef(t, r) for t, r in zip(truth.numpy(), restored.numpy() > 0.5, strict=True)]
    np.testing.assert_allclose(matthews(truth, restored), expected, atol=1e-12)


def test_matthews_of_constants_is_zero_and_of_equals_one() -> None:
    mixed, zero, one = torch.tensor([[0.0, 1.0, 1.0]]), torch.zeros(1, 3), torch.ones(1, 3)
    for truth, restored in [(mixed, zero), (zero, mixed), (zero, zero), (one, one), (zero, one)]:
        assert matthews(truth, restored).item() == 0
    assert matthews(mixed, mixed).item() == pytest.approx(1)
    assert matthews(mixed, 1 - mixed).item() == pytest.approx(-1)


@pytest.mark.parametrize("shape", [(9, 12), (28, 28), (7, 7), (5, 8), (3, 4)])
def test_psnr_and_ssim_against_scikit_image(shape: tuple[int, int]) -> None:
    size = shape[0] * shape[1]
    truth = uniform(6, size, 0)
    restored = (truth + 0.3 * uniform(6, size, 1)).clamp(0, 1)
    window = {5: 5, 3: 3}.get(shape[0], 7)
    for image, (decibels, similarity) in enumerate(
        zip(psnr(truth, restored), ssim(truth, restored, shape), strict=True)
    ):
        first, second = truth[image].reshape(shape).double().numpy(), restored[image].reshape(shape).double().numpy()
        assert decibels == pytest.approx(peak_signal_noise_ratio(first, second, data_range=1), rel=1e-9)
        expected = structural_similarity(first, second, data_range=1, win_size=window)
        assert similarity == pytest.approx(expected, abs=1e-9)


def test_ssim_needs_room_for_a_window() -> None:
    with pytest.raises(UsageError):
        ssim(torch.zeros(1, 10), torch.zeros(1, 10), (2, 5))


def test_summary_is_mean_and_standard_error() -> None:
    values = uniform(50, 1, 0).flatten().double()
    score = summary(torch.cat([values, torch.tensor([math.nan])]))
    assert score.n == 50
    assert score.mean == pytest.approx(float(values.mean()))
    assert score.standard_error == pytest.approx(float(np.std(values.numpy(), ddof=1)) / math.sqrt(50))


def test_weighted_summary_pools_and_its_error_agrees_with_the_jackknife() -> None:
    generator = np.random.default_rng(0)
    sizes = generator.integers(0, 40, 400)
    wrong = generator.binomial(sizes, generator.beta(2, 5, 400))
    with np.errstate(invalid="ignore"):
        shares = torch.from_numpy(wrong / sizes)
    score = summary(shares, torch.from_numpy(sizes).double())
    assert score.mean == pytest.approx(wrong.sum() / sizes.sum())
    left_out = (wrong.sum() - wrong) / (sizes.sum() - sizes)
    jackknife = math.sqrt(399 / 400 * ((left_out - left_out.mean()) ** 2).sum())
    assert score.standard_error == pytest.approx(jackknife, rel=0.02)
