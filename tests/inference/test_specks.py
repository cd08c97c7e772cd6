"""Specks are removed as whole pieces: pieces against labels, odds against enumeration, and marks that have to stay."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from enumerated import SHAPE, ExactEngine, FieldEngine, Opened, Table, small_machine
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from safetensors.numpy import load_file
from scipy import ndimage, stats

import restore as package
from restore.channels import Specks
from restore.channels.damage import Damage, Observed
from restore.channels.specks import LARGEST, SMALLEST, log_share
from restore.channels.values import probability_of
from restore.errors import Foreign, UsageError
from restore.inference import specks
from restore.inference.candidates import Prior
from restore.inference.options import Options
from restore.inference.restore import restore
from restore.inference.restored import Restored
from restore.inference.specks import Pieces, cleaned, evidence, likeliest_rate, log_odds, probabilities, temperature
from restore.status import Status
from restore.zoo import find

ENGINE = ExactEngine.of(small_machine(), SHAPE)
TABLE = Table.of(ENGINE.machine, SHAPE)
PAGE = np.asarray(Image.open(Path(__file__).parents[2] / "assets" / "page.png").convert("L")) > 127


def by_labels(white: np.ndarray) -> set[tuple[bool, frozenset[tuple[int, int]]]]:
    """The pieces of a picture, as scipy labels them."""
    actual = set()
    for colour in (False, True):
        parts, count = ndimage.label(white == colour)
        blobs = (np.argwhere(parts == number) for number in range(1, count + 1))
        actual |= {
            (colour, frozenset(map(tuple, cells.tolist()))) for cells in blobs if SMALLEST <= len(cells) <= LARGEST
        }
    return actual


def listed(pieces: Pieces) -> list[np.ndarray]:
    return [pieces.pixels[pieces.owner == number] for number in range(len(pieces))]


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 14), st.integers(1, 14), st.floats(0.1, 0.9), st.integers(0, 2**32))
def test_pieces_are_what_labels_say(height: int, width: int, share: float, seed: int) -> None:
    white = np.random.default_rng(seed).random((height, width)) < share
    pieces = Pieces.of(white)
    labelled = [(bool(white[tuple(cells[0])]), frozenset(map(tuple, cells.tolist()))) for cells in listed(pieces)]
    assert len(labelled) == len(set(labelled)) and set(labelled) == by_labels(white)
    shapes = [
        (colour, frozenset(map(tuple, (cells - cells.min(0)).tolist())))
        for (colour, _), cells in zip(labelled, listed(pieces), strict=True)
    ]
    for kind, shape in zip(pieces.kind, shapes, strict=True):
        assert [other == shape for other in shapes] == (pieces.kind == kind).tolist()


@pytest.mark.parametrize("length", [SMALLEST, LARGEST, LARGEST + 1])
@pytest.mark.parametrize("turned", [False, True])
def test_the_longest_pieces_and_longer_ones(length: int, turned: bool) -> None:
    white = np.zeros((12, 30), bool)
    white[4, 5 : 5 + length] = True
    pieces = Pieces.of(white.T if turned else white)
    assert pieces.sizes.tolist() == [length] * (length <= LARGEST)
    assert pieces.middles.tolist() == [[4, 5 + (length - 1) // 2][:: -1 if turned else 1]] * (length <= LARGEST)


@pytest.mark.parametrize("invert", [False, True])
def test_odds_of_pieces_are_those_of_the_whole_machine(invert: bool) -> None:
    met = 0
    for seed in range(8):
        picture = np.random.default_rng(seed).integers(0, 2, SHAPE).astype(float)
        pieces = Pieces.of(picture > 0.5)
        actual = log_odds(pieces, picture, Prior(ENGINE, invert))
        for cells, odds in zip(listed(pieces), actual, strict=True):
            without = picture.copy()
            without[tuple(cells.T)] = 1 - without[tuple(cells.T)]
            p, q = (
                TABLE.probability[(TABLE.pictures == (1 - image if invert else image)).all((1, 2))].item()
                for image in (picture, without)
            )
            assert odds == pytest.approx(np.log(p / q), abs=1e-4)
            met += 1
    assert met > 10


def test_the_posterior_of_a_piece_is_bayes_rule() -> None:
    picture = np.zeros(SHAPE)
    picture[1, 1:3] = 1
    without, task = np.zeros(SHAPE), Specks(0.1)
    p, q = (TABLE.probability[(TABLE.pictures == image).all((1, 2))].item() for image in (picture, without))
    dirt = q * task.rate * np.exp(log_share(np.array(2)))
    actual = cleaned(picture, Prior(ENGINE), task)
    np.testing.assert_allclose(actual.white[1, 1:3], p / (p + dirt), atol=1e-4)
    assert actual.white[picture == 0].max() == 0 and actual.specks.share == pytest.approx(0.1)


def test_a_trained_prior_solves_pixels_well_enough() -> None:
    """Free energies of the machine itself: hidden units are summed out exactly."""
    weights = load_file(find("tap-mnist-50") / "weights.safetensors")

    def log_p(ink: np.ndarray) -> np.ndarray:
        field = ink @ weights["weights.0"] + weights["units.1.bias"]
        return np.asarray(ink @ weights["units.0.bias"] + np.logaddexp(0, field).sum(-1))

    picture = np.zeros((28, 28), np.float32)
    picture[2:14, 4:6] = picture[6:8, 10:12] = picture[12, 9:14] = 1
    engine = package.load("tap-mnist-50").engine
    pieces = Pieces.of(picture > 0.5)
    assert pieces.sizes.tolist() == [4, 5]
    for cells, odds in zip(listed(pieces), log_odds(pieces, picture, Prior(engine)), strict=True):
        without = picture.copy()
        without[tuple(cells.T)] = 0
        gap = log_p(picture.ravel()) - log_p(without.ravel())
        # With the tolerance for restoring it is off by several nats.
        assert odds == pytest.approx(float(gap), abs=1.0)


# --- the temperature ---


@pytest.mark.parametrize("hot", [0.5, 1.0, 1.7, 5.0])
def test_the_temperature_is_that_at_which_pixels_at_edges_are_likeliest(
    hot: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pixels are predicted right as often as log-odds say that are divided by `hot`."""
    dice = np.random.default_rng(3)
    picture = (dice.random((90, 90)) < 0.3).astype(float)
    drawn: list[np.ndarray] = []

    def predicted(pieces: Pieces, *_: object) -> np.ndarray:
        cells = tuple(pieces.pixels.T)
        padded = np.pad(picture, 1, mode="edge")
        beside = (padded[rows, columns] for rows, columns in ((np.s_[:-2], np.s_[1:-1]), (np.s_[2:], np.s_[1:-1])))
        across = (padded[1:-1, :-2], padded[1:-1, 2:])
        edge = np.any([shifted != picture for shifted in (*beside, *across)], 0)
        edge[tuple(Pieces.of(picture > 0.5).pixels.T)] = False
        assert edge[cells].all() and specks.PREDICTED / 2 < len(pieces) <= specks.PREDICTED < edge.sum()
        assert np.unique(pieces.pixels, axis=0).shape == pieces.pixels.shape
        sure = dice.normal(0, 4, len(pieces))
        drawn.append(np.where(dice.random(len(pieces)) < probability_of(abs(sure) / hot), 1, -1) * abs(sure))
        return drawn[-1]

    monkeypatch.setattr(specks, "log_odds", predicted)
    pieces = Pieces.of(picture > 0.5)
    actual = temperature(pieces, picture, Prior(ENGINE))
    grid = np.exp(np.linspace(0, 3, 601))
    likelihood = -np.logaddexp(0, -drawn[0] / grid[:, None]).sum(1)
    assert actual == pytest.approx(grid[likelihood.argmax()], rel=0.01)
    assert actual == pytest.approx(max(hot, 1), rel=0.15)


