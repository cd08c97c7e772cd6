"""Pictures read in black and white: pages by a prior, levels against those they were drawn with, greys refused."""

from __future__ import annotations

import warnings
from functools import cache
from itertools import product
from typing import Any, NoReturn

import numpy as np
import pytest
from bad_images import encoded
from scipy.ndimage import gaussian_filter, label, maximum
from scipy.stats import norm
from skimage import data

import restore
from benchmarks.choices.no_harm import spoilt
from benchmarks.pictures.all_kinds import picture
from restore.channels.damage import Damage, Observed
from restore.errors import ModelError, RestoreWarning
from restore.images import read_picture
from restore.images.picture import Picture
from restore.images.tones import Tones, counted
from restore.inference.decision.rules import for_others, limit_of, objection
from restore.inference.open import Engines
from restore.inference.options import Options
from restore.inference.scans.reading import LEAST_PAGE, Reading, read
from restore.inference.scans.sheet import OUTLIERS, REACH, Local, Sheet, unmixed_levels
from restore.status import Status
from restore.zoo import describe, find, reader

SHAPE = (160, 200)


def strokes() -> np.ndarray:
    """Lines of strokes with gaps between them, as on a page; a tenth of it."""
    ink = np.zeros(SHAPE, bool)
    rows = np.arange(SHAPE[0]) % 24 < 8
    ink[np.ix_(rows, np.arange(SHAPE[1]) % 9 < 3)] = True
    ink[:, :10] = ink[:, -10:] = False
    return ink


INK = strokes()
LIGHT = np.linspace(1.0, 0.6, SHAPE[1]) * np.linspace(1.0, 0.9, SHAPE[0])[:, None]


def scanned(noise: float) -> np.ndarray:
    return LIGHT * np.where(INK, 0.2, 0.9) + noise * np.random.default_rng(1).standard_normal(SHAPE)


MOST_LEFT = limit_of(Status.NOT_INK, "left")


@cache
def published() -> Engines:
    """The published priors that read pages."""
    return Engines(Options())


def reading(
    grey: np.ndarray,
    p: Any = "scan",
    hidden: np.ndarray | None = None,
    careful: bool = True,
    inverted: bool | None = None,
) -> Reading:
    picture = Observed(grey, Damage(p, hidden=hidden))
    return read(picture, None, published(), inverted, lambda share: None, careful=careful)


def answer(grey: np.ndarray, p: Any = "scan", hidden: np.ndarray | None = None) -> Reading | Status:
    """A picture as it is read, or why it is not."""
    result = reading(grey, p, hidden)
    return objection(result.facts) or result


def wrong(result: Reading, ink: np.ndarray = INK) -> float:
    return float(((result.picture.values() < 0.5) != ink).mean())


# --- pages ---


def test_a_negative_is_read_as_its_page_is() -> None:
    """Microfilm, blackboards and blueprints: light ink, on ground that is darker here and there."""
    hidden = np.zeros(SHAPE, bool)
    hidden[40:60, 40:80] = True
    for hole in (None, hidden):
        page, negative = (reading(grey, "scan", hole) for grey in (scanned(0.03), 1 - scanned(0.03)))
        assert not page.inverted and negative.inverted
        np.testing.assert_array_equal(negative.picture.values(), 1 - page.picture.values())
        np.testing.assert_allclose(negative.picture.damage.p, page.picture.damage.p, atol=1e-4)
        assert page.sheet is not None and negative.sheet is not None
        np.testing.assert_allclose(negative.sheet.white, page.sheet.white, atol=1e-5)
    # Of a hole alone.
    assert page.tones is not None and negative.tones is not None
    np.testing.assert_allclose(negative.tones[1], 1 - page.tones[0], atol=1e-5)
    np.testing.assert_allclose(negative.tones[0], 1 - page.tones[1], atol=1e-5)
    # Read the wrong way, as the caller says, both are left to priors that take either polarity.
    for grey, inverted in ((1 - scanned(0.03), False), (scanned(0.03), True)):
        wrong = reading(grey, None, inverted=inverted)
        assert for_others(wrong.facts)


