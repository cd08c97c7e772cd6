"""scikit-image's denoisers of grey images, tuned on other images: what priors of grey images are compared with.

They are restorers for `restore.evaluation.evaluate`: they map observed images and their channel to values (N, D).
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from restore.channels import Damage, GaussianNoise
from restore.errors import UsageError
from restore.evaluation import metrics


def _non_local_means(image: np.ndarray, sigma: float, *, strength: float, **parameters: Any) -> np.ndarray:
    from skimage.restoration import denoise_nl_means

    found: np.ndarray = denoise_nl_means(image, h=strength * sigma, sigma=sigma, **parameters)
    return found


def _total_variation(image: np.ndarray, sigma: float, *, strength: float) -> np.ndarray:
    from skimage.restoration import denoise_tv_chambolle

    found: np.ndarray = denoise_tv_chambolle(image, weight=strength * sigma)
    return found


def _wavelet(image: np.ndarray, sigma: float, *, shifts: int, **parameters: Any) -> np.ndarray:
    """Averaged over shifts of the image, as many in each direction; without them its blocks would show."""
    from skimage.restoration import denoise_wavelet

    def spun(down: int, right: int) -> np.ndarray:
        turned = np.roll(image, (down, right), (0, 1))
        found = denoise_wavelet(turned, sigma=sigma, method="BayesShrink", **parameters)
        return np.roll(found, (-down, -right), (0, 1))

    with warnings.catch_warnings():
        # In images this small all coefficients touch the border; the grid tries such levels all the same.
        warnings.filterwarnings("ignore", message="Level value")
        return np.mean([spun(down, right) for down in range(shifts) for right in range(shifts)], axis=0)


@dataclass(frozen=True)
class _Method:
    """A denoiser of one image with known noise, and the values to try for its other parameters."""

    denoise: Callable[..., np.ndarray]
    values: Mapping[str, tuple[Any, ...]]

    def grid(self) -> Iterator[dict[str, Any]]:
        for chosen in itertools.product(*self.values.values()):
            yield dict(zip(self.values, chosen, strict=True))


# Strengths in units of sigma. For digits and faces at sigma .1, .2 and .3 the best of each grid was not at its ends.
DENOISERS = {
    "non-local means": _Method(
        _non_local_means,
        {
            "strength": (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.5, 2.0),
            "patch_size": (5, 7),
            "patch_distance": (12,),
            "fast_mode": (True, False),
        },
    ),
    "total variation": _Method(_total_variation, {"strength": (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.1, 1.4, 1.8)}),
    "wavelets": _Method(
        _wavelet, {"wavelet": ("db1", "db2", "sym4", "coif1"), "wavelet_levels": (1, 2, 3), "shifts": (4,)}
    ),
}


@dataclass(frozen=True)
class Denoiser:
    """A denoiser of scikit-image that is told the noise.

    Attributes:
        name: a key of `DENOISERS`.
        image_shape: (H, W).
        parameters: what the method takes besides an image and sigma.

    Raises:
        UsageError: if there is no such denoiser.
    """

    name: str
    image_shape: tuple[int, int]
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.name not in DENOISERS:
            raise UsageError(f"there is no denoiser {self.name!r}; the denoisers are {', '.join(DENOISERS)}")

    def restore(self, observed: Tensor, damage: Damage) -> Tensor:
        """Values in [0, 1]; raises UsageError if the damage is not Gaussian noise with one sigma for all pixels."""
        level = damage.sigma
        if not isinstance(level, float) or damage.p is not None or damage.hidden is not None:
            raise UsageError(f"{self.name} only undoes Gaussian noise of one sigma")
        denoise = DENOISERS[self.name].denoise
        images = observed.double().reshape(-1, *self.image_shape).numpy()
        found = np.stack([denoise(image, level, **self.parameters) for image in images])
        return torch.from_numpy(found).reshape(observed.shape).to(observed).clamp(0, 1)


def tuned(name: str, images: Tensor, sigma: float, image_shape: tuple[int, int], seed: int) -> Denoiser:
    """The denoiser whose parameters give the largest mean PSNR in its grid.

    Args:
        name: a key of `DENOISERS`.
        images: clean images that no score is measured on later, (N, D), in [0, 1].
        sigma: level of the noise to undo.
        image_shape: (H, W), with D = H·W.
        seed: seed of the noise.

    Raises:
        UsageError: if there is no such denoiser.
    """
    observed = GaussianNoise(sigma).corrupt(images, torch.Generator().manual_seed(seed))

    def quality(denoiser: Denoiser) -> float:
        return float(metrics.psnr(images, denoiser.restore(observed, Damage(sigma=sigma))).mean())

    untuned = Denoiser(name, image_shape)
    return max((Denoiser(name, image_shape, chosen) for chosen in DENOISERS[untuned.name].grid()), key=quality)
