"""Of a large picture in which no noise was found a few parts are solved, those that most speak for it; else all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from enumerated import ANY_SIZE, SHAPE, FieldEngine, Opened, small_machine
from scipy.ndimage import maximum_filter

from restore.channels.damage import Damage, Observed
from restore.inference.decision import looking
from restore.inference.decision.rules import SPOTLESS, limit_of
from restore.inference.options import Options
from restore.inference.restore import restore
from restore.inference.restored import Restored
from restore.status import Outcome, Status

SIDE = 1500
UNDAMAGED = Damage()
SQUARES = (np.indices((SIDE, SIDE)) // 250).sum(0) % 2.0


def answered(picture: np.ndarray, damage: Damage = UNDAMAGED) -> tuple[Restored, int]:
    """The answer about a picture, and the number of pixels that were solved."""
    engine = replace(FieldEngine.of(small_machine(scale=0.0), SHAPE, **ANY_SIZE), coupling=1.2)
    (answer,) = restore([Observed(picture, damage)], Options(), Opened((engine,), named=False))  # type: ignore[arg-type]
    return answer, sum(pictures.size for pictures, _ in engine.calls)


def flipped(picture: np.ndarray, where: tuple[slice, slice], count: int) -> np.ndarray:
    """A picture with so many flips in a part of it, anywhere, but no two of them side by side."""
    seen = picture.copy()
    part = seen[where]
    chance = np.random.default_rng(0).random(part.shape)
    alone = np.flatnonzero(chance == maximum_filter(chance, 3))
    chosen = np.random.default_rng(1).choice(alone, count, replace=False)
    part.flat[chosen] = 1 - part.flat[chosen]
    return seen


def test_of_a_clean_picture_a_part_is_solved() -> None:
    answer, solved = answered(SQUARES)
    assert answer.outcome is Outcome.CLEAN and answer.changed == 0 and answer.level is not None
    assert answer.level.value == 0
    assert solved < SIDE * SIDE / 2


@pytest.mark.parametrize("corner", [(0, 0), (SIDE - 220, SIDE - 220), (700, 200)], ids=str)
def test_flips_in_one_corner_are_found_wherever_it_is(corner: Sequence[int]) -> None:
    """The parts with most odd pixels are looked at, not any: as many flips as here are noise of the whole picture."""
    where = slice(corner[0], corner[0] + 220), slice(corner[1], corner[1] + 220)
    answer, _ = answered(flipped(SQUARES, where, 600))
    assert answer.outcome is not Outcome.CLEAN and answer.facts.changed > SPOTLESS


def test_so_few_flips_that_there_is_no_noise_stay_as_they_did() -> None:
    """Spread over all: their number is estimated from those that were looked at."""
    every = slice(0, SIDE), slice(0, SIDE)
    few, solved = answered(flipped(SQUARES, every, 100))
    assert few.outcome is Outcome.CLEAN and solved < SIDE * SIDE / 2
    many, solved = answered(flipped(SQUARES, every, 600))
    assert many.outcome is Outcome.RESTORED and solved > SIDE * SIDE
    assert (many.estimate != SQUARES).sum() < 60  # those beside an edge


@pytest.mark.parametrize("size", [looking.LOOKED_SIDE + 2 * looking.CORE_MARGIN - 1, 1000, 1500, 1501])
def test_parts_cover_what_has_neighbours_enough(size: int) -> None:
    starts = looking._starts(size)
    covered = np.zeros(size, int)
    for start in starts:
        assert start >= looking.CORE_MARGIN and start + looking.LOOKED_SIDE + looking.CORE_MARGIN <= size
        covered[start : start + looking.LOOKED_SIDE] += 1
    if starts:
        assert covered[looking.CORE_MARGIN : size - looking.CORE_MARGIN].all()
    else:
        assert size < looking.LOOKED_SIDE + 2 * looking.CORE_MARGIN


def test_pictures_with_holes_and_given_levels_are_solved() -> None:
    hidden = np.zeros(SQUARES.shape, bool)
    hidden[100:110, 100:110] = True
    for damage in (Damage("auto", hidden=hidden), Damage(0.002)):
        assert answered(flipped(SQUARES, (slice(0, SIDE), slice(0, SIDE)), 100), damage)[1] > SIDE * SIDE


def test_odd_pixels_are_counted_in_their_part() -> None:
    picture = np.zeros((700, 900))
    inside = [(100, 200), (100 + looking.LOOKED_SIDE - 1, 207)]
    for place in (*inside, (99, 210), (100 + looking.LOOKED_SIDE, 220), (150, 199)):
        picture[place] = 1
    for seen in (picture, 1 - picture):
        assert looking._odd(Observed(seen, Damage()), (100, 200)) == 2


def test_of_a_large_pattern_a_part_is_solved() -> None:
    """Dots that the field takes for flips, wherever one looks; where half is sound, all is solved."""
    dots = SQUARES.copy()
    dots[::5, ::5] = 1 - dots[::5, ::5]
    answer, solved = answered(dots)
    assert answer.status is Status.NOT_NOISE and answer.not_sure
    assert solved < 0.6 * SIDE * SIDE  # advice is tried, too
    half = SQUARES.copy()
    half[: SIDE // 2] = dots[: SIDE // 2]
    _, solved = answered(half)
    assert solved > SIDE * SIDE / 2


def test_a_picture_of_which_hardly_more_than_a_pattern_would_change_comes_back_as_it_came() -> None:
    """A tile of dots is a small part of it, and detail; two pixels beside it are fewer than any level tells."""
    picture = SQUARES.copy()
    picture[128:256:4, 128:256:4] = 1 - picture[128:256:4, 128:256:4]
    for place in ((400, 100), (450, 330)):
        picture[place] = 1 - picture[place]
    answer, _ = answered(picture)
    assert answer.facts.pairs > limit_of(Status.NOT_NOISE, "pairs")
    assert answer.outcome is Outcome.CLEAN and (answer.estimate == picture).all()
