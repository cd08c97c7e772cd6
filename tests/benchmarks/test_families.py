"""The benchmark of families of pictures: what it draws, and how it tunes and tells refusals."""

from __future__ import annotations

import numpy as np
import pytest
from families import tuned
from filters import Candidate, median
from kinds_of_pictures import icon, mask, plan
from scoring import inverted


@pytest.mark.parametrize(("draw", "shape"), [(icon, (64, 64)), (plan, (256, 256)), (mask, (420, 512))])
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
