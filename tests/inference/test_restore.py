"""The path from damaged pictures to answers: what is done as told, what is refused, and what a batch may not change."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from enumerated import ANY_SIZE, SHAPE, ExactEngine, FieldEngine, Opened, Table, small_machine
from machines import random_rbm
from priors import SPIKED, TRUNCATED, grey_prior, random_conditional

from restore.channels.damage import Damage, Observed
from restore.errors import ModelError, RestoreWarning, UsageError
from restore.images import enlarge, shrink
from restore.images.colours import AXES, in_colours
from restore.inference.candidates import Planes
from restore.inference.decision.notes import BLIND
from restore.inference.engine import PictureEngine, Posterior
from restore.inference.options import Options
from restore.inference.painting import Draft
from restore.inference.restore import PICTURES_AT_ONCE, restore
from restore.inference.restored import Restored
from restore.inference.torch_engine import Engine
from restore.priors import RBM, GaussianMixture
from restore.status import Outcome, Status
from restore.units import Gaussian
from restore.zoo import TrainedPrior
from restore.zoo.description import Description
from restore.zoo.inference import Effort, Inference

CPU = torch.device("cpu")
MACHINE = small_machine()
TABLE = Table.of(MACHINE, SHAPE)
NONE = np.zeros(SHAPE, bool)


@pytest.fixture(autouse=True)
def no_warnings() -> Iterator[None]:
    """No number overflows, and none is cast from NaN."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        yield


def engine(machine: RBM = MACHINE, **facts: Any) -> ExactEngine:
    return ExactEngine.of(machine, SHAPE, **facts)


def answers(pictures: list[Observed], *engines: PictureEngine, named: bool = True, **options: Any) -> list[Restored]:
    return restore(pictures, Options(**options), Opened(engines or (engine(),), named))  # type: ignore[arg-type]


def answer(pixels: np.ndarray, damage: Damage, *engines: PictureEngine, named: bool = True, **options: Any) -> Restored:
    (results,) = answers([Observed(pixels, damage)], *engines, named=named, **options)
    return results


def flipped(seed: int = 0, p: float = 0.1) -> np.ndarray:
    return np.abs(TABLE.drawn(1, seed)[0] - (np.random.default_rng(seed).random(SHAPE) < p))


def disc(size: int = 96) -> np.ndarray:
    rows, columns = np.mgrid[:size, :size]
    return (np.hypot(rows - size / 2, columns - size / 2) < size / 3).astype(float)


def field(coupling: float = 0.6, white: float = 0.5) -> FieldEngine:
    """The mean field of neighbours that agree: it restores a disc of any size."""
    return replace(FieldEngine.of(small_machine(scale=0.0), SHAPE, white=white, **ANY_SIZE), coupling=coupling)


def with_flips(clean: np.ndarray, p: float = 0.08, seed: int = 0) -> np.ndarray:
    return np.abs(clean - (np.random.default_rng(seed).random(clean.shape) < p))


# --- named: what it is told ---


def test_with_prior_and_level_named_the_posterior_is_thresholded() -> None:
    picture = flipped()
    for p in (0.1, np.linspace(0, 0.5, 12).reshape(SHAPE)):
        result = answer(picture, Damage(p))
        wanted = TABLE.posterior(picture, NONE, p, p)
        np.testing.assert_allclose(result.means, wanted, atol=1e-6)
        np.testing.assert_allclose(result.deviations, np.sqrt((wanted * (1 - wanted)).clip(0)), atol=1e-6)
        np.testing.assert_array_equal(result.estimate, wanted > 0.5)
        assert (result.model, result.engine, result.bits, result.replaced) == ("exact", "exact", None, None)
        assert (result.level.name, result.level.estimated) == ("p", False)
        np.testing.assert_array_equal(result.level.value, p)
        assert result.changed == (picture != result.estimate).mean()


def test_what_is_doubtful_is_done_and_said_if_it_was_named() -> None:
    """Lines that the field takes for flips."""
    lines = np.broadcast_to(np.arange(90) % 9 == 4, (90, 90)).astype(float)
    result = answer(lines, Damage(0.1), field())
    assert result.status is Status.CONVERGED and not result.not_sure
    assert not result.estimate.any() and Status.NOT_NOISE.sentence in result.doubt
    assert any(result.doubt in note for note in result.notes)
    clean = answer(with_flips(disc()), Damage(0.08), field())
    assert not clean.doubt and (clean.estimate != disc()).mean() < 0.01


