"""Priors that know how alike neighbours are: a mean field of the whole image, alone and beside another prior."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

import numpy as np
import pytest
import torch
from machines import random_rbm

import restore
from restore.channels import BitFlip
from restore.evaluation.ising import IsingField
from restore.inference.damage import Damage, Rates
from restore.inference.opening import open_engine
from restore.inference.torch_engine import Engine
from restore.inference.windows.field import FIELD
from restore.inference.windows.moments import STEPS, STILL, Turned, mean_field, mixed, moments
from restore.inference.windows.regions import CLEAR, Both
from restore.inference.windows.sampling import Crop, sample_of
from restore.inference.windows.survey import choose
from restore.inference.windows.tally import Tally
from restore.inference.windows.ways import Averaged, Way
from restore.marginals import Status
from restore.zoo import TrainedPrior
from restore.zoo.description import Description
from restore.zoo.inference import Inference
from restore.zoo.tiling import OF_WINDOWS

SETTINGS = Inference(max_iter=500, tol=1e-6, damping=0.3, modes=0, starts=1)


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
    assert change < STILL and 0 < steps < STEPS


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
    assert tally.status == Status.CONVERGED and tally.iterations > 0


def test_the_published_field_restores_any_image_as_a_whole() -> None:
    rows, columns = np.mgrid[:40, :50]
    disc = (rows - 20) ** 2 + (columns - 25) ** 2 < 150
    seen = disc ^ (np.random.default_rng(4).random(disc.shape) < 0.1)
    found = restore.denoise(seen, FIELD, p=0.1)
    coupling = open_engine(FIELD).description.tiling.neighbours
    simple = IsingField(disc.shape, coupling).restore(torch.from_numpy(seen).float().reshape(1, -1), BitFlip(0.1))
    assert np.array_equal(found, simple.reshape(disc.shape).numpy() > 0.5)
    assert (found != disc).sum() < (seen != disc).sum() / 4


def test_an_average_is_the_mixture_of_two_answers() -> None:
    draw = np.random.default_rng(5)
    answers = [(draw.random((3, 4)), draw.random((3, 4))) for _ in range(2)]
    shares = (0.5, 0.5)
    mean, variance = mixed(answers, shares)
    # Of a mixture: the mean of the variances, and the variance of the means.
    np.testing.assert_allclose(mean, (answers[0][0] + answers[1][0]) / 2)
    between = (answers[0][0] - answers[1][0]) ** 2 / 4
    np.testing.assert_allclose(variance, (answers[0][1] + answers[1][1]) / 2 + between)


@pytest.mark.parametrize("ahead", [CLEAR - 0.1, CLEAR + 0.1])
def test_it_is_averaged_with_a_prior_that_it_clearly_helps(ahead: float, monkeypatch: pytest.MonkeyPatch) -> None:
    def predicted(way: Way, crop: Crop, damage: Damage, folds: Iterable[int]) -> float:
        # What one fold leaves open is asked again, and stays open.
        (fold,) = folds
        return ahead * (fold == 0) if isinstance(way, Averaged) else 0.0 if way.engine.description.whole else -50.0

    monkeypatch.setattr(Way, "predicted", predicted)
    image = noisy(50, 50, seed=6)
    assert len(sample_of(image, Damage(0.1)).crops) == 1
    engines = [stranger(), open_engine(FIELD), open_engine("conv-shapes")]
    choice = choose(engines, image, Damage(0.1), invert=False, force=True)
    assert choice.engine is engines[2] and not isinstance(choice.prior, Both)
    averaged = choice.prior.moments(image, Damage(0.1), Tally())
    parts = [Turned(engine, False).moments(image, Damage(0.1), Tally()) for engine in engines[1:]]
    expected = mixed(parts, (0.5, 0.5)) if ahead > CLEAR else parts[1]
    np.testing.assert_allclose(averaged[0], expected[0], atol=1e-5)
    assert ("conv-shapes and ising restored it" in choice.prior.note) == (ahead > CLEAR)


def stranger() -> Engine:
    """A prior of windows that knows nothing of what an image looks like."""
    machine = random_rbm(16, 3, scale=0.4, bias=0.3, seed=1)
    machine = machine.with_parameters({name: value.float() for name, value in machine.parameters.items()})
    about = Description("stranger", (4, 4), 3, 127, "", "", inference=SETTINGS, tiling=OF_WINDOWS)
    prior = TrainedPrior(about, machine, torch.full((16,), 0.5), torch.zeros(0, 2, dtype=torch.uint8))
    return Engine.of(prior, torch.device("cpu"))
