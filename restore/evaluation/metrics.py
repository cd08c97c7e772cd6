"""Scores of restored images: one number per image, and the mean over images.

Images are rows: truth, observed and restored have shape (N, D). A binary image is ink (1) or paper (0). A restored one
may hold probabilities of ink; it is ink where they exceed 1/2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from restore.errors import require
from restore.sizes import size_text


@dataclass(frozen=True)
class Score:
    """A mean over images and its standard error (NaN for fewer than two images).

    Attributes:
        mean: NaN if no image has the score.
        standard_error: of the mean.
        n: number of images that have the score.
    """

    mean: float
    standard_error: float
    n: int


def error_all(truth: Tensor, restored: Tensor) -> Tensor:
    """Share of wrong pixels among all pixels; shape (N,), in [0, 1].

    >>> error_all(torch.tensor([[0.0, 1.0]]), torch.tensor([[0.2, 0.4]])).tolist()  # ink is more than 1/2
    [0.5]
    """
    return ((truth > 0.5) != (restored > 0.5)).double().mean(dim=1)


def error_among(chosen: Tensor, truth: Tensor, restored: Tensor) -> Tensor:
    """Share of wrong pixels among some of them, boolean (N, D); shape (N,), in [0, 1]; NaN for an image without any.

    >>> truth, observed = torch.tensor([[1.0, 1.0, 0.0]]), torch.tensor([[0.0, 0.0, 0.0]])
    >>> error_among(truth != observed, truth, torch.tensor([[1.0, 0.0, 1.0]])).tolist()  # of the first two pixels
    [0.5]
    """
    wrong = (truth > 0.5) != (restored > 0.5)
    # 0/0 gives the wanted NaN.
    return (wrong & chosen).sum(dim=1).double() / chosen.sum(dim=1).double()


def matthews(truth: Tensor, restored: Tensor) -> Tensor:
    """Matthews correlation of the rounded images with the truth (TAP machine, sec. VII.D); shape (N,), in [-1, 1].

    It is 0 if truth or prediction is constant, even if both are the same, as in scikit-learn.

    >>> truth = torch.tensor([[1.0, 1.0, 0.0, 0.0]])
    >>> [matthews(truth, guess).item() for guess in (truth, 1 - truth, torch.zeros(1, 4))]
    [1.0, -1.0, 0.0]
    """
    real, guess = (truth > 0.5).double(), (restored > 0.5).double()
    pixels = truth.shape[1]
    ink = real.sum(dim=1)
    guessed = guess.sum(dim=1)
    both = (real * guess).sum(dim=1)
    # Counts are whole numbers, so a zero variance is exactly zero.
    variances = ink * (pixels - ink) * guessed * (pixels - guessed)
    return torch.where(variances > 0, (pixels * both - ink * guessed) / variances.clamp_min(1).sqrt(), 0.0)


def psnr(truth: Tensor, restored: Tensor) -> Tensor:
    """Peak signal-to-noise ratio in decibels, for images in [0, 1]; shape (N,), infinite for a perfect one.

    >>> psnr(torch.zeros(1, 4), torch.full((1, 4), 0.1, dtype=torch.float64)).round(decimals=6).tolist()
    [20.0]
    """
    return -10 * torch.log10((truth.double() - restored.double()).square().mean(dim=1))


def ssim(truth: Tensor, restored: Tensor, image_shape: tuple[int, int]) -> Tensor:
    """Mean structural similarity of images in [0, 1], scikit-image's; shape (N,), in [-1, 1].

    Args:
        truth, restored: shape (N, H·W).
        image_shape: (H, W), at least 3x3; images smaller than 7 pixels get the largest odd window that fits.

    Raises:
        UsageError: if the images are smaller than 3x3.

    >>> chequered = (torch.arange(49) % 2).float()[None]
    >>> round(ssim(chequered, chequered, (7, 7)).item(), 6), ssim(chequered, 1 - chequered, (7, 7)).item() < 0
    (1.0, True)
    """
    from skimage.metrics import structural_similarity

    window = min(7, (min(image_shape) - 1) // 2 * 2 + 1)
    require(window >= 3, f"SSIM needs images of at least 3x3 pixels, not {size_text(image_shape)}")
    pairs = zip(*(values.double().reshape(-1, *image_shape).cpu().numpy() for values in (truth, restored)), strict=True)
    return torch.tensor([structural_similarity(*pair, win_size=window, data_range=1.0) for pair in pairs])


def summary(values: Tensor, weights: Tensor | None = None) -> Score:
    """Mean over images with its standard error.

    Args:
        values: shape (N,); NaN for images without the score, which are left out.
        weights: shape (N,), not negative. If values are shares of these sizes, the mean is the pooled share (the ratio
            of the sums), and its error the linearised error of a ratio.

    >>> summary(torch.tensor([0.25, 0.75, math.nan]))
    Score(mean=0.5, standard_error=0.25, n=2)
    >>> summary(torch.tensor([0.0, 1.0]), weights=torch.tensor([9.0, 1.0])).mean  # 1 wrong pixel of 10
    0.1
    """
    has = ~values.isnan()
    kept = values[has].double()
    weight = torch.ones_like(kept) if weights is None else weights[has].to(kept)
    n = len(kept)
    total = float(weight.sum())
    if total == 0:
        return Score(math.nan, math.nan, n)
    mean = float((weight * kept).sum()) / total
    if n < 2:
        return Score(mean, math.nan, n)
    deviations = float((weight * (kept - mean)).square().sum())
    return Score(mean, math.sqrt(deviations * n / (n - 1)) / total, n)
