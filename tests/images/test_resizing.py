"""Grey levels, resizing, and what is black or white."""

from __future__ import annotations

import numpy as np
import pytest
from bad_images import quick
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from restore.images import enlarge, shrink

pytestmark = pytest.mark.usefixtures("silent")

sizes = st.tuples(st.integers(1, 9), st.integers(1, 9))


@given(sizes, sizes, st.floats(0, 1), st.data())
@quick
def test_constant_stays_constant(old, new, value, data):
    hidden = data.draw(st.none() | arrays(bool, old))
    small, small_hidden = shrink(np.full(old, value), hidden, new)
    if hidden is None or not hidden.all():
        np.testing.assert_allclose(small, value, atol=1e-9)
    else:
        assert small_hidden.all()
    np.testing.assert_allclose(enlarge(np.full(old, value), new), value, atol=1e-6)


@given(sizes, sizes, st.data())
@quick
def test_resized_stays_in_range_and_ignores_hidden(old, new, data):
    pixels = data.draw(arrays(np.float64, old, elements=st.floats(0, 1)))
    hidden = data.draw(arrays(bool, old))
    small, small_hidden = shrink(pixels, hidden, new)
    assert small.shape == small_hidden.shape == new and small_hidden.dtype == bool
    large = enlarge(small, old)
    assert large.shape == old
    assert min(small.min(), large.min()) >= 0 and max(small.max(), large.max()) <= 1
    changed = shrink(np.where(hidden, np.nan, pixels), hidden, new)
    np.testing.assert_array_equal(changed[0], small)
    np.testing.assert_array_equal(changed[1], small_hidden)


def test_shrink_averages_area():
    pixels = np.array([[0.0, 1.0, 0.5]])
    np.testing.assert_allclose(shrink(pixels, None, (1, 2))[0], [[1 / 3, 2 / 3]])
    np.testing.assert_allclose(shrink(pixels, np.array([[False, True, False]]), (1, 2))[0], [[0.0, 0.5]])
    np.testing.assert_allclose(shrink(pixels, None, (2, 6))[0], np.repeat(np.repeat(pixels, 2, axis=0), 2, axis=1))


def test_more_than_half_hidden_is_hidden():
    hidden = np.zeros((4, 4), bool)
    hidden[:2, :1] = True  # half of the first cell
    hidden[2:, :2] = [[True, True], [True, False]]
    np.testing.assert_array_equal(shrink(np.zeros((4, 4)), hidden, (2, 2))[1], [[False, False], [True, False]])
