"""Priors of whole objects against the Ising field: what they do not know they do not restore."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from mnist_data import mnist, needs_mnist
from priors import random_prior
from restore.inference.explained import Observed
from restore.inference.windows.choosing.field import BEHIND, FIELD, _log_p, allowed, beaten, of_objects

import restore
from restore.errors import ModelError
from restore.inference.damage import Damage, Rates
from restore.inference.open import open_engine
from restore.inference.torch_engine import Engine


def test_log_p_of_the_field_is_that_of_its_windows() -> None:
    field = open_engine(FIELD)
    draw = np.random.default_rng(0)
    white, hidden = (draw.random((2, 20, 28)) < 0.3).astype(float), draw.random((2, 20, 28)) < 0.1
    for p in (0.1, Rates(0.02, 0.2), np.full((2, 1, 1), 0.1), draw.uniform(0.05, 0.3, (20, 28))):
        seen = Observed(white, Damage(p, hidden=hidden))
        found = _log_p(field, seen, 127)
        # One window by itself, its pixels beyond the edge hidden: the others are summed.
        total = np.zeros(2)
        for top, left in ((0, 0), (0, 16), (16, 0), (16, 16)):
            part = (slice(None), slice(top, top + 16), slice(left, left + 16))
            height, width = white[part].shape[1:]
            window, covered = np.zeros((2, 16, 16)), np.ones((2, 16, 16), bool)
            window[:, :height, :width], covered[:, :height, :width] = white[part], hidden[part]
            level = p
            if isinstance(p, np.ndarray) and p.ndim == 2:
                level = np.full((2, 16, 16), 0.5)
                level[:, :height, :width] = p[part[1:]]
            damage = Damage(level, hidden=covered)
            solved, _ = field.marginals(window, damage)
            total += solved.log_partition + damage.log_black(field.description, window) - field.log_partition
        np.testing.assert_allclose(found, total, atol=0.05)


def test_the_field_takes_the_best_of_the_levels_where_none_was_told() -> None:
    """The evidence of a prior that is just good enough, and just not."""
    engine = Engine.of(random_prior((28, 28)), torch.device("cpu"))
    assert of_objects(engine.description)
    seen = Observed((np.random.default_rng(0).random((6, 28, 28)) < 0.3).astype(float), Damage(0.1))
    tried = [Damage(0.02), Damage(0.3)]
    by_level = [_log_p(open_engine(FIELD), replace(seen, damage=each), 127) for each in (seen.damage, *tried)]
    # The images are noise of .3.
    assert (np.argmax(by_level, axis=0) == 2).all()
    for off, wanted in ((1.0, 0), (-1.0, 1)):
        lack = beaten(engine, seen, np.max(by_level, axis=0) - BEHIND + off, tried)
        np.testing.assert_allclose(lack, [wanted] * 6, atol=1e-3)
    assert not beaten(engine, seen, np.full(6, np.nan), tried).any()


def test_of_larger_images_more_is_asked() -> None:
    # Each pixel beyond those of one object has to be explained better by .01 nats.
    assert allowed(784) == BEHIND and allowed(100) == BEHIND
    assert allowed(784 + 8000) == pytest.approx(BEHIND - 80)


def test_priors_of_patches_are_not_tested() -> None:
    engine = open_engine("tap-shapes")
    assert engine.description.tiling.overlap > 1 and not of_objects(engine.description)
    seen = Observed(np.zeros((1, 16, 16)), Damage(0.1))
    assert not beaten(engine, seen, np.array([-1e6])).any()


@pytest.mark.thorough
@needs_mnist
def test_bars_are_no_digits_and_digits_are() -> None:
    prior = restore.load("matched-mnist")
    draw = np.random.default_rng(0)
    row, column = np.indices((112, 140))
    bars = ((row % 9 < 2) | (column % 13 < 2)) ^ (draw.random((112, 140)) < 0.05)
    wanted = (
        r"^the image: matched-mnist explains it no better than `[a-z-]+`, so its answer would be a guess; leave model"
    )
    for told in (None, 0.05):
        with pytest.raises(ModelError, match=wanted):
            prior.denoise(bars, told)
    digits = mnist("test").images[:60] > 127
    for p in (0.05, 0.2):
        noisy = digits ^ (draw.random(digits.shape) < p)
        assert not prior.denoise(noisy, p, return_solution=True)[1].shortfall.any()
        sheet = noisy[:20].reshape(4, 5, 28, 28).swapaxes(1, 2).reshape(112, 140)
        assert not prior.denoise(sheet, p, return_solution=True)[1].shortfall.any()
