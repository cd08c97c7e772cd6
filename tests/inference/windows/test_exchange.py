"""Messages between windows, against images small enough to enumerate."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from restore.inference.explained import Observed
from restore.inference.windows import exchange

from restore.channels.bit_flip import CERTAIN
from restore.inference.damage import Damage
from restore.inference.tiles.exchange import log_odds, observed, solve_windows
from restore.inference.tiles.grid import Cover
from restore.marginals import Marginals, Status
from restore.zoo.description import Description
from restore.zoo.tiling import Tiling

# p(x, x') of neighbours, the same either way round, so that both pixels of a window have one distribution.
PAIR = np.array([[0.5, 0.1], [0.1, 0.3]])
ALONE = PAIR.sum(0)
ABOUT = Description("pairs", (1, 2), 1, 127, "nothing", "none")


def exact(seen: Observed) -> Marginals:
    """Windows of two pixels by enumeration."""
    evidence = log_odds(ABOUT, seen).astype(np.float64).reshape(-1, 2)
    told = evidence[:, :1, None] * np.arange(2)[:, None] + evidence[:, 1:, None] * np.arange(2)
    weights = PAIR * np.exp(told - told.max((1, 2), keepdims=True))
    weights /= weights.sum((1, 2), keepdims=True)
    means = np.stack([weights[:, 1].sum(1), weights[:, :, 1].sum(1)], 1)
    count = np.zeros(len(means))
    return Marginals((means,), (means * (1 - means),), count, count.astype(int), count, count.astype(int))


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


@pytest.mark.parametrize("length", [3, 4, 5])
def test_windows_of_a_chain_find_its_exact_posterior_where_messages_count_in_full(
    length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Otherwise windows that are nearly certain are left as they are.
    monkeypatch.setattr(exchange, "SETTLED", 1 - 1e-12)
    rates = np.random.default_rng(length).uniform(0.05, 0.5, length)
    image = np.random.default_rng(length + 1).integers(0, 2, (1, length)).astype(float)
    cover = Cover.of(image.shape, (1, 2), 2)
    seen = Observed(cover.cut(image, 0.0), Damage(cover.cut(rates[None], 0.5), hidden=cover.cut(image > 1, True)))
    # After as many rounds as there are pixels between the ends, every window has heard of both.
    tiling = Tiling(overlap=2, rounds=length, worth=1.0, least=0.0)
    found = solve_windows(exact, ABOUT, cover, seen, ALONE[1] * np.ones((1, 2)), tiling)
    wanted = chain((2 * image[0] - 1) * np.log((1 - rates) / rates))
    padded = np.pad(wanted, (cover.across.before, cover.across.after), constant_values=np.nan)
    every = cover.cut_padded(padded[None])
    known = np.isfinite(every)
    # Evidence passes through single precision.
    np.testing.assert_allclose(found.means[known], every[known], atol=1e-5)


def test_what_is_seen_for_certain_is_never_argued_with() -> None:
    image = np.array([[1.0, 0.0, 1.0]])
    cover = Cover.of(image.shape, (1, 2), 2)
    seen = Observed(cover.cut(image, 0.0), Damage(0.0, hidden=cover.cut(image > 1, True)))
    tiling = Tiling(overlap=2, rounds=3, worth=1.0)
    found = solve_windows(exact, ABOUT, cover, seen, ALONE[1] * np.ones((1, 2)), tiling)
    np.testing.assert_allclose(cover.crop(cover.mean(found.means, found.sound)), image, atol=1e-9)


def test_log_odds_become_images_with_flips_and_come_back() -> None:
    told = np.linspace(-20, 20, 41, dtype=np.float32).reshape(1, 1, 41)
    np.testing.assert_allclose(log_odds(ABOUT, observed(told)), told, rtol=1e-5)
    rates = Damage.of((0.1, 0.02))
    grey = np.array([[[1.0, 0.0]]])
    # A white pixel was white and stayed so, or black and turned: .9 to .02; a black one .1 to .98.
    np.testing.assert_allclose(
        log_odds(ABOUT, Observed(grey, rates))[0, 0], np.log([0.9 / 0.02, 0.1 / 0.98]), rtol=1e-5
    )
    assert log_odds(ABOUT, Observed(grey, Damage(0.0)))[0, 0].tolist() == [CERTAIN, -CERTAIN]
    assert log_odds(ABOUT, Observed(grey, replace(rates, hidden=grey > 0)))[0, 0, 0] == 0


def test_the_same_windows_are_solved_once_and_those_that_are_certain_no_more() -> None:
    sizes = []

    def counted(seen: Observed) -> Marginals:
        sizes.append(len(seen.grey))
        return exact(seen)

    image = np.zeros((1, 50))
    cover = Cover.of(image.shape, (1, 2), 2)
    seen = Observed(cover.cut(image, 0.0), Damage(1e-4, hidden=cover.cut(image > 1, True)))
    found = solve_windows(counted, ABOUT, cover, seen, ALONE[1] * np.ones((1, 2)), Tiling(rounds=2))
    # One window at either end looks into the unknown outside, and all others are black.
    assert sizes[0] == 3 and all(size <= 2 for size in sizes[1:])
    assert found.status.tolist() == [Status.CONVERGED] * cover.count