@pytest.mark.parametrize("pixels", [(90, 90), (90, 91)], ids=str)
def test_what_is_doubtful_comes_back_as_it_came_if_it_was_not_named(pixels: tuple[int, int]) -> None:
    lines = np.broadcast_to(np.arange(pixels[1]) % 7 == 4, pixels).astype(float)
    for named, p in ((True, "auto"), (False, 0.1), (False, "auto")):
        result = answer(lines, Damage(p), field(), named=named)
        assert result.not_sure and Status(result.status).sentence == result.reason
        assert (
            result.estimate is not None
            and np.array_equal(result.estimate, lines)
            and result.estimate.dtype == lines.dtype
        )
        assert result.changed == 0 and not result.replaced.any()
        forced = answer(lines, Damage(p), field(), named=named, force=True)
        assert not forced.not_sure and Status(result.status).sentence in forced.doubt


def test_a_level_is_found_and_told() -> None:
    for damage in (Damage("auto"), Damage()):
        result = answer(with_flips(disc()), damage, field())
        # 9,216 pixels: the share has a standard deviation of .003.
        assert result.level.value == pytest.approx(0.08, abs=0.02)
        assert result.level.estimated and result.level.sentence in result.notes and result.bits < 0
        assert (result.estimate != disc()).mean() < 0.01


@pytest.mark.parametrize("options", [{}, {"named": False}], ids=["named", "auto"])
def test_noise_is_refused(options: Any) -> None:
    noise = np.random.default_rng(0).integers(0, 2, (60, 60)).astype(float)
    result = answer(noise, Damage("auto"), field(), **options)
    assert result.not_sure and np.array_equal(result.estimate, noise)


@pytest.mark.parametrize(
    ("white", "seen"), [(0.5, {False}), (0.54, {False}), (0.1, {False, True}), (0.0, {False, True})]
)
def test_a_prior_of_pictures_as_often_white_as_black_is_asked_in_one_polarity(white: float, seen: set[bool]) -> None:
    picture, prior = np.zeros((60, 60)), field(white=white)
    picture[20:40, 10:50] = 1
    answer(picture, Damage("auto"), prior)
    # Two thirds and more of the picture are black.
    shown = {bool(crop[~hidden].mean() > 0.5) for crops, damage in prior.calls for crop, hidden in parts(crops, damage)}
    assert shown == seen


def parts(crops: np.ndarray, damage: Damage) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    hidden = np.zeros(crops.shape, bool) if damage.hidden is None else np.broadcast_to(damage.hidden, crops.shape)
    return zip(crops, hidden, strict=True)


def test_an_inverted_picture_is_inverted_for_its_prior_and_back() -> None:
    """Two tiles of a prior that is mostly black, of which the picture is the opposite."""
    dark = RBM.binary(torch.zeros(12, 1).double(), torch.full((12,), -3.0).double(), torch.zeros(1).double())
    picture = np.zeros((12, 16))
    picture[3, 4] = 1
    for pixels, inverted in ((picture, False), (1 - picture, True)):
        result = answer(pixels, Damage(0.05), engine(dark))
        np.testing.assert_array_equal(result.estimate, np.full(picture.shape, inverted))
        turned = answer(pixels, Damage(0.05), engine(dark), invert=True)
        one = Table.of(dark, SHAPE).posterior(1 - pixels[:3, :4], NONE, 0.05, 0.05)
        np.testing.assert_allclose(turned.means[:3, :4], 1 - one, atol=1e-5)


def test_at_the_lowest_level_only_what_is_sure_changes() -> None:
    """Of clean pictures a prior would change a pixel here and there, which it is hardly sure of."""
    seen = np.zeros((1, 4), bool)
    draft = Draft(seen.astype(float), np.array([[0.85, 0.95, 0.6, 0.1]]), np.full((1, 4), 0.2), grey=False)
    visible = np.array([[True, True, False, True]])
    np.testing.assert_array_equal(draft.where_sure(visible).after, [[False, True, True, False]])
    np.testing.assert_array_equal(draft.where_sure(visible).deviations, [[0, 0.2, 0.2, 0]])
    picture = disc(200)
    picture[10, 20::40] = 1
    unsure, sure = (answer(picture, Damage("auto"), field(coupling), named=False) for coupling in (0.8, 1.2))
    assert unsure.outcome is Outcome.CLEAN and np.array_equal(unsure.estimate, picture)
    assert sure.outcome is Outcome.RESTORED and (sure.estimate[10] == 0).all()


