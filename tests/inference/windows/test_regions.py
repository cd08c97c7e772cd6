"""Pictures of several kinds: two priors restore them together, and agree on how noisy they are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from restore.inference.windows.regions import Both
from restore.inference.windows.tally import Tally

import restore
from restore.channels.bit_flip import LEVELS
from restore.inference.damage import Damage
from restore.inference.open import open_engine
from restore.inference.tiles.blend import Turned
from restore.marginals import NoiseLevel
from training.data.pages import page
from training.data.text import families_to_learn_from

FIGURE = (slice(80, 240), slice(100, 300))


def drawn() -> np.ndarray:
    """Words with a disc among them."""
    # The fonts of matplotlib, whatever others are installed.
    found = page(families_to_learn_from()[:6], 300, 5, (320, 400)) <= 127
    rows, columns = np.mgrid[:160, :200]
    found[FIGURE] = np.hypot(rows - 80, columns - 100) < 60
    return found


def flipped(white: np.ndarray, p: float) -> np.ndarray:
    return np.asarray(white ^ (np.random.default_rng(3).random(white.shape) < p))


def noise(level: float) -> NoiseLevel:
    return NoiseLevel(np.array([level]), LEVELS.levels, np.zeros((1, 15)), np.ones((1, 15), bool))


def test_two_priors_restore_what_each_knows_better() -> None:
    clean = drawn()
    seen = flipped(clean, 0.1)
    alone = {name: restore.denoise(seen, name, p=0.1, force=True) != clean for name in ("tap-text", "conv-shapes")}
    found, solution = restore.denoise(seen, return_solution=True)
    wrong = found != clean
    assert wrong.sum() < min(each.sum() for each in alone.values())
    # In the figure and around it, it is nearly as good as the prior that knows this, and far better than the other one.
    figure = np.zeros(clean.shape, bool)
    figure[FIGURE] = True
    for part, knows, other in ((~figure, "tap-text", "conv-shapes"), (figure, "conv-shapes", "tap-text")):
        assert wrong[part].sum() < (alone[knows][part].sum() + alone[other][part].sum()) / 2
    assert solution.noise.chosen[0] == pytest.approx(0.1, abs=0.02)


def test_the_command_names_both(tmp_path: Path, run: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    Image.fromarray(flipped(drawn(), 0.1)).save(tmp_path / "page.png")
    assert run("denoise", tmp_path / "page.png") == 0
    said = capsys.readouterr().err
    assert "is of several kinds: tap-text and conv-shapes restored it, each where it predicts pixels better" in said


def test_the_same_prior_twice_is_that_prior() -> None:
    prior = Turned(open_engine("conv-shapes"), False)
    grey, damage = flipped(drawn()[40:104, 100:170], 0.1).astype(float), Damage(0.1)
    both = Both(prior, Turned(prior.engine, False), prior)
    for found, wanted in zip(both.moments(grey, damage, Tally()), prior.moments(grey, damage, Tally()), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_the_favoured_prior_decides_where_both_predict_alike() -> None:
    words, shapes = Turned(open_engine("tap-text"), True), Turned(open_engine("conv-shapes"), False)
    grey = flipped(np.ones((64, 64), bool), 0.02).astype(float)
    alone = {prior: prior.moments(grey, Damage(0.02), Tally())[0] for prior in (words, shapes)}
    for favoured, other in ((words, shapes), (shapes, words)):
        found, _ = Both(words, shapes, favoured).moments(grey, Damage(0.02), Tally())
        assert (np.abs(found - alone[favoured]) <= np.abs(found - alone[other]) + 1e-6).all()
