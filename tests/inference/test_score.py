"""The one score: every number against its own formula, by enumeration or on a fine grid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from enumerated import SHAPE, ExactEngine, Knowing, Table, small_machine
from scipy.stats import norm

from restore.channels import levels as scales
from restore.channels.damage import Damage, Observed
from restore.channels.noise import WIDTH
from restore.channels.quiet import quietest
from restore.inference import crops as room
from restore.inference.candidates import Prior
from restore.inference.choose import Choice, choose
from restore.inference.crops import Crops
from restore.inference.engine import Posterior
from restore.inference.score import SURER, Prediction, level_of
from restore.priors import RBM

MACHINE = small_machine()
TABLE = Table.of(MACHINE, SHAPE)


def engine(machine: RBM = MACHINE, name: str = "exact") -> ExactEngine:
    return ExactEngine.of(machine, SHAPE, name)


def flipped(clean: np.ndarray, p: float, seed: int = 1) -> np.ndarray:
    return np.abs(clean - (np.random.default_rng(seed).random(clean.shape) < p))


def log_shown(means: np.ndarray, white: np.ndarray, of_white: Any, of_black: Any) -> np.ndarray:
    """log p(y) of a pixel that is white with a probability, before flips: the sum over both colours."""
    shown = means * (1 - of_white) + (1 - means) * of_black
    return np.log(np.where(white > 0.5, shown, 1 - shown))


def held_out(picture: np.ndarray, folds: np.ndarray, hidden: np.ndarray, of_white: Any, of_black: Any) -> np.ndarray:
    """P(white) of each pixel given those of other folds alone, by enumeration."""
    means = np.full(picture.shape, 0.5)
    for out in folds:
        means[out] = TABLE.posterior(picture, hidden | out, of_white, of_black)[out]
    return means


LEVELS = scales.FLIPS.levels


# --- predictive probabilities, against enumeration ---


@pytest.mark.parametrize("hole", [False, True], ids=["whole", "hole"])
@pytest.mark.parametrize("seed", range(4))
def test_the_score_is_the_mean_log_probability_of_pixels_that_were_not_shown(seed: int, hole: bool) -> None:
    picture = flipped(TABLE.drawn(1, seed)[0], 0.1, seed)
    hidden = np.zeros(SHAPE, bool)
    hidden[1, 1:3] = hole
    damage = Damage(0.1, hidden=hidden if hole else None)
    sample = Crops.of([Observed(picture, damage)], grey=False)
    (choice,) = choose([Observed(picture, damage)], [Prior(engine())], grey=False)
    means = held_out(picture, sample.folds[:, 0], hidden, 0.1, 0.1)
    shown = sample.folds.any(0)[0] & ~hidden
    # The level is compared even where it is told, so that no prior gains by a level that suits it by chance; and
    # solvers may be too sure. Log-odds are counted in bins of 1/80, so log p is off by 1/160 nats a pixel at most.
    odds = np.log(means / (1 - means))
    softer = [1 / (1 + np.exp(-odds / surer)) for surer in SURER]
    wanted = max(
        log_shown(softened, picture, level, level)[shown].mean() for softened in softer for level in LEVELS
    ) / np.log(2)
    # Of the few pixels around a hole rounding does not average out: half a bin, times the steepest slope of log p.
    assert choice.bits == pytest.approx(wanted, abs=1 / (40 if hole else 160) / np.log(2))
    assert choice.level is None and choice.damage.p == 0.1


def test_a_level_that_is_told_pixel_by_pixel_is_the_only_one() -> None:
    picture = flipped(TABLE.drawn(1, 5)[0], 0.15, 5)
    levels = np.random.default_rng(2).uniform(0.02, 0.4, SHAPE)
    sample = Crops.of([Observed(picture, Damage(levels))], grey=False)
    (choice,) = choose([Observed(picture, Damage(levels))], [Prior(engine())], grey=False)
    means = held_out(picture, sample.folds[:, 0], np.zeros(SHAPE, bool), levels, levels)
    wanted = log_shown(means, picture, levels, levels).mean() / np.log(2)
    assert choice.bits == pytest.approx(wanted, abs=1e-5)


def peak(curve: np.ndarray) -> float:
    """The level at the top of the parabola through the best three of `LEVELS`, in log-odds; or the end of them."""
    places, best = np.log(LEVELS / (1 - LEVELS)), int(curve.argmax())
    if best in (0, len(curve) - 1):
        return float(LEVELS[best])
    square, slope, _ = np.polyfit(places[best - 1 : best + 2] - places[best], curve[best - 1 : best + 2], 2)
    return float(1 / (1 + np.exp(-(places[best] - slope / (2 * square)))))


def test_an_unknown_level_is_found_in_a_second_round_where_it_is_far_from_the_guess() -> None:
    rounds = 0
    for seed in range(12):
        observed = flipped(TABLE.drawn(1, seed)[0], 0.1, seed)
        picture = Observed(observed, Damage("auto"))
        (choice,) = choose([picture], [Prior(engine())], grey=False)
        folds, none = Crops.of([picture], grey=False).folds[:, 0], np.zeros(SHAPE, bool)
        level = scales.FLIPS.guess
        for _ in range(2):
            rounds += 1
            means = held_out(observed, folds, none, level, level)
            curve = np.array([log_shown(means, observed, p, p).mean() for p in LEVELS])
            level = peak(curve)
            if scales.FLIPS.near[0] <= level <= scales.FLIPS.near[1]:
                break
        assert choice.level is not None and choice.damage.p == choice.level.value
        # As probable as the best level, but for bins of log-odds 1/80 wide.
        actual = choice.level.value
        assert log_shown(means, observed, actual, actual).mean() >= curve.max() - 1 / 160
    assert 12 < rounds < 24


@pytest.mark.parametrize(("side", "found"), [(8, False), (48, True)])
def test_flips_are_found_where_too_many_pixels_are_wrong_for_chance(side: int, found: bool) -> None:
    """Of the pixels of which a prior is certain 2 in 64 are wrong: two of them, or more than seventy."""
    pixels = np.ones((side, side))
    pixels.ravel()[::32] = 0
    picture, means = Observed(pixels, Damage("auto")), np.full((1, side, side), 0.9999)
    sample = Crops.of([picture], grey=False)
    level = level_of(Prediction(sample, means, np.zeros(means.shape), np.ones(means.shape, bool)), 0)
    assert level is not None and level.at_least is not None and level.at_most is not None
    assert level.at_least <= level.value <= level.at_most
    choice = Choice(Prior(engine()), picture.damage.at(level.value), level).cautious(picture)
    assert (choice.level == level) == found and choice.level is not None
    assert choice.damage.p == choice.level.value and (choice.level.value > scales.FLIPS.levels[0]) == found


def test_pixels_are_hidden_once_each_without_holes() -> None:
    folds = Crops.of([Observed(np.zeros((40, 60)), Damage("auto"))], grey=False).folds[:, 0]
    assert (folds.sum(0) == 1).all()
    # 2,400 pixels: a share of a quarter has a standard deviation of .009.
    assert np.abs(folds.mean((1, 2)) - 0.25).max() < 0.04


@pytest.mark.parametrize("turned", [False, True])
def test_holes_are_predicted_in_copies_of_their_own_shape(turned: bool) -> None:
    """Of what hides most in a part of the picture as large as a crop, wherever it lies."""
    rows, columns = np.mgrid[:300, :400]
    hidden = (np.abs(rows - columns) < 2) & (rows > 200) & (rows < 250)
    hidden = hidden.T if turned else hidden
    draw = np.random.default_rng(0).random(hidden.shape) < 0.5
    sample = Crops.of([Observed(draw.astype(float), Damage(hidden=hidden))], grey=False)
    folds = sample.folds[:, 0]
    assert folds.shape[1:] == (room.CROP_SIDE, room.CROP_SIDE) and (folds.sum(0) <= 1).all()
    for fold in folds:
        assert 1 / (4 * room.FOLDS) < fold.mean() < 0.5
        # Along a diagonal most hidden pixels follow each other, which lie in bands three pixels wide.
        along = fold[1:, 1:] & fold[:-1, :-1]
        across = fold[1:, :-1] & fold[:-1, 1:]
        assert along.sum() > 0.6 * fold.sum() and along.sum() > 1.4 * across.sum()


@pytest.mark.parametrize(
    "hole",
    [
        lambda row, column: (row < 200) & (column > 120),
        lambda row, column: (row < 40) & (column > 360),
        lambda row, column: (row + column) % 2 == 0,
        lambda row, column: row + column >= 0,
    ],
    ids=["wide", "in a corner", "a checkerboard", "all"],
)
def test_where_wide_holes_are_to_be_filled_wide_pieces_are_predicted(hole: Callable[..., np.ndarray]) -> None:
    hidden = hole(*np.mgrid[:300, :400])
    draw = np.random.default_rng(0).random(hidden.shape) < 0.5
    sample = Crops.of([Observed(draw.astype(float), Damage(hidden=hidden))], grey=False)
    side = room.WIDEST_HOLE // 2
    for fold in sample.folds[:, 0]:
        assert 1 / (4 * room.FOLDS) < fold.mean() < 0.5
    pieces = np.lib.stride_tricks.sliding_window_view(sample.folds[0, 0], (side, side))
    assert pieces.all((2, 3)).any()


# --- levels, from predictions that are known ---


def spots(*shape: int) -> tuple[np.ndarray, np.ndarray]:
    """What is predicted, and a picture that was drawn from it."""
    draw = np.random.default_rng(0)
    means = draw.choice([0.02, 0.3, 0.97], shape)
    return means, (draw.random(shape) < means).astype(float)


@pytest.mark.parametrize("p", [0.01, 0.1, 0.3])
def test_the_level_of_flips_is_the_likeliest(p: float) -> None:
    means, clean = spots(100, 120)
    picture = flipped(clean, p)
    (choice,) = choose([Observed(picture, Damage("auto"))], [Knowing(means)], grey=False)
    fine = np.linspace(0.001, 0.48, 2000)
    best = fine[np.argmax([log_shown(means, picture, level, level).sum() for level in fine])]
    assert choice.level is not None
    # Crops of such a picture hold 40 % of its pixels at least; the level of all 12,000 is known to .005.
    assert choice.level.value == pytest.approx(best, abs=0.012)
    assert choice.damage.p == choice.level.value


@pytest.mark.parametrize("sure", [1.0, 0.1, 0.01])
def test_flips_may_be_as_many_as_pixels_that_are_known_do_not_rule_out(sure: float) -> None:
    known = np.random.default_rng(0).random((20, 20)) < sure
    picture = flipped(np.zeros((20, 20)), 0.5)
    (choice,) = choose([Observed(picture, Damage("auto"))], [Knowing(np.where(known, picture, 0.5))], grey=False)
    # None of n known pixels was flipped, of which log p is n log(1 - p): it may be lower by 3^2 / 2.
    bounds = known.sum() * (np.log(1 - LEVELS[0]) - np.log(1 - LEVELS)) <= 4.5
    assert choice.level is not None and choice.pixels == picture.size
    assert choice.level.at_most == pytest.approx(LEVELS[bounds].max(), rel=1e-6)
    none = choice.without_noise.level
    assert none is not None and none.value == 0 and none.at_most == choice.level.at_most


def grey_picture() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What is predicted of grey levels, how surely, and a picture that was drawn from it."""
    draw = np.random.default_rng(0)
    means, variances = draw.uniform(0.3, 0.7, (70, 80)), draw.uniform(0.0005, 0.002, (70, 80))
    return means, variances, draw.normal(means, variances**0.5)


