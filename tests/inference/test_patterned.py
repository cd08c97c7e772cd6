"""Changed pixels that lie in a pattern: independent ones hardly ever do, lines and dots always."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from restore.inference.noise.patterned import NOTE, patterned, shares


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.001, 0.01, 0.1, 0.4]), st.integers(1, 80), st.integers(1, 80))
def test_flips_lie_in_none(seed: int, p: float, height: int, width: int) -> None:
    """Pairs are nearly Poisson: more than m + 6 (1 + sqrt m) of m expected come by chance in 1e-8 of all cases."""
    changed = np.random.default_rng(seed).random((height, width)) < p
    assert not patterned(changed, np.full(changed.shape, p))


@pytest.mark.parametrize("step", [(0, 2), (3, 0), (2, 2), (2, -2)])
def test_what_lies_in_steps_does(step: tuple[int, int]) -> None:
    """Every changed pixel has another one a step further on."""
    first = np.random.default_rng(0).random((80, 80)) < 0.03
    changed = first | np.roll(first, step, (0, 1))
    white = np.ones(changed.shape, bool)
    rates = shares(changed, white, white)
    assert rates[0, 0] == pytest.approx(changed.mean())
    assert patterned(changed, rates) and patterned(changed[:, ::-1], rates) and patterned(changed[::-1], rates)


def test_each_colour_has_its_share() -> None:
    changed, white, seen = np.zeros((4, 10), bool), np.zeros((4, 10), bool), np.ones((4, 10), bool)
    white[:2], seen[:, 5:] = True, False
    changed[0, 0] = True
    found = shares(changed, white, seen)
    np.testing.assert_allclose(found[:2, :5], 0.1)
    assert not found[2:].any() and not found[:, 5:].any()


def test_a_user_is_told_of_lost_hatching(
    tmp_path: Path, run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    rows, columns = np.indices((200, 200))
    hatched = ((rows + columns) % 6 == 0) & (rows // 50 % 2 == 0)
    flips, disc = np.random.default_rng(0).random(hatched.shape) < 0.1, np.hypot(rows - 100, columns - 100) < 70
    for image, told in ((hatched ^ flips, True), (disc ^ flips, False)):
        Image.fromarray(image).save(tmp_path / "drawing.png")
        assert run("denoise", tmp_path / "drawing.png", "--overwrite") == 0
        assert (NOTE in capsys.readouterr().err) is told
