"""What a caller knows of damage: levels, hidden pixels, faults, and the channel that follows."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from priors import grey_prior, random_conditional, random_prior
from refusals import refused

from restore.channels import BitFlip, GaussianNoise, Occlusion
from restore.channels.damage import Damage, Observed
from restore.errors import UsageError
from restore.images import Picture
from restore.inference.devices import pick_device
from restore.inference.scans.sample import Cut

SHAPE = (3, 4)


LOOP: list[object] = []
LOOP.append(LOOP)

NO_PROBABILITY = [-0.1, 1.1, 2.0, math.nan, math.inf, True, False, "much", "photo", "", "110%", "0.1,0.2,0.3", 1j, {}]
NO_PROBABILITY += [(True, False), LOOP, 10**400, np.full(SHAPE, 1.5), np.full(SHAPE, np.nan)]
NO_PROBABILITY += [torch.full((2, 2), 0.1, requires_grad=True)]


@pytest.mark.parametrize("p", NO_PROBABILITY, ids=lambda p: str(p)[:40])
def test_no_probability(p: Any) -> None:
    with refused(UsageError):
        Damage.of(p)


@pytest.mark.parametrize(
    "sigma", [0, 0.0, -0.1, -1e-300, math.nan, math.inf, 1.01, 1e39, 10**400, True, "much", 1j, [0.1]], ids=str
)
def test_no_standard_deviation(sigma: Any) -> None:
    with refused(UsageError):
        Damage.of(sigma=sigma)


def test_a_level_that_is_no_array_is_refused_without_its_numbers() -> None:
    for levels in ({"sigma": np.full((30, 40), 0.1)}, {"p": np.ones((30, 40), bool)}):
        with pytest.raises(UsageError, match=r"an array of (float64|bool)$"):
            Damage.of(**levels)


@pytest.mark.parametrize("sigma", [12, "12", np.float32(12)], ids=["int", "text", "numpy"])
def test_noise_that_counts_grey_levels_is_refused_with_the_same_noise_in_our_units(sigma: Any) -> None:
    with pytest.raises(UsageError, match=r"sigma.* 0\.047$"):
        Damage.of(sigma=sigma)


def test_one_level_at_most_is_to_be_found() -> None:
    assert (Damage.of("auto").unknown, Damage.of(sigma="auto").unknown, Damage.of(0.1).unknown) == ("p", "sigma", None)
    assert Damage.of("auto", 0.1).unknown == "p" and Damage.of(0.1, "auto").unknown == "sigma"
    assert Damage.of("scan").unknown is None and Damage.of("scan").scanned
    with pytest.raises(UsageError):
        Damage.of("auto", "auto")


def test_any_number_type_is_a_level() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for given in (1, 1.0, np.float32(0.25), np.float64(1e-46), np.int64(1), 5e-324):
            p, sigma = Damage.of(given).p, Damage.of(sigma=given).sigma
            assert (p, sigma) == (float(given), float(given)) and type(p) is type(sigma) is float


def test_what_seems_to_be_a_mistake_is_done_and_warned_of() -> None:
    with pytest.warns(UserWarning) as caught:
        Damage.of(0.7)
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Damage.of(0.5), Damage.of(1.0), Damage.of(sigma=1.0)


def test_who_is_told_of_the_damage() -> None:
    binary, grey, learnt = (
        prior.description for prior in (random_prior(SHAPE), grey_prior(), random_conditional(SHAPE))
    )
    hidden = np.eye(3, 4) > 0
    for header, known in (
        (binary, [Damage(0.1), Damage("auto"), Damage("scan"), Damage(hidden=hidden)]),
        (grey, [Damage(0.1), Damage(sigma=0.1), Damage(0.1, 0.1), Damage("auto", 0.1), Damage(hidden=hidden)]),
        (learnt, [Damage()]),
    ):
        for damage in known:
            header.check_damage(damage)
    for header, unknown in (
        (binary, [Damage(), Damage(sigma=0.1), Damage(0.1, 0.1)]),
        (grey, [Damage(), Damage("scan")]),
        (replace(grey, family="mixture", components=1), [Damage(0.1), Damage(0.1, 0.1)]),
        (learnt, [Damage(0.1), Damage(hidden=hidden), Damage("auto"), Damage("scan")]),
    ):
        for damage in unknown:
            with pytest.raises(UsageError):
                header.check_damage(damage)


def test_a_batch_keeps_what_all_share_and_spreads_what_they_do_not() -> None:
    hidden, levels = np.eye(3, 4) > 0, np.linspace(0, 1, 12).reshape(SHAPE)
    same = Damage.stacked([Damage(0.1, 0.2), Damage(0.1, 0.2)], SHAPE)
    assert (same.p, same.sigma, same.hidden) == (0.1, 0.2, None)
    mixed = Damage.stacked([Damage(0.1), Damage(levels, hidden=hidden), Damage(0.3)], SHAPE)
    np.testing.assert_array_equal(mixed.p, [np.full(SHAPE, 0.1), levels, np.full(SHAPE, 0.3)])
    np.testing.assert_array_equal(mixed.hidden, [np.zeros(SHAPE, bool), hidden, np.zeros(SHAPE, bool)])
    numbers = Damage.stacked([Damage(0.1), Damage(0.3), Damage()], SHAPE)
    np.testing.assert_array_equal(numbers.p, np.array([0.1, 0.3, 0.0])[:, None, None])
    assert Damage.stacked([Damage("auto"), Damage("auto")], SHAPE).p == "auto"


def test_the_channel_is_that_of_the_levels() -> None:
    draw = np.random.default_rng(0)
    picture, hidden, levels = (
        draw.integers(0, 2, (2, 12)).astype(float),
        draw.random((2, *SHAPE)) < 0.3,
        draw.random((2, *SHAPE)),
    )
    observed = torch.from_numpy(picture)
    flat = torch.from_numpy(hidden.reshape(2, 12))
    for damage, channel in (
        (Damage(0.1), BitFlip(0.1)),
        (Damage(levels), BitFlip(torch.from_numpy(levels.reshape(2, 12)))),
        (Damage(hidden=hidden), Occlusion(flat)),
        (Damage(0.1, hidden=hidden), Occlusion(flat, BitFlip(0.1))),
    ):
        actual, wanted = (one.evidence(observed) for one in (damage.channel(grey=False), channel))
        torch.testing.assert_close(actual.linear, wanted.linear.expand_as(actual.linear))
    actual, wanted = (one.evidence(observed) for one in (Damage(sigma=0.2).channel(grey=True), GaussianNoise(0.2)))
    torch.testing.assert_close(actual.linear, wanted.linear)


def test_parts_of_a_picture_have_their_own_damage() -> None:
    pixels, levels, hidden = (np.random.default_rng(seed).random((6, 8)) for seed in range(3))
    picture = Observed(pixels, Damage(levels, hidden=hidden < 0.5))
    rows, columns = slice(1, 4), slice(2, 7)
    part = picture.part(rows, columns)
    np.testing.assert_array_equal(part.pixels, pixels[1:4, 2:7])
    np.testing.assert_array_equal(part.damage.p, levels[1:4, 2:7])
    np.testing.assert_array_equal(part.damage.hidden, (hidden < 0.5)[1:4, 2:7])
    # Pixels may be computed where they are asked for.
    cut = Observed(Cut(pixels, 0.25), Damage(0.1))
    np.testing.assert_array_equal(cut.part(rows, columns).pixels, pixels[1:4, 2:7] > 0.25)
    assert cut.shape == (6, 8)


@pytest.mark.parametrize("kind", [np.uint8, np.uint16])
def test_a_file_is_cut_as_its_grey_levels_are(kind: Any) -> None:
    # The commonest thresholds are levels themselves, or half between.
    levels = np.arange(np.iinfo(kind).max + 1, dtype=kind)[None]
    whole = slice(None), slice(None)
    for threshold in (0.0, 1 / 3, 0.5, *np.arange(1, 255, 8) / 255, *(np.arange(0, 255, 8) + 0.5) / 255):
        picture = Picture(levels)
        np.testing.assert_array_equal(Cut(picture, threshold)[whole], picture.pixels > threshold)


@pytest.mark.parametrize("device", ["mps", "quantum", None])
def test_a_device_that_torch_lacks_is_named(device: Any) -> None:
    with refused(UsageError, device):
        pick_device(device)
