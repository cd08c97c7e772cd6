"""Restore overlapping tiles together: each hears what the others make of the pixels that it shares with them.

Let y be what was observed, and tiles A and B see of it what lies in them. If the rest of A and the rest of B are
independent given a pixel x that both contain, then

    p(x | y) ~ p(x) · p(y_x | x) · [p(x | rest of A) / p(x)] · [p(x | rest of B) / p(x)],

so B's *message* on x is evidence for A like any other (Pearl, 1988, ch. 4). It is the log-odds of B's answer, minus the
evidence of x and minus the prior's log-odds. Windows that overlap see much of the same evidence and would count it
twice: so a message is worth only a share of itself, and the mean over the other tiles is taken, not the sum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from restore.channels.values import SURE, log_odds_of
from restore.inference.damage import Damage
from restore.inference.tiles.grid import Cover
from restore.marginals import Marginals, Status
from restore.zoo.description import Description

# A tile is done, as blank paper is, if tiles say of each of its pixels on average with this probability what it is.
# Rounds for all others too take 45 % more time, for 1.626 % wrong pixels instead of 1.627 at flips of .1, and 3.367
# instead of 3.362 at .2: `tap-text` on 300x400 pixels of three pages of benchmarks/windows.py.
SETTLED = 0.7

# The marginals of damaged tiles (N, h, w).
Solve = Callable[[np.ndarray, Damage], Marginals]


@dataclass(frozen=True, eq=False)
class Answers:
    """What became of the tiles of a picture.

    Attributes:
        means, variances: of each pixel, float32 (tiles, h, w); NaN where the solver diverged, or was not run.
        iterations: spent on each tile, in all rounds.
        residual, status: of each tile, in its last round.
        solved: which tiles were solved at all.
    """

    means: np.ndarray
    variances: np.ndarray
    iterations: np.ndarray
    residual: np.ndarray
    status: np.ndarray
    solved: np.ndarray

    @classmethod
    def none(cls, shape: tuple[int, ...]) -> Answers:
        """Of tiles (N, h, w) none of which is solved."""
        count, unknown = shape[0], np.full(shape, np.nan, np.float32)
        status = np.full(count, Status.CONVERGED)
        return cls(unknown, unknown.copy(), np.zeros(count, int), np.zeros(count), status, np.zeros(count, bool))

    @classmethod
    def of(cls, found: Marginals, shape: tuple[int, ...]) -> Answers:
        means, variances = (part[0].reshape(shape) for part in (found.means, found.variances))
        solved = np.ones(shape[0], bool)
        return cls(means, variances, found.iterations.copy(), found.residual.copy(), found.status.copy(), solved)

    @property
    def sound(self) -> np.ndarray:
        """Which tiles have an answer."""
        return self.solved & (self.status != Status.DIVERGED)

    def revise(self, rows: np.ndarray, later: Answers) -> None:
        """Replace the answers of some tiles with the answers of a later round."""
        for name in ("means", "variances", "residual", "status", "solved"):
            getattr(self, name)[rows] = getattr(later, name)
        self.iterations[rows] += later.iterations


def solve_tiles(
    solve: Solve,
    header: Description,
    cover: Cover,
    tiles: np.ndarray,
    damage: Damage,
    alone: np.ndarray,
    wanted: np.ndarray | None = None,
) -> Answers:
    """Restore the tiles (count, h, w) of a picture in rounds of messages.

    First every second row and column of tiles is solved, where these hold all pixels. Rounds solve any tiles with
    pixels in doubt that hear something new.

    Args:
        solve: the marginals of damaged tiles.
        header: the prior; it says whether there are messages.
        cover: where the tiles lie.
        tiles, damage: what is seen of them, and how they were damaged.
        alone: probability of white of a tile's pixels if nothing is seen, (h, w).
        wanted: the pixels whose answers are asked for, boolean (H, W); None for all. The last round solves only tiles
            that hold some of them, and rounds before it those that such tiles hear.
    """
    tiling = header.tiling
    if not header.exchanges or cover.count == 1 or not tiling.rounds:
        # No two patches of a noisy photograph are the same.
        whole = solve if header.kind.photographs else _distinct(solve)
        return Answers.of(whole(tiles, damage), tiles.shape)
    evidence = damage.log_odds(tiles)
    stronger = _stronger(evidence, tiling.least)
    given = stronger * evidence
    found = Answers.none(evidence.shape)
    distinct = _distinct(solve)

    def put(rows: np.ndarray) -> None:
        found.revise(rows, Answers.of(distinct(*observed(given[rows])), given[rows].shape))

    put(cover.first)
    asked = [np.ones(cover.count, bool) if wanted is None else np.asarray(cover.cut(wanted, False).any((1, 2)))]
    while len(asked) < tiling.rounds:
        asked.insert(0, np.asarray(cover.cut_padded(cover.counts(asked[0]) > 0).any((1, 2))))
    for some in asked:
        messages = _messages(found, header.temperature, given, evidence, alone)
        told = evidence + np.float32(tiling.worth) * cover.others(messages, found.sound)
        # What a tile is told again it would answer again.
        fresh = some & (~found.solved | (told != given).any((1, 2)))
        rows = np.flatnonzero(fresh & (_unsettled(cover, found) | (found.solved & (stronger > 1))))
        if not rows.size:
            break
        given[rows] = told[rows]
        put(rows)
    return found


def _stronger(evidence: np.ndarray, least: float) -> float:
    """By how much the evidence is strengthened for the first round."""
    known = np.abs(evidence[evidence != 0])
    return max(1.0, least / float(known.mean())) if known.size else 1.0


def observed(evidence: np.ndarray) -> tuple[np.ndarray, Damage]:
    """Pictures and flip probabilities that say of pixels what log-odds (N, H, W) do: engines know these."""
    with np.errstate(over="ignore"):
        p = 1 / (1 + np.exp(np.abs(evidence).astype(np.float64)))
    return (evidence > 0).astype(np.float64), Damage(p)


def _messages(
    found: Answers, temperature: float, given: np.ndarray, evidence: np.ndarray, alone: np.ndarray
) -> np.ndarray:
    """What each tile adds to what it was given about its pixels; 0 where it has no answer, or a pixel is certain.

    A tile's own log-odds are those of its answer before they were divided by a temperature.
    """
    usable = found.sound[:, None, None] & (np.abs(evidence) < SURE)
    expected = log_odds_of(alone).astype(np.float32)
    return np.where(usable, np.float32(temperature) * log_odds_of(found.means) - given - expected, np.float32(0))


def _unsettled(cover: Cover, found: Answers) -> np.ndarray:
    """Which tiles have a pixel that is in doubt, as tiles see it on average."""
    answer = cover.mean(found.means, found.sound)
    doubt = ~(np.abs(answer - 0.5) >= SETTLED - 0.5)
    return np.asarray(cover.cut_padded(doubt).any((1, 2)))


def _distinct(solve: Solve) -> Solve:
    """The same, but tiles that are all the same are solved once."""

    def once(grey: np.ndarray, damage: Damage) -> Marginals:
        parts = [part for part in (grey, damage.hidden, damage.p) if isinstance(part, np.ndarray) and part.ndim == 3]
        keys: dict[bytes, int] = {}
        same = np.array([keys.setdefault(b"".join(map(bytes, each)), len(keys)) for each in zip(*parts, strict=True)])
        if len(keys) == len(same):
            return solve(grey, damage)
        _, first = np.unique(same, return_index=True)
        few = damage.mapped(lambda values: values[first] if len(values) > 1 else values)
        return solve(grey[first], few).rows(same)

    return once
