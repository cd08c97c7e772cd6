"""Each kind of marks is found where it was drawn, and what only looks like it stays."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from marked_pages import HEIGHT, TEXT, WIDTH, dirty, dotted
from PIL import Image, ImageDraw, ImageFont

from restore.components import components
from restore.inference.marks import kinds
from restore.inference.marks.borders import border
from restore.inference.marks.dots import patterns
from restore.inference.marks.find import Call
from restore.inference.marks.ground import TOUCHING, Ground
from restore.inference.marks.kinds import AMONG_PRINT, KINDS
from restore.inference.marks.leaders import in_rows
from restore.inference.marks.lines import apart, count_of, lines
from restore.inference.marks.pieces import Pieces, around
from restore.inference.marks.scene import Scene
from restore.inference.marks.specks import SAID_RATE, Found, specks_of, specks_of_size
from restore.inference.marks.streaks import streaks
from restore.inference.marks.witness import Witness

BARE = Ground(np.ones((HEIGHT, WIDTH), bool), np.zeros((HEIGHT, WIDTH), bool), 0.0, print=False)


def ground(ink: np.ndarray, largest: int = 40) -> tuple[Pieces, Ground]:
    whole = components(ink)
    pieces = Pieces.of(ink, largest, whole)
    return pieces, Ground.of(ink, whole, pieces)


# --- ground ---


def test_a_page_of_print_is_bare_in_its_margins() -> None:
    _, found = ground(TEXT)
    assert found.print and 20 < found.letter < 100
    assert found.bare[:30].all() and found.bare[:, :40].all() and not found.bare[60:200, 70:250].any()


def test_near_print_is_where_a_speck_would_touch_none() -> None:
    ink = np.zeros((HEIGHT, WIDTH), bool)
    for row in range(60, 260, 22):
        ink[row : row + 12, 60:360] = np.arange(300) % 12 < 6
    letters = ink.copy()
    ink[4:24:4, 380:410:4] = True  # a crowd, alone
    _, found = ground(ink)
    beside = around(letters, TOUCHING) > 0
    assert found.print and not (found.near & (found.bare | beside)).any()
    assert (found.near | beside)[60:250, 60:360].all()
    assert not (found.near | found.bare)[4:24, 380:410].any()


def test_a_drawing_is_no_page_of_print() -> None:
    ink = np.zeros((HEIGHT, WIDTH), bool)
    ink[50:250, 50:54] = ink[50:54, 50:300] = True
    _, found = ground(ink)
    assert not found.print and found.bare[100:240, 100:400].all()


def test_crowds_of_pieces_are_not_bare_and_single_ones_are() -> None:
    ink = np.zeros((HEIGHT, WIDTH), bool)
    ink[100:102, 40:400] = np.arange(360) % 6 < 2  # a leader
    ink[250, 60] = ink[20, 300] = True
    pieces, found = ground(ink)
    bare = pieces.mean(found.bare.astype(float)) == 1
    alone = np.isin(pieces.boxes[:, 0], (250, 20))
    np.testing.assert_array_equal(bare, alone)


def test_a_page_full_of_small_type_is_bare_nowhere_among_it() -> None:
    image = Image.new("1", (WIDTH, HEIGHT))
    for row in range(HEIGHT // 12):
        line = 6 * "all still, till I sit in a little hall of tall elms; "
        ImageDraw.Draw(image).text((-7 * row, 12 * row), line, True, ImageFont.load_default(11))
    pieces, found = ground(np.array(image))
    bare = pieces.mean(found.bare.astype(float)) > 0
    assert found.print and pieces.count > 1000
    assert bare.mean() < 0.01


def test_gaps_between_words_are_not_bare() -> None:
    ink = np.zeros((HEIGHT, WIDTH), bool)
    for row in range(60, 240, 20):
        for column in range(40, 380, 49):
            ink[row : row + 10, column : column + 3] = ink[row + 9, column : column + 16] = True
    ink[130:132, 218:220] = ink[20:22, 150:152] = True  # between words, and in the margin
    pieces, found = ground(ink)
    assert found.print
    np.testing.assert_array_equal(pieces.boxes[pieces.mean(found.bare.astype(float)) == 1, 0], [20])


# --- dots ---


@pytest.mark.parametrize("turn", [0.0, 0.12, np.pi / 4])
@pytest.mark.parametrize("pitch", [7.0, 9.3])
def test_a_band_of_dots_behind_print_is_found(turn: float, pitch: float) -> None:
    dots = dotted(turn, pitch)
    (found,) = patterns(TEXT | dots, components(TEXT | dots))
    assert found.behind
    alone = dots & ~TEXT
    assert (found.mask & alone).sum() > 0.95 * alone.sum()  # those under print, and the outermost, too
    assert (found.mask & ~dots).sum() < 0.05 * dots.sum()


def test_dots_are_sure_behind_letters_and_not_within_the_outline_of_a_figure() -> None:
    image = Image.new("1", (WIDTH, 200))
    draw = ImageDraw.Draw(image)
    for row in range(20, 180, 7):
        for column in range(40, 380, 7):
            draw.rectangle((column, row, column + 1, row + 1), 1)
    draw.polygon(((40, 20), (381, 20), (381, 181), (40, 181)), outline=1, width=3)
    draw.line((40, 20, 381, 181), 1, 3)
    few = TEXT & (np.indices(TEXT.shape)[0] // 46 == 2)  # two lines
    figure = np.concatenate([TEXT, np.array(image)])
    for ink, sure in ((TEXT | dotted(0.1), True), (figure, False), (few | dotted(0.1), False)):
        mark = KINDS["dots"](Scene(ink, True, ink & False, lambda *_: Witness(lambda: None), told=False))
        assert mark is not None and mark.sure is sure


def test_dots_in_rows_that_are_further_apart_than_the_dots_are_leaders() -> None:
    rows = np.zeros((HEIGHT, WIDTH), bool)
    rows[40:280:12, 20:400:6] = True
    close = rows | np.roll(rows, 6, 0)
    assert patterns(rows, components(rows)) == [] and len(patterns(close, components(close))) == 1


def test_dots_whose_sizes_follow_shades_are_a_halftone() -> None:
    shaded, even = np.zeros((2, HEIGHT, WIDTH), bool)
    for row in range(20, 280, 6):
        for column in range(20, 400, 6):
            reach = 1 + (column // 24 % 4 == 3)
            even[row - 1 : row + 2, column - 1 : column + 2] = True
            shaded[row - reach : row + reach + 1, column - reach : column + reach + 1] = True
    assert patterns(shaded, components(shaded)) == [] and len(patterns(even, components(even))) == 1


def test_a_pattern_without_print_is_a_drawing() -> None:
    (found,) = patterns(dotted(0.0), components(dotted(0.0)))
    assert not found.behind


def halftone(tone: np.ndarray, pitch: float) -> np.ndarray:
    """Dots at 45 degrees that grow with the tone, and join where it is dark."""
    rows, columns = np.indices(tone.shape) * (2 * np.pi / pitch / np.sqrt(2))
    screen = np.cos(rows + columns) + np.cos(rows - columns)
    return np.asarray(screen.argsort(None).argsort().reshape(tone.shape) > (1 - tone) * tone.size)


@pytest.mark.parametrize(("pitch", "darkest"), [(4, 0.95), (4, 0.7), (7, 0.7), (8, 0.9)])
def test_a_photograph_in_print_is_no_pattern_though_its_dark_parts_lie_over_its_dots(
    pitch: float, darkest: float
) -> None:
    rows, columns = np.indices((200, WIDTH))
    far = np.hypot(rows - 100, columns - 200)
    photograph = halftone(np.where(far < 95, darkest - far / 300, 0.2), pitch)
    ink = np.concatenate([TEXT, photograph])
    assert patterns(ink, components(ink)) == []


def test_print_and_leaders_and_random_dots_are_no_pattern() -> None:
    leader, random = np.zeros((2, HEIGHT, WIDTH), bool)
    leader[100:102, 20:400] = np.arange(380) % 5 < 2
    for row, column in np.random.default_rng(0).integers(0, (HEIGHT - 2, WIDTH - 2), (400, 2)):
        random[row : row + 2, column : column + 2] = True
    for ink in (TEXT, leader, random, TEXT & False):
        assert patterns(ink, components(ink)) == []


def test_three_rows_of_dashes_are_no_pattern() -> None:
    ink = TEXT.copy()
    for row in range(60, 78, 6):
        ink[row, 20:400] |= np.arange(380) % 8 < 4
    assert patterns(ink, components(ink)) == []


# --- leaders ---


def test_leaders_are_neither_lines_nor_specks() -> None:
    ink = TEXT.copy()
    ink[20:22, 20:400] |= np.arange(380) % 3 < 2
    ink[280, 20:400:9] = True
    ink[280, 200:218] = False  # two dots are lost
    scene = Scene(ink, True, ink & False, lambda *_: Witness(lambda: None))
    assert scene.leaders[20:22].sum() == ink[20:22].sum() and scene.leaders[280].sum() == ink[280].sum()
    assert not (scene.pieces.inside & scene.leaders).any() and not scene.ground.bare[275:286, 40:380].any()
    mark = KINDS["lines"](scene)
    assert mark is None or not mark.mask[20:22].any()


def test_dirt_stands_in_no_rows() -> None:
    ink, where = dirty(200)
    assert in_rows(Pieces.of(ink, 20)).sum() < 0.05 * Pieces.of(where, 20).count


# --- lines ---


@pytest.mark.parametrize("slope", [0.0, 0.004, -0.017])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("thick", [1, 3])
def test_a_rule_across_print_is_found_whole(slope: float, turned: bool, thick: int) -> None:
    ink = np.array(TEXT.T if turned else TEXT)
    rule, columns = np.zeros(ink.shape, bool), np.arange(10, ink.shape[1] - 10)
    for more in range(thick):
        rule[np.rint(0.4 * ink.shape[0] + slope * columns).astype(int) + more, columns] = True
    found = lines(ink | rule).any(0)
    assert (found & rule).sum() > 0.98 * rule.sum()
    assert (found & ~rule).sum() < 0.35 * rule.sum()


def test_print_has_no_lines_and_short_strokes_are_none() -> None:
    stroke = np.zeros((HEIGHT, WIDTH), bool)
    stroke[100, 100:200] = True
    thick = np.zeros((HEIGHT, WIDTH), bool)
    thick[100:130, 20:400] = True
    for ink in (TEXT, TEXT.T, stroke, thick):
        assert not lines(ink).any()


def test_all_rules_of_a_table_are_found_and_counted_and_short_ones_that_meet_none_stay() -> None:
    table = np.zeros((900, 1000), bool)
    for row in (100, 400, 700):
        table[row : row + 2, 100:302] = True  # a fifth of the width
    table[250:252, 100:240] = True
    table[100:702, [100, 101, 300, 301]] = True
    table[250:380, [238, 239]] = True  # meets a short one alone
    alone = np.zeros_like(table)
    alone[800:802, 500:640] = True
    level, upright = lines(table | alone)
    np.testing.assert_array_equal(level | upright, table)
    assert count_of(level) == 4 and count_of(upright) == 3
    np.testing.assert_array_equal(apart(np.stack([level, upright]), table | alone), table)  # crossings are lines, too


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("thick", [1, 3])
@pytest.mark.parametrize("times", [2, 4, 9, 40])
def test_what_is_thicker_than_a_line_and_crosses_it_stays_as_it_was(times: int, thick: int, turned: bool) -> None:
    line, heads = np.zeros((2, HEIGHT, WIDTH), bool)
    line[148 : 148 + thick, 10:410] = True
    high = times * thick
    for column in range(30, 390, 30):
        top = 148 if column % 60 else 148 - high // 2  # half of them hang from the line, and others are crossed
        heads[top : top + high, column : column + 12] = True
    ink = np.array((line | heads).T if turned else line | heads)
    whole = lines(ink)
    found = apart(whole, ink).T if turned else apart(whole, ink)
    np.testing.assert_array_equal(found & ~heads, line & ~heads)
    assert (found & heads).any() is np.bool_(times <= 2)  # this might be a line that is rough
    assert count_of(whole[int(turned)]) == 1


def test_dense_small_notes_do_not_make_a_line_thick() -> None:
    staff = np.zeros((HEIGHT, WIDTH), bool)
    staff[100:140:8, 10:410] = True
    heads = np.zeros((HEIGHT, WIDTH), bool)
    for column in range(20, 400, 12):
        heads[106:111, column : column + 5] = True
    assert not (apart(lines(staff | heads), staff | heads) & heads).any()


# --- light streaks ---


def lines_of_print(lines: list[str], size: int = 15) -> np.ndarray:
    image = Image.new("1", (WIDTH, 23 * len(lines) + 20))
    for row, line in enumerate(lines):
        ImageDraw.Draw(image).text((20, 10 + 23 * row), line, True, ImageFont.load_default(size))
    return np.array(image)


SENTENCE = "Jackdaws love my big sphinx of quartz; five wizards boxed. "
PRINT = lines_of_print([(SENTENCE[row:] + SENTENCE)[:48] for row in range(0, 58, 2)])


def bound(ink: np.ndarray, hidden: np.ndarray) -> np.ndarray:
    """A prior that is sure of ink wherever some is hidden."""
    return hidden.astype(float)


@pytest.mark.parametrize("slope", [0.0, 0.005])
@pytest.mark.parametrize("width", [2, 6])
@pytest.mark.parametrize("left", [101, 214])
def test_a_light_streak_across_print_is_found_where_a_prior_expects_ink(slope: float, width: int, left: int) -> None:
    columns = np.arange(WIDTH) - np.rint(slope * (np.arange(len(PRINT)) - len(PRINT) / 2))[:, None]
    streak = (columns >= left) & (columns < left + width)
    (found,) = streaks(PRINT & ~streak, bound)
    least, most = (0.4, 0.1) if slope else (0.99, 0.0)  # of one that leans what is blank in all rows
    assert (found & streak).sum() > least * streak.sum() and (found & ~streak).sum() <= most * streak.sum()
    assert streaks(PRINT & ~streak, lambda ink, hidden: 0.0 * ink) == []


def test_gaps_of_a_layout_are_no_streaks() -> None:
    narrow, cells = np.zeros((2, 600, WIDTH), bool)
    dice = np.random.default_rng(0)
    for row in range(10, 590, 20):
        for column in range(20, 400, 12):  # letters that are all equally wide
            narrow[row + dice.integers(10), column : column + 10] = narrow[
                row : row + 14, column + dice.integers(10)
            ] = True
        for column in range(20, 390, 92):  # numbers above rules that end between cells
            cells[row, column : column + 88] = True
            cells[row + 4 : row + 14, column + 40 : column + 86 : 4] = True
    wide, few = PRINT.copy(), PRINT[:200].copy()
    wide[:, 101:111] = few[:, 101:104] = False
    for ink in (PRINT, PRINT.T, narrow, cells, wide, few):
        assert streaks(ink, bound) == []


def test_strokes_that_end_on_both_sides_by_chance_are_no_streak() -> None:
    columns = np.zeros((len(PRINT), WIDTH), bool)
    columns[:, :200] = PRINT[:, 60:260]
    columns[5:, 203:] = PRINT[:-5, 100:317]  # other lines
    columns[:, 200:203] = False
    assert streaks(columns, bound) == []


def test_lines_are_dark_and_light_ones_of_either_direction() -> None:
    sure = SimpleNamespace(expected=lambda light, ink, hidden: hidden.astype(float))
    call = cast("Call", lambda *_: sure)
    for turned in (False, True):
        ink = np.array(PRINT.T if turned else PRINT)
        ink[:, 300:302] |= not turned
        (ink.T if turned else ink)[:, 101:104] = False
        mark = KINDS["lines"](Scene(ink, True, ink & False, call))
        assert mark is not None and mark.count == (1 if turned else 2)
        assert (mark.mask.T if turned else mark.mask)[:, 101:104].all() and mark.mask.mean() < 0.03


# --- borders ---


@pytest.mark.parametrize("side", range(4))
def test_a_rough_border_is_found_and_no_letter(side: int) -> None:
    ink = TEXT.copy()
    turned = np.rot90(ink, side)
    depth = 16 + np.random.default_rng(0).integers(-3, 4, turned.shape[1] // 10 + 1).repeat(10)[: turned.shape[1]]
    edge = np.arange(turned.shape[0])[:, None] < depth
    turned |= edge
    found = border(ink)
    np.testing.assert_array_equal(found & TEXT, False)
    assert (np.rot90(found, side) & edge).sum() > 0.97 * edge.sum()


def test_frames_and_what_stands_at_an_edge_are_no_border() -> None:
    frame, hill, half = np.zeros((3, HEIGHT, WIDTH), bool)
    frame[:3] = frame[-3:] = frame[:, :3] = frame[:, -3:] = True
    hill[200:, 100:260] = True
    half[:, : WIDTH // 2] = True
    for ink in (TEXT, frame, hill, half):
        assert not border(ink).any()


@pytest.mark.parametrize("told", [False, True])
def test_a_border_is_named_on_a_page_of_print_alone(told: bool) -> None:
    code, page = np.zeros((HEIGHT, WIDTH), bool), TEXT.copy()
    for column in np.random.default_rng(0).integers(1, WIDTH // 10, 30) * 10:
        code[:, column : column + 4] = True
    code[:, :8] = page[:, :8] = True
    scenes = [Scene(ink, True, ink & False, lambda *_: Witness(lambda: None), told=told) for ink in (code, page)]
    assert [KINDS["border"](scene) is not None for scene in scenes] == [told, True]


# --- specks ---


def judged(ink: np.ndarray, content: float, dirt: float, share: float = 0.5) -> Found:
    """With a prior that expects what is print by so many nats, and all else by others."""
    pieces, own = ground(ink)

    def judge(some: Pieces) -> np.ndarray:
        return np.where(some.mean(TEXT.astype(float)) > 0.5, content, dirt)

    return specks_of(pieces, judge, own, least=3.0, share=share)


def test_bare_ground_says_how_many_specks_there_are() -> None:
    ink, dirt = dirty(150)
    found = judged(ink, content=-6.0, dirt=-12.0)
    pieces, own = ground(ink)
    real = pieces.mean(dirt.astype(float)) > 0.5
    rate = (pieces.mean(own.near) > 0.5)[found.which].sum() / found.spread / own.near.sum()
    assert found.lead > 40 and 0.5 < rate * HEIGHT * WIDTH / real.sum() < 1.5
    assert (found.which & real).sum() > 0.85 * real.sum()
    assert (found.which & ~real).sum() == 0


def test_dirt_lies_among_print_too_and_what_is_drawn_beside_it_does_not() -> None:
    dirt = dirty(150)[1]
    rows, columns = np.indices(dirt.shape)
    heap, column = dirt & (rows < 34), dirt & (columns < 40)
    pieces, own = ground(TEXT | dirt)
    fewer = dirt & ~pieces.mask((pieces.mean(own.near) > 0) & (np.arange(pieces.count) % 5 > 0))
    for where, among in ((dirt, True), (fewer, False), (heap, False), (column, False)):
        found = judged(TEXT | where, content=-6.0, dirt=-12.0)
        assert found.which.sum() > 10 and (found.spread > AMONG_PRINT) is among
        assert (found.spread > AMONG_PRINT / 10) is (among or where is fewer)


def test_the_spread_of_specks_is_a_share_of_those_to_be_expected() -> None:
    ink, near = np.zeros((2, HEIGHT, WIDTH), bool)
    for row, column in np.random.default_rng(5).integers(4, (HEIGHT - 10, WIDTH - 10), (120, 2)):
        ink[row : row + 1 + row % 3, column : column + 1 + column % 5] = True
    near[:, : WIDTH // 2] = True
    pieces, own = Pieces.of(ink, 40), replace(BARE, bare=~near, near=near)
    beside = pieces.mean(near) == 1
    ours = specks_of(pieces, lambda some: np.full(some.count, -14.0), own, 3.0, 0.5)
    assert ours.spread == pytest.approx(beside.sum() / (pieces.mean(~near) == 1).sum(), rel=0.2)
    fewer = pieces.chosen(~beside | (np.arange(pieces.count) % 4 == 0))
    assert specks_of(fewer, lambda some: np.full(some.count, -14.0), own, 3.0, 0.5).spread < 0.4 * ours.spread


@pytest.mark.parametrize(
    ("told", "lead", "spread", "sure"),
    [
        (False, 41.0, 1.1 * AMONG_PRINT, True),
        (True, 99.0, 1.0, False),
        (False, 39.0, 1.0, False),
        (False, 99.0, 0.9 * AMONG_PRINT, False),
    ],
)
def test_specks_are_sure_if_nobody_asks_and_they_lie_anywhere(
    told: bool, lead: float, spread: float, sure: bool
) -> None:
    scene = Scene(dirty(120)[0], True, TEXT & False, lambda *_: Witness(lambda: None), told=told)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kinds, "specks_of", lambda *_: Found(np.ones(scene.pieces.count, bool), lead, spread))
        mark = KINDS["specks"](scene)
    assert mark is not None and mark.sure is sure


@pytest.mark.parametrize(("lead", "found"), [(99.0, True), (20.0, False)])
def test_without_letters_and_a_size_specks_are_counted_alone(lead: float, found: bool) -> None:
    ink = dirty(120)[1]
    scene = Scene(ink, True, ink & False, lambda *_: Witness(lambda: None), told=False)
    assert not scene.ground.print and KINDS["specks"](replace(scene, told=True)) is None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kinds, "specks_of", lambda *_: Found(np.ones(scene.pieces.count, bool), lead, 1.0))
        mark = KINDS["specks"](scene)
    assert (mark is not None) is found and (
        mark is None or (mark.largest == scene.pieces.sizes.max() and not mark.sure)
    )


def test_a_larger_share_of_dirt_takes_fewer_pieces_among_print() -> None:
    ink, _ = dirty(150)
    pieces, own = ground(ink)
    near = pieces.mean(own.bare.astype(float)) < 1
    half, most = (judged(ink, content=-12.0, dirt=-12.0, share=share).which for share in (0.5, 0.85))
    assert (half & near).sum() > (most & near).sum()
    np.testing.assert_array_equal(half[~near], most[~near])


def test_the_prior_has_to_be_against_specks() -> None:
    assert not judged(dirty(150)[0], content=3.0, dirt=2.0).which.any()


def test_a_clean_page_loses_nothing_however_little_the_prior_expects_its_dots() -> None:
    assert not judged(TEXT, content=-14.0, dirt=-14.0).which.any()


def test_dots_that_are_alike_are_drawn() -> None:
    ink = np.zeros((HEIGHT, WIDTH), bool)
    for row, column in np.random.default_rng(1).integers(10, (HEIGHT - 10, WIDTH - 10), (60, 2)):
        ink[row : row + 3, column : column + 3] = True
    pieces = Pieces.of(ink, 9)
    assert not specks_of(pieces, lambda some: np.full(some.count, -14.0), BARE, 3.0, 0.5).which.any()


def test_a_dither_has_no_specks() -> None:
    ink = np.random.default_rng(2).random((HEIGHT, WIDTH)) < 0.03
    assert not specks_of(Pieces.of(ink, 9), lambda some: np.full(some.count, -14.0), BARE, 3.0, 0.5).which.any()


def test_where_their_size_is_said_dashes_stay() -> None:
    ink, dirt = dirty(60)
    ink[120:280] = dirt[120:280] = False
    for row in range(140, 270, 16):
        ink[row, 20:400] = np.arange(380) % 12 < 7
    pieces, _ = ground(ink)
    found = specks_of_size(pieces, lambda some: np.full(some.count, -14.0)).which
    real = pieces.mean(dirt.astype(float)) > 0.5
    assert found[real].mean() > 0.75 and not found[pieces.sizes == 7].any()


def test_where_their_size_is_said_the_prior_alone_decides() -> None:
    pieces, _ = ground(dirty(20)[0])
    odds = np.linspace(-9, 1, pieces.count)
    np.testing.assert_array_equal(specks_of_size(pieces, lambda some: odds).which, odds < np.log(SAID_RATE))
