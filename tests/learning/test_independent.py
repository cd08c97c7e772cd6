"""The most likely independent units of a set of images."""

from __future__ import annotations

import pytest
import torch
from machines import seeded
from refusals import refused
from torch import Tensor

from restore.errors import TrainingError
from restore.fields import Fields
from restore.learning.gradients.independent import LARGEST_PARAMETER, independent_units
from restore.units import Bernoulli, Gaussian, Spiked, Spin, TruncatedGaussian, Units

PIXELS = 4
NOTHING = Fields(torch.zeros(PIXELS, dtype=torch.float64))


def values(*numbers: float) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


def zeros(size: int = PIXELS) -> Tensor:
    return torch.zeros(size, dtype=torch.float64)


def grey(size: int = PIXELS) -> TruncatedGaussian:
    return TruncatedGaussian(zeros(size), zeros(size))


# Units to draw from, and the broad ones the search is given.
SLAB = TruncatedGaussian(values(12, -30, 3, -4), values(25, 10, -9, 0))
KNOWN = {
    "truncated": (SLAB, grey()),
    "spiked": (Spiked(values(-1, 4, 0, 2), SLAB), Spiked(zeros(), grey())),
    "wide": (
        TruncatedGaussian(values(3, -2, 0, 5), values(2, 8, -3, 20), -1, 1),
        TruncatedGaussian(zeros(), zeros(), -1, 1),
    ),
    "gaussian": (Gaussian(values(3, -2, 0, 5), values(2, 8, 1, 20)), Gaussian(zeros(), zeros() + 1)),
    "bernoulli": (Bernoulli(values(-2, 0, 1, 3)), Bernoulli(zeros())),
    "spin": (Spin(values(-1, 0, 0.5, 1.5)), Spin(zeros())),
}
every_kind = pytest.mark.parametrize(("truth", "broad"), KNOWN.values(), ids=KNOWN)


def drawn(units: Units, count: int, seed: int = 0) -> Tensor:
    return units.sample(Fields(zeros().expand(count, -1)), seeded(seed))


def gap(units: Units, images: Tensor, pseudo: Units) -> dict[str, Tensor]:
    """The gradient by its definition: expected statistics minus their mean over the images and one more."""
    expected, extra = units.expected_statistics(NOTHING), pseudo.expected_statistics(NOTHING)
    seen = {name: (value.sum(0) + extra[name]) / (len(images) + 1) for name, value in units.statistics(images).items()}
    return {name: expected[name] - seen[name] for name in seen}


@every_kind
def test_the_statistics_expected_are_those_of_the_images(truth: Units, broad: Units) -> None:
    images = drawn(truth, 500)
    for value in gap(independent_units(broad, images), images, broad).values():
        torch.testing.assert_close(value, torch.zeros_like(value), rtol=0, atol=2e-5)


@pytest.mark.parametrize("broad", [grey(), Spiked(zeros(), grey())], ids=["truncated", "spiked"])
def test_pixels_that_never_change_keep_finite_parameters(broad: Units) -> None:
    images = values(0, 1, 0.4, 1e-3).expand(60_000, -1)
    found = independent_units(broad, images)
    for name, value in found.parameters.items():
        assert bool((value.abs() <= LARGEST_PARAMETER).all())
        # Where a bound holds a parameter back, the likelihood would grow beyond it; elsewhere nothing is left to gain.
        slope = gap(found, images, broad)[name]
        held = value.abs() == LARGEST_PARAMETER
        assert bool((slope[held] * value[held] < 0).all())
        torch.testing.assert_close(slope[~held], torch.zeros_like(slope[~held]), rtol=0, atol=1e-5)
    torch.testing.assert_close(found.moments(NOTHING)[0], images[0], rtol=0, atol=0.01)


@pytest.mark.parametrize(
    "images", [torch.zeros(5, 3), torch.zeros(0, 4), torch.full((5, 4), 2.0), torch.full((5, 4), torch.nan)]
)
def test_images_that_do_not_fit_are_refused(images: Tensor) -> None:
    with refused(TrainingError, "4" if images.shape[1:] != (PIXELS,) or not len(images) else "[0, 1]"):
        independent_units(grey(), images)