# --- batches ---


def test_a_batch_gives_each_picture_what_it_gets_alone() -> None:
    """Whatever else is in it: sizes, levels, masks, greys."""
    draw = np.random.default_rng(1)
    pictures = [Observed(flipped(seed), Damage("auto")) for seed in range(4)]
    pictures += [Observed(flipped(seed), Damage(0.02 * seed)) for seed in range(1, 4)]
    pictures += [Observed(flipped(7), Damage(draw.uniform(0.05, 0.2, SHAPE)))]
    pictures += [Observed(flipped(seed), Damage(hidden=draw.random(SHAPE) < 0.4)) for seed in range(3)]
    pictures += [Observed(flipped(seed), Damage("auto", hidden=draw.random(SHAPE) < 0.4)) for seed in range(3)]
    pictures += [Observed(with_flips(disc(side)), Damage("auto")) for side in (20, 30)]
    pictures += [Observed(draw.random(SHAPE), Damage(0.1)), Observed(draw.random(SHAPE), Damage("auto"))]
    together = answers(pictures)
    assert len(together) == len(pictures)
    for picture, actual in zip(pictures, together, strict=True):
        (alone,) = answers([picture])
        assert (actual.status, actual.model, actual.doubt, actual.changed) == (
            alone.status,
            alone.model,
            alone.doubt,
            alone.changed,
        )
        np.testing.assert_allclose(actual.means, alone.means, atol=1e-6)
        np.testing.assert_array_equal(actual.estimate, alone.estimate)
        assert (actual.level is None) == (alone.level is None)
        assert actual.level is None or actual.level.value == pytest.approx(alone.level.value, rel=1e-6)
        assert actual.estimate.shape == picture.shape


def test_many_pictures_of_one_size_are_solved_together() -> None:
    known = engine()
    pictures = [Observed(flipped(seed), Damage(0.1)) for seed in range(PICTURES_AT_ONCE + 3)]
    results = answers(pictures, known)
    assert [len(grey) for grey, _ in known.calls] == [PICTURES_AT_ONCE, 3]
    np.testing.assert_allclose(results[-1].means, answer(pictures[-1].values(), Damage(0.1)).means, atol=1e-6)


def test_no_picture_of_a_batch_stops_the_others() -> None:
    ramp = np.linspace(0, 1, 96 * 96).reshape(96, 96)
    results = answers([Observed(with_flips(disc()), Damage()), Observed(ramp, Damage())], field(), named=False)
    assert [result.status for result in results] == [Status.CONVERGED, Status.NOT_INK]
    assert results[1].estimate is not None and np.array_equal(results[1].estimate, ramp)


def test_codes_of_one_shape_have_squares_of_their_own() -> None:
    code = np.kron(np.random.default_rng(0).random((18, 18)) < 0.5, np.ones((4, 4)))
    pictures = [Observed(with_flips(part), Damage("auto")) for part in (code[:60, :60], code[3:63, 1:61])]
    for result, picture in zip(answers(pictures, field(), field(), named=False), pictures, strict=True):
        alone = answer(picture.values(), Damage("auto"), field(), field(), named=False)
        assert result.model == alone.model == "squares of 4x4 pixels"
        np.testing.assert_array_equal(result.estimate, alone.estimate)
    assert np.mean(result.estimate != code[3:63, 1:61]) < 0.005


@pytest.mark.parametrize("level", [0.0, 1.0, 0.3])
@pytest.mark.parametrize("damage", [Damage("auto"), Damage("scan"), Damage(0.2)])
def test_a_picture_of_one_level_needs_no_prior(level: float, damage: Damage) -> None:
    picture = np.full((96, 96), level)
    result = answer(picture, damage, field(), named=False)
    np.testing.assert_array_equal(result.estimate, picture)
    assert not result.not_sure and (result.outcome, result.changed) == (Outcome.CLEAN, 0.0)
    assert result.record(damage)["found"] == damage.unknown


