"""Messages between tiles, against rows of pixels short enough to enumerate."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from restore.channels.bit_flip import CERTAIN
from restore.inference.damage import Damage
from restore.inference.tiles import exchange
from restore.inference.tiles.exchange import Solve, observed, solve_tiles
from restore.inference.tiles.grid import Cover
from restore.marginals import Marginals, Status
from restore.zoo.description import Description
from restore.zoo.tiling import Tiling

# p(x, x') of neighbours, the same either way round, so that both pixels of a window have one distribution.
PAIR = np.array([[0.5, 0.1], [0.1, 0.3]])
ALONE = PAIR.sum(0)
ALIKE = ALONE[1] * np.ones((1, 2))


def header(tiling: Tiling, temperature: float = 1.0) -> Description:
    return Description("pairs", (1, 2), 127, "nothing", "none", tiling=tiling, temperature=temperature, hidden=1)


def exact(white: np.ndarray, damage: Damage) -> Marginals:
    """Tiles of two pixels by enumeration."""
    evidence = damage.log_odds(white).astype(np.float64).reshape(-1, 2)
    told = evidence[:, :1, None] * np.arange(2)[:, None] + evidence[:, 1:, None] * np.arange(2)
    weights = PAIR * np.exp(told - told.max((1, 2), keepdims=True))
    weights /= weights.sum((1, 2), keepdims=True)
    means = np.stack([weights[:, 1].sum(1), weights[:, :, 1].sum(1)], 1)
    count = np.zeros(len(means))
    return Marginals((means,), (means * (1 - means),), count.astype(int), count, count.astype(int))


def tiles_of(image: np.ndarray, p: float | np.ndarray) -> tuple[Cover, np.ndarray, Damage]:
    """Tiles of two pixels, a pixel apart, that begin before the row and end behind it."""
    cover = Cover.of(image.shape, (1, 2), 2)
    level = p if isinstance(p, float) else cover.cut(p, 0.5)
    return cover, cover.cut(image, 0.0), Damage(level, hidden=cover.cut(image > 1, True))


def chain(evidence: np.ndarray) -> np.ndarray:
    """The posterior of a row of pixels of which each depends on its neighbours: every image is tried."""
    total = np.zeros(len(evidence))
    weight = 0.0
    for image in itertools.product((0, 1), repeat=len(evidence)):
        pairs = np.prod([PAIR[one, other] for one, other in itertools.pairwise(image)])
        inner = np.prod(ALONE[list(image[1:-1])])
        each = pairs / inner * np.exp(evidence @ np.array(image))
        total += each * np.array(image)
        weight += each
    return total / weight


def tempered(temperature: float) -> Solve:
    """Exact tiles whose log-odds are divided by a temperature in the end."""

    def solve(white: np.ndarray, damage: Damage) -> Marginals:
        found = exact(white, damage)
        (means,) = found.means
        return replace(found, means=(1 / (1 + (1 / means - 1) ** (1 / temperature)),))

    return solve


@pytest.mark.parametrize(("length", "temperature"), [(3, 1.0), (4, 1.0), (5, 1.0), (4, 1.7)])
def test_tiles_of_a_chain_find_its_exact_posterior_where_messages_count_in_full(
    length: int, temperature: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Otherwise tiles that are nearly certain are left as they are.
    monkeypatch.setattr(exchange, "SETTLED", 1 - 1e-12)
    rates = np.random.default_rng(length).uniform(0.05, 0.5, length)
    image = np.random.default_rng(length + 1).integers(0, 2, (1, length)).astype(float)
    cover, *seen = tiles_of(image, rates[None])
    # After as many rounds as there are pixels between the ends, every tile has heard of both.
    settings = header(Tiling(overlap=2, rounds=length, worth=1.0, least=0.0), temperature)
    found = solve_tiles(tempered(temperature), settings, cover, *seen, ALIKE)
    wanted = chain((2 * image[0] - 1) * np.log((1 - rates) / rates))
    wanted = 1 / (1 + (1 / wanted - 1) ** (1 / temperature))
    padded = np.pad(wanted, (cover.across.before, cover.across.after), constant_values=np.nan)
    every = cover.cut_padded(padded[None])
    known = np.isfinite(every)
    # Evidence passes through single precision.
    np.testing.assert_allclose(found.means[known], every[known], atol=1e-5)


def test_a_message_is_worth_its_share_and_weak_evidence_is_strengthened_at_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of three pixels in two tiles, all told in the last round is written out."""
    monkeypatch.setattr(exchange, "SETTLED", 1 - 1e-12)
    image, p, worth, least = np.array([[1.0, 0.0, 1.0]]), 0.4, 0.3, 2.0
    told = []

    def watched(white: np.ndarray, damage: Damage) -> Marginals:
        told.append(damage.log_odds(white)[:, 0])
        return exact(white, damage)

    cover, *seen = tiles_of(image, p)
    solve_tiles(watched, header(Tiling(overlap=2, rounds=1, worth=worth, least=least)), cover, *seen, ALIKE)
    strength = np.log(0.6 / 0.4)
    # The first round: every second tile, of four, under evidence that is of strength `least` on average.
    np.testing.assert_allclose(np.abs(told[0][told[0] != 0]), least, rtol=1e-5)
    assert len(told[0]) == 2
    # The second tile holds the first two pixels; the first one, which holds the first alone, and the third, which holds
    # the other two, have answered.
    evidence = strength * (2 * image[0] - 1)
    strong = evidence * least / strength
    first = exact(*observed(np.array([[[0, strong[0]]], [[strong[1], strong[2]]]]))).means[0]
    odds = np.log(first / (1 - first)) - np.log(ALONE[1] / ALONE[0]) - [[0, strong[0]], [strong[1], strong[2]]]
    wanted = evidence[:2] + worth * np.array([odds[0, 1], odds[1, 0]])
    assert any(np.allclose(each, wanted, atol=1e-4) for each in told[1])


