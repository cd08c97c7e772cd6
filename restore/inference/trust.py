"""Whether to believe an answer about a picture whose prior and noise level were not both given: do no harm."""

from __future__ import annotations

import numpy as np

from restore.inference.choose import Choice
from restore.marginals import Status

# A prior has to predict pixels better than independent pixels do, by so many bits per pixel.
AHEAD = 0.01

# Pairs of neighbours that were changed both, over as many as there were if pixels changed independently; and standard
# errors by which their number may be off.
FEWEST, JOINED, ERRORS = 0.7, 2.5, 3.0

# Above this level of flips the picture is more likely something that no prior knows.
NOISIEST = 0.25


def verdict(choice: Choice, before: np.ndarray, after: np.ndarray, means: np.ndarray, status: Status) -> Status:
    """The status of an answer, or why it is not to be believed.

    Args:
        choice: the prior and the level.
        before: the picture in black and white, boolean (H, W); of grey pictures, grey levels.
        after: the restored picture, alike.
        means: the posterior probability of white, or mean grey level, (H, W).
        status: how the solver ended.
    """
    if choice.ahead is not None and choice.ahead < AHEAD:
        return Status.UNRECOGNISED
    if status is not Status.CONVERGED:
        return Status.UNSETTLED if status is Status.MAX_ITER else status
    p, hidden = choice.damage.p, choice.damage.hidden
    if before.dtype != bool or p is None:
        return status
    if choice.found is not None and choice.found.mean > NOISIEST:
        return Status.TOO_NOISY
    visible = np.ones(before.shape, bool) if hidden is None else ~hidden
    if not visible.any():
        return status
    of_white, of_black = choice.damage.rates
    now = np.where(after, of_white, of_black)[visible].mean()
    if np.minimum(means, 1 - means)[visible].mean() >= now:
        return Status.NO_GAIN
    spread = choice.found is None or not isinstance(p, np.ndarray)
    return Status.NOT_NOISE if spread and not independent((before != after) & visible, after, visible) else status


def independent(changed: np.ndarray, white: np.ndarray, visible: np.ndarray) -> bool:
    """True if changed pixels are beside each other about as often as independent ones.

    Args:
        changed: boolean (H, W).
        white: the restored picture, boolean (H, W): its two colours may have changed at different rates.
        visible: the pixels that count, boolean (H, W).

    >>> flips = np.random.default_rng(0).random((200, 200)) < 0.1
    >>> lines = np.arange(200)[:, None] % 10 == np.zeros(200)
    >>> every = np.ones((200, 200), bool)
    >>> [independent(each, every, every) for each in (flips, lines)]
    [True, False]
    """
    rates = np.zeros(changed.shape)
    for colour in (visible & white, visible & ~white):
        if colour.any():
            rates[colour] = changed[colour].mean()
    pairs = ((np.s_[1:], np.s_[:-1]), (np.s_[:, 1:], np.s_[:, :-1]))
    joined = sum(int((changed[one] & changed[other]).sum()) for one, other in pairs)
    expected = sum(float((rates[one] * rates[other]).sum()) for one, other in pairs)
    error = ERRORS * (1 + expected) ** 0.5
    return bool(FEWEST * expected - error <= joined <= JOINED * expected + error)
