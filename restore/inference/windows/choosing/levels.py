"""The level of noise at which an image is restored, and how well priors predict it there.

Flips are counted by lone pixels where enough are surrounded. Elsewhere priors of windows have evidence, and the level
for convolutional ones is that at which crops are predicted best.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from restore.inference import threads
from restore.inference.damage import Damage
from restore.inference.noise.held_out import FOLDS
from restore.inference.noise.lone import Flips, flips_of, level_of
from restore.inference.pictures import Restored
from restore.inference.tones import Pixels
from restore.inference.windows.choosing.sampling import Crop, sample_of
from restore.inference.windows.choosing.ways import Way
from restore.inference.windows.regions import HELD_OUT, LEAD, WIDE
from restore.marginals import Marginals, NoiseLevel
from restore.zoo.description import Description

# Nats by which one way is clearly ahead, so that no more pixels are held out.
DECIDED = 20.0

# Beyond so many pixels a picture is not looked through as a whole, and results are kept in half precision.
MANY = 2**24

# Levels at which crops are predicted where flips cannot be counted.
FINE = (0.01, 0.03, 0.06, 0.1, 0.15, 0.2, 0.3)

# At lower levels convolutional priors take every speck for something that was drawn; at this one they leave clean
# pictures as they are.
QUIETEST = 0.005


def flips_in(about: Description, pixels: Pixels, damage: Damage) -> Flips | None:
    """The flips of an image (H, W), if they are to be found; those of its middle rows if it is too large."""
    if damage.unknown != "p" or about.grey:
        return None
    height, width = pixels.shape
    count = min(height, max(1, MANY // width))
    rows = slice((height - count) // 2, (height - count) // 2 + count)
    white = about.as_known(pixels[rows, slice(None)]) > 0
    seen = np.ones(white.shape, bool) if damage.hidden is None else ~np.asarray(damage.hidden[0])[rows]
    found = flips_of(white, seen)
    return found if found is None or count == height else replace(found, places=None)


def two_rates(noise: NoiseLevel) -> bool:
    """Whether white and black pixels flip at different rates."""
    return noise.rates is not None and bool(np.ptp(noise.rates))


def at_best(way: Way, damage: Damage, flips: Flips | None, foretold: NoiseLevel | None) -> tuple[Restored, Marginals]:
    """The sample at the level that is told or found.

    Args:
        way: the prior.
        damage: what is known.
        flips: the flips of the image; this is their rate, unless evidence says that colours differ in it.
        foretold: the level at which crops were predicted best, for a convolutional prior.
    """
    if flips is not None and flips.alike:
        return way.at_level(damage, audible(flips.level, way))
    if flips is None and foretold is not None and way.engine.description.convolutional:
        return way.at_level(damage, audible(foretold, way))
    restored, marginals = way.restored(damage)
    if flips is None or (marginals.noise is not None and two_rates(marginals.noise)):
        return restored, marginals
    return way.at_level(damage, audible(flips.level, way))


def audible(noise: NoiseLevel, way: Way) -> NoiseLevel:
    """The level, or the lowest one at which a convolutional prior removes specks."""
    if not way.engine.description.convolutional:
        return noise
    rates = None if noise.rates is None else noise.rates.clip(QUIETEST)
    return replace(noise, chosen=noise.chosen.clip(QUIETEST), rates=rates)


def scored(
    ways: Sequence[Way], pixels: Pixels, damage: Damage, flips: Flips | None
) -> tuple[np.ndarray, NoiseLevel | None]:
    """How well each way predicts crops all over an image, (ways, crops); and at which level, if it had to be tried."""
    if damage.unknown is None or flips is not None:
        likely = damage
        if flips is not None:
            likely = damage.at(flips.rate) if flips.places is None else replace(damage, p=flips.places)
        return scores_of(ways, sample_of(pixels, likely, WIDE).crops, likely), None
    crops = sample_of(pixels, damage, WIDE).crops
    each = [(damage.at(level), way, crop) for level in FINE for way in ways for crop in crops]
    first = threads.each(lambda one: one[1].predicted(one[2], one[0], [0]), each)
    best = int(np.reshape(first, (len(FINE), len(ways), len(crops))).sum(2).max(1).argmax())
    return scores_of(ways, crops, damage.at(FINE[best])), level_of(FINE[best])


def scores_of(ways: Sequence[Way], crops: Sequence[Crop], damage: Damage) -> np.ndarray:
    """How well each way predicts pixels of each crop that are held out, in nats, (ways, crops).

    A way that is clearly behind, and ahead in no crop, is not asked again, but taken to predict other pixels alike.
    """
    least = [0 if way.engine.description.convolutional else LEAD for way in ways]
    behind = np.outer(least, [crop.grey.size / FOLDS for crop in crops])
    scores, found, asked = np.zeros(behind.shape), np.zeros(behind.shape), np.ones(len(ways), bool)
    for fold in range(HELD_OUT):
        each = [(way, crop, fold) for way, again in zip(ways, asked, strict=True) if again for crop in crops]
        predicted = threads.each(lambda one: one[0].predicted(one[1], damage, [one[2]]), each)
        found[asked] = np.reshape(predicted, (-1, len(crops)))
        scores += found - behind
        ranked = np.sort(scores.sum(1))
        if len(ways) > 1 and ranked[-1] - ranked[-2] > DECIDED:
            break
        leads = scores - scores[scores.sum(1).argmax()]
        asked = (leads.sum(1) > -DECIDED) | (leads.max(1) > 0)
    return scores
