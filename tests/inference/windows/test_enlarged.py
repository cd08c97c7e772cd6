"""Pictures that were drawn large: their squares are found, and nothing that is drawn more finely is lost."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from restore.inference.windows.enlarged import Grid, _alike, _read, drawn_large

import restore
from restore.inference.damage import Damage, Rates
from training.data.pages import page
from training.data.text import families_to_learn_from


def code(seed: int, height: int = 21, width: int = 25) -> np.ndarray:
    """Modules as in a QR code, half of them white; no two rows or columns agree."""
    return np.random.default_rng(seed).random((height, width)) < 0.5


def large(modules: np.ndarray, side: int) -> np.ndarray:
    return modules.repeat(side, 0).repeat(side, 1)


def flipped(white: np.ndarray, p: float, seed: int = 0) -> np.ndarray:
    return np.asarray(white ^ (np.random.default_rng(seed).random(white.shape) < p))


@pytest.mark.parametrize("side", [3, 5, 8, 16])
def test_squares_are_found_wherever_they_begin(side: int) -> None:
    clean = large(code(side), side)[side - 1 :, side // 2 : -1]
    found = drawn_large(flipped(clean, 0.05), Damage("auto"))
    assert found is not None
    assert found.grid == Grid(side, side - 1, side // 2, clean.shape)
    assert found.noise is not None
    # The level is found from thousands of pixels: five standard errors of a share of .05, and the grid of levels.
    assert abs(found.noise.chosen[0] - 0.05) < 5 * (0.05 * 0.95 / clean.size) ** 0.5 + 0.005
    # Whole squares hold 9 pixels at least, of which 5 are flipped in one of 10^5.
    wrong = found.grid.drawn(found.pixels > 0) != clean
    assert wrong[side:-side, side:-side].mean() < 0.01


def test_a_square_is_as_probable_as_its_flips_say() -> None:
    """Against the sum over all modules, with pixels hidden, squares cut by the border, and two rates."""
    draw = np.random.default_rng(3)
    grid = Grid(2, 1, 0, (4, 4))
    white, seen = draw.random((4, 4)) < 0.5, draw.random((4, 4)) < 0.8
    rates = Rates(0.1, 0.3)
    found = _read(grid, white & seen, ~white & seen, Damage(rates))
    total, each = 0.0, np.zeros((2, *found.white.shape))
    for values in itertools.product((0, 1), repeat=found.white.size):
        modules = np.array(values).reshape(found.white.shape)
        drawn = grid.drawn(modules)
        flip = np.where(drawn == 1, rates.white, rates.black)
        p = np.where(seen, np.where(drawn == white, 1 - flip, flip), 1.0).prod() / 2**modules.size
        total += p
        for value in (0, 1):
            each[value] += p * (modules == value)
    assert found.alone == pytest.approx(np.log(total))
    np.testing.assert_allclose(found.white - found.black, np.log(each[1] / each[0]), atol=1e-9)
    np.testing.assert_allclose(np.asarray(found.damage.p), each.min(0) / total, rtol=1e-9)


def test_what_is_drawn_more_finely_is_not_taken_for_squares() -> None:
    """Print, smooth areas, noise, a code that is turned or drawn 3.5 times as large, and a code above print."""
    rows, columns = np.mgrid[:200, :240]
    print_ = page(families_to_learn_from(), 300, 0, (200, 240)) <= 127
    turned = np.asarray(Image.fromarray(large(code(0), 8)).rotate(10))
    odd = code(0)[(np.arange(140) / 3.5).astype(int)[:70]][:, (np.arange(87) / 3.5).astype(int)]
    mixed = print_.copy()
    mixed[:60, :75] = large(code(1, 20, 25), 3)
    pictures = {
        "print": print_,
        "disc": (rows - 90) ** 2 + (columns - 110) ** 2 < 4900,
        "noise": np.random.default_rng(1).random((200, 240)) < 0.5,
        "blank": np.zeros((200, 240), bool),
        "turned": turned,
        "odd": odd,
        "mixed": mixed,
    }
    for p, (name, picture) in itertools.product((0.02, 0.1, 0.2), pictures.items()):
        assert drawn_large(flipped(picture, p), Damage("auto")) is None, (name, p)


@pytest.mark.parametrize("shape", [(1, 1), (1, 90), (90, 2), (3, 3)])
def test_small_pictures_have_no_squares(shape: tuple[int, int]) -> None:
    assert drawn_large(np.ones(shape, bool), Damage("auto")) is None


def test_a_code_is_restored_without_options() -> None:
    clean = large(code(2), 5)
    found, solution = restore.denoise(flipped(clean, 0.1), return_solution=True)
    assert found.dtype == bool and (found == clean).all()
    assert solution.noise.chosen[0] == pytest.approx(0.1, abs=0.02)
    assert not solution.shortfall.any()
    assert (restore.denoise(flipped(clean, 0.1), p=0.1) == clean).all()


def test_rates_of_white_and_black_are_found() -> None:
    clean = large(code(7), 5)
    for white, black in ((0.02, 0.3), (0.1, 0.0), (0.15, 0.15)):
        damaged = clean ^ (np.random.default_rng(8).random(clean.shape) < np.where(clean, white, black))
        found, solution = restore.denoise(damaged, return_solution=True)
        noise = solution.noise
        rates = np.repeat(noise.chosen, 2) if noise.rates is None else noise.rates[0]
        # Each from more than 6,000 pixels, with a standard error below .006.
        np.testing.assert_allclose(rates, (white, black), atol=0.03)
        assert (noise.rates is None) == (white == black)
        assert (found != clean).mean() < 0.005


def test_holes_take_what_is_seen_of_their_squares() -> None:
    clean = large(code(4), 6)
    hidden = np.zeros(clean.shape, bool)
    # No square is hidden as a whole: every second column of holes leaves half of its squares.
    hidden[9:27, 3:60:6] = hidden[9:27, 4:60:6] = True
    damaged = np.where(hidden, False, clean)
    assert (restore.complete(damaged, hidden) == clean).all()


def test_damage_before_a_picture_was_drawn_large_is_left_and_said_so(
    tmp_path: Path, run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    before = large(flipped(code(6), 0.1), 8)
    for p in (None, 0.1):
        assert (restore.denoise(before, p=p) == before).all()
    Image.fromarray(before).save(tmp_path / "code.png")
    run("denoise", tmp_path / "code.png")
    assert "no square shows both colours: if it was damaged before, restore a copy of 25x21" in capsys.readouterr().err


def test_the_command_says_that_a_picture_was_drawn_large(
    tmp_path: Path, run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    Image.fromarray(flipped(large(code(5), 5), 0.1)).save(tmp_path / "code.png")
    run("denoise", tmp_path / "code.png")
    assert "is drawn 5 times as large, and was restored as a picture of 25x21 pixels" in capsys.readouterr().err


@pytest.mark.parametrize("p", [0.0, 0.01, 0.1])
def test_squares_on_thin_lines_are_not_alike(p: float) -> None:
    """A line of one pixel leaves squares of two half black, and independent flips leave as many a quarter black."""
    seen, lines = np.ones((200, 200), bool), np.ones((200, 200), bool)
    lines[20:180:12, 20:180] = False
    squares = large(code(2, 100, 100), 2)
    for clean, alike in ((squares, True), (lines, False)):
        white = flipped(clean, p)
        found = _read(Grid(2, 0, 0, white.shape), white, ~white, Damage("auto"))
        assert _alike(found, white, seen) is alike


@pytest.mark.parametrize(("p", "told"), [(0.0, "auto"), (0.0005, "auto"), (0.05, 0.1), (0.1, 0.05)])
def test_squares_are_found_at_any_level(p: float, told: float | str) -> None:
    clean = large(code(1), 4)
    found = drawn_large(flipped(clean, p), Damage(told))  # type: ignore[arg-type]
    assert found is not None and (found.grid.drawn(found.pixels > 0) == clean).mean() > 0.99
