"""A sheet of paper in a photograph is read, and what it lies on stays as it was."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.ndimage import binary_erosion, gaussian_filter
from skimage import data
from skimage.draw import disk, polygon2mask

import restore
from restore.inference.open import Engines
from restore.inference.options import Options
from restore.inference.scans import reading as room
from restore.inference.scans.outline import beside_sheet
from restore.inference.scans.parts import other_parts
from restore.status import Outcome
from training.data.scans import scan
from training.data.text import families_for_tests

SHAPE = 600, 720
SQUARE = np.array([[90, 110], [90, 600], [510, 600], [510, 110]], float)


def of_sheet(inside: np.ndarray, table: float | np.ndarray, paper: float = 0.9, ink: float = 0.1) -> np.ndarray:
    """Grey levels (H, W) of lines of ink on a sheet, on a table, slightly blurred."""
    rows, columns = np.indices(inside.shape)
    lines = (rows % 24 < 4) & (columns % 17 < 12) & binary_erosion(inside, iterations=24)
    return np.asarray(gaussian_filter(np.where(lines, ink, np.where(inside, paper, table)), 0.7))


@example(moved=[0, 0, 0, 19, 3, 0, -1.5, 0], table=0.0, seed=6)  # whose edges fall on half of a square
@given(moved=st.lists(st.floats(-40, 40), min_size=8, max_size=8), table=st.floats(0, 0.45), seed=st.integers(0, 9))
def test_a_sheet_of_any_perspective_is_found_and_the_table_around_it(
    moved: list[float], table: float, seed: int
) -> None:
    inside = polygon2mask(SHAPE, SQUARE + np.reshape(moved, (4, 2)))
    grain = 0.03 * np.random.default_rng(seed).standard_normal(SHAPE)
    beside = beside_sheet(of_sheet(inside, table) + grain)
    assert beside is not None
    assert beside[~inside].all()
    assert not beside[binary_erosion(inside, iterations=14)].any()


def test_it_does_not_matter_in_which_unit_levels_are_or_which_way_a_sheet_lies() -> None:
    levels = of_sheet(polygon2mask(SHAPE, SQUARE + np.array([[0, 20], [10, 0], [-20, 30], [0, 0]])), 0.3)
    beside = beside_sheet(levels)
    assert beside is not None
    for other in (256 * levels, 0.5 * levels):
        np.testing.assert_array_equal(beside_sheet(other), beside)
    turned = beside_sheet(levels.T)
    assert turned is not None and (beside == turned.T).all()


def test_lines_that_run_from_edge_to_edge_do_not_part_a_sheet() -> None:
    inside = polygon2mask(SHAPE, SQUARE)
    ruled = inside & (np.indices(SHAPE)[0] % 60 < 4)
    beside = beside_sheet(np.where(ruled, 0.3, of_sheet(inside, 0.2)))
    assert beside is not None and not beside[binary_erosion(inside, iterations=14)].any()


def on_paper(dark: np.ndarray, level: float = 0.3) -> np.ndarray:
    """A page of lines, of which some pixels are darker."""
    return np.where(dark, level, 1) * of_sheet(np.ones(SHAPE, bool), 0.0)


def a_disc(radius: float, place: tuple[int, int] = (300, 360)) -> np.ndarray:
    inside = np.zeros(SHAPE, bool)
    inside[disk(place, radius, shape=SHAPE)] = True
    return inside


NO_SHEETS = {
    "a page alone": of_sheet(np.ones(SHAPE, bool), 0.0),
    "no level but one": np.full(SHAPE, 0.5),
    "light that falls off": of_sheet(np.ones(SHAPE, bool), 0.0) * np.linspace(0.3, 1, SHAPE[1]),
    "a dark sheet on a light table": 1 - of_sheet(polygon2mask(SHAPE, SQUARE), 0.3),
    "a disc": of_sheet(a_disc(220), 0.2),
    "a photograph on a page": on_paper(polygon2mask(SHAPE, SQUARE)),
    "a round stain": on_paper(a_disc(260, (300, 720)), 0.4),
    "a stain of half the page, hardly dark": on_paper(np.indices(SHAPE)[1] > 360, 0.7),
    "a page with a fold": on_paper(abs(np.indices(SHAPE)[1] - 240) < 20),
    "light that falls off to all sides": np.minimum(
        *(1 - abs(line) for line in np.meshgrid(np.linspace(-1, 1, SHAPE[1]), np.linspace(-1, 1, SHAPE[0])))
    ),
    "a dark table whose edge is nowhere sharp": gaussian_filter(of_sheet(polygon2mask(SHAPE, SQUARE), 0.2), 30),
}


@pytest.mark.parametrize("kind", NO_SHEETS)
def test_what_is_no_sheet_on_a_table_is_left_to_others(kind: str) -> None:
    assert beside_sheet(NO_SHEETS[kind]) is None


@pytest.mark.parametrize("shape", [(1, 1), (3, 200), (70, 5)])
def test_pictures_of_a_few_pixels_have_no_sheet(shape: tuple[int, int]) -> None:
    for levels in (np.zeros(shape), np.linspace(0, 1, shape[1]) * np.ones(shape)):
        assert beside_sheet(levels) is None


@pytest.fixture
def page(fonts: None) -> np.ndarray:
    """A drawn scan of print, grey levels of 255."""
    return scan(families_for_tests(), 11, 5, (512, 512))[0]


def photographed(page: np.ndarray, table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A page in the middle of a table, (700, 700) or in colours, and where it lies."""
    picture, inside = table.copy(), np.zeros((700, 700), bool)
    inside[100:612, 80:592] = True
    picture[inside] = page.reshape(-1, *[1] * (table.ndim - 2))
    return picture, inside