def log_grey(picture: np.ndarray, means: np.ndarray, variances: np.ndarray, p: float, sigma: float) -> np.ndarray:
    """log p(y) of the nearest of 256 levels: salt or pepper, or the normal density there times its width."""
    total = variances + sigma**2 + WIDTH**2
    density = np.exp(-((picture - means) ** 2) / (2 * total)) / np.sqrt(2 * np.pi * total)
    return np.log((1 - p) * density * WIDTH + p * ((picture <= 0) | (picture >= 1)) / 2)


@pytest.mark.parametrize("sigma", [0.05, 0.15, 0.3])
def test_the_level_of_gaussian_noise_is_the_likeliest(sigma: float) -> None:
    means, variances, clean = grey_picture()
    picture = clean + np.random.default_rng(1).normal(0, sigma, clean.shape)
    (choice,) = choose([Observed(picture, Damage(sigma="auto"))], [Knowing(means, variances)], grey=True)
    fine = np.geomspace(*scales.NOISE.levels[[0, -1]], 800)
    curve = [log_grey(picture, means, variances, 0.0, level).mean() for level in fine]
    assert choice.level is not None and choice.level.name == "sigma"
    # The parabola through the best of 40 levels, a sixth apart, misses the peak by less than a fiftieth.
    assert choice.level.value == pytest.approx(fine[int(np.argmax(curve))], rel=0.02)
    assert choice.damage.sigma == choice.level.value and choice.damage.p is None
    assert choice.bits == pytest.approx(max(curve) / np.log(2), abs=0.005)


