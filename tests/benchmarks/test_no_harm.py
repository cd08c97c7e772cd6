"""The benchmark of pictures that must not be harmed: what it draws, how it judges, and one run of the command."""

from __future__ import annotations

import numpy as np
import pytest
from no_harm import Outcome, outcome
from pictures_of_all_kinds import PICTURES, picture


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_are_of_small_sizes_and_can_be_drawn_again(name: str) -> None:
    drawn = picture(name)
    assert all(120 <= side <= 420 for side in drawn.shape) and drawn.ndim == 2
    assert (picture(name) == drawn).all()
    if name.startswith("grey"):
        assert drawn.dtype == np.float64 and 0 <= drawn.min() < drawn.max() <= 1
        assert len(np.unique(drawn)) > 6
    else:
        assert drawn.dtype == bool
        assert 0.01 < drawn.mean() < 0.999 or name == "blank"


@pytest.mark.parametrize(
    ("p", "before", "after", "verdict"),
    [
        (0, 0, 0.003, "ok"),
        (0, 0, 0.0031, "harmed"),
        (0.1, 0.1, 0.09, "helped"),
        (0.1, 0.1, 0.1, "alone"),
        (0.1, 0.1, 0.11, "harmed"),
    ],
)
def test_verdicts(p: float, before: float, after: float, verdict: str) -> None:
    assert Outcome("", p, 0, before, after, 0, "").verdict == verdict


def test_the_command_restores_a_picture_and_refuses_one_without_ending_the_benchmark() -> None:
    done, seen, found = outcome("bar code", 0.1, ("--model", "conv-shapes", "--p", "0.1"))
    assert done.code == 0 and done.verdict == "helped"
    assert seen.shape == found.shape and (seen != found).any()
    done, seen, found = outcome("music", 0, ("--model", "no-such-model"))
    assert done.code == 4 and done.verdict == "ok"
    assert (seen == found).all()
