"""A prior that only knows how alike neighbours are: a mean field of the whole image."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

import numpy as np
import pytest
import torch
from mean_field import IsingField
from restore.inference.windows.choosing.field import FIELD
from restore.inference.windows.choosing.sampling import FEW, Crop, sample_of
from restore.inference.windows.choosing.survey import choose
from restore.inference.windows.choosing.ways import Way
from restore.inference.windows.tally import Tally

import restore
from restore.channels import BitFlip
from restore.inference.damage import Damage, Rates
from restore.inference.open import open_engine
from restore.inference.tiles.blend import STEPS, STILL, mean_field, moments


def noisy(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2, shape).astype(float)


def test_weak_couplings_give_the_means_of_the_model() -> None:
    """By enumeration: for means of coupled pixels the field is right to first order in the coupling."""
    coupling, evidence = 0.02, np.random.default_rng(2).normal(0, 1, (3, 3))
    states = np.array(list(product((-1, 1), repeat=9))).reshape(-1, 3, 3)
    alike = (states[:, 1:] * states[:, :-1]).sum((1, 2)) + (states[:, :, 1:] * states[:, :, :-1]).sum((1, 2))
    weights = np.exp(coupling * alike + (states * evidence).sum((1, 2)) / 2)
    exact = (weights[:, None, None] * states).sum(0) / weights.sum()
    found, steps, change = mean_field(evidence, coupling)
    apart = np.abs(np.tanh(evidence / 2) - exact).max()
    # What is left is of second order: by Onsager's term at most its square for each of four neighbours.
    assert np.abs(found - exact).max() < 4 * coupling**2 < apart
    assert change <= STILL and 0 < steps < STEPS


def test_a_hole_in_a_large_image_is_filled_to_its_middle() -> None:
    """However little it changes the whole."""
    evidence = np.full((900, 900), 3.0)
    evidence[400:412, 500:512] = 0
    assert mean_field(evidence, 0.8)[0].min() > 0.9


def test_what_is_inverted_is_restored_inverted() -> None:
    evidence = np.random.default_rng(3).normal(0, 2, (2, 6, 5))
    found, _, _ = mean_field(evidence, 0.8)
    np.testing.assert_array_equal(mean_field(-evidence, 0.8)[0], -found)


@pytest.mark.parametrize(
    "p", [0.1, Rates(0.02, 0.3), np.linspace(0.01, 0.4, 63).reshape(7, 9)], ids=["one", "two", "each"]
)
def test_it_hears_the_evidence_of_every_pixel(p: float | Rates | np.ndarray) -> None:
    field, image, hidden = open_engine(FIELD), noisy(7, 9), noisy(7, 9, seed=1) > 0
    mean, variance = moments(field, image, Damage(p, hidden=hidden), np.zeros((16, 16)), tally := Tally())
    rates = p if isinstance(p, Rates) else Rates(p, p)
    kept, lost = (1 - rates.white, rates.white), (rates.black, 1 - rates.black)
    told = np.where(image > 0, np.log(kept[0] / lost[0]), np.log(kept[1] / lost[1]))
    expected, _, _ = mean_field(np.where(hidden, 0, told), field.description.tiling.neighbours)
    np.testing.assert_allclose(mean, (1 + expected) / 2, atol=1e-5)
    np.testing.assert_allclose(variance, mean * (1 - mean), atol=1e-6)
    assert 0 < tally.iterations <= STEPS and not tally.lost


def test_the_published_field_restores_any_image_as_a_whole() -> None:
    rows, columns = np.mgrid[:40, :50]
    disc = (rows - 20) ** 2 + (columns - 25) ** 2 < 150
    seen = disc ^ (np.random.default_rng(4).random(disc.shape) < 0.1)
    found = restore.denoise(seen, FIELD, p=0.1)
    coupling = open_engine(FIELD).description.tiling.neighbours
    simple = IsingField(disc.shape, coupling).restore(torch.from_numpy(seen).float().reshape(1, -1), BitFlip(0.1))
    assert np.array_equal(found, simple.reshape(disc.shape).numpy() > 0.5)
    assert (found != disc).sum() < (seen != disc).sum() / 4


def test_it_restores_at_the_higher_level(monkeypatch: pytest.MonkeyPatch) -> None:
    """It finds weak noise probable as it is, and its own level too low; another prior knows better."""
    rows, columns = np.mgrid[:112, :112]
    disc = np.hypot(rows - 56, columns - 56) < 40
    image = (disc ^ (np.random.default_rng(7).random(disc.shape) < 0.05)).astype(float)
    engines = [open_engine("tap-text"), open_engine(FIELD), open_engine("conv-shapes")]

    def predicted(way: Way, crop: Crop, damage: Damage, folds: Iterable[int]) -> float:
        return 1000.0 if way.name == FIELD else 0.0

    monkeypatch.setattr(Way, "predicted", predicted)
    sample = sample_of(image, Damage("auto"), FEW)
    own, other = (
        max(
            float(Way(engine, invert, sample.stacked(engine)).restored(Damage("auto"))[1].noise.chosen[0])
            for invert in (False, True)
        )
        for engine in (engines[1], engines[0])
    )
    choice = choose(engines, image, Damage("auto"), invert=False, force=True)
    assert choice.engine is engines[1]
    assert own < other and choice.damage.p > (own + other) / 2
