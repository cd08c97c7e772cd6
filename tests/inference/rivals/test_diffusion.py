"""Diffusion: what is visible spreads into holes and no further; and pictures in which no prior fills holes as well."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import restore
from restore.channels.damage import Damage
from restore.errors import RestoreWarning
from restore.inference.rivals.diffusion import Diffusion, diffused

SHAPES = st.tuples(st.just(2), st.integers(1, 40), st.integers(1, 40))


@given(st.data())
@settings(max_examples=30)
def test_holes_lie_between_what_is_visible_and_the_rest_stays(data: st.DataObject) -> None:
    """The maximum principle of Laplace's equation."""
    shape = data.draw(SHAPES)
    values = data.draw(arrays.arrays(np.float32, shape, elements=st.floats(0, 1, width=32)))
    visible = data.draw(arrays.arrays(bool, shape))
    filled = diffused(values, visible)
    assert np.array_equal(filled[visible], values[visible])
    for one, seen, given_ in zip(filled, visible, values, strict=True):
        low, high = (given_[seen].min(), given_[seen].max()) if seen.any() else (0.5, 0.5)
        assert one.min() >= low - 1e-6 and one.max() <= high + 1e-6


@given(st.data())
@settings(max_examples=20)
def test_a_hole_in_one_colour_is_filled_with_it_whatever_its_shape(data: st.DataObject) -> None:
    shape = data.draw(SHAPES)
    hidden = data.draw(arrays.arrays(bool, shape))
    hidden[:, 0, 0] = False
    for colour in (0.0, 1.0):
        posterior = Diffusion().solve(np.where(hidden, 0.3, colour), Damage(hidden=hidden))
        np.testing.assert_allclose(posterior.means, colour, atol=1e-6)


def test_a_slope_is_continued_through_a_band() -> None:
    """The solution of Laplace's equation between two straight sides is linear."""
    slope = np.tile(np.linspace(0, 1, 33, dtype=np.float32), (1, 33, 1))
    visible = np.ones(slope.shape, bool)
    visible[:, :, 14:19] = False
    np.testing.assert_allclose(diffused(slope, visible), slope, atol=0.02)


def scratched(angle: float) -> tuple[np.ndarray, np.ndarray]:
    """A square on blank paper, and oblique scratches of three pixels all over it."""
    rows, columns = np.mgrid[:160, :160]
    paper = np.ones((160, 160), bool)
    paper[30:60, 40:70] = False
    return paper, (rows * np.cos(angle) + columns * np.sin(angle)) % 40 < 3


@pytest.mark.parametrize("model", ["auto", "conv-art"])
@pytest.mark.parametrize("angle", [0.5, 0.9])
@pytest.mark.parametrize("light", [True, False])
def test_scratches_over_blank_paper_are_filled_with_paper(model: str, angle: float, light: bool) -> None:
    paper, hidden = scratched(angle)
    picture = paper if light else ~paper
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RestoreWarning)
        filled, answer = restore.complete(picture & ~hidden, hidden, model, return_solution=True)
    blank = hidden.copy()
    blank[24:66, 34:76] = False
    assert (filled[blank] == picture[blank]).all(), answer.model
    # A hundred pixels and more are hidden in and around the square; its sides are cut by them.
    assert (filled != picture)[hidden].mean() < 0.03
    assert model in ("auto", answer.model)


@pytest.mark.parametrize("invert", [None, False])
def test_a_prior_that_is_named_fills_and_it_is_said_where_diffusion_predicts_better(invert: bool | None) -> None:
    paper, hidden = scratched(0.5)
    filled, answer = restore.complete(paper & ~hidden, hidden, "conv-text", invert=invert, return_solution=True)
    assert answer.model == "conv-text" and (filled == paper)[~hidden].all()
    assert any(note.startswith("diffusion predicts such holes better; leave model out") for note in answer.notes)
    _, chosen = restore.complete(paper & ~hidden, hidden, return_solution=True)
    assert not any("diffusion predicts" in note for note in chosen.notes)


def test_what_a_prior_knows_is_filled_by_it() -> None:
    """A broken stroke, whose ends diffusion does not join."""
    rows, columns = np.mgrid[:120, :160]
    strokes = (columns + rows) % 20 < 4
    hidden = np.zeros(strokes.shape, bool)
    for top in range(10, 100, 30):
        for left in range(10, 140, 30):
            hidden[top : top + 10, left : left + 10] = True
    filled, answer = restore.complete(strokes & ~hidden, hidden, "conv-art", return_solution=True)
    assert answer.model == "conv-art" and (filled != strokes)[hidden].mean() < 0.05


@pytest.mark.parametrize("step", [2, 3])
def test_a_picture_of_which_half_is_hidden_everywhere_is_filled(step: int) -> None:
    """A checkerboard, of which a copy of itself would hide the rest, and two thirds of the rows."""
    rows, columns = np.mgrid[:120, :160]
    disc = np.hypot(rows - 60, columns - 80) < 40
    hidden = (rows + columns) % 2 == 0 if step == 2 else rows % step > 0
    filled, answer = restore.complete(disc & ~hidden, hidden, return_solution=True)
    assert answer.outcome == "restored" and (filled != disc)[hidden].mean() < 0.02
