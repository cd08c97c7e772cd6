"""Windows that cover an image: every pixel in as many as promised, and what is cut out adds up again."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from restore.inference.tiles.grid import Axis, Cover

sides = st.integers(1, 40)
axes = st.tuples(sides, st.integers(1, 12), st.integers(1, 12)).map(lambda one: Axis(one[0], one[1], min(one[1:])))


@given(axes)
def test_windows_reach_from_before_the_image_to_behind_it_and_none_lies_outside(axis: Axis) -> None:
    starts = np.arange(axis.count) * axis.stride - axis.before
    assert starts[0] <= 0 and starts[-1] + axis.window >= axis.size
    assert (starts + axis.window > 0).all() and (starts < axis.size).all()
    assert axis.before >= 0 and axis.after >= 0


@given(sides, st.integers(1, 4), st.integers(1, 4))
def test_every_pixel_lies_in_equally_many_windows_where_the_stride_divides_them(
    size: int, stride: int, overlap: int
) -> None:
    window = stride * overlap
    cover = Cover.of((size, 1), (window, 1), overlap)
    count = cover.crop(cover.add(np.ones((cover.count, window, 1))))
    assert (count == (1 if size <= window else overlap)).all()


@settings(deadline=None)
@given(sides, sides, st.integers(1, 9), st.integers(1, 9), st.integers(1, 4), st.integers(0, 99))
def test_the_mean_of_windows_is_the_image_they_were_cut_out_of(
    height: int, width: int, tall: int, wide: int, overlap: int, seed: int
) -> None:
    image = np.random.default_rng(seed).integers(0, 100, (height, width)).astype(float)
    cover = Cover.of(image.shape, (tall, wide), overlap)
    windows = cover.cut(image, 0.0)
    assert windows.shape == (cover.count, tall, wide)
    count = cover.add(np.ones(windows.shape))
    assert np.array_equal(cover.crop(cover.add(windows)), image * cover.crop(count))
    # Cutting and adding are adjoint: <cut(x), y> = <x, add(y)>.
    other = np.random.default_rng(seed + 1).integers(0, 100, windows.shape).astype(float)
    padded = np.pad(image, ((cover.down.before, cover.down.after), (cover.across.before, cover.across.after)))
    assert (windows * other).sum() == (padded * cover.add(other)).sum()


def test_outside_is_what_was_asked_for() -> None:
    cover = Cover.of((2, 2), (4, 4), 2)
    image = np.arange(4.0).reshape(2, 2)
    assert cover.cut(image, -1.0)[0].tolist() == [[-1, -1, -1, -1], [-1, 0, 1, -1], [-1, 2, 3, -1], [-1, -1, -1, -1]]
    assert cover.cut(image, "edge")[0].tolist() == [[0, 0, 1, 1], [0, 0, 1, 1], [2, 2, 3, 3], [2, 2, 3, 3]]


def test_windows_within_an_image_begin_with_it_and_end_less_than_a_stride_behind() -> None:
    for size, window, stride in itertools.product(range(1, 30), (4, 7), (1, 2, 3)):
        axis = Axis(size, window, stride, within=True)
        if size > window:
            assert axis.before == 0 and 0 <= axis.after < stride