@pytest.mark.parametrize("damage", [Damage(), Damage("auto")])
def test_a_hole_in_one_level_is_filled_with_it(damage: Damage) -> None:
    picture, hidden = np.full((96, 96), 0.3), np.zeros((96, 96), bool)
    hidden[20:30, 40:50] = True
    result = answer(np.where(hidden, 1, picture), replace(damage, hidden=hidden), field(), named=False)
    np.testing.assert_array_equal(result.estimate, picture)
    assert result.changed == pytest.approx(hidden.mean())
    # What is visible stays to the last bit, also where colours have one luminance.
    np.testing.assert_array_equal(result.replaced, hidden)


def test_two_levels_or_what_is_named_need_a_prior() -> None:
    picture = np.zeros((300, 96))
    picture[-1, -1] = 1
    assert answer(picture, Damage(), field(), named=False).status is Status.UNRECOGNISED
    assert answer(np.zeros(SHAPE), Damage(0.1)).model == engine().header.name


def test_of_colours_that_are_all_alike_a_hole_is_filled_with_them() -> None:
    picture, hidden = np.full((40, 50, 3), (0.2, 0.5, 0.7)), np.zeros((40, 50), bool)
    hidden[5:9] = True
    damage = Damage(sigma="auto", hidden=hidden)
    result = answer(np.where(hidden[..., None], 0, picture), damage, photographs())
    np.testing.assert_array_equal(result.estimate, picture)


def test_what_is_called_a_page_is_restored_though_no_prior_recognises_it() -> None:
    """A back of a leaf with grain alone."""
    grain = 0.9 + 0.02 * np.random.default_rng(0).standard_normal((96, 96))
    assert answer(grain, Damage(), named=False).not_sure
    result = answer(grain, Damage("scan"), named=False)
    assert not result.not_sure and result.doubt == Status.FAINT.sentence and result.facts.lead < 1


# --- holes ---


def test_completing_replaces_hidden_pixels_alone() -> None:
    """Visible ones are as certain as they can be, and the estimate does not replace them."""
    picture, hidden = flipped(), np.zeros(SHAPE, bool)
    hidden[1, 1:3] = hidden[2, 0] = True
    result = answer(np.where(hidden, 1 - picture, picture), Damage(hidden=hidden))
    np.testing.assert_array_equal(result.replaced, hidden)
    np.testing.assert_array_equal(result.estimate[~hidden], picture[~hidden])
    np.testing.assert_allclose(result.means[hidden], TABLE.posterior(picture, hidden, 0.0, 0.0)[hidden], atol=1e-5)
    assert result.deviations[~hidden].max() < 0.01 < result.deviations[hidden].min()
    # What lies under the mask does not matter.
    np.testing.assert_array_equal(answer(picture, Damage(hidden=hidden)).means, result.means)
    assert result.changed == ((result.estimate != (np.where(hidden, 1 - picture, picture) > 0.5)) & hidden).mean()
    # With noise, all pixels are estimated.
    noisy = answer(picture, Damage(0.1, hidden=hidden))
    assert noisy.replaced is None
    np.testing.assert_allclose(noisy.means, TABLE.posterior(picture, hidden, 0.1, 0.1), atol=1e-6)


def test_holes_of_a_picture_of_two_tones_are_filled_with_them() -> None:
    hidden = np.zeros((96, 96), bool)
    hidden[40:44, 10:80] = True
    for black, white in ((0.2, 0.7), (0.0, 0.5)):
        torn = np.where(hidden, 1.0, np.where(disc() > 0, white, black))
        result = answer(torn, Damage(hidden=hidden), field(), named=False)
        assert set(np.unique(result.estimate)) == {black, white}
        np.testing.assert_array_equal(result.estimate[~hidden], torn[~hidden])
        # Only where the edge of the disc crosses the scratch may a pixel be wrong.
        assert (result.estimate != np.where(disc() > 0, white, black)).sum() <= 8