@pytest.mark.parametrize("noise", [0.01, 0.05, 0.1])
def test_ink_levels_and_noise_of_a_page_are_recovered(noise: float) -> None:
    result = reading(scanned(noise), "auto")
    sheet = result.sheet
    assert sheet is not None and wrong(result) < 0.01
    # Within a tenth of their distance, where the light changes by far more.
    assert np.abs(sheet.white - 0.9 * LIGHT).mean() < 0.05 and np.abs(sheet.black - 0.2 * LIGHT).mean() < 0.08
    assert sheet.noise == pytest.approx(noise, rel=0.25, abs=0.04)


@pytest.mark.parametrize("name", ["camera", "grass", "coffee", "moon", "coins", "brick", "gravel", "chelsea"])
def test_photographs_are_no_pages(name: str) -> None:
    photograph = getattr(data, name)()[:300, :300] / 255
    assert answer(photograph if photograph.ndim == 2 else photograph.mean(2), "auto") is Status.NOT_INK


@pytest.mark.parametrize("name", ["text", "page"])
def test_photographed_writing_is_a_page(name: str) -> None:
    result = reading(getattr(data, name)() / 255, "auto")
    assert "read as a page" in result.notes[0] and set(np.unique(result.picture.values())) == {0, 1}


# conv-scan blackens the finest dots since it reads pages at two sizes; at one size they stayed.
LOST = pytest.mark.xfail(strict=True, reason="white dots of 2x2 pixels in ink become black")


@pytest.mark.parametrize(("side", "pitch"), [pytest.param(2, 6, id="fine"), pytest.param(3, 8, id="coarse")])
@pytest.mark.parametrize("halftone", [False, True], ids=["black", "halftone"])
def test_a_drawing_is_a_page_and_white_dots_within_its_ink_stay_white(
    request: pytest.FixtureRequest, halftone: bool, side: int, pitch: int
) -> None:
    """Halftones, as in a drawing, which black would hide."""
    if halftone and side == 2:
        request.applymarker(LOST)
    drawing, dots = np.ones((240, 240)), np.zeros((240, 240), bool)
    for top, left in ((30, 30), (30, 140), (140, 30), (140, 140)):
        drawing[top : top + 70, left : left + 60] = 0
        drawing[top + 3 : top + 67, left + 33 : left + 57] = 1
        drawing[top + 10 : top + 62 : 9, left + 36 : left + 54] = 0
        for down, right in product(range(side), repeat=2):
            dots[top + 5 + down : top + 67 : pitch, left + 5 + right : left + 28 : pitch] = True
    drawing[dots] = halftone
    noise = 0.01 * np.random.default_rng(0).standard_normal(drawing.shape)
    read_as = reading(0.05 + 0.9 * gaussian_filter(drawing, 0.7) + noise, "auto")
    assert read_as.page is not None
    number, count = label(dots)
    white = maximum(read_as.page.means[0], number, range(1, count + 1)) > 0.5
    assert white.mean() > 0.9 if halftone else white.mean() < 0.05


def test_what_is_called_a_scan_is_read_whatever_it_is() -> None:
    photograph = data.camera()[:300, :300] / 255
    assert answer(photograph, "auto") is Status.NOT_INK
    assert "read as a page" in reading(photograph).notes[0]
    assert reading(photograph, "auto", careful=False).cut is not None


BLANK = {
    "shaded": 0.9 * LIGHT,
    "noisy": 0.9 * LIGHT + 0.05 * np.random.default_rng(0).standard_normal(SHAPE),
    "noise": np.random.default_rng(0).random(SHAPE),
}


@pytest.mark.parametrize("grey", BLANK.values(), ids=BLANK)
def test_a_blank_page_is_none(grey: np.ndarray) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert answer(grey, "auto") in (Status.NOT_INK, Status.FAINT)
        assert reading(np.full((1, 1), 0.3)).page is not None  # called a page


def test_small_pictures_show_no_paper_around_their_ink() -> None:
    small = scanned(0.05)[: LEAST_PAGE - 1]
    assert not (isinstance(answer(small, "auto"), Reading) and reading(small, "auto").page)
    assert reading(small).page is not None


def test_the_evidence_of_levels_is_kept_by_the_flip_probabilities() -> None:
    grey = scanned(0.1)
    result = reading(grey)
    assert result.sheet is not None
    white, p = result.picture.values(), np.asarray(result.picture.damage.p)
    odds = (2 * white - 1) * (np.log1p(-p) - np.log(p))
    np.testing.assert_allclose(odds, result.sheet.log_odds(grey.astype(np.float32)), rtol=1e-4, atol=1e-4)


