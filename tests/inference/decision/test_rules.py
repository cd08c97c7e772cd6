"""The rules: each by a picture that it alone keeps from being restored, and pairs by counting them."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from enumerated import Knowing
from PIL import Image, ImageDraw, ImageFont

import restore
from benchmarks.choices.no_harm import damaged
from restore.channels.damage import Damage
from restore.errors import RestoreWarning
from restore.inference import restore as answers
from restore.inference.choose import Choice
from restore.inference.decision import facts
from restore.inference.decision.facts import Facts, pairs_of
from restore.inference.decision.measured import facts_of_choice, facts_of_draft
from restore.inference.decision.rules import RULES, SPOTLESS, limit_of, objection
from restore.inference.painting import Draft, spotless
from restore.inference.restored import Level
from restore.status import Outcome, Status
from training.data.pages import page as printed_page
from training.data.text import families_for_tests

SHAPE = (60, 80)
DISC = np.hypot(*(np.mgrid[:60, :80] - np.array([30, 40])[:, None, None])) < 20
FLIPS = np.random.default_rng(0).random(SHAPE) < 0.1
NONE = Knowing(np.zeros(SHAPE))

NOISIEST_FLIPS = limit_of(Status.TOO_NOISY, "level")
DISAGREEMENT = limit_of(Status.NOT_NOISE, "disagreement")


def judged(
    *,
    p: Any = 0.1,
    estimate: float | None = 0.1,
    ahead: float | None = 0.3,
    hidden: np.ndarray | None = None,
    before: np.ndarray = DISC ^ FLIPS,
    after: np.ndarray = DISC,
    sure: float = 0.99,
    pixels: int = 4800,
) -> Status:
    """How a disc after flips that was restored as it was is judged, but for what is named."""
    level = None if estimate is None else Level("p", estimate)
    choice = Choice(NONE, Damage(p, hidden=hidden), level, -0.3, ahead, pixels)
    return refusal(choice, before, np.where(after, sure, 1 - sure)) or Status.CONVERGED


def refusal(choice: Choice, before: np.ndarray, means: np.ndarray) -> Status | None:
    """The first objection to an answer."""
    draft = Draft(before, means, np.zeros(means.shape), grey=before.dtype != bool)
    visible = np.ones(before.shape, bool) if choice.damage.hidden is None else ~choice.damage.hidden
    return objection(facts_of_choice(choice) | facts_of_draft(choice, draft, visible, sized=False))


# --- each rule alone ---


def test_a_disc_freed_of_its_flips_is_believed() -> None:
    assert judged() is Status.CONVERGED
    assert judged(estimate=None, ahead=None) is Status.CONVERGED


def test_a_prior_has_to_be_ahead_of_independent_pixels() -> None:
    assert judged(ahead=-1.0) is Status.UNRECOGNISED
    # The noisier the picture, the less is left to know of pairs of pixels, but there is a least lead in all.
    cases = ((0.0, 1.0), (0.1, 0.8**4), (np.full(SHAPE, 0.1), 0.8**4), (0.3, 0.4**4))
    for p, left in cases:
        needed = max(facts.MARGIN_PER_PIXEL * left, facts.MARGIN_IN_ALL / 4800)
        assert judged(p=p, ahead=needed - 1e-6) is Status.UNRECOGNISED
        assert judged(p=p, ahead=needed + 1e-6) is not Status.UNRECOGNISED
    # Gaussian noise hides no pixel, and where only holes are filled nothing visible can be harmed.
    for damage, least in (
        (Damage(sigma=0.1), facts.MARGIN_PER_PIXEL),
        (Damage(hidden=DISC), facts.MARGIN_IN_ALL / 4800),
    ):
        for more in (-1e-6, 1e-6):
            choice = Choice(NONE, damage, None, -0.3, least + more, 4800)
            assert (objection(facts_of_choice(choice)) is None) is (more > 0)
    # Of few pixels a lead per pixel says less: they have to sum to some bits, whatever their number.
    for pixels in (10, 100, 400):
        least = facts.MARGIN_IN_ALL / pixels
        assert judged(ahead=least * 0.999, pixels=pixels) is Status.UNRECOGNISED
        assert judged(ahead=least * 1.001, pixels=pixels) is Status.CONVERGED


def test_what_changes_has_to_be_spread_like_flips() -> None:
    # A tenth of the pixels, as flips of .1 would be, but in lines of graph paper.
    lines = np.zeros(SHAPE, bool)
    lines[::10] = True
    assert lines.mean() == 0.1
    assert judged(before=DISC ^ lines) is Status.NOT_NOISE
    # Dots in a lattice have no neighbours, and are still no noise.
    dots = np.zeros(SHAPE, bool)
    dots[::3, ::3] = True
    assert judged(before=DISC ^ dots) is Status.NOT_NOISE


def test_a_level_above_the_limit_is_not_believed() -> None:
    noisy = DISC ^ (np.random.default_rng(1).random(SHAPE) < NOISIEST_FLIPS)
    assert judged(p=NOISIEST_FLIPS + 0.01, estimate=NOISIEST_FLIPS + 0.01, before=noisy) is Status.TOO_NOISY
    assert judged(p=NOISIEST_FLIPS - 0.01, estimate=NOISIEST_FLIPS - 0.01, before=noisy) is Status.CONVERGED
    # A level that the user gave is none that was found.
    assert judged(p=NOISIEST_FLIPS + 0.01, estimate=None, before=noisy) is Status.CONVERGED


def test_about_as_many_pixels_have_to_change_as_were_flipped() -> None:
    share = FLIPS.mean()
    most, least = share + DISAGREEMENT, share - DISAGREEMENT
    for p, verdict in (
        (most + 1e-9, Status.NOT_NOISE),
        (most - 1e-9, Status.CONVERGED),
        (least + 1e-9, Status.CONVERGED),
        (least - 1e-9, Status.NOT_NOISE),
    ):
        assert judged(p=p, estimate=p) is verdict
        assert judged(p=p, estimate=None) is verdict
        # Each pixel by a rate of its own: their mean.
        rates = np.full(SHAPE, p) + np.where(np.arange(80) % 2, 0.01, -0.01)
        assert judged(p=rates, estimate=None) is verdict


@pytest.mark.parametrize("seed", [40, 52])
def test_a_maze_that_would_come_back_with_more_wrong_pixels_is_refused(seed: int) -> None:
    """Walls and corridors of one pixel look like noise, and what would change has their steps."""
    _, noisy = damaged("maze, 1 pixel", 0.1, seed)
    with pytest.warns(RestoreWarning):
        same, answer = restore.denoise(noisy, return_solution=True)
    assert answer.outcome == "not sure" and (same == noisy).all()


def test_one_iteration_that_was_learnt_has_nothing_to_settle() -> None:
    """Under strong noise it moves pixels further than the last of several may."""
    page = np.array(Image.open(Path(__file__).parents[3] / "assets" / "page.png").convert("1"))[40:]
    noisy = page ^ (np.random.default_rng(0).random(page.shape) < 0.2)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RestoreWarning)
        clean, solution = restore.denoise(noisy, "conv-text", 0.2, return_solution=True)
    assert solution.residual > 0.1 and solution.status is Status.CONVERGED
    assert (clean != page).mean() < 0.1


def test_hidden_pixels_neither_count_as_changed_nor_as_gained() -> None:
    hole = np.zeros(SHAPE, bool)
    hole[15:45, 20:60] = True
    # All of the hole was white under the mask, and is black now.
    after = DISC & ~hole
    assert judged(before=(DISC ^ FLIPS) | hole, after=after) is Status.NOT_NOISE
    assert judged(before=(DISC ^ FLIPS) | hole, after=after, hidden=hole) is Status.CONVERGED
    # Of the visible pixels enough change, of all of them too few.
    few = FLIPS & ~hole
    rate = float(few[~hole].mean()) + DISAGREEMENT
    assert few.mean() < rate - 1.1 * DISAGREEMENT
    assert judged(p=rate - 1e-6, estimate=rate, before=DISC ^ few, hidden=hole) is Status.CONVERGED
    assert judged(p=rate - 1e-6, estimate=rate, before=DISC ^ few) is Status.NOT_NOISE
    assert judged(hidden=np.ones(SHAPE, bool)) is Status.CONVERGED


def test_rules_about_flips_are_for_flips() -> None:
    """Holes alone, and grey levels, change as a prior says."""
    block = np.zeros(SHAPE, bool)
    block[:10] = True
    assert judged(p=None, estimate=None, before=DISC ^ block) is Status.CONVERGED
    grey = np.random.default_rng(0).random(SHAPE)
    choice = Choice(NONE, Damage(sigma=0.4), Level("sigma", 0.4), -3.0, 0.3, 4800)
    assert refusal(choice, grey, grey / 2) is None


def test_hardly_any_change_at_the_lowest_level_is_no_noise() -> None:
    def flips(value: float) -> Choice:
        return Choice(NONE, Damage(value), Level("p", value), -0.3, 0.3, 4800)

    fewer, more, none = (Facts(changed=SPOTLESS * share) for share in (0.9, 1.1, 0.0))
    assert spotless(flips(0.002), fewer) and not spotless(flips(0.002), more)
    assert not spotless(flips(0.004), none)
    for other in (None, Level("sigma", 0.001)):
        assert not spotless(replace(flips(0.002), level=other), none)
    # What would change does not look like noise, and is no more than the lowest level: no noise was found.
    for why, clean in ((None, False), (Status.NOT_NOISE, True), (Status.UNRECOGNISED, False)):
        assert spotless(flips(0.002), more, why) is clean
    assert not spotless(flips(0.002), Facts(changed=0.003), Status.NOT_NOISE)
    assert not spotless(flips(0.004), more, Status.NOT_NOISE)


def test_a_picture_of_which_only_detail_would_change_is_clean() -> None:
    truth = damaged("parts, print around", 0.0, 601)[0] > 0.5
    same, answer = restore.denoise(truth, return_solution=True)
    assert answer.facts.pairs > limit_of(Status.NOT_NOISE, "pairs")
    assert answer.outcome is Outcome.CLEAN and (same == truth).all()


def test_a_clean_page_comes_back_as_it_is_and_a_dirty_one_does_not() -> None:
    page = Image.new("L", (400, 300), 255)
    draw = ImageDraw.Draw(page)
    for row in range(12):
        draw.text(
            (10, 10 + 22 * row), f"Untitled - Editor: i, j; ifs, dots. (file {row})", 0, ImageFont.load_default(14)
        )
    clean = np.asarray(page) > 127
    same, answer = restore.denoise(clean, return_solution=True)
    assert (same == clean).all() and answer.level == Level("p", 0.0, at_most=answer.level.at_most)
    assert 0.002 <= answer.level.at_most < 0.005
    dirty = clean ^ (np.random.default_rng(0).random(clean.shape) < 0.001)
    assert (restore.denoise(dirty) != clean).sum() < (dirty != clean).sum() / 2


def test_a_picture_that_no_prior_recognises_is_refused_unsolved(monkeypatch: pytest.MonkeyPatch) -> None:
    noise = np.random.default_rng(0).random((60, 60)) < 0.5
    monkeypatch.setattr(answers, "_posterior", None)
    with pytest.raises(restore.NotRestored):
        restore.denoise(noise, strict=True)


@pytest.mark.usefixtures("fonts")
@pytest.mark.parametrize("apart", [6, 9, 13])
def test_the_leaders_of_a_clean_page_stay(apart: int) -> None:
    """Rows of single pixels, as on a page of contents, are no flips however far apart they are."""
    white = np.asarray(printed_page(families_for_tests(), 3, 0, (500, 400))) < 128
    white[330:] = True
    white[340:490:15, 60:340:apart] = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RestoreWarning)  # it may be not sure
        assert (restore.denoise(white) == white).all()
    flips = np.random.default_rng(0).random(white.shape) < 0.01
    found = restore.denoise(white ^ flips)
    assert (found != white).mean() < 0.7 * flips.mean()


# --- the pair test ---


def independent(changed: np.ndarray, white: np.ndarray, visible: np.ndarray) -> bool:
    return pairs_of(changed, white, visible) <= limit_of(Status.NOT_NOISE, "pairs")


def counted(values: np.ndarray) -> dict[tuple[int, int], float]:
    """Sums of products of pixels at every displacement, pair by pair."""
    height, width = values.shape
    sums: dict[tuple[int, int], float] = {}
    for down in range(facts.PAIR_REACH + 1):
        for across in range(-facts.PAIR_REACH, facts.PAIR_REACH + 1):
            if (down, across) <= (0, 0) or down >= height or abs(across) >= width:
                continue
            first = values[: height - down, max(0, -across) : width - max(0, across)]
            second = values[down:, max(0, across) : width - max(0, -across)]
            sums[down, across] = float((first.astype(float) * second).sum())
    return sums


def test_pairs_are_those_that_are_counted() -> None:
    """At every displacement up to the reach, whatever the size, and though colours change at two rates."""
    draw = np.random.default_rng(0)
    found = []
    for number in range(60):
        shape = tuple(draw.integers(1, 40, 2))
        white, visible = draw.random(shape) < 0.5, draw.random(shape) < 0.9
        changed = visible & (draw.random(shape) < np.where(white, 0.2, 0.05))
        if number % 2:
            # Lines in a direction, so that pairs at one displacement are many.
            step = draw.integers(4, 2 * facts.PAIR_REACH)
            changed |= visible & (np.indices(shape)[number % 4 // 2] % step == 0) & (draw.random(shape) < 0.9)
        rates = np.zeros(shape)
        for colour in (white & visible, ~white & visible):
            rates[colour] = changed[colour].sum() / max(colour.sum(), 1)
        pairs, expected = counted(changed), counted(rates)
        squares = sum((pairs[by] - sums) ** 2 - sums for by, sums in expected.items())
        chance = facts.CHANCE * (1 + sum(2 * sums**2 + sums for sums in expected.values())) ** 0.5
        wanted = max(0.0, squares - chance) ** 0.5 / max(changed.sum(), 1)
        assert pairs_of(changed, white, visible) == pytest.approx(wanted, abs=1e-9)
        found.append(wanted)
    assert sum(one > 0 for one in found) > 20 and sum(one == 0 for one in found) > 5


def test_weak_structure_is_told_from_flips_by_all_displacements_together() -> None:
    """Every second pixel of every second row changes more often; no displacement alone is far from chance."""
    every = np.ones((33, 33), bool)
    rows, columns = np.indices(every.shape) % 2
    for seed in range(20):
        drawn = np.random.default_rng(seed).random(every.shape)
        assert independent(drawn < 0.15, every, every)
        assert not independent(drawn < np.where(rows & columns, 0.4, 0.08), every, every)


@pytest.mark.parametrize("p", [0.0, 0.002, 0.03, 0.1, 0.25])
@pytest.mark.parametrize("shape", [(8, 8), (28, 28), (300, 300), (1, 400)], ids=str)
def test_flips_pass_at_any_level_and_size(p: float, shape: tuple[int, int]) -> None:
    every, stripes = np.ones(shape, bool), np.broadcast_to(np.arange(shape[1]) % 16 < 8, shape)
    for seed in range(5):
        flips = np.random.default_rng(seed).random(shape) < p
        assert independent(flips, every, every)
        # One of two colours may have changed more often, and has areas of its own.
        assert independent(flips & stripes, stripes, every)
        assert not (p > 0.1 and flips.size > 1000 and independent(flips & stripes, every, every))


@pytest.mark.parametrize(
    ("rates", "wanted"), [((0.1, 0.25), False), ((0.1, 0.16), True), ((0.02, 0.06), True), ((0.002, 0.06), False)]
)
def test_shades_that_change_like_noise_are_told_by_how_many_pairs_there_are(
    rates: tuple[float, float], wanted: bool
) -> None:
    """Two shades of a dither change at two rates, so that there are more pairs than if all had changed at one."""
    shape = (1200, 400)
    dither = np.random.default_rng(0).random(shape) < np.repeat(rates, shape[1] // 2)
    for rows in (600, 1200):
        visible = np.indices(shape)[0] < rows
        assert independent(dither & visible, np.ones(shape, bool), visible) is wanted


# --- continuity ---


def test_verdicts_do_not_jump_where_a_rate_becomes_nothing() -> None:
    """p = 0 is what p close to 0 is: as many changes were not found."""
    for before in (DISC ^ FLIPS, DISC ^ (np.arange(80) % 10 == 0)):
        for p in (0.0, 1e-300, 1e-12):
            assert judged(p=p, estimate=p, before=before) is Status.NOT_NOISE
    # Where nothing changes, there is nothing to refuse.
    for p in (0.0, 1e-12, 0.1):
        assert judged(p=p, estimate=p, before=DISC, sure=1 - 1e-7) is Status.CONVERGED


@pytest.mark.parametrize("manner", ["random", "ordered"])
def test_the_dots_of_a_dithered_picture_are_no_noise(manner: str) -> None:
    """A ball before a ground that gets lighter, in black and white dots, told nothing."""
    down, right = np.indices((160, 200)) / 160
    height = np.sqrt(np.clip(0.09 - (down - 0.5) ** 2 - (right - 0.6) ** 2, 0, None))
    grey = np.where(height > 0, 0.1 + 2.5 * height, 0.3 + 0.3 * right)
    bayer = (
        np.kron(np.ones((40, 50)), np.array([[0, 8, 2, 10], [12, 4, 14, 6], [3, 11, 1, 9], [15, 7, 13, 5]]) + 0.5) / 16
    )
    dots = grey > (bayer if manner == "ordered" else np.random.default_rng(5).random(grey.shape))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RestoreWarning)
        assert (restore.denoise(dots) != dots).mean() <= 0.003


# --- the table ---


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.status}-{rule.fact}")
def test_each_rule_objects_on_its_side_of_its_limit_alone(rule: Any) -> None:
    beyond = 1e-6 if rule.side == "above" else -1e-6
    assert objection(Facts(**{rule.fact: rule.limit + beyond})) is rule.status
    for silent in (rule.limit - beyond, rule.limit, np.nan):
        assert objection(Facts(**{rule.fact: silent})) is None
    assert (Path(__file__).parents[3] / "benchmarks" / "choices" / rule.chosen_by).is_file()


def test_the_first_rule_that_objects_gives_the_reason() -> None:
    every = {rule.fact: rule.limit + (1 if rule.side == "above" else -1) for rule in RULES}
    for number, rule in enumerate(RULES):
        assert objection(Facts(**{later.fact: every[later.fact] for later in RULES[number:]})) is rule.status


def test_facts_tell_what_was_measured() -> None:
    assert (Facts(lead=1.0, pairs=0.5) | Facts(pairs=0.25)).measured == {"lead": 1.0, "pairs": 0.25}
    assert Facts().measured == {}