def test_what_was_solved_under_stronger_evidence_is_solved_again() -> None:
    """However sure it is: messages of no worth leave each tile with what it was told itself."""
    image = np.random.default_rng(3).integers(0, 2, (1, 7)).astype(float)
    cover, *seen = tiles_of(image, 0.4)
    found = solve_tiles(exact, header(Tiling(overlap=2, rounds=1, worth=0.0, least=5.0)), cover, *seen, ALIKE)
    wanted = exact(*seen).means[0].reshape(found.means.shape)
    np.testing.assert_allclose(found.means[cover.first], wanted[cover.first], atol=1e-6)


def test_log_odds_become_images_with_flips_and_come_back() -> None:
    told = np.linspace(-20, 20, 41, dtype=np.float32).reshape(1, 1, 41)
    white, damage = observed(told)
    np.testing.assert_allclose(damage.log_odds(white), told, rtol=1e-5)
    white = np.array([[[1.0, 0.0]]])
    # A white pixel was white and stayed so, or black and turned: .9 to .1.
    np.testing.assert_allclose(Damage(0.1).log_odds(white)[0, 0], np.log([9, 1 / 9]), rtol=1e-5)
    assert Damage(0.0).log_odds(white)[0, 0].tolist() == [CERTAIN, -CERTAIN]
    assert Damage(0.1, hidden=white > 0).log_odds(white)[0, 0, 0] == 0


def test_the_same_tiles_are_solved_once_and_those_that_are_certain_no_more() -> None:
    sizes = []

    def counted(white: np.ndarray, damage: Damage) -> Marginals:
        sizes.append(len(white))
        return exact(white, damage)

    cover, *seen = tiles_of(np.zeros((1, 50)), 1e-4)
    found = solve_tiles(counted, header(Tiling(rounds=2)), cover, *seen, ALIKE)
    # One tile at either end looks into the unknown outside, and all others are black.
    assert sizes[0] == 3 and all(size <= 2 for size in sizes[1:])
    assert found.status.tolist() == [Status.CONVERGED] * cover.count


def test_a_tile_that_diverged_says_nothing_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "SETTLED", 1 - 1e-12)
    image = np.array([[1.0, 0.0, 1.0, 1.0]])
    cover, *seen = tiles_of(image, np.array([[0.1, 0.2, 0.3, 0.4]]))

    def breaking(white: np.ndarray, damage: Damage) -> Marginals:
        found = exact(white, damage)
        # The tile of the last two pixels, by its evidence.
        lost = np.isclose(np.asarray(damage.p)[:, 0, 1], 0.4)
        means = np.where(lost[:, None], np.nan, found.means[0])
        return replace(found, means=(means,), variances=(means,), status=np.where(lost, Status.DIVERGED, 0))

    found = solve_tiles(breaking, header(Tiling(overlap=2, rounds=3, worth=1.0, least=0.0)), cover, *seen, ALIKE)
    assert found.sound.tolist() == [not np.isnan(each).any() for each in found.means]
    assert np.isnan(found.means).any() and np.isfinite(found.means[found.sound]).all()