def test_the_evidence_of_levels_is_that_of_two_gaussians_with_outliers() -> None:
    sheet = Sheet(np.full((1, 5), 0.2), np.full((1, 5), 0.8), 0.1, 1.0, 0.0, 0.0, 0.1, 0.0)
    grey = np.array([[-3.0, 0.2, 0.45, 0.8, 4.0]])
    beyond = OUTLIERS / (2 * 0.6)
    paper, ink = ((1 - OUTLIERS) * norm.pdf(grey, level, 0.1) + beyond for level in (0.8, 0.2))
    np.testing.assert_allclose(sheet.log_odds(grey), np.log(paper / ink), atol=1e-9)
    # Far from both levels there is nothing to say.
    assert abs(sheet.log_odds(grey)[0, [0, -1]]).max() < 1e-9


@pytest.mark.parametrize(("noise", "grainy"), [(0.02, False), (0.15, True)])
def test_a_page_that_is_noisy_all_over_is_left_to_other_priors(noise: float, grainy: bool) -> None:
    sheet = reading(scanned(noise)).sheet
    assert sheet is not None and for_others(sheet.facts) == grainy
    assert sheet.grain == pytest.approx(noise, rel=0.15, abs=0.01)


def test_what_lies_in_a_hole_says_nothing_of_a_page() -> None:
    grey, hidden = scanned(0.05), np.zeros(SHAPE, bool)
    hidden[60:90, 100:150] = True
    one, other = (reading(np.where(hidden, paint, grey), hidden=hidden).picture for paint in (0.0, 1.0))
    np.testing.assert_array_equal(one.values(), other.values())
    np.testing.assert_array_equal(one.damage.p, other.damage.p)
    assert one.damage.hidden is hidden


def test_levels_of_ink_and_paper_leave_out_what_is_mixed_at_edges() -> None:
    """Soft edges are half of what is beside strokes: with them paper would be darker, and ink lighter."""
    wide = np.zeros(SHAPE, bool)
    wide[np.ix_(np.arange(SHAPE[0]) % 24 < 12, np.arange(SHAPE[1]) % 20 < 7)] = True
    grey = gaussian_filter(np.where(wide, 0.2, 0.9), 0.6)
    paper = np.where(grey > 0.55, 0.98, 0.02)
    mixed = Sheet.of(grey, paper, None)
    levels = zip(unmixed_levels(grey, paper, None), (mixed.black, mixed.white), (0.2, 0.9), strict=True)
    for level, with_edges, true in levels:
        assert np.abs(level - true).mean() < np.abs(with_edges - true).mean() / 4
    # Where all is edge, what there is counts.
    thin = np.indices(SHAPE).sum(0) % 2 * 0.7 + 0.2
    black, white = unmixed_levels(thin, np.round(thin), None)
    assert np.allclose(black, 0.2) and np.allclose(white, 0.9)


def test_holes_of_a_page_are_filled_with_the_ink_and_paper_of_their_place() -> None:
    hidden = np.zeros(SHAPE, bool)
    hidden[60:62] = True
    result = reading(scanned(0.05), None, hidden)
    assert result.tones is not None
    black, white = result.tones
    assert np.abs(white - 0.9 * LIGHT).mean() < 0.05 and np.abs(black - 0.2 * LIGHT).mean() < 0.08


def test_the_reader_keeps_its_own_solver() -> None:
    """A solver is named for the prior that restores, not for the one that reads."""
    own = describe(find(reader())).inference.solver
    assert Engines(Options("conv-text", solver="mean_field")).reader.header.inference.solver == own


def test_without_a_reader_a_page_is_an_error() -> None:
    class Missing(Engines):
        def open(self, name: str) -> NoReturn:
            raise ModelError(f"{name}: no prior reads grey pages")

    with pytest.raises(ModelError, match="grey pages"):
        read(Observed(scanned(0.05), Damage("scan")), None, Missing(Options()), None, lambda share: None, careful=True)


