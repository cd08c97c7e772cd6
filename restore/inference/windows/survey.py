"""What a sample of a large image says: which prior is to restore it, in which polarity, under which level of noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from restore.errors import ModelError
from restore.inference.damage import Damage
from restore.inference.explained import Observed, wanting
from restore.inference.pictures import PictureEngine, Restored, restore_pictures, solved
from restore.inference.tones import Pixels
from restore.inference.windows.sampling import FEW, RANKS, Stacked, sample_of, side_for
from restore.marginals import Marginals
from restore.zoo import leave_out

# Levels of noise, flips or standard deviations, at which priors and polarities are compared if it is unknown.
COARSE = (0.05, 0.15, 0.3)

# Nats per pixel by which a way may be behind another at one level and ahead at another.
FAR = 0.02


@dataclass(frozen=True, eq=False)
class Choice:
    """What is to restore an image, as a sample of it says.

    Attributes:
        engine: the prior under which the sample is most probable.
        invert: whether the image is to be inverted for it.
        damage: of the image, none of its levels to be chosen.
        sample: what came of the sample, with the level that was chosen, and its shortfall.
        marginals: of the sample.
        others: names of the priors under which it is less probable.
    """

    engine: PictureEngine
    invert: bool
    damage: Damage
    sample: Restored
    marginals: Marginals
    others: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Way:
    """A prior and a polarity to restore the sample in."""

    engine: PictureEngine
    invert: bool
    sample: Stacked

    @property
    def name(self) -> str:
        return self.engine.description.name

    def evidence(self, damage: Damage) -> float:
        """log p(sample | prior) under damage of known levels, in nats; -inf if there is none."""
        told = self.sample.damaged(damage.inverted() if self.invert else damage)
        told.check_for(self.sample.stack.description)
        grey = 1 - self.sample.grey if self.invert else self.sample.grey
        found, _ = solved(self.sample.stack, Observed(grey[None], told))
        assert found.evidence is not None  # conditional priors are not compared
        evidence = float(found.evidence[0] - self.sample.stack.log_partition)
        return evidence if np.isfinite(evidence) else -np.inf

    def restored(self, damage: Damage) -> tuple[Restored, Marginals]:
        """The sample, at the most probable level if none is told."""
        told = self.sample.damaged(damage)
        (restored,), marginals = restore_pictures(self.sample.stack, [self.sample.grey], told, invert=self.invert)
        return restored, marginals


def choose(engines: Sequence[PictureEngine], pixels: Pixels, damage: Damage, *, invert: bool) -> Choice:
    """The prior, the polarity and the level under which a sample of an image is most probable.

    Priors and polarities are compared at a few levels if it is unknown, and the level is chosen for the best of them.

    Args:
        engines: the priors, of which several must all know binary images or all grey ones, and none may be conditional.
        pixels: grey values (H, W).
        damage: what is known of it.
        invert: take this polarity, and do not compare it with the other.
    """
    side = side_for({engine.description.image_shape for engine in engines})
    sample = sample_of(pixels, damage, RANKS if len(engines) == 1 else FEW, side)
    ways = []
    for engine in engines:
        stacked = sample.stacked(engine)
        polarities = (invert,) if invert or engine.description.conditional else (False, True)
        ways += [Way(engine, inverted, stacked) for inverted in polarities]
    if len(ways) == 1:
        best, others = ways[0], tuple[str, ...]()
    else:
        levels = [damage] if damage.unknown is None else [damage.at(level) for level in COARSE]
        best, others = _compared(ways, levels)
    restored, marginals = best.restored(damage)
    noise = marginals.noise
    if noise is not None and len(engines) > 1:
        restored = replace(restored, shortfall=_behind_noise(best, damage, marginals))
    known = damage if noise is None else damage.at(float(noise.chosen[0]))
    return Choice(best.engine, best.invert, known, restored, marginals, others)


def _compared(ways: Sequence[Way], levels: Sequence[Damage]) -> tuple[Way, tuple[str, ...]]:
    """The best way at its best level, and the names of other priors; those far behind are tried at no other level.

    A prior that fails where others succeed is left out with a warning.
    """
    middle = len(levels) // 2
    found: list[tuple[float, Way]] = []
    faults: dict[str, ModelError] = {}
    for way in ways:
        try:
            found.append((way.evidence(levels[middle]), way))
        except ModelError as fault:
            faults[way.name] = fault
    if not found:
        raise next(iter(faults.values()))
    for each in faults.values():
        leave_out(str(each))
    least = max(evidence for evidence, _ in found) - FAR * ways[0].sample.grey.size
    others = [*levels[:middle], *levels[middle + 1 :]]
    at_best = [(max([evidence, *map(way.evidence, others)]), way) for evidence, way in found if evidence >= least]
    _, best = max(at_best, key=lambda each: each[0])
    return best, tuple(dict.fromkeys(way.name for _, way in found if way.name != best.name))


def _behind_noise(way: Way, damage: Damage, marginals: Marginals) -> float:
    """By how many nats a way fails to explain the sample better than noise; 0 if it does."""
    sample, about = way.sample, way.engine.description
    assert marginals.evidence is not None  # levels are chosen by evidence
    evidence = float(marginals.evidence[0] - sample.stack.log_partition)
    tried = [sample.damaged(damage.at(level)) for level in damage.scale(about).levels.tolist()]
    return wanting(about, evidence, Observed(sample.grey[None], tried[0]), tried)