def test_no_filled_pixel_stands_alone() -> None:
    """A pixel in a hole that differs from all eight around it takes their colour; a visible one does not."""
    machine = random_rbm(12, 2, scale=0.0, seed=1)
    bias = torch.full((12,), 3.0, dtype=machine.layers[0].bias.dtype)
    bias[5] = -3.0
    alone = replace(machine, layers=(type(machine.layers[0])(bias), *machine.layers[1:]))
    hidden = np.zeros(SHAPE, bool)
    hidden[1, 1] = True
    result = answer(np.ones(SHAPE), Damage(hidden=hidden), engine(alone))
    assert result.means[1, 1] > 0.9 and result.estimate.all()
    speck = np.ones(SHAPE)
    speck[1, 1] = 0
    result = answer(speck, Damage(hidden=np.roll(hidden, 2, 1)), engine(alone))
    assert not result.estimate[1, 1]


def test_it_is_said_how_many_filled_pixels_may_be_wrong() -> None:
    hidden = np.zeros(SHAPE, bool)
    hidden[0, :2] = True
    for picture in TABLE.drawn(20, 3):
        result = answer(picture, Damage(hidden=hidden), invert=False)
        doubt = np.minimum(result.means, 1 - result.means)[hidden].mean()
        notes = [sentence for sentence in result.notes if "filled" in sentence]
        assert len(notes) == (result.outcome == "restored")
        assert all(f"{doubt:.1%}" in note for note in notes)


def test_a_hole_around_which_nothing_is_visible_is_told_of() -> None:
    hidden = np.zeros((12, 16), bool)
    hidden[3:, 4:] = True
    # Tiles that the prior predicts better than diffusion does.
    picture = np.block([[*row] for row in TABLE.drawn(16, 1).reshape(4, 4, *SHAPE)])
    result = answer(picture, Damage(hidden=hidden), force=True)
    assert BLIND in result.notes
    np.testing.assert_array_equal(result.estimate[~hidden], picture[~hidden])


# --- two-level pictures, and sizes ---


@pytest.mark.parametrize(("black", "white"), [(0.0, 1.0), (0.3, 0.4), (0.0, 1 / 255)])
def test_a_picture_of_two_tones_keeps_them(black: float, white: float) -> None:
    picture = with_flips(disc())
    result = answer(np.where(picture > 0, white, black), Damage(0.08), field())
    wanted = answer(picture, Damage(0.08), field())
    np.testing.assert_array_equal(result.means, wanted.means)
    # Exactly: not one level more.
    np.testing.assert_array_equal(result.estimate, np.where(wanted.estimate, white, black))


def soft_disc() -> np.ndarray:
    """A disc with soft edges, grey on light."""
    rows, columns = np.mgrid[:96, :96]
    depth = (np.hypot(rows - 48, columns - 48) - 32).clip(-1, 1)
    return np.asarray(np.rint(255 * (0.55 - 0.35 * depth)) / 255)


def test_pixels_of_a_drawing_that_keep_their_colour_keep_their_level() -> None:
    """A clean one comes back as it was: nothing is lost by a threshold."""
    clean = soft_disc()
    (results,) = answers([Observed(clean, Damage())], field(), named=False)
    assert not results.not_sure and results.changed == 0
    assert results.replaced is not None and not results.replaced.any()
    flips = np.random.default_rng(0).random(clean.shape) < 0.05
    (results,) = answers([Observed(np.where(flips, 0.75 - clean, clean), Damage())], field(), named=False)
    assert not results.not_sure and results.replaced is not None
    assert set(np.unique(results.estimate)) == {0.2, round(0.9 * 255) / 255}
    # What differs from the picture is what is said, and nearly all of it was flipped.
    assert (
        results.changed == results.replaced.mean() and (flips & results.replaced).sum() > 0.9 * results.replaced.sum()
    )


def test_what_lies_between_the_tones_of_a_drawing_is_no_flip() -> None:
    clean = soft_disc()
    draw = np.random.default_rng(0).random(clean.shape)
    tones = clean.min(), clean.max()
    flips, grey = (draw < 0.04) & np.isin(clean, tones), (draw > 0.98) & (clean == tones[1])
    seen = np.where(grey, 0.8 * tones[0] + 0.2 * tones[1], np.where(flips, sum(tones) - clean, clean))
    (result,) = answers([Observed(seen, Damage())], field(), named=False)
    assert result.replaced is not None and not result.replaced[grey].any()
    assert (result.replaced & flips).sum() > 0.9 * flips.sum()


def test_what_a_threshold_takes_away_is_counted() -> None:
    picture = soft_disc() + 0.01 * np.random.default_rng(0).standard_normal((96, 96))
    named = answer(picture, Damage(0.01), field())
    assert named.replaced is None and set(np.unique(named.estimate)) <= {0, 1}
    assert named.changed is not None and named.changed > 0.99
    assert any("cut to black and white" in note for note in named.notes)