def test_ink_of_a_lightened_page_is_as_dark_as_it_was() -> None:
    """Where levels are those of ink and paper exactly: white paper, and ink by its share of the paper's level."""
    grey, paper = LIGHT * np.where(INK, 0.2, 0.9), np.where(INK, 0.0, 1.0)
    sheet = Sheet(0.2 * LIGHT, 0.9 * LIGHT, 0.0, 1.0, 0.0, 0.0, 0.1, 0.0)
    np.testing.assert_allclose(sheet.lightened(grey, paper), np.where(INK, 0.2 / 0.9, 1.0))


def test_ink_explains_the_variance_that_it_makes() -> None:
    """Half of the variance that light leaves, where noise has as much as ink, both white."""
    draw = np.random.default_rng(0)
    ink = draw.random((400, 400)) < 0.3
    deviation = 0.4 * (0.3 * 0.7) ** 0.5
    grey = np.where(ink, 0.3, 0.7) + deviation * draw.standard_normal(ink.shape)
    sheet = Sheet.of(grey.astype(np.float32), np.where(ink, 0.0, 1.0).astype(np.float32), None)
    assert sheet.explained == pytest.approx(0.5, abs=0.02)
    assert sheet.noise == pytest.approx(deviation, rel=0.02) and sheet.contrast == pytest.approx(0.4, abs=0.01)
    # A mean of nine has a third of the noise.
    assert sheet.crowded == pytest.approx(0.3, abs=0.01) and objection(sheet.facts) is Status.NOT_INK
    assert sheet.left == pytest.approx(deviation / 3 / 0.4 * sheet.crowded / 0.5, rel=0.05)


def test_dirt_of_one_strength_is_of_writing_and_not_of_a_crowded_texture() -> None:
    """Of crowded ink the same dirt is too much, though ink explains nearly all."""
    draw = np.random.default_rng(0)
    inks = [np.kron(draw.random((40, 40)) < share, np.ones((10, 10))) > 0.5 for share in (0.3, 0.6)]

    def sheet(ink: np.ndarray, dirt: float) -> Sheet:
        # Blurred white noise, made as strong as it was.
        rest = dirt * gaussian_filter(draw.standard_normal(ink.shape), 2) * 4 * np.pi**0.5
        grey = np.where(ink, 0.3, 0.7) + 0.4 * rest
        return Sheet.of(grey.astype(np.float32), np.where(ink, 0.0, 1.0).astype(np.float32), None)

    few, much = (sheet(ink, 0.0).crowded for ink in inks)
    assert much > 1.5 * few
    for ink, crowded, wanted in zip(inks, (few, much), (None, Status.NOT_INK), strict=True):
        dirty = sheet(ink, MOST_LEFT / (few * much) ** 0.5)
        assert dirty.crowded == crowded and dirty.explained > 0.8
        assert objection(dirty.facts) is wanted


def test_empty_paper_around_ink_does_not_change_what_ink_explains() -> None:
    """A few words on a large sheet are a page: dirt of the empty part is not what ink has to explain."""
    draw, side = np.random.default_rng(0), 900
    ink = np.zeros((side, side), bool)
    ink[:200, :200] = np.kron(draw.random((20, 20)) < 0.2, np.ones((10, 10))) > 0.5
    dirt = 0.25 * gaussian_filter(draw.standard_normal(ink.shape), 2)
    grey, paper = (np.where(ink, 0.3, 0.7) + dirt).astype(np.float32), np.where(ink, 0.0, 1.0).astype(np.float32)
    part, whole = (Sheet.of(grey[:size, :size], paper[:size, :size], None) for size in (200, side))
    assert objection(whole.facts) is objection(part.facts) is None
    assert whole.explained == pytest.approx(part.explained, abs=0.05)
    assert whole.left == pytest.approx(part.left, rel=0.1)
    assert 1 - np.var(dirt) / np.var(grey) < 0.8 * part.explained


# --- black and white, and greys between ---


@pytest.mark.parametrize("levels", [(0.0, 1.0), (0.2, 0.7), (0.0, 1 / 255)])
def test_two_levels_are_black_and_white_whatever_they_are(levels: tuple[float, float]) -> None:
    result = reading(np.where(INK, *levels), "auto")
    np.testing.assert_array_equal(result.picture.values() > 0.5, ~INK)
    assert result.tones == (None if levels == (0.0, 1.0) else levels) and not result.notes
    assert result.picture.damage.p == "auto"
    # Under a mask there may be any.
    hidden = np.zeros(SHAPE, bool)
    hidden[5:20, 30:50] = True
    masked = reading(np.where(hidden, 0.43, np.where(INK, *levels)), None, hidden)
    np.testing.assert_array_equal((masked.picture.values() > 0.5)[~hidden], ~INK[~hidden])