@pytest.mark.parametrize("sigma", [0.1, 0.3])
def test_noise_that_a_file_cuts_off_is_found_as_it_was(sigma: float) -> None:
    """Half of the noise on black is lost in a file, and much of that on white."""
    draw = np.random.default_rng(0)
    means = draw.choice([0.0, 0.05, 0.5, 1.0], (80, 90), p=[0.5, 0.1, 0.2, 0.2])
    picture = (means + draw.normal(0, sigma, means.shape)).clip(0, 1)
    (choice,) = choose([Observed(picture, Damage(sigma="auto"))], [Knowing(means, np.zeros(means.shape))], grey=True)
    assert choice.level is not None and choice.level.value == pytest.approx(sigma, rel=0.03)
    # Levels of exactly black and white have the probability of all beyond them.
    law = norm(means, (sigma**2 + WIDTH**2) ** 0.5)
    ends = np.where(picture == 0, law.logcdf(WIDTH / 2), law.logsf(1 - WIDTH / 2))
    wanted = np.where(picture % 1 == 0, ends, law.logpdf(picture) + np.log(WIDTH))
    found = Damage(sigma=sigma).log_predictive(picture, means, np.zeros(means.shape), grey=True)
    np.testing.assert_allclose(found, wanted, atol=1e-3)