def test_a_clean_picture_with_grain_is_not_cut() -> None:
    """It is too small to be read as a page."""
    picture = soft_disc()[24:72, 24:72] + 0.01 * np.random.default_rng(0).standard_normal((48, 48))
    (result,) = answers([Observed(picture, Damage())], field(), named=False)
    assert result.outcome is Outcome.CLEAN and result.replaced is not None and not result.replaced.any()


def test_a_picture_of_another_size_may_be_resized_and_back() -> None:
    small = flipped()
    large = small.repeat(2, 0).repeat(2, 1)
    result = answer(large, Damage(0.1), fit="resize")
    values, _ = shrink(large, None, SHAPE)
    np.testing.assert_array_equal(values > 0.5, small > 0.5)
    means = TABLE.posterior(small, NONE, 0.1, 0.1)
    np.testing.assert_allclose(result.means, enlarge(means, large.shape), atol=1e-5)
    np.testing.assert_array_equal(result.estimate, result.means > 0.5)
    for far in (small.repeat(3, 0).repeat(3, 1), np.zeros((3, 9))):
        with pytest.raises(ModelError):
            answer(far, Damage(0.1), fit="resize")
        assert answer(far, Damage(0.1), fit="resize", force=True).means.shape == far.shape
    with pytest.raises(UsageError):
        answer(small, Damage(0.1), fit="crop")
    with pytest.raises(UsageError, match="colours"):
        answer(np.zeros((9, 9, 3)), Damage(sigma=0.1), photographs(), fit="resize", force=True)


@pytest.mark.parametrize("p", [np.full((4, 4), 0.1), np.full(12, 0.1), np.full((1, *SHAPE), 0.1)], ids=str)
def test_probabilities_of_another_shape_are_refused(p: np.ndarray) -> None:
    with pytest.raises(UsageError):
        answer(flipped(), Damage(p))


# --- several priors ---


def test_the_prior_that_predicts_a_picture_best_restores_it() -> None:
    knowing, other = engine(name="knowing"), engine(random_rbm(12, 4, scale=2.0, seed=9), name="other")
    picture = np.concatenate([np.concatenate(list(TABLE.drawn(6, row)), 1) for row in range(6)])
    result = answer(with_flips(picture, 0.05), Damage(0.05), other, knowing, named=False, force=True)
    assert result.model == "knowing"


# --- conditional priors ---


@dataclass(frozen=True, eq=False)
class Failing(ExactEngine):
    """It predicts hidden pixels, and cannot be run on the whole picture."""

    def solve(self, pictures: np.ndarray, damage: Damage, effort: Effort = "full") -> Posterior:
        if damage.hidden is None:
            raise ModelError("its graph cannot be run", self.header.name)
        return super().solve(pictures, damage, effort)


def test_a_prior_that_fails_on_the_whole_picture_leaves_it_to_the_next() -> None:
    picture, other = flipped(p=0.02), engine(small_machine(seed=8), name="other")
    failing = Failing.of(MACHINE, SHAPE, "failing")
    with pytest.warns(RestoreWarning, match="failing"):
        results = answers([Observed(picture, Damage("auto"))] * 2, failing, other, named=False, force=True)
    (expected,) = answers([Observed(picture, Damage("auto"))], other, named=False, force=True)
    assert [result.model for result in results] == ["other", "other"]
    for result in results:
        np.testing.assert_allclose(result.means, expected.means, atol=1e-9)
    with pytest.raises(ModelError, match="failing"):
        answers([Observed(picture, Damage("auto"))], failing, named=True, force=True)


def test_a_conditional_prior_restores_from_the_picture_alone() -> None:
    prior = Engine.of(random_conditional(), CPU)
    pictures = np.random.default_rng(0).integers(0, 2, (3, 10, 12)).astype(float)
    wanted = prior.restore(torch.from_numpy(pictures).flatten(1))
    results = answers([Observed(pixels, Damage()) for pixels in pictures], prior, invert=False)
    for row, result in enumerate(results):
        np.testing.assert_allclose(result.means.ravel(), wanted.means[0][row].numpy(), atol=1e-5)
        assert result.level is None and result.bits is None and result.status is Status.CONVERGED
    for damage in (Damage(0.1), Damage(hidden=pictures[0] > 0), Damage("auto")):
        with pytest.raises(UsageError):
            answer(pictures[0], damage, prior)


