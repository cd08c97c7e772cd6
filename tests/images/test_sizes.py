"""Rows 27 and 73: images of another size than the prior's are resized within a factor of 2, or refused safely."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from commands import Run
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from priors import saved_prior

import restore
from restore.errors import ModelError, UsageError
from restore.sizes import check_near, near
from restore.zoo import candidates, describe, find

WANTED = (10, 12)
SIZES = st.tuples(st.integers(1, 60), st.integers(1, 60))


@given(SIZES)
def test_row73_nothing_is_resized_by_more_than_two_unless_forced(shape: tuple[int, int]) -> None:
    ratios = np.divide(shape, WANTED)
    close = bool((ratios <= 2).all() and (ratios >= 0.5).all())
    assert near(shape, WANTED) == close
    if close:
        check_near(shape, WANTED)
        return
    with pytest.raises(ModelError):
        check_near(shape, WANTED)


@settings(max_examples=20)
@given(SIZES, st.booleans())
def test_row27_priors_for_windows_of_any_size_but_none_to_resize_for(shape: tuple[int, int], grey: bool) -> None:
    if shape in ((28, 28), (19, 19), (16, 16), (10, 10)):
        return
    names = candidates(shape, grey)
    assert ("em-photographs" if grey else "conv-shapes") in names
    assert all(describe(find(name)).grey == grey for name in names)
    with pytest.raises(ModelError, match=r"no prior knows images of .*name the one to resize them for"):
        candidates(shape, grey, "resize")


def test_row27_black_and_white_of_the_size_of_photographs_patches_is_for_priors_of_windows() -> None:
    assert candidates((10, 10)) == candidates((11, 11))
    assert candidates((10, 10), grey=True)[0] == "em-photographs"


def test_row27_the_value_of_fit_is_checked() -> None:
    with pytest.raises(UsageError, match="fit"):
        restore.denoise(np.zeros((28, 28)), "tap-mnist-25", 0.1, fit="error")  # type: ignore[call-overload]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A scanned page, dark on light, with 5 % of its pixels inverted."""
    draw, pixels = np.random.default_rng(0), np.full((1754, 1240), 255, np.uint8)
    for top in range(100, 1650, 40):
        left = 100
        while left < 1080:
            width = int(draw.integers(20, 120))
            pixels[top : top + 18, left : left + width] = np.where(draw.random((18, width)) < 0.5, 0, 255)
            left += width + 15
    path = tmp_path_factory.mktemp("scan") / "page.png"
    Image.fromarray(np.where(draw.random(pixels.shape) < 0.05, 255 - pixels, pixels).astype(np.uint8)).save(path)
    return path


@pytest.mark.parametrize("words", [[], ["--model", "tap-mnist"], ["--model", "tap-mnist", "--invert"]], ids=str)
def test_row73_a_page_is_resized_for_no_prior(
    words: list[str], run: Run, page: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out.png"
    assert run("denoise", page, "--p", 0.05, *words, "--fit", "resize", "-o", output) == 4
    (line,) = capsys.readouterr().err.splitlines()
    assert str(page) in line and "1240x1754" in line and not output.exists()
    mask = tmp_path / "mask.png"
    Image.fromarray(np.eye(1754, 1240, dtype=np.uint8) * 255).save(mask)
    assert run("complete", page, "--mask", mask, *words, "--fit", "resize", "-o", output) == 4
    assert not output.exists()


@pytest.mark.thorough
def test_row73_a_part_of_a_page_is_refused_or_better_than_before(run: Run, page: Path, tmp_path: Path) -> None:
    part, output = tmp_path / "part.png", tmp_path / "out.png"
    noisy = np.asarray(Image.open(page))[90:190, 90:250]
    Image.fromarray(noisy).save(part)
    code = run("denoise", part, "--p", 0.05, "--model", "pcd-mnist", "-o", output)
    assert code in (0, 4) and output.exists() == (code == 0)
    if code == 0:
        # Nothing like the white page that resizing made of it.
        assert (np.asarray(Image.open(output)) != noisy).mean() < 0.9 * (noisy == 0).mean()


def test_row73_forced_it_is_resized_with_a_warning(
    run: Run, page: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out.png"
    words = ("--p", 0.05, "--model", "tap-mnist", "--fit", "resize", "--invert", "--force")
    assert run("denoise", page, *words, "-o", output) == 0
    assert "was resized to 28x28 pixels and back, so little detail is left" in capsys.readouterr().err
    assert Image.open(output).size == (1240, 1754)


@pytest.mark.thorough
def test_row73_windows_of_a_page_make_a_prior_as_the_message_says(page: Path) -> None:
    whole = np.asarray(Image.open(page))
    parts = [whole[top : top + 200, :300] for top in (100, 300, 500)]
    prior = restore.train(parts, patches=60, shape=(28, 28), hidden=3, epochs=1)
    assert prior.denoise(whole[120:148, 100:128], 0.05, force=True).shape == (28, 28)


def test_row73_python_refuses_too(tmp_path: Path) -> None:
    prior = restore.load(str(saved_prior(tmp_path)))
    # As light as the prior's images are.
    far, close = (np.random.default_rng(0).random(shape) < 0.35 for shape in ((40, 12), (20, 7)))
    with pytest.raises(ModelError, match="12x40"):
        prior.denoise([close, far], 0.1, fit="resize")
    with pytest.raises(ModelError, match="12x40"):
        prior.transform(far)
    assert prior.denoise(close, 0.1, fit="resize").shape == close.shape
    with pytest.warns(restore.RestoreWarning):
        assert prior.denoise(far, 0.1, fit="resize", force=True).shape == far.shape
    both = prior.denoise([close, far], 0.1, force=True)
    assert [one.shape for one in both] == [close.shape, far.shape]