class Textured(Knowing):
    """Knows fine texture only where little noise is assumed, and takes noise for texture where next to none is."""

    def solve(self, seen: np.ndarray, damage: Damage, *others: Any, **options: Any) -> Posterior:
        answer = super().solve(seen, damage, *others, **options)
        sigma = float(np.mean(damage.known("sigma")))
        return answer if 0.015 < sigma < 0.06 else replace(answer, variances=answer.variances + 0.01)


def test_weak_noise_in_texture_is_found_though_it_is_first_taken_for_texture() -> None:
    means, variances, clean = grey_picture()
    picture = clean + np.random.default_rng(1).normal(0, 0.03, clean.shape)
    (choice,) = choose([Observed(picture, Damage(sigma="auto"))], [Textured(means, variances)], grey=True)
    assert choice.level is not None and choice.level.value == pytest.approx(0.03, rel=0.1)


@pytest.mark.parametrize("p", [None, 0.2])
def test_where_no_noise_is_found_pixels_are_exact(p: float | None) -> None:
    means, variances, clean = grey_picture()
    # Nearer to what is predicted than noise could leave it.
    picture = means + 0.5 * (clean - means)
    (choice,) = choose([Observed(picture, Damage(p, sigma="auto"))], [Knowing(means, variances)], grey=True)
    assert choice.level is not None and choice.level.value == choice.damage.sigma == 0
    assert choice.noiseless is (p is None)


