"""Channels: what they do to images, what they say about them, and that the two are the same."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import seeded
from textbook import log_likelihood
from torch import Tensor

from restore.channels import BitFlip, Channel, Damage, Occlusion
from restore.channels.flips import CERTAIN_FIELD
from restore.errors import UsageError

PIXELS = 4
IMAGES = torch.tensor(list(itertools.product((0.0, 1.0), repeat=PIXELS)), dtype=torch.float64)
MASK = torch.tensor([True, False, False, True])
PER_PIXEL = torch.tensor([0.05, 0.3, 0.5, 0.92], dtype=torch.float64)

CHANNELS: dict[str, Channel] = {
    "flip": BitFlip(0.1),
    "flip-more-than-half": BitFlip(0.9),
    "flip-half": BitFlip(0.5),
    "flip-per-pixel": BitFlip(PER_PIXEL),
    "occlusion-and-flips": Occlusion(MASK, BitFlip(0.2)),
    "occlusion-and-flips-per-pixel": Occlusion(MASK, BitFlip(PER_PIXEL)),
    "occlusion-of-everything": Occlusion(torch.ones(PIXELS, dtype=torch.bool), BitFlip(0.2)),
    "occlusion-of-nothing": Occlusion(torch.zeros(PIXELS, dtype=torch.bool), BitFlip(0.2)),
    "damage": Damage(0.1).channel(grey=False),
    "damage-with-holes": Damage(PER_PIXEL.numpy()[None], hidden=MASK.numpy()[None]).channel(grey=False),
    "damage-by-noise": Damage(sigma=0.4, hidden=MASK[None, None]).channel(grey=False),
}


def evidence_of(channel: Channel, y: Tensor, x: Tensor) -> Tensor:
    """evidence(y)·x - quadratic·x²/2, summed over pixels."""
    fields = channel.evidence(y)
    return (fields.linear * x - fields.quadratic * x * x / 2).sum(-1)


def assert_law(channel: Channel, images: Tensor = IMAGES) -> None:
    for y in IMAGES:
        picture = y.expand_as(images)
        constant = evidence_of(channel, picture, images) - log_likelihood(channel, picture, images).sum(-1)
        torch.testing.assert_close(constant, constant[:1].expand_as(constant), rtol=0, atol=1e-11)


@pytest.mark.parametrize("channel", CHANNELS.values(), ids=CHANNELS)
def test_evidence_is_the_log_likelihood_up_to_a_constant(channel: Channel) -> None:
    assert_law(channel)


def test_binary_images_have_flips_or_noise() -> None:
    with pytest.raises(UsageError):
        Damage(0.1, 0.2).channel(grey=False)


probabilities = st.floats(1e-6, 1 - 1e-6)


@settings(max_examples=10)
@given(
    st.lists(probabilities, min_size=PIXELS, max_size=PIXELS),
    probabilities,
    st.lists(st.booleans(), min_size=PIXELS, max_size=PIXELS),
)
def test_law_for_any_mixture_of_flips_and_mask(first: list[float], second: float, mask: list[bool]) -> None:
    flips = BitFlip(torch.tensor(first, dtype=torch.float64))
    assert_law(flips)
    assert_law(Occlusion(torch.tensor(mask), BitFlip(second)))
    assert_law(Damage(flips.probability[None, None], hidden=torch.tensor(mask)[None, None]).channel(grey=False))  # type: ignore[arg-type, index]


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_certainty_is_finite_evidence_that_outweighs_anything(p: float) -> None:
    channel = BitFlip(p)
    for y in IMAGES:
        truth = y if p == 0 else 1 - y
        fields = channel.evidence(y)
        assert fields.linear.abs().unique().tolist() == [CERTAIN_FIELD]
        gap = evidence_of(channel, y, truth) - evidence_of(channel, y, IMAGES)
        torch.testing.assert_close(gap, CERTAIN_FIELD * (truth != IMAGES).sum(-1).double())
        likelihood = log_likelihood(channel, y.expand_as(IMAGES), IMAGES).sum(-1)
        assert torch.equal(likelihood, torch.where((truth == IMAGES).all(-1), 0.0, -math.inf).double())


def test_an_occluded_pixel_and_one_flipped_half_of_the_time_say_nothing() -> None:
    assert BitFlip(0.5).evidence(IMAGES).linear.abs().max() == 0
    fields = Occlusion(MASK).evidence(IMAGES)
    assert fields.linear[:, MASK].abs().max() == 0
    assert torch.equal(fields.linear[:, ~MASK], CERTAIN_FIELD * (2 * IMAGES - 1)[:, ~MASK])


def test_extreme_probabilities_in_single_precision() -> None:
    p = torch.tensor([0.0, 1e-45, 1e-12, 1 - 2**-24, 1.0])
    field = BitFlip(p).evidence(torch.ones(1, 5)).linear[0]
    assert field.dtype == torch.float32
    wanted = [CERTAIN_FIELD, -math.log(1.401298464324817e-45), 12 * math.log(10), -24 * math.log(2), -CERTAIN_FIELD]
    torch.testing.assert_close(field, torch.tensor(wanted), rtol=1e-6, atol=0)


@pytest.mark.parametrize("name", ["flip", "flip-more-than-half", "flip-per-pixel"])
def test_corruption_has_the_distribution_that_is_scored(name: str) -> None:
    channel, count = CHANNELS[name], 40_000
    assert isinstance(channel, BitFlip)
    for x in (torch.zeros(PIXELS, dtype=torch.float64), torch.tensor([1.0, 0.0, 1.0, 1.0], dtype=torch.float64)):
        y = channel.corrupt(x.expand(count, PIXELS), seeded(3))
        assert set(y.unique().tolist()) <= {0.0, 1.0}
        # Probability that a pixel shows 1, from the likelihood.
        wanted = log_likelihood(channel, torch.ones(1, PIXELS, dtype=torch.float64), x[None]).exp()[0]
        error = (y.mean(0) - wanted).abs()
        assert bool((error <= 5 * (wanted * (1 - wanted) / count).sqrt()).all())
        # Pixels are hit independently.
        residue = y - y.mean(0)
        covariance = residue.T @ residue / count
        assert float((covariance - covariance.diag().diag()).abs().max()) <= 5 * 0.25 / math.sqrt(count)


@pytest.mark.parametrize("mask", [torch.zeros(3), torch.zeros(3, dtype=torch.uint8), torch.full((3,), math.nan)])
def test_a_mask_that_is_not_boolean(mask: Tensor) -> None:
    with pytest.raises(UsageError):
        Occlusion(mask)
