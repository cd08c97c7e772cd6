"""When to refuse an answer about a picture whose prior and noise level were not both given: do no harm."""

from __future__ import annotations

import math

import numpy as np

from restore.channels.damage import Observed
from restore.channels.levels import FLIPS
from restore.errors import option
from restore.inference.choose import Choice
from restore.inference.scans.reading import step_of
from restore.status import Status

# Bits per pixel by which a prior has to be ahead of independent pixels where visible ones may change; and bits in all.
# Flips of probability p leave (1 - 2p)^4 of what pairs of pixels tell of each other (`benchmarks/choices/recognised.py
# --tuning`). A little is needed in any case, for among many candidates one is ahead by chance, as of clean grain
# (`benchmarks/choices/no_harm.py --seed 11 --only grain`).
MARGIN_PER_PIXEL = 0.02
LEAST_MARGIN = 0.004
MARGIN_IN_ALL = 4.5

# Nats by which a prior that was named may be behind the field of neighbours, as for silhouettes and small priors.
BEHIND = 60.0

# How far apart, in pixels, pairs of changed pixels are counted; how many times as many there may be as if pixels had
# changed independently, and how many more, as a share of all pixels. Of `benchmarks/choices/no_harm.py`, seeds 0, 1, 2
# and 4.
PAIR_REACH = 8
PAIRED = 1.5
MORE = 0.003

# The share of the noise that an answer has to promise to remove. Of 352 helpful answers the least promised .27, of a
# maze that was harmed .17 (by hand, on pictures that must not be harmed: benchmarks/README.md).
LEAST_GAIN = 0.25

# If fewer pixels change than this share of what the lowest level that is looked for would flip, there is no noise: as
# many change of clean pictures, and of three times as many flips more are undone than done (by hand, on pages, drawings
# and pictures that must not be harmed: benchmarks/README.md).
HARDLY_ANY = 0.05

# Above this level of flips little is left of a picture: (1 - 2p)^4 < .01.
NOISIEST_FLIPS = 0.35

# Where the solver stopped early, its last iteration moved what it watches by no more than that.
RESTLESS = 0.1


def refusal(
    choice: Choice, before: np.ndarray, after: np.ndarray, means: np.ndarray, status: Status, residual: float
) -> Status | None:
    """The reason to refuse an answer; None to believe it.

    Args:
        choice: the prior and the level.
        before: the picture in black and white, boolean (H, W); of grey pictures, grey levels.
        after: the restored picture, alike.
        means: the posterior probability of white, or mean grey level, (H, W).
        status, residual: how the solver ended, and how far means moved in its last iteration.
    """
    if not recognised(choice):
        return Status.UNRECOGNISED
    if status is Status.MAX_ITER and residual > RESTLESS:
        return Status.UNSETTLED
    p, hidden = choice.damage.p, choice.damage.hidden
    if before.dtype != bool or p is None or (before == after).all():
        return None
    if choice.level is not None and choice.level.value > NOISIEST_FLIPS:
        return Status.TOO_NOISY
    visible = np.ones(before.shape, bool) if hidden is None else ~hidden
    if not visible.any():
        return None
    now = np.broadcast_to(choice.damage.known("p"), before.shape)[visible].mean()
    if np.minimum(means, 1 - means)[visible].mean() >= (1 - LEAST_GAIN) * now:
        return Status.NO_GAIN
    if isinstance(p, np.ndarray) or independent((before != after) & visible, after, visible):
        return None
    return Status.NOT_NOISE


def spotless(choice: Choice, changed: float) -> bool:
    """True if no flips were found in a picture of which this share of the visible pixels would change."""
    level, least = choice.level, FLIPS.levels[0]
    flips = level is not None and level.name == "p" and np.allclose(level.value, least)
    return flips and bool(changed < HARDLY_ANY * least)


def lead(choice: Choice, field: Choice) -> float:
    """The lead of a named prior over the field of neighbours, in bits per pixel, plus what it may lack."""
    assert choice.bits is not None and field.bits is not None  # both have predicted pixels
    return choice.bits - field.bits + BEHIND / max(choice.pixels, 1) / math.log(2)