def test_the_level_of_salt_and_pepper_is_the_likeliest() -> None:
    means, variances, clean = grey_picture()
    draw, p = np.random.default_rng(1), 0.2
    picture = np.where(draw.random(clean.shape) < p, draw.integers(0, 2, clean.shape), clean)
    damage = Damage("auto", sigma=0.05)
    picture = np.where((picture == 0) | (picture == 1), picture, picture + draw.normal(0, 0.05, picture.shape))
    (choice,) = choose([Observed(picture, damage)], [Knowing(means, variances)], grey=True)
    fine = np.linspace(*scales.IMPULSES.levels[[0, -1]], 2000)
    curve = [log_grey(picture, means, variances, level, 0.05).mean() for level in fine]
    assert choice.level is not None and choice.level.name == "p"
    assert choice.level.value == pytest.approx(fine[int(np.argmax(curve))], rel=0.02)
    assert (choice.damage.p, choice.damage.sigma) == (choice.level.value, 0.05)


# --- independent pixels ---


def test_independent_pixels_know_the_share_of_white_alone() -> None:
    _, picture = spots(30, 40)
    hidden = np.random.default_rng(3).random(picture.shape) < 0.2
    seen = Observed(picture, Damage("auto", hidden=hidden))
    (choice,) = choose([seen], [Knowing(np.full(picture.shape, 0.5))], grey=False)
    visible = picture[~hidden]
    # A coin with the share of white of all visible pixels, up to the half pixel of either colour that is added, on
    # those which the prior predicts: copies of the holes, which are not all of them.
    share = (visible.sum() + 0.5) / (visible.size + 1)
    predicted = picture[Crops.of([seen], grey=False).folds[:, 0].any(0) & ~hidden]
    assert predicted.size < visible.size
    coin = np.where(predicted > 0.5, share, 1 - share)
    assert choice.ahead == pytest.approx(np.log2((0.5 + coin) / 2 / coin).mean(), abs=1e-6)
    # A prior that says nothing loses to it, in a mixture of both, too.
    assert choice.bits == pytest.approx(-1, abs=1e-6) and choice.ahead < 0


def test_a_pixel_of_which_a_prior_is_too_sure_costs_one_bit_at_most() -> None:
    picture = np.arange(600).reshape(20, 30) % 2.0
    (choice,) = choose([Observed(picture, Damage(0.0))], [Knowing(1 - picture)], grey=False)
    assert choice.ahead == pytest.approx(-1, abs=1e-5)


def test_independent_pixels_are_not_sure_of_what_they_have_not_seen() -> None:
    """Of n white pixels alone, white has probability (n + 1/2) / (n + 1) (Krichevsky & Trofimov, 1981)."""
    for shape in ((3, 4), (1, 1)):
        picture = np.ones(shape)
        (choice,) = choose([Observed(picture, Damage("auto"))], [Knowing(np.full(shape, 0.5))], grey=False)
        share = (picture.size + 0.5) / (picture.size + 1)
        assert choice.ahead == pytest.approx(np.log2((0.5 + share) / 2 / share), abs=1e-6)


def test_independent_grey_pixels_share_one_normal_distribution() -> None:
    means, variances, picture = grey_picture()
    (choice,) = choose([Observed(picture, Damage(sigma="auto"))], [Knowing(means, variances)], grey=True)
    spread = np.full(picture.shape, picture.var())
    independent = log_grey(picture, np.full(picture.shape, picture.mean()), spread, 0.0, 0.0)
    assert choice.level is not None
    prior = log_grey(picture, means, variances, 0.0, choice.level.value)
    wanted = (np.logaddexp(prior - independent, 0) / np.log(2) - 1).mean()
    assert choice.ahead == pytest.approx(wanted, abs=0.002)


