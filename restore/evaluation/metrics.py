"""Scores of restored images: one number per image, and the mean over images.

Images are rows: truth, observed and restored have shape (N, D). A binary image is ink (1) or paper (0). A restored one
may hold probabilities of ink; it is ink where they exceed 1/2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from restore.errors import UsageError


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
    """Share of wrong pixels among all pixels ("All" in CRBM-BP, tables 1-3); shape (N,), in [0, 1].

    >>> error_all(torch.tensor([[0.0, 1.0]]), torch.tensor([[0.2, 0.4]])).tolist()  # ink is more than 1/2
    [0.5]
    """
    return _wrong(truth, restored).double().mean(dim=1)


def error_among(chosen: Tensor, truth: Tensor, restored: Tensor) -> Tensor:
    """Share of wrong pixels among some of them, boolean (N, D); shape (N,), in [0, 1]; NaN for an image without any."""
    # 0/0 gives the wanted NaN.
    return (_wrong(truth, restored) & chosen).sum(dim=1).double() / chosen.sum(dim=1).double()


def error_changed(truth: Tensor, restored: Tensor, observed: Tensor) -> Tensor:
    """Share of wrong pixels among those that the damage changed ("Changed" in CRBM-BP, tables 1-3).

    >>> truth, observed = torch.tensor([[1.0, 1.0, 0.0]]), torch.tensor([[0.0, 0.0, 0.0]])
    >>> error_changed(truth, torch.tensor([[1.0, 0.0, 1.0]]), observed).tolist()  # of the first two pixels
    [0.5]
    """
    return error_among(truth != observed, truth, restored)


def error_unchanged(truth: Tensor, restored: Tensor, observed: Tensor) -> Tensor:
    """Share of wrong pixels among those left unchanged.

    >>> truth, observed = torch.tensor([[1.0, 1.0, 0.0]]), torch.tensor([[0.0, 0.0, 0.0]])
    >>> error_unchanged(truth, torch.tensor([[1.0, 0.0, 1.0]]), observed).tolist()  # of the last pixel
    [1.0]
    """
    return error_among(truth == observed, truth, restored)


def changed_pixels(truth: Tensor, observed: Tensor) -> Tensor:
    """Number of pixels that the damage changed; shape (N,). With it as weight, `error_changed` is pooled."""
    return (truth != observed).sum(dim=1).double()


def matthews(truth: Tensor, restored: Tensor) -> Tensor:
    """Matthews correlation of the rounded images with the truth (TAP machine, sec. VII.D); shape (N,), in [-1, 1].

    It is 0 if truth or prediction is constant, even if both are the same: a constant image correlates with nothing.
    scikit-learn does the same.

    >>> truth = torch.tensor([[1.0, 1.0, 0.0, 0.0]])
    >>> [matthews(truth, guess).item() for guess in (truth, 1 - truth, torch.zeros(1, 4))]
    [1.0, -1.0, 0.0]
    """
    real, guess = _ink(truth).double(), _ink(restored).double()
    pixels = truth.shape[1]
    ink, guessed, both = real.sum(dim=1), guess.sum(dim=1), (real * guess).sum(dim=1)
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
    """Mean structural similarity of images in [0, 1], with scikit-image's defaults (uniform windows of 7x7).

    Args:
        truth: shape (N, H·W).
        restored: shape (N, H·W).
        image_shape: (H, W), at least 3x3; images smaller than 7 pixels get the largest odd window that fits.

    Returns:
        Shape (N,), in [-1, 1].

    Raises:
        UsageError: if the images are smaller than 3x3.

    >>> chequered = (torch.arange(49) % 2).float()[None]
    >>> round(ssim(chequered, chequered, (7, 7)).item(), 6), ssim(chequered, 1 - chequered, (7, 7)).item() < 0
    (1.0, True)
    """
    from skimage.metrics import structural_similarity

    window = min(7, (min(image_shape) - 1) // 2 * 2 + 1)
    if window < 3:
        raise UsageError(f"SSIM needs images of at least 3x3 pixels, not {image_shape[0]}x{image_shape[1]}")
    first, second = (values.double().reshape(-1, *image_shape).cpu().numpy() for values in (truth, restored))
    # Images are passed as channels, which scikit-image compares one by one. Its own mean covers the windows wholly
    # within the image, so the border is cut from the full map here, too.
    _, full = structural_similarity(first, second, win_size=window, data_range=1.0, channel_axis=0, full=True)
    border = window // 2
    inner = full[:, border : image_shape[0] - border, border : image_shape[1] - border]
    return torch.from_numpy(inner.mean(axis=(1, 2)))


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
    n, total = len(kept), float(weight.sum())
    if total == 0:
        return Score(math.nan, math.nan, n)
    mean = float((weight * kept).sum()) / total
    if n < 2:
        return Score(mean, math.nan, n)
    deviations = float((weight * (kept - mean)).square().sum())
    return Score(mean, math.sqrt(deviations * n / (n - 1)) / total, n)


def _ink(values: Tensor) -> Tensor:
    return values > 0.5


def _wrong(truth: Tensor, restored: Tensor) -> Tensor:
    return _ink(truth) != _ink(restored)
