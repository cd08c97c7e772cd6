"""Rates of white and of black pixels that nobody told: found by predicting pixels that are held out."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from commands import Run
from machines import random_rbm
from PIL import Image
from priors import random_prior
from restore.inference.noise.held_out import FOLDS, folds
from restore.inference.noise.rates import BINS, DOUBT, LEAST, counted, fitted, rates_of
from restore.inference.pictures import ChosenLevel
from scipy.optimize import minimize

import restore
from restore.inference import pictures
from restore.inference.damage import Damage, Rates
from restore.inference.torch_engine import Engine
from restore.marginals import NoiseLevel
from restore.priors.exact import binary_states, log_likelihood

PIXELS = 9


def drawn(rates: tuple[float, float], size: int = 20_000) -> tuple[np.ndarray, np.ndarray]:
    """What is seen of an image whose pixels are independent, and their true log-odds."""
    draw = np.random.default_rng(3)
    odds = draw.normal(-1.5, 3, (1, size))
    white = draw.random(odds.shape) < 1 / (1 + np.exp(-odds))
    return white ^ (draw.random(odds.shape) < np.where(white, *rates)), odds


@pytest.mark.parametrize("rates", [(0.1, 0.1), (0.02, 0.2), (0.25, 0.05)])
def test_they_are_those_of_the_channel_where_predictions_are_exact(rates: tuple[float, float]) -> None:
    """Every image of a small machine, seen in every way, each as often as it is probable: by enumeration."""
    machine = random_rbm(PIXELS, 3, scale=1.0)
    states = binary_states(PIXELS, torch.zeros((), dtype=torch.float64))
    prior = log_likelihood(machine, states).exp().numpy()
    bits = states.numpy() > 0
    # p(y_i | x_i) for each x, each y and each pixel.
    each = np.where(
        bits[:, None], np.where(bits[None], 1 - rates[0], rates[0]), np.where(bits[None], rates[1], 1 - rates[1])
    )
    joint = prior[:, None] * each.prod(2)
    white, black, odds = [], [], []
    for pixel in range(PIXELS):
        others = prior[:, None] * np.delete(each, pixel, 2).prod(2)
        share = others[bits[:, pixel]].sum(0) / others.sum(0)
        odds.append(np.log(share) - np.log1p(-share))
        weights = 1e6 * joint.sum(0)
        white.append(np.where(bits[:, pixel], weights, 0))
        black.append(np.where(bits[:, pixel], 0, weights))
    counts = np.stack([np.concatenate(part) for part in (black, white, odds)])[None]
    found = fitted(counts, np.array([[0.15, 0.15]]), 2)
    np.testing.assert_allclose(found.rates[0], rates, atol=1e-3)


@pytest.mark.parametrize("free", [0, 1, 2])
def test_scoring_finds_the_most_probable_rates(free: int) -> None:
    seen, odds = drawn((0.05, 0.2))
    black, white, places = (counts := counted(seen, np.ones_like(seen), 0.7 * odds + 0.5))[0]
    start = np.array([[0.1, 0.1]])

    def cost(at: np.ndarray) -> float:
        of_white, of_black = {0: (0.1, 0.1), 1: (at[2], at[2]), 2: (at[2], at[-1])}[free]
        share = 1 / (1 + np.exp(-at[0] - at[1] * places))
        p = share * (1 - of_white) + (1 - share) * of_black
        doubt = (((at[:2] - [0, 1]) / DOUBT) ** 2).sum() / 2
        return float(doubt - white @ np.log(p) - black @ np.log1p(-p))

    bounds = [(-3, 3), (0.2, 3), (0.002, 0.45), (0.002, 0.45)]
    best = minimize(cost, [0, 1, 0.1, 0.1], method="L-BFGS-B", bounds=bounds)
    found = fitted(counts, start, free)
    assert -found.log_p[0] == pytest.approx(best.fun, abs=0.01)
    wanted = {0: (0.1, 0.1), 1: best.x[[2, 2]], 2: best.x[2:]}[free]
    np.testing.assert_allclose(found.rates[0], wanted, atol=2e-3)


def test_counts_are_of_visible_pixels_alone() -> None:
    seen, odds = drawn((0.1, 0.1), 500)
    visible = np.arange(500)[None] % 3 > 0
    black, white, places = counted(seen, visible, odds)[0]
    assert places.shape == (BINS,) and white.sum() == (seen & visible).sum() and black.sum() == (~seen & visible).sum()
    total = (odds.clip(-9, 9) * visible).sum()
    assert ((black + white) * places).sum() == pytest.approx(total)


def test_one_rate_stays_and_two_are_told_apart() -> None:
    for rates, level in {(0.1, 0.1): 0.1, (0.0, 0.1): 0.06, (0.2, 0.05): 0.09, (0.02, 0.2): 0.15}.items():
        seen, odds = drawn(rates)
        found = rates_of(seen, np.ones_like(seen), np.array([level]), lambda told, odds=odds: odds)[0]
        if rates[0] == rates[1]:
            assert (found == level).all()
        else:
            np.testing.assert_allclose(found, np.maximum(rates, LEAST), atol=0.02)


def test_a_colour_that_a_prior_does_not_know_is_no_flip() -> None:
    seen, odds = drawn((0.02, 0.45))
    found = rates_of(seen, np.ones_like(seen), np.array([0.1]), lambda told: odds)[0]
    assert found[0] == found[1]


def test_a_level_that_is_clearly_wrong_is_mended() -> None:
    seen, odds = drawn((0.2, 0.2))
    found = rates_of(seen, np.ones_like(seen), np.array([0.16]), lambda told: odds)[0]
    assert found[0] == found[1] == pytest.approx(0.2, abs=0.01)


def test_a_blank_image_says_nothing_of_strokes() -> None:
    seen = np.random.default_rng(0).random((1, 4000)) < 0.1
    found = rates_of(seen, np.ones_like(seen), np.array([0.1]), lambda told: np.full(seen.shape, -9.0))
    assert (found == 0.1).all()


def test_every_pixel_is_held_out_once() -> None:
    fold = folds((40, 50))
    assert np.bincount(fold.ravel()).shape == (FOLDS,) and np.bincount(fold.ravel()).min() > 400
    assert (fold == folds((40, 50))).all()


def test_images_have_rates_of_their_own() -> None:
    engine = Engine.of(random_prior((5, 7)), torch.device("cpu"))
    draw = np.random.default_rng(0)
    images, rates = (draw.random((3, 5, 7)) < 0.4).astype(float), np.array([[0.1, 0.1], [0.02, 0.2], [0.3, 0.05]])
    together, _ = engine.marginals(images, Damage(Rates.each(rates)))
    for row, pair in enumerate(rates):
        alone, _ = engine.marginals(images[[row]], Damage(Rates.each(pair)))
        np.testing.assert_allclose(together.means[0][row], alone.means[0][0], atol=1e-4)
    some = Damage(Rates.each(rates)).rows(np.array([2]))
    assert some.p == Rates(0.3, 0.05) and some.inverted().p == Rates(0.05, 0.3)
    black = Damage(Rates.each(rates)).log_black(engine.description, images)
    each = [Damage(Rates.each(pair)).log_black(engine.description, images[[row]])[0] for row, pair in enumerate(rates)]
    np.testing.assert_allclose(black, each)


def test_two_rates_are_told() -> None:
    noise = NoiseLevel(np.array([0.1]), np.array([0.1, 0.4]), np.zeros((1, 2)), np.ones((1, 2), bool))
    assert ChosenLevel.of("p", noise, 0).values == (("p", 0.1),)
    two = replace(noise, rates=np.array([[0.021, 0.2]]))
    level = ChosenLevel.of("p", two, 0)
    assert level.values == (("p of white", 0.021), ("p of black", 0.2)) and level.sentence.startswith("p = 0.021,0.2: ")
    assert ChosenLevel.of("p", two.inverted(), 0).rates == Rates(0.2, 0.021)


# --- from end to end ---


def sheet() -> np.ndarray:
    """Discs and bars of several sizes, white."""
    row, column = np.indices((160, 200))
    found = np.hypot(row - 45, column - 50) < 28
    for place, (left, width) in enumerate([(100, 12), (125, 7), (150, 20)]):
        found |= (row > 20 + 5 * place) & (row < 140) & (column >= left) & (column < left + width)
    return found | ((row > 100) & (row < 120) & (column < 90))


@pytest.mark.thorough
@pytest.mark.parametrize("rates", [(0.0, 0.1), (0.02, 0.2), (0.2, 0.05), (0.1, 0.1)])
@pytest.mark.parametrize("light", [False, True])
def test_rates_of_a_drawing(rates: tuple[float, float], light: bool) -> None:
    clean = sheet() ^ light
    dice = np.random.default_rng(1).random(clean.shape)
    noisy = clean ^ (dice < np.where(clean, *rates))
    found, solution = restore.denoise(noisy, "tap-shapes", return_solution=True)
    np.testing.assert_allclose(solution.noise.rates[0], rates, atol=0.02)
    assert (found != clean).mean() < 0.01


@pytest.mark.thorough
def test_a_level_keeps_to_what_the_evidence_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    noisy = sheet() ^ (np.random.default_rng(1).random(sheet().shape) < 0.1)
    monkeypatch.setattr(pictures, "rates_by_held_out", lambda engine, seen, levels: np.full((len(levels), 2), 0.001))
    _, solution = restore.denoise(noisy, "tap-shapes", return_solution=True)
    # One pixel in ten has flipped, which at a rate of .001 is out of the question.
    assert abs(solution.noise.chosen[0] - 0.1) < 0.02
    assert solution.noise.rates.tolist() == [[solution.noise.chosen[0]] * 2]


@pytest.mark.thorough
def test_both_rates_are_reported(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    clean = sheet()
    worn = clean ^ ((np.random.default_rng(1).random(clean.shape) < 0.2) & clean)
    Image.fromarray(worn).save(tmp_path / "worn.png")
    assert run("denoise", tmp_path / "worn.png", "--model", "tap-shapes", "--json") == 0
    out, err = capsys.readouterr()
    white, black = json.loads(out)["channel"]["p"]
    assert white == pytest.approx(0.2, abs=0.02) and black == pytest.approx(0, abs=0.01)
    assert f"p = {white:.2g},{black:.2g}: white pixels turned black" in err