def recognised(choice: Choice) -> bool:
    """True if the prior knows more of the picture than independent pixels do, or was not compared with them."""
    if choice.ahead is None:
        return True
    damage = choice.damage
    left = float(np.mean(1 - 2 * np.asarray(damage.known("p")))) ** 4
    # Nothing that is visible can be harmed where only holes are filled.
    needed = max(MARGIN_PER_PIXEL * left, LEAST_MARGIN) if damage.touched or damage.hidden is None else 0.0
    return choice.ahead >= max(needed, MARGIN_IN_ALL / max(choice.pixels, 1))


def independent(changed: np.ndarray, white: np.ndarray, visible: np.ndarray) -> bool:
    """True if changed pixels are at all displacements from each other together no more often than independent ones.

    Fine lines, dots and grids of a picture are beside each other, or in steps. What goes beyond the pairs that may be,
    in standard errors and squared, is summed over the displacements: half of these is what chance alone makes.

    Args:
        changed, white, visible: boolean (H, W): the pixels that changed; the restored picture, whose two colours may
            have changed at different rates; and the pixels that count.

    >>> flips = np.random.default_rng(0).random((200, 200)) < 0.1
    >>> lines = np.arange(200)[:, None] % 10 == np.zeros(200)
    >>> every = np.ones((200, 200), bool)
    >>> [independent(changed, every, every) for changed in (flips, lines)]
    [True, False]
    """
    rates = np.zeros(changed.shape)
    for colour in (visible & white, visible & ~white):
        if colour.any():
            rates[colour] = changed[colour].mean()
    pairs, expected = _pairs(changed), _pairs(rates)
    allowed = np.minimum(PAIRED * expected, expected + MORE * visible.sum())
    beyond = (pairs - allowed).clip(0) ** 2 / (1 + expected)
    return bool(beyond.sum() <= beyond.size / 2)


def _pairs(values: np.ndarray) -> np.ndarray:
    """Sums of products of pixels, for every displacement up to `PAIR_REACH` but none: the autocorrelation."""
    padded = [size + PAIR_REACH for size in values.shape]
    whole = np.fft.irfft2(np.abs(np.fft.rfft2(values, padded)) ** 2, padded)
    down, across = np.arange(PAIR_REACH + 1), np.arange(-PAIR_REACH, PAIR_REACH + 1)
    sums = whole[down[:, None] % padded[0], across % padded[1]]
    later = (down[:, None] > 0) | (across > 0)
    return np.asarray(sums[later])


def remedy(status: Status, picture: Observed, *, named: bool, inverted: bool, cut: bool, grey: bool) -> str:
    """What to do about a picture that was refused, by a prior that was named or by all, without harm to it.

    `inverted`: the caller inverts it; `cut`: grey levels were cut off; `grey`: priors are of grey pictures.
    """
    model, noise = option("model"), option("sigma" if grey else "p")
    if status is Status.DIVERGED:
        return f"choose another with {model}"
    if status is Status.NOT_INK and picture.filled_only:
        return f"name a prior of photographs with {model}, such as em-photographs"
    if status in (Status.NOT_INK, Status.FAINT):
        step = step_of(picture)
        dark = float(np.mean(np.asarray(picture.pixels[::step, ::step]) > 0.5)) < 0.5
        if inverted and not dark:
            return f"leave {option('invert')} out if its ink is dark"
        turned = f", with {option('invert')} if its ink is light" if dark and not inverted else ""
        page = f"give {option('p', 'scan')} if it is a page{turned}"
        return page if status is Status.FAINT else f"{page}, or {option('sigma')} if it is a noisy photograph"
    if status is Status.CLASSES:
        return "restore each class as a picture of its own"
    if inverted and not named:
        return f"leave {option('invert')} out: the polarity that fits is found without it"
    if cut:
        return f"give {option('p', 'scan')} if it is a page, or {option('force')}"
    if status is Status.NOT_NOISE:
        return f"give {option('specks', 'auto')} if it is dirt, or {option('force')}"
    if named:
        return f"give its noise with {noise}, or {option('force')}"
    told = picture.filled_only or (picture.damage.touched and picture.damage.unknown is None)
    given = f"name a prior with {model}" if told else f"name a prior with {model} and its noise with {noise}"
    return f"{given}, make a prior with `restore train`, or give {option('force')}"