# --- divergence ---


@pytest.mark.parametrize("named", [True, False], ids=["named", "auto"])
def test_a_solver_that_diverges_leaves_the_picture_as_it_was(named: bool) -> None:
    """Gaussian hidden units that weak evidence leaves without curvature: one picture of three diverges."""
    unstable = Engine.of(grey_prior(TRUNCATED, "gaussian", scale=3.0, curvature=0.5), CPU)
    grey = np.random.default_rng(0).uniform(0.2, 0.8, (3, 5, 7))
    masks = np.zeros((3, 5, 7), bool)
    masks[:, 2, 3] = masks[1, 1:] = True
    pictures = [Observed(pixels, Damage(hidden=mask)) for pixels, mask in zip(grey, masks, strict=True)]
    results = answers(pictures, unstable, named=named, force=True, invert=False)
    assert [result.status is Status.DIVERGED for result in results] == [False, True, False]
    assert results[1].not_sure
    for pixels, result in zip(grey, results, strict=True):
        assert all(np.isfinite(values).all() for values in (result.estimate, result.means, result.deviations))
        assert np.array_equal(result.estimate, pixels) == (result.status is Status.DIVERGED)


# --- grey pictures, and colours ---


SPREAD = np.random.default_rng(5).normal(0, 0.2, (16, 3))


def photographs() -> Engine:
    """A mixture of one Gaussian of patches of 4x4 pixels."""
    covered = torch.from_numpy(SPREAD).float()
    variance = (covered**2).sum(1) + 0.001
    header = Description(
        "patches", (4, 4), 127, "", "", inference=Inference("exact", modes=0, starts=0), family="mixture",
        visible="gaussian", hidden_type="gaussian", components=1, hidden=3
    )  # fmt: skip
    machine = GaussianMixture(covered[None], torch.tensor([0.001]), torch.zeros(1))
    alone = Gaussian(0.5 / variance, 1 / variance)
    return Engine.of(
        TrainedPrior(header, machine, torch.full((16,), 0.5), torch.zeros(0, 2, dtype=torch.uint8), alone), CPU
    )