def test_parts_of_grey_pictures_have_few_masks_between_them() -> None:
    """Of a mixture each mask takes a factorisation of its own: random ones made an unknown sigma ten times as slow."""
    _, picture, _ = grey_picture()
    folds = Crops.of([Observed(picture, Damage(sigma="auto"))], grey=True).folds[:, 0]
    assert folds.mean((1, 2)).min() > 0.2
    windows = np.lib.stride_tricks.sliding_window_view(folds[0], (6, 6)).reshape(-1, 36)
    assert len(np.unique(windows, axis=0)) == 4


# --- which candidate ---


def test_the_best_of_several_priors_wins() -> None:
    truth, other, blank = MACHINE, small_machine(seed=8), small_machine(scale=0.0)
    priors = [Prior(engine(machine, name)) for machine, name in ((blank, "blank"), (other, "other"), (truth, "truth"))]
    pictures = [Observed(flipped(picture, 0.05), Damage(0.05)) for picture in TABLE.drawn(16, 7)]
    choices = choose(pictures, priors, grey=False)
    alone = [choose(pictures, [prior], grey=False) for prior in priors]
    for row, choice in enumerate(choices):
        bits = [choices[row].bits for choices in alone]
        assert choice.bits == pytest.approx(max(bits), abs=1e-9)
        assert choice.candidate is priors[int(np.argmax(bits))]
    # By Gibbs' inequality the machine that the pictures were drawn from predicts them best, on average.
    mean = [np.mean([choice.bits for choice in choices]) for choices in alone]
    assert int(np.argmax(mean)) == 2


@pytest.mark.parametrize("holes", [False, True])
def test_a_candidate_that_was_given_up_never_wins_and_where_holes_are_filled_none_is(holes: bool) -> None:
    """It is behind in the first crops by more than is allowed, and would be far ahead in all others."""
    draw = np.random.default_rng(0)
    picture = (draw.random((448, 448)) < 0.5).astype(float)
    hidden = np.zeros(picture.shape, bool)
    hidden[8:16, 8:16] = True
    observed = Observed(picture, Damage(hidden=hidden) if holes else Damage("auto"))
    crops = Crops.of([observed], grey=False)
    first = [corner for corner, rank in zip(crops.corners, crops.rank, strict=True) if rank < room.FIRST]
    late = np.where(picture > 0.5, 0.99, 0.01)
    for top, left in first:
        late[top : top + room.CROP_SIDE, left : left + room.CROP_SIDE] = (
            1 - late[top : top + room.CROP_SIDE, left : left + room.CROP_SIDE]
        )
    plain, lost = Knowing(np.full(picture.shape, 0.5)), Knowing(late)
    (choice,) = choose([observed], [lost, plain], grey=False)
    assert choice.candidate is (lost if holes else plain)
    assert {corner for corners, _ in lost.calls for corner in corners} == set(crops.corners if holes else first)
    assert {corner for corners, _ in plain.calls for corner in corners} == set(crops.corners)


def test_a_candidate_is_given_up_for_one_picture_of_a_batch_and_kept_for_another() -> None:
    """Alone it is given up early on the first picture, and wins the second one."""
    draw = np.random.default_rng(0)
    observed = (draw.random((224, 224)) < 0.5).astype(float)
    crops = Crops.of([Observed(observed, Damage("auto"))], grey=False)
    late = np.where(observed > 0.5, 0.99, 0.01)
    for (top, left), rank in zip(crops.corners, crops.rank, strict=True):
        if rank < room.FIRST:
            late[top : top + room.CROP_SIDE, left : left + room.CROP_SIDE] = (
                1 - late[top : top + room.CROP_SIDE, left : left + room.CROP_SIDE]
            )
    plain, lost = Knowing(np.full(observed.shape, 0.5)), Knowing(late)
    pictures = [Observed(values, Damage("auto")) for values in (observed, (late > 0.5).astype(float))]
    together = choose(pictures, [lost, plain], grey=False)
    alone = [choose([picture], [lost, plain], grey=False)[0] for picture in pictures]
    assert [choice.candidate for choice in alone] == [plain, lost]
    assert [choice.candidate for choice in together] == [plain, lost]
    assert [choice.bits for choice in together] == pytest.approx([choice.bits for choice in alone], abs=1e-9)