@pytest.mark.parametrize("level", [0.0, 0.4, 1.0])
def test_one_level_is_black_or_white(level: float) -> None:
    result = reading(np.full(SHAPE, level), "auto")
    assert result.tones is None and (result.picture.values() == (level > 0.5)).all()


def soft() -> np.ndarray:
    """Bold strokes with soft edges, as drawn with anti-aliasing."""
    bold = (np.arange(SHAPE[0])[:, None] % 40 < 14) & (np.arange(SHAPE[1]) % 20 < 10)
    return np.rint(255 * gaussian_filter(np.where(bold, 0.1, 0.9), 0.8)) / 255


def test_soft_edges_are_cut_at_a_level_that_is_told() -> None:
    """Otsu's, or the prior's own."""
    result = reading(soft(), "auto")
    cut = Tones.of(counted(np.rint(255 * soft()).astype(np.uint8))).threshold / 255
    np.testing.assert_array_equal(result.picture.values() > 0.5, soft() > cut)
    assert result.cut == pytest.approx(cut, abs=1 / 255) and result.drawn
    own = read(Observed(soft(), Damage("auto")), 0.8, published(), None, lambda share: None, careful=True)
    assert isinstance(own, Reading)
    np.testing.assert_array_equal(own.picture.values() > 0.5, soft() > 0.8)


def test_holes_of_soft_strokes_are_filled_with_their_two_tones() -> None:
    hidden = np.zeros(SHAPE, bool)
    hidden[60:64] = True
    result = reading(soft(), None, hidden)
    assert result.tones == pytest.approx((0.1, 0.9), abs=0.05)


def test_an_area_of_a_third_tone_in_a_drawing_stays_as_it_is() -> None:
    drawn = soft()
    drawn[100:130, 20:80] = 0.5
    drawn[::31, ::29] = 1 - drawn[::31, ::29]
    levels = np.rint(255 * drawn).astype(np.uint8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RestoreWarning)
        found = restore.denoise(levels)
    assert (found[100:130, 20:80] == levels[100:130, 20:80]).mean() > 0.99


@pytest.mark.parametrize("inverted", [False, True])
def test_a_window_in_a_few_light_greys_is_no_page(inverted: bool) -> None:
    """As on a screen: a bar, a ground and fields, and soft letters on all of them."""
    greys = np.full(SHAPE, 0.85)
    greys[:30] = 0.6
    greys[45:100, 20:140] = greys[110:150, 20:140] = 1.0
    window = greys * (1 - 0.9 * gaussian_filter(INK.astype(float), 0.5))
    assert reading(1 - window if inverted else window, "auto").sheet is None
    assert answer(1 - window if inverted else window, "auto") is Status.NOT_INK
    # With grain it may be a page in shade.
    assert reading(grainy(window), "auto").sheet is not None