def test_a_prior_that_is_always_wrong_counts_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    picture = np.eye(9)
    monkeypatch.setattr(specks, "log_odds", lambda pieces, *_: np.full(len(pieces), -20.0))
    assert temperature(Pieces.of(picture > 0.5), picture, Prior(ENGINE)) > 1000


def test_a_prior_that_is_too_sure_is_believed_less(monkeypatch: pytest.MonkeyPatch) -> None:
    picture = np.zeros(SHAPE)
    picture[1, 1:3] = 1
    pieces = Pieces.of(picture > 0.5)
    actual = []
    for heat in (1.0, 4.0):
        monkeypatch.setattr(specks, "temperature", lambda *_, heat=heat: heat)
        actual.append(evidence(pieces, picture, Prior(ENGINE)) - log_share(pieces.sizes))
    assert actual[0] == pytest.approx(4 * actual[1]) and (actual[0] != 0).all()


def test_without_edges_a_prior_is_believed() -> None:
    picture = np.zeros((9, 9))
    assert temperature(Pieces.of(picture > 0.5), picture, Prior(ENGINE)) == 1


# --- the rate, and marks ---


def lone(count: int, kinds: np.ndarray, size: int = 6) -> Pieces:
    """So many pieces far from each other, which only count by their sizes and kinds."""
    pixels = np.stack([np.arange(count * size), np.zeros(count * size, int)], 1)
    return Pieces(pixels, np.repeat(np.arange(count), size), kinds)


