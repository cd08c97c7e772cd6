"""Components against scipy's labels, pieces against components, and windows against whole pictures."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage, stats

from restore.components import components
from restore.inference.marks.ground import excess
from restore.inference.marks.pieces import COARSER, Pieces, around, closed
from restore.inference.marks.witness import SEEN, STEP, _windows
from restore.inference.restored import STRIP

PICTURES = st.tuples(st.integers(1, 30), st.integers(1, 30), st.floats(0.1, 0.9), st.integers(0, 2**32))


def drawn(how: tuple[int, int, float, int]) -> np.ndarray:
    height, width, share, seed = how
    return np.random.default_rng(seed).random((height, width)) < share


def labelled(ink: np.ndarray) -> np.ndarray:
    dark, count = ndimage.label(ink, np.ones((3, 3)))
    light, _ = ndimage.label(~ink)
    return np.where(ink, dark, light + count)


@settings(max_examples=60, deadline=None)
@given(PICTURES)
def test_components_are_what_labels_say(how: tuple[int, int, float, int]) -> None:
    ink = drawn(how)
    own, other = components(ink), labelled(ink)
    pairs = np.unique(np.stack([own.ravel(), other.ravel()]), axis=1)
    assert len(pairs.T) == len(np.unique(own)) == len(np.unique(other))
    # Pieces are numbered like components: by their first pixels.
    assert (np.diff(np.unique(own, return_index=True)[1]) > 0).all() and own.max() + 1 == len(np.unique(own))


def test_components_that_join_only_at_their_ends() -> None:
    snake = np.zeros((41, 30), bool)
    snake[::2] = snake[1::4, -1] = snake[3::4, 0] = True
    comb = np.pad(np.arange(29) % 2 == np.zeros((40, 1)), ((0, 1), (0, 1)), constant_values=True)
    for ink in (snake, snake[::-1], comb, comb[::-1], comb.T):
        assert len(np.unique(components(ink)[ink])) == 1


@settings(max_examples=30, deadline=None)
@given(PICTURES, st.integers(1, 12))
def test_pieces_are_the_small_components(how: tuple[int, int, float, int], largest: int) -> None:
    ink = drawn(how)
    whole, pieces = components(ink), Pieces.of(ink, largest)
    sizes = np.bincount(whole.ravel())[whole]
    np.testing.assert_array_equal(pieces.inside, sizes <= largest)
    for number in range(pieces.count):
        cells = np.argwhere(pieces.labels == number)
        assert len(cells) == pieces.sizes[number] and len(np.unique(whole[tuple(cells.T)])) == 1
        assert (ink[tuple(cells.T)] == pieces.dark[number]).all()
        np.testing.assert_array_equal(pieces.boxes[number], [*cells.min(0), *cells.max(0) + 1])
        np.testing.assert_allclose(pieces.centres[number], cells.mean(0))
    which = np.arange(pieces.count) % 2 == 0
    some = pieces.chosen(which)
    np.testing.assert_array_equal(some.inside, pieces.mask(which))
    np.testing.assert_array_equal(some.sizes, pieces.sizes[which])


@settings(max_examples=30, deadline=None)
@given(st.tuples(st.integers(1, 70), st.integers(1, 70), st.floats(0.01, 0.1), st.integers(0, 2**32)))
def test_each_piece_has_one_window_that_shows_what_is_around_it(how: tuple[int, int, float, int]) -> None:
    ink = drawn(how)
    pieces, met = Pieces.of(ink, 30), list[int]()
    for which, corners, side in _windows(pieces, ink.shape):
        met += list(which)
        assert ((corners >= 0) & (corners + side <= ink.shape)).all()
        assert ((side % STEP == 0) | (side == ink.shape)).all()
        low, high = pieces.boxes[which, :2], pieces.boxes[which, 2:]
        assert (corners <= (low - SEEN).clip(0)).all() and (side < (high - low).max(0) + 2 * SEEN + STEP).all()
        assert (corners + side >= np.minimum(high + SEEN, ink.shape)).all()
    assert sorted(met) == list(range(pieces.count))


def test_a_square_is_not_ragged_and_a_bar_is() -> None:
    ink = np.zeros((20, 40), bool)
    ink[5:9, 5:9] = ink[10, 20:36] = True
    pieces = Pieces.of(ink, 16)
    np.testing.assert_allclose(pieces.ragged, [0, 34 - 16])


@settings(max_examples=20, deadline=None)
@given(PICTURES, st.integers(0, 5), st.integers(0, 40))
def test_what_is_around_is_what_a_filter_sums(how: tuple[int, int, float, int], far: int, along: int) -> None:
    mask = drawn(how)
    for across, found in ((far, around(mask, far)), (along, around(mask, far, along))):
        wanted = ndimage.convolve(mask.astype(int), np.ones((2 * far + 1, 2 * across + 1), int), mode="constant")
        np.testing.assert_array_equal(found, wanted)


def test_what_is_around_is_the_same_across_strips_and_in_wide_windows() -> None:
    # More rows than a strip has, and more pixels in a window than 16 bits count.
    mask = np.ones((2 * STRIP + 9, 5), bool)
    counts = around(mask, 2)[:, 2]
    np.testing.assert_array_equal(counts, [15, 20, *[25] * (len(mask) - 4), 20, 15])
    assert around(np.ones((300, 300), bool), 200).max() == 300 * 300


def test_excess_bounds_the_tail_of_poisson_counts() -> None:
    for expected in (0.1, 1.0, 7.0):
        counts = np.arange(int(expected) + 1, 40)
        bound = np.exp(-excess(counts, expected))
        assert (stats.poisson.sf(counts - 1, expected) <= bound + 1e-12).all()
        assert (bound[15:] < 0.05).all()


def test_a_closing_by_cells_fills_what_squares_do_not_fit_into() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        mask = rng.random((67, 90)) < 0.003
        far = int(rng.integers(2 * COARSER, 24))
        narrow, wide = (
            ndimage.binary_closing(np.pad(mask, 60), np.ones((2 * reach + 1, 2 * reach + 1)))[60:-60, 60:-60]
            for reach in (far - 2 * COARSER, far + 2 * COARSER)
        )
        near = ndimage.binary_dilation(wide, iterations=COARSER, structure=np.ones((3, 3)))
        found = closed(mask, far)
        assert (mask <= found).all() and (narrow <= found).all() and (found <= near).all()