def test_a_map_in_many_greys_is_no_drawing() -> None:
    small = np.linspace(0, 1, 6)[np.indices((40, 40)).sum(0) // 8 % 6]
    assert answer(picture("grey map", 0), "auto") is answer(small, "auto") is Status.NOT_INK
    assert reading(small, "auto", careful=False).cut is not None


def grainy(page: np.ndarray, grain: float = 0.02) -> np.ndarray:
    return page + grain * np.random.default_rng(2).standard_normal(page.shape)


def test_what_shows_through_an_empty_leaf_is_no_ink() -> None:
    """It is mirrored and blurred, however dark it is. Print as faint that is neither is ink."""
    back = gaussian_filter(INK[:, ::-1].astype(float), 2.5)
    for depth in (0.04, 0.08, 0.12, 0.4):
        leaf = grainy(0.92 - depth * back, 0.012)
        assert answer(leaf, "auto") is Status.FAINT, depth
        assert reading(leaf, careful=False).sheet is not None
    faint = reading(grainy(0.92 - 0.08 * gaussian_filter(INK.astype(float), 0.6), 0.006), "auto")
    assert faint.page is not None and ((faint.page.means[0] < 0.5) != INK).mean() < 0.01


def test_what_is_expected_to_be_no_ink_is_counted() -> None:
    grey, paper = np.full((4, 5), 0.9), np.full((4, 5), 0.99)
    grey[0] = 0.2
    paper[0] = (0.1, 0.1, 0.4, 0.4, 0.6)
    assert Sheet.of(grey, paper, None).facts.false_ink == pytest.approx(0.25)
    hidden = np.zeros((4, 5), bool)
    hidden[0, 2] = True
    assert Sheet.of(grey, paper, hidden).facts.false_ink == pytest.approx(0.2)
    assert Sheet.of(grey, np.full((4, 5), 0.9), None).facts.false_ink == 1


def test_a_stain_is_no_ink() -> None:
    """Paper that is darker than half way to ink, whether it has text on it or not; solid ink stays."""
    rows, columns = np.mgrid[: SHAPE[0], : SHAPE[1]]
    far = np.hypot(rows - 70, columns - 110)
    stain = gaussian_filter(np.where(far < 30, 0.6, 1.0), 2)
    page = np.where(INK, 0.15, 0.92)
    assert wrong(reading(grainy(stain * page), "auto")) < 0.03
    assert wrong(reading(grainy(LIGHT * page), "auto")) < 0.01


def test_grain_tells_scans_from_drawings() -> None:
    assert reading(soft(), "auto").drawn and not reading(grainy(soft()), "auto").drawn
    flips = np.random.default_rng(3).random(SHAPE) < 0.2
    assert reading(np.where(flips, 1 - soft(), soft()), "auto").drawn


# --- sums around pixels ---


def test_sums_are_those_of_the_gaussian() -> None:
    values = np.random.default_rng(0).random((20, 30)).astype(np.float32)
    actual = Local(values.shape).sums(values)
    # Brute force at the cell in row 1, column 2: its centre is at (11.5, 19.5). Weights that are even within cells of 8
    # pixels are those of a Gaussian whose variance is 8² / 12 wider, of `REACH`²: 1.4 % in two dimensions, at most.
    rows, columns = np.mgrid[0:20, 0:30]
    weights = np.exp(-((rows - 11.5) ** 2 + (columns - 19.5) ** 2) / (2 * REACH**2))
    assert actual.shape == (3, 4) and actual[1, 2] == pytest.approx((weights * values).sum(), rel=2e-2)
    assert np.ptp(Local(values.shape).image(np.full((3, 4), 2.0, np.float32))) < 1e-6


@pytest.mark.parametrize("light", [1.0, 0.6])
def test_codes_and_shapes_are_left_to_other_priors(light: float) -> None:
    """Ink is all around their ink, and the prior of pages takes the inside of a shape for paper."""
    code = np.kron(np.random.default_rng(2).random((24, 24)) < 0.5, np.ones((5, 5)))
    rows, columns = np.mgrid[:240, :240]
    shape = (np.sin(rows / 23) + np.cos(columns / 31) + np.sin((rows + columns) / 47) > 0).astype(float)
    for clean in (code, shape):
        grey = gaussian_filter(0.16 + 0.74 * clean, 0.6) * np.linspace(light, 1, clean.shape[1])
        grey += np.random.default_rng(3).normal(0, 0.012, clean.shape)
        result, solution = restore.denoise(np.rint(255 * grey.clip(0, 1)).astype(np.uint8), return_solution=True)
        assert np.mean((result > 127) != (clean > 0)) < 0.003 and "conv-scan" not in solution.model


def test_colours_of_two_luminances_are_classes() -> None:
    colours = np.array([[200, 0, 0], [0, 102, 0], [60, 60, 60], [255, 255, 255]], np.uint8)
    picture = read_picture(encoded(colours[np.random.default_rng(0).integers(0, 4, (64, 64))]), name="map")
    assert len(np.unique(picture.levels)) == 2
    for damage in (Damage("auto"), Damage(hidden=np.eye(64) > 0)):
        found = read(Observed(picture, damage), None, published(), None, lambda share: None, careful=True)
        assert objection(found.facts) is Status.CLASSES


def test_black_edges_do_not_make_a_page_of_a_photograph() -> None:
    levels = Picture(np.rint(255 * spoilt("grey photograph", "border", 502)[1]).astype(np.uint8))
    found = read(Observed(levels, Damage("auto")), None, published(), None, lambda share: None, careful=True)
    assert objection(found.facts) is Status.NOT_INK
