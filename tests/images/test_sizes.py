"""Images of another size than the prior's are resized within a factor of 2, or refused safely."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from commands import Run
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from priors import saved_prior

import restore
from restore.errors import ModelError
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
