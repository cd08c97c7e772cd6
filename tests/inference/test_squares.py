"""Pictures drawn large: the posterior of squares by brute force, and codes that come back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from enumerated import SHAPE, ExactEngine, Opened, small_machine
from scipy.ndimage import gaussian_filter

from restore.channels.damage import Damage, Observed
from restore.inference.candidates import SQUARE_SIDES, Prior, Squares, squares_in
from restore.inference.decision.notes import LEAST_WRITTEN
from restore.inference.options import Options
from restore.inference.restore import restore
from restore.priors import RBM
from restore.status import Status


def code(modules: int, side: int, seed: int = 0) -> np.ndarray:
    """A picture of random modules, white being 1."""
    draw = np.random.default_rng(seed).random((modules, modules)) < 0.5
    return np.kron(draw, np.ones((side, side)))


def posterior(picture: np.ndarray, damage: Damage, squares: Squares) -> np.ndarray:
    """P(white) of each pixel by Bayes' rule over the two colours of its square, pixel by pixel."""
    of_white, of_black = (np.broadcast_to(damage.known("p"), picture.shape) for _ in range(2))
    visible = np.ones(picture.shape, bool) if damage.hidden is None else ~damage.hidden
    square = {
        (row, column): ((row - squares.top) // squares.side, (column - squares.left) // squares.side)
        for row, column in np.ndindex(*picture.shape)
    }
    actual = np.empty(picture.shape)
    for index in square:
        white, black = 0.5, 0.5
        for other, own in square.items():
            if own == square[index] and visible[other]:
                white *= 1 - of_white[other] if picture[other] else of_white[other]
                black *= of_black[other] if picture[other] else 1 - of_black[other]
        actual[index] = white / (white + black)
    return actual


DAMAGES = {
    "one": Damage(0.2),
    "each": Damage(np.random.default_rng(1).uniform(0.05, 0.4, (7, 11))),
    "holes": Damage(0.2, hidden=np.random.default_rng(2).random((7, 11)) < 0.4),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize("squares", [Squares(2, 0, 0), Squares(3, 2, 1), Squares(8, 5, 7)], ids=str)
def test_the_posterior_is_that_of_a_colour_for_each_square(squares: Squares, damage: Damage) -> None:
    """Squares that a border cuts, or a hole empties, have the pixels that are left of them."""
    picture = np.random.default_rng(3).integers(0, 2, (7, 11)).astype(float)
    actual = squares.posterior(Observed(picture, damage), lambda share: None)
    wanted = posterior(picture, damage, squares)
    # Evidence passes through single precision.
    np.testing.assert_allclose(actual.means[0], wanted, atol=1e-6)
    np.testing.assert_allclose(actual.variances[0], wanted * (1 - wanted), atol=1e-6)


@pytest.mark.parametrize("damage", [DAMAGES["one"], DAMAGES["each"], DAMAGES["holes"]], ids=DAMAGES)
def test_under_a_prior_that_knows_nothing_squares_are_as_without_one(damage: Damage) -> None:
    """A prior needs the true chance that each square is wrong, neither more nor less."""
    flat = RBM.binary(torch.zeros(12, 1), torch.zeros(12), torch.zeros(1))
    squares = Squares(3, 2, 1)  # of 7x11 pixels 3x4
    picture = Observed(np.random.default_rng(3).integers(0, 2, (7, 11)).astype(float), damage)
    alone, told = (
        one.posterior(picture, lambda share: None)
        for one in (squares, replace(squares, prior=Prior(ExactEngine.of(flat, SHAPE))))
    )
    np.testing.assert_allclose(told.means, alone.means, atol=1e-6)
    np.testing.assert_allclose(told.variances, alone.variances, atol=1e-6)


@pytest.mark.parametrize("corner", [(0, 0), (1, 2), (5, 3)], ids=str)
def test_a_part_of_a_picture_keeps_the_places_of_squares(corner: tuple[int, int]) -> None:
    picture = np.random.default_rng(3).integers(0, 2, (7, 11)).astype(float)
    squares = Squares(3, 2, 1)
    moved = Squares(3, (2 - corner[0]) % 3, (1 - corner[1]) % 3)
    actual = squares.solve(picture[None], Damage(0.2), [corner])
    np.testing.assert_allclose(actual.means[0], posterior(picture, Damage(0.2), moved), atol=1e-6)
    two = squares.solve(np.stack([picture, picture]), Damage(0.2), [(0, 0), corner])
    np.testing.assert_array_equal(two.means[1], actual.means[0])


@pytest.mark.parametrize("side", SQUARE_SIDES)
def test_edges_are_found_where_colours_change(side: int) -> None:
    large = code(20, side)
    for top, left in ((0, 0), (1, side - 1), (side - 1, 1)):
        # What is cut off in front moves the first edge.
        picture = large[side - top :, side - left :]
        noisy = np.abs(picture - (np.random.default_rng(side).random(picture.shape) < 0.1))
        squares = {one.side: (one.top, one.left) for one in squares_in(Observed(noisy, Damage("auto")))}
        assert squares[side] == (top, left)


def test_what_is_hidden_changes_no_colour() -> None:
    picture, hidden = code(10, 4), np.zeros((40, 40), bool)
    hidden[1::4] = hidden[:, 2::4] = True
    seen = Observed(np.where(hidden, 1 - picture, picture), Damage("auto", hidden=hidden))
    assert [(one.top, one.left) for one in squares_in(seen) if one.side == 4] == [(0, 0)]


def test_edges_are_where_colours_change_most_often_not_where_there_are_most_rows() -> None:
    """Of seven rows, two lie a row after an edge of squares of four, and only one lies at an edge."""
    picture = np.zeros((7, 30))
    picture[3:] = 1
    picture[1:, :18] = 1 - picture[1:, :18]
    picture[5:, :18] = 1 - picture[5:, :18]
    changes = (picture[1:] != picture[:-1]).sum(1)
    assert changes.tolist() == [18, 0, 30, 0, 18, 0]
    for pixels, name in ((picture, "top"), (picture.T, "left")):
        squares = {one.side: one for one in squares_in(Observed(pixels, Damage("auto")))}
        assert getattr(squares[4], name) == 3


def test_changes_under_a_mask_are_not_counted() -> None:
    picture, hidden = code(12, 4), np.zeros((48, 48), bool)
    hidden[:, :40] = True
    # Stripes under the mask that would move the edges.
    picture[:, :40] = np.arange(40) % 4 == 1
    for pixels, mask in ((picture, hidden), (picture.T, hidden.T)):
        squares = {one.side: one for one in squares_in(Observed(pixels, Damage("auto", hidden=mask)))}
        assert (squares[4].top, squares[4].left) == (0, 0)


@pytest.mark.parametrize("side", range(3, 9))
def test_codes_come_back_without_a_wrong_pixel(side: int) -> None:
    """Through the whole path, against two priors that know no codes, with nothing told but a flip of one in ten."""
    clean = code(21, side, side)
    picture = np.abs(clean - (np.random.default_rng(100 + side).random(clean.shape) < 0.1))
    engines = tuple(ExactEngine.of(small_machine(seed=seed), SHAPE, f"prior-{seed}") for seed in (3, 8))
    (result,) = restore([Observed(picture, Damage("auto"))], Options(), Opened(engines, named=False))
    assert result.status is Status.CONVERGED and result.engine == "numpy"
    # Of 441 squares of 3x3 pixels .35 are expected to have most of their pixels flipped: here none has. A square that
    # has a divisor of the side would be restored, too, but not as well.
    assert np.array_equal(result.estimate, clean)
    assert result.model == f"squares of {side}x{side} pixels"
    # The standard deviation of the share is below .005 of these 3,969 pixels or more.
    assert result.level.value == pytest.approx(0.1, abs=0.015)


def test_a_hole_in_a_code_is_filled_square_by_square() -> None:
    clean, hidden = code(24, 5), np.zeros((120, 120), bool)
    hidden[22:27, 31:38] = hidden[60:64, 81:83] = True
    engines = tuple(ExactEngine.of(small_machine(seed=seed), SHAPE, f"prior-{seed}") for seed in (3, 8))
    picture = Observed(np.where(hidden, 1 - clean, clean), Damage(hidden=hidden))
    (result,) = restore([picture], Options(), Opened(engines, named=False))
    assert result.model == "squares of 5x5 pixels" and np.array_equal(result.estimate, clean)
    assert any(f"less than {LEAST_WRITTEN:.1%} are" in note for note in result.notes)
    # A square of which nothing is seen may be either.
    hidden[20:30, 30:40] = True
    (result,) = restore([replace(picture, damage=Damage(hidden=hidden))], Options(), Opened(engines, named=False))
    assert any("about" in note and "expected to be wrong" in note for note in result.notes)
    np.testing.assert_allclose(result.means[20:30, 30:40], 0.5)


def test_graph_paper_is_not_taken_for_squares() -> None:
    """Its lines are of one pixel; squares of some side predict it a little better than independent pixels do."""
    lines = ((np.arange(120)[:, None] % 10 == 0) | (np.arange(120) % 10 == 0)).astype(float)
    engines = tuple(ExactEngine.of(small_machine(seed=seed), SHAPE, f"prior-{seed}") for seed in (3, 8))
    for picture in (lines, 1 - lines):
        (result,) = restore([Observed(picture, Damage("auto"))], Options(), Opened(engines, named=False))
        assert result.not_sure and np.array_equal(result.estimate, picture)


def test_a_texture_has_no_edges_between_squares() -> None:
    """Neighbours that agree look like squares under flips; what tells squares is where their colours change."""
    fields = [gaussian_filter(np.random.default_rng(seed).random((120, 120)), 0.8) for seed in range(20)]
    found = [squares_in(Observed((field > 0.5).astype(float), Damage("auto"))) for field in fields]
    assert not any(squares.edges for every in found for squares in every)
    noisy = np.where(np.random.default_rng(0).random((120, 120)) < 0.3, 1 - code(24, 5), code(24, 5))
    assert 5 in {squares.side for squares in squares_in(Observed(noisy, Damage("auto"))) if squares.edges}