class Watched:
    """An engine that lists the efforts of its solutions."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.efforts = engine, list[Effort]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def solve(self, pictures: np.ndarray, damage: Damage, effort: Effort = "full") -> Posterior:
        self.efforts.append(effort)
        return self.engine.solve(pictures, damage, effort)


def test_a_picture_without_noise_stays_unsolved_as_it_is() -> None:
    """Patches are nearer to the mean than the prior expects: no noise is found. With noise or a hole it is solved."""
    draw = np.random.default_rng(1)
    codes = draw.standard_normal((8, 8, SPREAD.shape[1])) @ SPREAD.T
    clean = 0.5 + 0.5 * codes.reshape(8, 8, 4, 4).swapaxes(1, 2).reshape(32, 32)
    hidden = np.zeros(clean.shape, bool)
    hidden[5, 5] = True
    for damage, noise in (
        (Damage(sigma="auto"), 0.0),
        (Damage(sigma="auto"), 0.2),
        (Damage(sigma="auto", hidden=hidden), 0.0),
    ):
        watched, picture = Watched(photographs()), clean + noise * draw.standard_normal(clean.shape)
        result = answer(picture, damage, watched)
        assert result.level is not None and (result.level.value == 0) == (noise == 0)
        solved = noise > 0 or damage.hidden is not None
        assert ("full" in watched.efforts) == solved and result.status is Status.CONVERGED
        if not solved:
            np.testing.assert_array_equal(result.means, picture)
            assert not result.deviations.any() and result.iterations == 0


def test_colours_are_restored_in_axes_that_share_the_noise() -> None:
    """Under one Gaussian the posterior mean is linear, and so the same in any orthonormal axes: in red, green, blue."""
    np.testing.assert_allclose(AXES @ AXES.T, np.eye(3), atol=1e-12)
    sigma, picture = 0.1, np.random.default_rng(1).normal(0.5, 0.2, (8, 12, 3))
    result = answer(picture, Damage(sigma=sigma), photographs())
    prior = SPREAD @ SPREAD.T + 0.001 * np.eye(16)
    gain = prior @ np.linalg.inv(prior + sigma**2 * np.eye(16))
    for top, left in np.ndindex(2, 3):
        where = (slice(4 * top, 4 * top + 4), slice(4 * left, 4 * left + 4))
        wanted = 0.5 + gain @ (picture[where].reshape(16, 3) - 0.5)
        np.testing.assert_allclose(result.means[where].reshape(16, 3), wanted, atol=1e-4)
        # Every colour has the variance of one plane, (I - gain) · prior.
        variances = np.diag((np.eye(16) - gain) @ prior)[:, None].repeat(3, 1)
        np.testing.assert_allclose(result.deviations[where].reshape(16, 3) ** 2, variances, atol=1e-5)
    assert result.status is Status.CONVERGED and result.estimate.shape == picture.shape


def test_colours_vary_as_planes_that_vary_by_themselves() -> None:
    """Over all eight signs of deviations that differ from plane to plane."""
    wanted, picture = np.array([0.04, 0.01, 0.09]), np.random.default_rng(1).random((4, 4, 3))
    turns = iter(wanted)

    class Uneven(Watched):
        def solve(self, pictures: np.ndarray, damage: Damage, effort: Effort = "full") -> Posterior:
            return Posterior.of_pixels(pictures, np.full(pictures.shape, next(turns)))

    posterior = Planes(Uneven(photographs())).posterior(Observed(picture, Damage(sigma=0.1)), lambda share: None)
    signs = np.array(list(product((-1, 1), repeat=3))) * np.sqrt(wanted)
    np.testing.assert_allclose(posterior.means[0], picture, atol=1e-6)
    np.testing.assert_allclose(posterior.variances[0, 2, 1], in_colours(0.5 + signs).var(0), atol=1e-6)


@pytest.mark.parametrize("plane", range(3))
def test_a_plane_of_colour_that_diverges_leaves_the_picture(plane: int, monkeypatch: pytest.MonkeyPatch) -> None:
    solve, calls = Engine.solve, iter(range(3))

    def breaking(self: Engine, pictures: np.ndarray, damage: Damage, effort: Effort = "full") -> Posterior:
        actual = solve(self, pictures, damage, effort)
        return replace(actual, means=np.full_like(actual.means, np.nan)) if next(calls) == plane else actual

    monkeypatch.setattr(Engine, "solve", breaking)
    picture = np.random.default_rng(1).random((4, 4, 3))
    actual = answer(picture, Damage(sigma=0.1), photographs())
    assert actual.status is Status.DIVERGED and np.array_equal(actual.estimate, picture)


def test_colours_are_for_priors_of_photographs() -> None:
    with pytest.raises(ModelError):
        answer(np.zeros((5, 7, 3)), Damage(sigma=0.1), Engine.of(grey_prior(), CPU))


@pytest.mark.parametrize("kind", [SPIKED, TRUNCATED])
def test_grey_levels_are_those_of_the_engine(kind: str) -> None:
    prior = Engine.of(grey_prior(kind), CPU)
    draw = np.random.default_rng(0)
    pictures = draw.random((3, 5, 7)) + draw.normal(0, 0.1, (3, 5, 7))
    for damage in (Damage(sigma=0.1), Damage(0.2, sigma=0.1), Damage(0.1), Damage(np.full((5, 7), 0.2), sigma=0.1)):
        wanted = prior.solve(pictures, damage.mapped(lambda level: level[None]))
        for row, actual in enumerate(answers([Observed(picture, damage) for picture in pictures], prior, invert=False)):
            np.testing.assert_allclose(actual.means, wanted.means[row], atol=3e-5)
            np.testing.assert_array_equal(actual.estimate, actual.means)
            assert actual.changed is None


def test_the_noise_of_grey_pictures_is_found_if_nothing_is_told() -> None:
    prior = Engine.of(grey_prior(), CPU)
    clean = np.where(np.random.default_rng(0).random((5, 7)) < 0.5, 0.0, 0.5)
    actual, wanted = (answer(clean, damage, prior, force=True) for damage in (Damage(), Damage(sigma="auto")))
    assert actual.level == wanted.level and actual.level.name == "sigma"
    np.testing.assert_array_equal(actual.means, wanted.means)