WOOD = np.rint(0.35 * np.tile(data.brick(), (2, 2))[:700, :700]).astype(np.uint8)
TABLES = {
    "dark": np.full((700, 700), 40, np.uint8),
    "wood": WOOD,
    "in a colour": np.rint(WOOD[..., None] * np.array([1.6, 1.1, 0.6])).astype(np.uint8),
    "light, in a colour": np.full((700, 700, 3), (230, 190, 90), np.uint8),
}


@pytest.mark.parametrize("kind", TABLES)
def test_a_page_on_a_table_is_read_as_without_it_and_the_table_stays(page: np.ndarray, kind: str) -> None:
    table = TABLES[kind]
    seen, inside = photographed(page, table)
    colours = {"channel_axis": -1} if seen.ndim > 2 else {}
    found, solution = restore.denoise(seen, return_solution=True, **colours)
    assert solution.outcome is Outcome.RESTORED
    assert (found[~inside] == seen[~inside]).all()
    core = binary_erosion(inside, iterations=20)
    one = found if found.ndim == 2 else found[..., 0]
    plain = restore.denoise(page)[core[100:612, 80:592]]
    assert np.mean(abs(one[core].astype(int) - plain) > 64) < 0.003
    assert any("stays as it was" in note for note in solution.notes)
    assert solution.facts.page > 0.9  # of the sheet


def test_a_sheet_on_a_large_table_in_a_colour_is_read(page: np.ndarray) -> None:
    """The table is most of the picture: it is not by its colour that paper is told."""
    grain = np.random.default_rng(0).normal(0, 4, (1100, 1100, 1))
    seen = np.rint(grain + np.array([200, 150, 70])).astype(np.uint8)
    seen[300:812, 250:762] = page[..., None]
    found, solution = restore.denoise(seen, channel_axis=-1, return_solution=True)
    assert solution.outcome is Outcome.RESTORED and solution.facts.page > 0.9
    assert (found[:300] == seen[:300]).all()


def test_what_is_beside_a_sheet_is_no_part_of_it() -> None:
    beside = np.ones(WOOD.shape, bool)
    beside[:, 300:400] = False
    engine = Engines(Options()).parts
    assert other_parts(WOOD / 255, engine)[beside].any()
    assert not other_parts(WOOD / 255, engine, beside)[:, :290].any()


@pytest.mark.parametrize("sheet", [np.s_[100:150, 200:250], np.s_[10:502, 10:502]], ids=["tiny", "all but an edge"])
def test_what_is_smaller_than_a_page_or_nearly_all_is_no_sheet(
    page: np.ndarray, sheet: tuple[slice, slice], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = restore.denoise(page)
    beside = np.ones(page.shape, bool)
    beside[sheet] = False
    monkeypatch.setattr(room, "beside_sheet", lambda levels: beside)
    np.testing.assert_array_equal(restore.denoise(page), plain)


def test_a_sheet_that_is_mostly_blank_is_read(page: np.ndarray) -> None:
    """A prior takes an even grey for a part that is no page; the outline of a sheet says that it is one."""
    sheet = np.rint(np.random.default_rng(0).normal(190, 2, (512, 512))).astype(np.uint8)
    sheet[:160] = np.rint(page[:160] * (190 / np.quantile(page, 0.9))).clip(0, 255)
    seen, inside = photographed(sheet, TABLES["wood"])
    found, solution = restore.denoise(seen, return_solution=True)
    assert solution.outcome is Outcome.RESTORED and (found[~inside] == seen[~inside]).all()
    assert (found[inside] > 250).mean() > 0.8


def test_of_a_page_that_is_called_one_the_table_is_read_too(page: np.ndarray) -> None:
    seen, _ = photographed(page, TABLES["dark"])
    assert set(np.unique(restore.denoise(seen, p="scan"))) == {0, 255}
