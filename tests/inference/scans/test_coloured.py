"""Parts of a page in a colour of their own stay as they were, and are said; in grey nothing is known of colours."""

from __future__ import annotations

import colorsys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from scipy.ndimage import binary_dilation

import restore
from restore import RestoreWarning
from restore.channels.damage import Damage, Observed
from restore.images.colours import LUMINANCE, picture_of
from restore.inference.scans.coloured import coloured_parts
from restore.status import Outcome, Status
from training.data.scans import scan
from training.data.text import families_for_tests

BLACK, WHITE = (30, 30, 30), (240, 240, 240)
STAMP = slice(100, 140), slice(200, 280)


def written(ink: tuple[int, ...], paper: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """Strokes in one colour on paper in another, with soft edges and grain, float (300, 400, 3)."""
    rng = np.random.default_rng(seed)
    cover = np.zeros((300, 400, 1))
    for top in range(20, 280, 30):
        cover[top : top + 8, 20:380] = rng.random((1, 360, 1)).repeat(8, 0) < 0.6
    cover = (cover + np.roll(cover, 1, 1) + np.roll(cover, 1, 0)) / 3
    return np.asarray(np.array(paper) + cover * (np.array(ink) - paper) + rng.normal(0, 4, (300, 400, 3)))


def stamped(page: np.ndarray, colour: tuple[int, ...]) -> np.ndarray:
    """A page with a box in a colour, through which its ink shows."""
    result = page.copy()
    result[STAMP] *= np.array(colour) / 255
    return result


FAR = np.ones((300, 400), bool)
FAR[STAMP[0].start - 8 : STAMP[0].stop + 8, STAMP[1].start - 8 : STAMP[1].stop + 8] = False


@given(hue=st.floats(0, 1), saturation=st.floats(0.7, 1), seed=st.integers(0, 99))
def test_a_stamp_of_any_hue_is_found_and_nothing_else(hue: float, saturation: float, seed: int) -> None:
    colour = tuple(255 * part for part in colorsys.hsv_to_rgb(hue, saturation, 0.85))
    found, tinted = coloured_parts(stamped(written(BLACK, (235, 225, 200), seed), colour))
    assert found[STAMP].mean() > 0.95 and not found[FAR].any() and not (tinted & ~found).any()


@pytest.mark.parametrize("paper", [WHITE, (235, 215, 170), (150, 200, 160)], ids=str)
@pytest.mark.parametrize("ink", [BLACK, (20, 40, 160), (160, 30, 40)], ids=str)
@pytest.mark.parametrize("darkest", [1.0, 0.4])
def test_one_ink_on_one_paper_has_no_colour_of_its_own(
    ink: tuple[int, ...], paper: tuple[int, ...], darkest: float
) -> None:
    """Whatever both are, and however the light falls off."""
    light = np.linspace(darkest, 1, 400)[:, None]
    assert not coloured_parts(written(ink, paper) * light)[0].any()


def test_it_does_not_depend_on_the_unit() -> None:
    page = stamped(written(BLACK, WHITE), (255, 90, 90))
    for unit in (1 / 255, 257):
        for found, expected in zip(coloured_parts(page * unit), coloured_parts(page), strict=True):
            assert (found == expected).all()


@pytest.mark.parametrize("level", [0, 128, 255])
def test_one_grey_has_no_colours(level: int) -> None:
    assert not coloured_parts(np.full((50, 70, 3), level, np.uint8))[0].any()


def test_a_part_is_found_as_far_as_its_colour_reaches() -> None:
    """Where it is paler it belongs to what is not; alone it would be the paper's."""
    page = written(BLACK, WHITE)
    page[STAMP] = (220, 60, 60)
    page[100:140, 280:320] = (225, 180, 180)
    page[200:240, 200:280] = (225, 180, 180)
    found, _ = coloured_parts(page)
    assert found[100:140, 200:320].all() and not found[200:240, 200:280].any()


def test_bars_are_found_to_their_rims_where_their_colour_may_be_the_inks() -> None:
    """They are most of what is dark: near paper they may be ink, but not inside."""
    slide = np.full((300, 400, 3), 235.0)
    slide[:60] = slide[140:190, 60:340] = slide[:, :50] = (50, 50, 170)
    slide[250:256, 100:300:2] = 30
    found, _ = coloured_parts(slide + np.random.default_rng(0).normal(0, 4, slide.shape))
    assert found[:60].all() and found[140:190, 60:340].all() and found[:, :50].all()


@pytest.fixture
def page(fonts: None) -> np.ndarray:
    """A drawn scan of print, grey levels of 255."""
    return scan(families_for_tests(), 11, 5, (512, 512))[0]


def in_colours(page: np.ndarray) -> np.ndarray:
    return np.rint(page[..., None] * np.array([1, 0.96, 0.85])).astype(np.uint8)


def test_a_stamp_stays_and_the_page_around_it_is_read_as_without_it(page: np.ndarray) -> None:
    plain = in_colours(page)
    stamp = plain.copy()
    stamp[200:260, 150:330] = np.rint(stamp[200:260, 150:330] * np.array([0.9, 0.2, 0.25]))
    without = restore.denoise(plain, channel_axis=-1)
    found, solution = restore.denoise(stamp, channel_axis=-1, return_solution=True)
    assert solution.outcome is Outcome.RESTORED and 0.9 < solution.facts.page < 0.97
    assert (found[200:260, 150:330] == stamp[200:260, 150:330]).all()
    assert any("stays as it was" in note for note in solution.notes)
    far = np.ones(page.shape, bool)
    far[168:292, 118:362] = False
    assert np.mean(abs(found[far].astype(int) - without[far]) > 64) < 0.003
    # Whoever calls it a page means its stamps, too.
    whole = restore.denoise(stamp, p="scan", channel_axis=-1)
    assert (whole[..., :1] == whole).all()


def test_what_is_written_in_a_colour_stays_and_the_paper_between_it_is_cleaned(page: np.ndarray) -> None:
    plain = in_colours(page)
    grid = np.zeros(page.shape, bool)
    grid[150:350:24, 100:400] = grid[150:350, 100:400:24] = True
    strokes = binary_dilation(grid, iterations=1)
    written = plain.copy()
    written[strokes] = np.rint(written[strokes] * np.array([0.25, 0.3, 0.9]))
    found = restore.denoise(written, channel_axis=-1)
    assert (found[strokes] == written[strokes]).all(-1).mean() > 0.95
    without = restore.denoise(plain, channel_axis=-1)
    between = ~binary_dilation(grid, iterations=5)
    between[:150] = between[350:] = between[:, :100] = between[:, 400:] = False
    paper = between & (without[..., 0] > 128)
    assert (abs(found[paper].astype(int) - without[paper]) < 16).mean() > 0.98
    ink = between & (without[..., 0] <= 128)
    assert (found[ink] < 200).all(-1).mean() > 0.95  # black or as it was


def test_a_picture_of_many_colours_is_no_page(page: np.ndarray) -> None:
    """Print on areas of four colours as dark as each other, as on maps."""
    areas = np.array([[230, 190, 110], [150, 205, 240], [235, 175, 190], [150, 220, 150]]) / 255
    coloured = np.rint(page[..., None] * areas[np.indices(page.shape).sum(0) // 150 % 4]).astype(np.uint8)
    with pytest.warns(RestoreWarning):
        found, solution = restore.denoise(coloured, channel_axis=-1, return_solution=True)
    assert solution.status is Status.NOT_INK and (found == coloured).all()
    assert restore.denoise(page, return_solution=True)[1].outcome is Outcome.RESTORED


def test_hidden_pixels_have_no_colour(page: np.ndarray) -> None:
    """As of a hole that was painted over."""
    holed = in_colours(page)
    hole = np.zeros(page.shape, bool)
    hole[200:260, 150:330] = True
    holed[hole] = (255, 0, 0)
    for p in (None, "auto"):
        found = restore.complete(holed, hole, p=p, channel_axis=-1)
        assert (found[hole] != (255, 0, 0)).any(-1).all()


def test_a_part_of_a_picture_keeps_its_colours() -> None:
    image = Image.fromarray(np.random.default_rng(0).integers(0, 256, (20, 30, 3), np.uint8))
    picture = picture_of(image, "it")
    observed = Observed(picture, Damage(), picture.colours)
    assert observed.colours is not None
    part = observed.part(slice(3, 9), slice(4, 20))
    assert part.colours is not None and (part.colours == np.asarray(image)[3:9, 4:20]).all()
    np.testing.assert_allclose(part.values(), part.colours @ LUMINANCE / 255, atol=0.5 / 255 + 1e-9)
    assert picture_of(image.convert("L").convert("RGB"), "it").colours is None