def test_the_rate_is_the_likeliest() -> None:
    area, odds = 100_000, np.random.default_rng(0).normal(6, 4, 400)
    rate, nats = likeliest_rate(lone(400, np.arange(400)), odds, area)
    rates = rate * np.exp(np.linspace(-1, 1, 41))
    curve = np.log1p(np.exp(odds) * rates[:, None]).sum(1) - rates * area
    assert curve.argmax() == 20 and nats == pytest.approx(curve[20], abs=0.01)


def test_without_evidence_there_are_none() -> None:
    for odds in (np.full(50, 3.0), np.zeros(0)):
        assert likeliest_rate(lone(len(odds), np.arange(len(odds))), odds, 100_000) == (0.0, 0.0)


def test_shapes_that_repeat_are_marks_unless_so_many_are_specks_by_chance() -> None:
    odds, rate, area = np.full(60, 20.0), 1e-3, 60_000
    kinds = np.arange(60)
    kinds[:30] = 0
    dirt = probabilities(lone(60, kinds), odds, rate, area)
    np.testing.assert_array_equal(dirt[:30], 0)
    np.testing.assert_allclose(dirt[30:], probability_of(odds[30:] + np.log(rate)))
    # Of two pixels there are two shapes alone.
    assert probabilities(lone(30, np.zeros(30, int), 2), odds[:30], 30 * 14 / area, area).min() > 0.9


def test_how_often_a_shape_may_repeat_is_what_chance_allows() -> None:
    """Of shapes of which four are expected: fourteen are marks (Poisson tail < .001), eight are none (.05)."""
    area, expected = 60_000, 4.0
    rate = expected / area / float(np.exp(log_share(np.array([6])))[0])
    for count, marks in ((8, False), (14, True)):
        tail = float(stats.poisson.sf(count - 1, expected))
        assert (tail < 0.001) is marks and (tail > 0.03) is not marks
        dirt = probabilities(lone(count, np.zeros(count, int)), np.full(count, 30.0), rate, area)
        assert bool(dirt.max() == 0) is marks and bool(dirt.min() > 0.9) is not marks


# --- pictures ---


def speckled(clean: np.ndarray) -> np.ndarray:
    return np.asarray(Specks(0.02).corrupt(clean.astype(float), np.random.default_rng(0)) > 0.5)


