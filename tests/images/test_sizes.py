"""Images of other sizes: which are resized for which prior, how, and how many pixels may be read."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from bad_images import quick
from commands import Run
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image
from priors import saved_prior

import restore
from restore.errors import ModelError
from restore.images import enlarge, shrink
from restore.sizes import check_near, near
from restore.zoo import candidates, describe, find

WANTED = (10, 12)
SIZES = st.tuples(st.integers(1, 60), st.integers(1, 60))


@cache
def is_grey(name: str) -> bool:
    return describe(find(name)).grey


@given(SIZES)
def test_nothing_is_resized_by_more_than_two_unless_forced(shape: tuple[int, int]) -> None:
    ratios = np.divide(shape, WANTED)
    close = bool((ratios <= 2).all() and (ratios >= 0.5).all())
    assert near(shape, WANTED) == close
    if close:
        check_near(shape, WANTED)
        return
    with pytest.raises(ModelError):
        check_near(shape, WANTED)


@settings(max_examples=6)
@given(SIZES, st.booleans())
def test_there_are_priors_for_windows_of_any_size_but_none_to_resize_for(shape: tuple[int, int], grey: bool) -> None:
    if shape in ((28, 28), (19, 19), (16, 16), (10, 10)):
        return
    names = candidates(shape, grey)
    assert ("em-photographs" if grey else "conv-art") in names
    assert all(is_grey(name) == grey for name in names)
    with pytest.raises(ModelError):
        candidates(shape, grey, "resize")


def test_python_refuses_to_resize_by_more_too(tmp_path: Path) -> None:
    prior = restore.load(str(saved_prior(tmp_path)))
    # As light as the prior's images are.
    far, close = (np.random.default_rng(0).random(shape) < 0.35 for shape in ((40, 12), (20, 7)))
    with pytest.raises(ModelError):
        prior.denoise(far, 0.1, fit="resize")
    with pytest.warns(restore.RestoreWarning):
        several = prior.denoise([close, far], 0.1, fit="resize")
    np.testing.assert_array_equal(several[1], far)
    assert prior.denoise(close, 0.1, fit="resize").shape == close.shape
    assert prior.denoise(far, 0.1, fit="resize", force=True).shape == far.shape
    both = prior.denoise([close, far], 0.1, force=True)
    assert [one.shape for one in both] == [close.shape, far.shape]


@pytest.mark.parametrize("words", [[], ["--model", "tap-mnist", "--invert"]], ids=str)
def test_a_page_is_resized_for_no_prior_unless_forced(
    words: list[str], run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, output = tmp_path / "page.png", tmp_path / "out.png"
    noise = np.random.default_rng(0).random((1754, 1240)) < 0.05
    Image.fromarray(np.where((np.arange(1754)[:, None] % 40 < 18) ^ noise, 0, 255).astype(np.uint8)).save(page)
    assert run("denoise", page, "--p", 0.05, *words, "--fit", "resize", "-o", output) == 4
    (line,) = capsys.readouterr().err.splitlines()
    assert str(page) in line and not output.exists()
    if words:
        assert run("denoise", page, "--p", 0.05, *words, "--fit", "resize", "--force", "-o", output) == 0
        assert "resized" in capsys.readouterr().err and Image.open(output).size == (1240, 1754)


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


# --- sets of images ---


@pytest.mark.parametrize("command", ["train", "evaluate"])
def test_the_budget_is_an_option_of_every_command_that_reads_a_set(
    command: str, run: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.random.default_rng(0).integers(0, 256, (50, 28, 28), dtype=np.uint8))
    words = {
        "train": ["train", path, "--name", "x", "-o", tmp_path / "x", "--run", tmp_path / "run"],
        "evaluate": ["evaluate", "tap-mnist-25", "--data", path, "--task", "flip:0.1"],
    }[command]
    assert run(*words, "--max-pixels", 50 * 28 * 28 // 20 - 1) == 3
    said = capsys.readouterr().err
    assert str(path) in said and "--max-pixels" in said
    assert run(*words, "--max-pixels", 0) == 2
