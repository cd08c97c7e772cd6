"""Restore overlapping windows together: each hears what the others make of the pixels that it shares with them.

Let y be what was observed, and windows A and B see of it what lies in them. If the rest of A and the rest of B are
independent given a pixel x that both contain, then

    p(x | y) ~ p(x) · p(y_x | x) · [p(x | rest of A) / p(x)] · [p(x | rest of B) / p(x)],

so B's *message* on x is evidence for A like any other (Pearl, 1988, ch. 4). It is the log-odds of B's answer, minus the
evidence of x and minus the prior's log-odds. Windows that overlap see much of the same evidence and would count it
twice: so a message is worth only a share of itself, and the mean over the other windows is taken, not the sum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from restore.channels.bit_flip import CERTAIN
from restore.inference.damage import Damage
from restore.inference.explained import Observed
from restore.inference.windows.tiles import Cover
from restore.marginals import Marginals, Status
from restore.zoo.description import Description
from restore.zoo.tiling import Tiling

# Log-odds beyond which an answer in single precision says nothing more.
SURE = 16.0

# A window of which all pixels are known to this probability, and none is doubted by others, is done: blank paper.
SETTLED = 0.9

# The marginals of damaged windows.
Solve = Callable[[Observed], Marginals]


@dataclass(frozen=True, eq=False)
class Answers:
    """What became of the windows of an image.

    Attributes:
        means, variances: of each pixel, float32 (windows, h, w); NaN where the solver diverged.
        iterations: spent on each window, in all rounds.
        residual, status: of each window, in its last round.
    """

    means: np.ndarray
    variances: np.ndarray
    iterations: np.ndarray
    residual: np.ndarray
    status: np.ndarray

    @classmethod
    def of(cls, found: Marginals, shape: tuple[int, ...]) -> Answers:
        means, variances = (part[0].reshape(shape) for part in (found.means, found.variances))
        return cls(means, variances, found.iterations.copy(), found.residual.copy(), found.status.copy())

    def revise(self, rows: np.ndarray, later: Answers) -> None:
        """Replace the answers of some windows with the answers of a later round."""
        for name in ("means", "variances", "residual", "status"):
            getattr(self, name)[rows] = getattr(later, name)
        self.iterations[rows] += later.iterations


def solve_windows(
    solve: Solve, about: Description, cover: Cover, seen: Observed, alone: np.ndarray, tiling: Tiling
) -> Answers:
    """Restore the windows of an image in rounds of messages.

    Args:
        solve: restores windows.
        about: the prior's description; of a conditional prior, and of one of grey images, there are no messages.
        cover: where the windows lie.
        seen: the windows.
        alone: probability of white of a window's pixels if nothing is seen, (h, w).
        tiling: how many rounds, and what messages are worth.
    """
    if about.conditional or about.grey or cover.count == 1 or not tiling.rounds:
        return Answers.of(_distinct(solve, seen), seen.grey.shape)
    evidence = log_odds(about, seen)
    stronger = _stronger(evidence, tiling.least)
    given = stronger * evidence
    found = Answers.of(_distinct(solve, seen if stronger == 1 else observed(given)), seen.grey.shape)
    count = cover.cut_padded(cover.add(np.ones(seen.grey.shape, np.float32))) - 1
    for _ in range(tiling.rounds):
        messages = _messages(found, given, evidence, alone)
        others = cover.cut_padded(cover.add(messages)) - messages
        told = evidence + np.float32(tiling.worth) * others / np.maximum(count, 1)
        rows = np.flatnonzero(_unsettled(found, told - given) | (stronger > 1))
        if not rows.size:
            break
        found.revise(rows, Answers.of(_distinct(solve, observed(told[rows])), (len(rows), *seen.grey.shape[1:])))
        given[rows] = told[rows]
    return found


def _stronger(evidence: np.ndarray, least: float) -> float:
    """By how much the evidence is strengthened for the first round."""
    known = np.abs(evidence[evidence != 0])
    strength = float(known.mean()) if known.size else least
    return max(1.0, least / strength)


def log_odds(about: Description, seen: Observed) -> np.ndarray:
    """The evidence for white of every pixel of binary images (N, H, W), float32."""
    white = about.as_known(seen.grey)
    p = np.asarray(seen.damage.flips_of(seen.grey if about.grey else white), np.float64)
    with np.errstate(divide="ignore"):
        strength = (np.log1p(-p) - np.log(p)).clip(-CERTAIN, CERTAIN)
    told = (2 * white - 1) * strength
    return (told if seen.damage.hidden is None else np.where(seen.damage.hidden, 0, told)).astype(np.float32)


def observed(evidence: np.ndarray) -> Observed:
    """Images and flip probabilities that say of pixels what log-odds (N, H, W) do: engines know these."""
    with np.errstate(over="ignore"):
        p = 1 / (1 + np.exp(np.abs(evidence).astype(np.float64)))
    return Observed((evidence > 0).astype(np.float64), Damage(p))


def _log_odds_of(means: np.ndarray) -> np.ndarray:
    # A probability may be above one by a rounding error.
    shares = means.clip(0, 1)
    with np.errstate(divide="ignore"):
        return (np.log(shares) - np.log1p(-shares)).clip(-SURE, SURE)


def _messages(found: Answers, given: np.ndarray, evidence: np.ndarray, alone: np.ndarray) -> np.ndarray:
    """What each window adds to what it was given about its pixels; 0 where it has no answer, or a pixel is certain."""
    usable = (found.status != Status.DIVERGED)[:, None, None] & (np.abs(evidence) < SURE)
    expected = _log_odds_of(alone).astype(np.float32)
    return np.where(usable, _log_odds_of(found.means) - given - expected, np.float32(0))


def _unsettled(found: Answers, change: np.ndarray) -> np.ndarray:
    """Which windows have a pixel that is in doubt, or will be after a change of its evidence."""
    answer = _log_odds_of(found.means)
    sure = np.log(SETTLED / (1 - SETTLED))
    return ~(np.minimum(np.abs(answer), np.sign(answer) * (answer + change)) >= sure).all((1, 2))


def _distinct(solve: Solve, seen: Observed) -> Marginals:
    """As `solve`, but windows that are all the same are solved once."""
    told = [seen.grey, seen.damage.hidden, seen.damage.p]
    parts = [part for part in told if isinstance(part, np.ndarray) and part.ndim == 3]
    numbers: dict[bytes, int] = {}
    same = np.array([numbers.setdefault(b"".join(map(bytes, each)), len(numbers)) for each in zip(*parts, strict=True)])
    if len(numbers) == len(same):
        return solve(seen)
    _, first = np.unique(same, return_index=True)
    return solve(seen.rows(first)).rows(same)