def test_each_picture_of_a_batch_has_a_prior_of_its_own() -> None:
    """A candidate is given up for the pictures that it explains badly, and wins the one that it explains best."""
    draw = np.random.default_rng(5)
    pictures = [(draw.random((224, 224)) < 0.5).astype(float) for _ in range(2)]
    own = [Knowing(np.where(picture > 0.5, 0.95, 0.05)) for picture in pictures]
    candidates = [Knowing(np.full((224, 224), 0.5)), *own]
    choices = choose([Observed(picture, Damage("auto")) for picture in pictures], candidates, grey=False)
    assert [choice.candidate for choice in choices] == own


def test_crops_lie_where_something_is() -> None:
    picture = np.zeros((560, 560))
    picture[300:350, 400:500] = np.random.default_rng(0).random((50, 100)) < 0.5
    for given in (picture, 1 - picture):
        sample = Crops.of([Observed(given, Damage("auto"))], grey=False)
        assert 1 <= len(sample.pixels) <= room.CROPS
        assert all(0.01 < crop.mean() < 0.99 for crop in sample.pixels)
        for crop, (top, left) in zip(sample.pixels, sample.corners, strict=True):
            np.testing.assert_array_equal(crop, given[top : top + room.CROP_SIDE, left : left + room.CROP_SIDE])


def test_the_pixels_predicted_are_under_the_guess_and_not_under_the_word() -> None:
    candidate = Knowing(spots(30, 40)[0])
    choose([Observed(spots(30, 40)[1], Damage("auto"))], [candidate], grey=False)
    assert candidate.calls[0][1].p == scales.FLIPS.guess
    # Where nothing is damaged, holes are predicted from pixels that are hardly in doubt.
    hole = np.zeros((30, 40), bool)
    hole[5:9, 5:9] = True
    exact = Knowing(spots(30, 40)[0])
    choose([Observed(spots(30, 40)[1], Damage(hidden=hole))], [exact], grey=False)
    assert exact.calls[0][1].p == LEVELS[0]
    assert all(damage.hidden is not None and damage.hidden[:, hole].all() for _, damage in exact.calls)


@pytest.mark.parametrize("holes", [False, True], ids=["whole", "holes"])
def test_a_batch_gives_each_picture_what_it_gets_alone(holes: bool) -> None:
    draw = np.random.default_rng(4)
    pictures = []
    for clean in TABLE.drawn(10, 11):
        # Holes of one pixel, and of a row.
        hidden = np.zeros(SHAPE, bool)
        hidden[1, : draw.choice([1, 4])] = True
        pictures.append(
            Observed(flipped(clean, 0.1, int(clean.sum())), Damage("auto", hidden=hidden if holes else None))
        )
    priors = [Prior(engine(MACHINE, "truth")), Prior(engine(small_machine(seed=8), "other"))]
    for picture, choice in zip(pictures, choose(pictures, priors, grey=False), strict=True):
        (alone,) = choose([picture], priors, grey=False)
        assert choice.candidate is alone.candidate
        assert choice.bits == pytest.approx(alone.bits, abs=1e-9) and choice.ahead == pytest.approx(
            alone.ahead, abs=1e-9
        )
        assert choice.level == alone.level or choice.level.value == pytest.approx(alone.level.value, rel=1e-6)
        assert choice.damage.hidden is picture.damage.hidden


