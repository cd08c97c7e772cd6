"""The benchmark of families of pictures: what it draws, and how it tunes and tells refusals."""

from __future__ import annotations

import numpy as np
import pytest
from families import tuned, wrong_of_each
from filters import Candidate, median
from kinds_of_pictures import icon, mask, plan
from line_art import circuits, maps, staves, tables
from scoring import holed, inverted, wrong


def circuit(number: int) -> np.ndarray:
    pytest.importorskip("schemdraw")
    return circuits(np.random.default_rng(number))


def staff(number: int) -> np.ndarray:
    pytest.importorskip("verovio")
    pytest.importorskip("resvg_py")
    return staves(np.random.default_rng(number))


@pytest.mark.parametrize(
    ("draw", "shape"),
    [
        (icon, (64, 64)),
        (plan, (256, 256)),
        (mask, (420, 512)),
        (staff, (256, 320)),
        (circuit, (256, 320)),
        (lambda number: maps(np.random.default_rng(number)), (240, 280)),
        (lambda number: tables(np.random.default_rng(number)), (240, 320)),
    ],
    ids=["icon", "plan", "mask", "staves", "circuits", "maps", "tables"],
)
def test_pictures_are_of_their_size_differ_and_can_be_drawn_again(draw: object, shape: tuple[int, int]) -> None:
    assert callable(draw)
    picture = draw(0)
    assert picture.shape == shape and picture.dtype == bool
    assert 0.01 < picture.mean() < 0.99
    assert (draw(0) == picture).all()
    other = draw(1)
    assert other.shape != shape or (other != picture).any()


def test_settings_are_chosen_on_validation_pictures() -> None:
    square = np.zeros((40, 40), bool)
    square[10:30, 10:30] = True
    seen = inverted([square], 0.2, 0)
    chosen = tuned(
        {"median": Candidate(median, (1, 3, 5)), "holes only": Candidate(median, flips=False)}, [square], seen
    )
    assert list(chosen) == ["median"] and chosen["median"].settings != (1,)


def test_what_is_wrong_of_each_picture_is_on_average_what_is_wrong() -> None:
    clean = [np.eye(64, dtype=bool), np.ones((64, 64), bool)]
    for seen in (inverted(clean, 0.2, 0), holed(clean, 0)):
        found = [one.ink for one in seen]
        assert np.mean(wrong_of_each(clean, seen, found)) == pytest.approx(wrong(clean, seen)(found))
