"""The benchmarks of noise levels and of refusals, on tiny images."""

from __future__ import annotations

import noise_level
import numpy as np

import restore
from restore.channels.damage import Damage


def test_levels_are_timed_and_those_that_were_not_given_are_found() -> None:
    engine = restore.load("tap-mnist-25").engine
    stroke = np.zeros((28, 28))
    stroke[5:23, 13:16] = 1
    noisy = np.abs(stroke - (np.random.default_rng(0).random((2, 28, 28)) < 0.1))
    given, _ = noise_level.timed(engine, noisy, Damage.of(p=0.1))
    found, seconds = noise_level.timed(engine, noisy, Damage.of(p="auto"))
    assert len(found) == 2 and seconds > 0
    assert [(one.level.value, one.level.estimated) for one in given] == 2 * [(0.1, False)]
    assert all(0.02 < one.level.value < 0.25 and one.level.estimated for one in found)