def test_texture_is_no_noise_where_there_are_smooth_blocks() -> None:
    """Nor is what a prior predicts badly; a flat frame and what is saturated say nothing of noise."""
    draw = np.random.default_rng(0)
    clean = np.full((160, 160), 0.5)
    clean[:80] += draw.normal(0, 0.1, (80, 160))
    picture = clean + draw.normal(0, 0.04, clean.shape)
    predicted = Knowing(np.full(clean.shape, 0.5), np.zeros(clean.shape))
    for framed in (picture, np.pad(picture, 32, constant_values=0.9), np.pad(picture, 32, constant_values=0)):
        shown = Observed(framed, Damage(sigma="auto"))
        assert 0.04 < quietest(shown) < 0.05
    (choice,) = choose([Observed(picture, Damage(sigma="auto"))], [predicted], grey=True)
    assert choice.level is not None and choice.level.value == pytest.approx(quietest(Observed(picture, Damage())))
    hidden = np.zeros(clean.shape, bool)
    hidden[80:] = True
    assert quietest(Observed(picture, Damage(hidden=hidden))) > 0.08
    assert quietest(Observed(picture[:17, :17], Damage())) == np.inf


def test_the_first_crops_are_far_apart() -> None:
    """They say which candidates are worth a look: two beside each other would say it of one place."""
    strip = (np.random.default_rng(0).random((40 * room.CROP_SIDE, room.CROP_SIDE)) < 0.5).astype(float)
    sample = Crops.of([Observed(strip, Damage("auto"))], grey=False)
    tops = np.array([top for top, _ in sample.corners])
    places = np.sort(tops.argsort().argsort()[: room.FIRST])
    assert len(tops) == room.CROPS and np.diff(places).min() >= room.CROPS // room.FIRST - 1


@pytest.mark.parametrize("share", [0.0, 0.5, 0.97])
def test_content_is_the_spread_of_what_is_visible_of_cells(share: float) -> None:
    draw = np.random.default_rng(3)
    pixels, hidden = draw.random((30, 43)), draw.random((30, 43)) < share
    side, means = room.CELL, []
    for row in range(30 // side):
        for column in range(43 // side):
            cell = slice(side * row, side * (row + 1)), slice(side * column, side * (column + 1))
            if not hidden[cell].all():
                means.append(pixels[cell][~hidden[cell]].mean())
    assert room._richness(Observed(pixels, Damage(hidden=hidden))) == pytest.approx(np.std(means))


def test_where_a_solver_diverges_nothing_is_predicted() -> None:
    """Grey pixels of which nothing is known have the mean and the variance of a coin between black and white."""
    picture, known = np.full((20, 20), 0.3), np.full((20, 20), 0.3)
    known[:10] = np.nan
    sample = Crops.of([Observed(picture, Damage(sigma=0.1))], grey=True)
    turns, crops = list(range(room.FOLDS)), np.arange(1)
    found = Prediction.of(sample, Knowing(known, 0 * known + 0.01), turns, sample.damage, crops)
    assert not found.diverged and found.mask.all()
    np.testing.assert_allclose(found.means[0], np.where(np.isnan(known), 0.5, 0.3))
    np.testing.assert_allclose(found.variances[0], np.where(np.isnan(known), 0.25, 0.01))


def test_crops_with_hardly_more_in_them_than_the_emptiest_are_not_looked_at() -> None:
    """Of a hundred crops, in cells that are lighter and darker by turns, nine have twice as much contrast."""
    draw, side = np.random.default_rng(1), room.CROP_SIDE
    contrast = draw.uniform(0.1, 0.1 * (room.BLANK - 0.05), (10, 10))
    rich = draw.choice(100, 9, replace=False)
    contrast.flat[rich] = 0.2
    cells = np.arange(10 * side) // room.CELL
    picture = 0.5 + contrast.repeat(side, 0).repeat(side, 1) * np.where((cells[:, None] + cells) % 2, 1, -1)
    sample = Crops.of([Observed(picture, Damage(sigma=0.1))], grey=True)
    chosen = {10 * (top // side) + left // side for top, left in sample.corners}
    assert len(chosen) == room.CROPS and chosen <= set(rich.tolist())
