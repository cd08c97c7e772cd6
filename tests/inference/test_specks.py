"""Specks are removed as whole pieces: pieces against labels, fillings against enumeration, and marks that stay."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from enumerated import ANY_SIZE, SHAPE, ExactEngine, FieldEngine, Opened, Table, small_machine
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from scipy import ndimage, stats

import restore as package
from restore.channels import Specks
from restore.channels.damage import Damage, Observed
from restore.channels.specks import LARGEST, log_share
from restore.channels.values import probability_of
from restore.errors import NotRestored, UsageError
from restore.inference.candidates import Prior
from restore.inference.options import Options
from restore.inference.restore import restore
from restore.inference.restored import Restored
from restore.inference.specks import NEAR, Pieces, cleaned, likeliest_rate, log_odds, probabilities
from restore.status import Status

ENGINE = ExactEngine.of(small_machine(), SHAPE)
TABLE = Table.of(ENGINE.machine, SHAPE)
PAGE = np.asarray(Image.open(Path(__file__).parents[2] / "assets" / "page.png").convert("L")) > 127


def by_labels(white: np.ndarray) -> set[tuple[bool, frozenset[tuple[int, int]]]]:
    """The pieces of a picture, as scipy labels them."""
    actual = set()
    for colour in (False, True):
        parts, count = ndimage.label(white == colour)
        blobs = (np.argwhere(parts == number) for number in range(1, count + 1))
        actual |= {(colour, frozenset(map(tuple, cells.tolist()))) for cells in blobs if len(cells) <= LARGEST}
    return actual


def listed(pieces: Pieces) -> list[np.ndarray]:
    return [np.argwhere(pieces.labels == number) for number in range(len(pieces.sizes))]


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 30), st.integers(1, 30), st.floats(0.1, 0.9), st.integers(0, 2**32))
def test_pieces_are_what_labels_say(height: int, width: int, share: float, seed: int) -> None:
    white = np.random.default_rng(seed).random((height, width)) < share
    pieces = Pieces.of(white)
    blobs = listed(pieces)
    labelled = [(bool(white[tuple(cells[0])]), frozenset(map(tuple, cells.tolist()))) for cells in blobs]
    assert len(labelled) == len(set(labelled)) and set(labelled) == by_labels(white)
    assert pieces.sizes.tolist() == [len(cells) for cells in blobs]
    corners = [cells.min(0) for cells in blobs]
    kinds = [
        (colour, frozenset(map(tuple, (cells - corner).tolist())))
        for (colour, _), cells, corner in zip(labelled, blobs, corners, strict=True)
    ]
    for kind, corner, alike in zip(kinds, corners, pieces.alike, strict=True):
        near = [(np.abs(other // NEAR - corner // NEAR) <= 1).all() for other in corners]
        assert alike == sum(other == kind for other, is_near in zip(kinds, near, strict=True) if is_near) - 1


@pytest.mark.parametrize("length", [1, LARGEST, LARGEST + 1])
@pytest.mark.parametrize("turned", [False, True])
def test_the_longest_pieces_and_longer_ones(length: int, turned: bool) -> None:
    white = np.zeros((12, 30), bool)
    white[4, 5 : 5 + length] = True
    assert Pieces.of(white.T if turned else white).sizes.tolist() == [length] * (length <= LARGEST)


@pytest.mark.parametrize("invert", [False, True])
def test_pieces_are_filled_in_turns_from_all_that_is_visible(invert: bool) -> None:
    engine, seen = ExactEngine.of(small_machine(), SHAPE), 0
    for seed in range(8):
        picture = np.random.default_rng(seed).integers(0, 2, SHAPE).astype(float)
        pieces = Pieces.of(picture > 0.5)
        engine.calls.clear()
        actual = log_odds(pieces, picture, Prior(engine, invert))
        hidden = [damage.hidden[0] for _, damage in engine.calls if damage.hidden is not None]
        np.testing.assert_array_equal(np.sum(hidden, 0), pieces.labels >= 0)
        for number, cells in enumerate(listed(pieces)):
            (turn,) = (mask for mask in hidden if mask[tuple(cells.T)].all())
            pictures = 1 - TABLE.pictures if invert else TABLE.pictures
            weight = TABLE.probability * np.where(turn, True, pictures == picture).all((1, 2))
            white = (weight[:, None, None] * pictures).sum(0) / weight.sum()
            own = np.where(picture > 0.5, white, 1 - white)[tuple(cells.T)]
            assert actual[number] == pytest.approx(np.log(own / (1 - own)).mean(), abs=1e-4)
            seen += 1
        assert len(pieces.sizes) < 2 or not any((mask == (pieces.labels >= 0)).all() for mask in hidden)
    assert seen > 10


def test_the_posterior_of_a_piece_is_bayes_rule() -> None:
    picture = np.zeros(SHAPE)
    picture[1, 1:3] = 1
    known = (TABLE.pictures == picture)[:, picture == 0].all(1)
    white = (TABLE.probability[known, None] * TABLE.pictures[known][:, 1, 1:3]).sum(0) / TABLE.probability[known].sum()
    odds, task = np.exp(np.log(white / (1 - white)).mean()), Specks(0.1)
    actual = cleaned(picture, Prior(ENGINE), task)
    np.testing.assert_allclose(actual.white[1, 1:3], odds / (odds + task.rate), atol=1e-4)
    assert actual.white[picture == 0].max() == 0 and actual.specks.share == pytest.approx(0.1)


# --- the rate, and marks ---


def lone(count: int, alike: int = 0, size: int = 6) -> Pieces:
    """So many pieces of a picture of 100,000 pixels, which only count by their sizes and by how many are alike."""
    labels = np.full(100_000, -1)
    labels[: count * size] = np.repeat(np.arange(count), size)
    return Pieces(labels.reshape(250, 400), np.full(count, size), np.full(count, alike))


def test_the_rate_is_the_likeliest() -> None:
    odds = np.random.default_rng(0).normal(-6, 4, 400)
    rate, nats = likeliest_rate(lone(400), odds)
    rates = rate * np.exp(np.linspace(-1, 1, 41))
    curve = np.log1p(np.exp(-odds) * rates[:, None]).sum(1) - rates * 100_000
    assert curve.argmax() == 20 and nats == pytest.approx(curve[20], abs=0.01)


def test_without_evidence_there_are_none() -> None:
    for odds in (np.full(50, -3.0), np.zeros(0)):
        assert likeliest_rate(lone(len(odds)), odds) == (0.0, 0.0)


def test_a_piece_is_dirt_if_the_prior_has_smaller_odds_for_it_than_the_rate() -> None:
    rate = 1e-3
    odds = np.log(rate) + np.array([-2.0, -0.1, 0.1, 2.0])
    np.testing.assert_allclose(probabilities(lone(4), odds, rate), probability_of(np.log(rate) - odds))
    assert (probabilities(lone(4), odds, rate) > 0.5).tolist() == [True, True, False, False]
    assert not probabilities(lone(4), odds, 0.0).any()


@pytest.mark.parametrize("size", [2, 4, 8])
def test_how_many_may_be_alike_is_what_chance_allows(size: int) -> None:
    """More than chance has once in twenty at most are marks; what it has more often than once in ten are none."""
    odds = np.full(1, -30.0)
    for rate in (1e-4, 1e-3, 1e-2):
        expected = rate * (3 * NEAR) ** 2 * float(np.exp(log_share(np.array([size])))[0])
        for alike in range(8):
            marks = probabilities(lone(1, alike, size), odds, rate)[0] == 0
            tail = float(stats.poisson.sf(alike - 1, expected))
            assert tail > 0.002 or marks
            assert tail < 0.06 or not marks


def test_single_pixels_that_are_alike_are_marks() -> None:
    assert probabilities(lone(1, 1, 1), np.full(1, -30.0), 0.01) == 0
    assert probabilities(lone(1, 0, 1), np.full(1, -30.0), 0.01) > 0.9


def against_all(picture: np.ndarray) -> np.ndarray:
    """What is left of black marks if the prior expects paper everywhere."""
    engine = FieldEngine.of(small_machine(scale=0.0), SHAPE, **ANY_SIZE)
    return np.asarray(cleaned(picture.astype(float), Prior(replace(engine, coupling=1.2)), Specks(0.01)).white > 0.5)


def test_dotted_lines_and_halftones_stay_and_lone_dots_go() -> None:
    lines, dots = np.ones((120, 120), bool), np.ones((120, 120), bool)
    for column in range(8, 112, 6):
        lines[60:62, column : column + 2] = False
        for row in range(8, 112, 6):
            dots[row : row + 2, column : column + 2] = False
    for picture in (lines, dots, ~dots):
        np.testing.assert_array_equal(against_all(picture), picture)
    alone = np.ones((120, 120), bool)
    alone[60:62, 60:62] = alone[10, 10:14] = False
    np.testing.assert_array_equal(against_all(alone), True)


# --- pictures ---


def speckled(clean: np.ndarray) -> np.ndarray:
    return np.asarray(Specks(0.02).corrupt(clean.astype(float), np.random.default_rng(0)) > 0.5)


def check_cleaned(clean: np.ndarray, picture: np.ndarray, answer: Restored) -> None:
    """It has got better, and only pieces have changed."""
    assert (answer.estimate != clean).sum() < 0.75 * (picture != clean).sum()
    assert not (answer.estimate != picture)[Pieces.of(picture).labels < 0].any()
    assert answer.level.name == "specks" and 0.005 < answer.level.value < 0.03
    assert answer.changed == pytest.approx(np.mean(answer.estimate != picture))


def test_a_square_with_specks_gets_better_and_only_pieces_change() -> None:
    square = np.pad(np.ones((60, 60), bool), 20)
    picture = speckled(square)
    field = FieldEngine.of(small_machine(scale=0.0), SHAPE, **ANY_SIZE)
    sure = replace(field, coupling=1.0)
    (answer,) = restore([Observed(picture.astype(float), Damage(specks=0.02))], Options(), Opened((sure,)))
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
    with pytest.raises(NotRestored):
        package.denoise(noise, "conv-text", specks="auto", strict=True)


def test_the_answer_of_one_picture_does_not_depend_on_others() -> None:
    observed = TABLE.drawn(3, seed=2)
    pictures = [Observed(values, Damage(specks=0.1)) for values in observed]
    together = restore(pictures, Options(force=True), Opened((ENGINE,)))
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