def check_cleaned(clean: np.ndarray, picture: np.ndarray, answer: Restored) -> None:
    """It has got better, and only pieces have changed."""
    assert (answer.estimate != clean).sum() < 0.75 * (picture != clean).sum()
    may = np.zeros(picture.shape, bool)
    may[tuple(Pieces.of(picture).pixels.T)] = True
    assert not (answer.estimate != picture)[~may].any()
    assert answer.level.name == "specks" and 0.005 < answer.level.value < 0.03
    assert answer.changed == pytest.approx(np.mean(answer.estimate != picture))


def test_a_square_with_specks_gets_better_and_only_pieces_change() -> None:
    square = np.pad(np.ones((60, 60), bool), 20)
    picture = speckled(square)
    field = FieldEngine.of(small_machine(scale=0.0), SHAPE, family="convolutional", kernel=2, hidden=1)
    (answer,) = restore([Observed(picture.astype(float), Damage(specks=0.02))], Options(), Opened((field,)))
    check_cleaned(square, picture, answer)


@pytest.mark.thorough
def test_a_page_with_specks_gets_better_in_either_polarity() -> None:
    page = PAGE[30:110]
    picture = speckled(page)
    clean, answer = package.denoise(picture, "conv-text", specks="auto", return_solution=True)
    check_cleaned(page, picture, answer)
    np.testing.assert_array_equal(package.denoise(~picture, "conv-text", specks="auto"), ~clean)


@pytest.mark.thorough
def test_a_clean_page_keeps_its_dots() -> None:
    clean, answer = package.denoise(PAGE, "conv-text", specks="auto", return_solution=True)
    np.testing.assert_array_equal(clean, PAGE)
    assert answer.level.value == 0 and answer.status == Status.CONVERGED


@pytest.mark.parametrize("white", [np.zeros(SHAPE, bool), np.ones(SHAPE, bool)])
def test_a_picture_without_pieces(white: np.ndarray) -> None:
    for task in (None, Specks(0.1)):
        np.testing.assert_array_equal(cleaned(white.astype(float), Prior(ENGINE), task).white, white)


def test_a_picture_that_no_prior_recognises_is_refused() -> None:
    noise = np.random.default_rng(0).random((60, 60)) < 0.5
    with pytest.raises(Foreign):
        package.denoise(noise, "conv-text", specks="auto")


def test_the_answer_of_one_picture_does_not_depend_on_others(monkeypatch: pytest.MonkeyPatch) -> None:
    observed = TABLE.drawn(3, seed=2)
    pictures = [Observed(values, Damage(specks=0.1)) for values in observed]
    together = restore(pictures, Options(force=True), Opened((ENGINE,)))
    monkeypatch.setattr(specks, "WINDOWS_AT_ONCE", 1)
    for picture, answer in zip(pictures, together, strict=True):
        (alone,) = restore([picture], Options(force=True), Opened((ENGINE,)))
        np.testing.assert_array_equal(alone.means, answer.means)


@pytest.mark.parametrize(
    "how",
    [{"p": 0.1}, {"sigma": 0.1}, {"p": "auto"}, {"model": "tap-mnist-real"}, {"model": "crbm-bp-mnist-flip10"}],
    ids=str,
)
def test_specks_are_removed_alone_and_from_ink(how: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        package.denoise(np.zeros((28, 28), bool), specks=0.01, **how)


def test_specks_take_no_mask() -> None:
    with pytest.raises(UsageError):
        package.complete(np.zeros((28, 28), bool), np.eye(28, dtype=bool), specks=0.01)


@pytest.mark.parametrize("share", [0, -0.1, 0.3, "much", "", True, float("nan"), [0.1]])
def test_a_share_that_is_none(share: object) -> None:
    with pytest.raises(UsageError):
        Damage.of(specks=share)
    assert Damage.of(specks="1%").specks == 0.01 and Damage.of(specks=np.float32(0.125)).specks == 0.125
