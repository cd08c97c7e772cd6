"""What a sample of a large image says: which prior is to restore it, in which polarity, under which level of noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from restore.errors import ModelError
from restore.inference.damage import Damage
from restore.inference.pictures import PictureEngine, Restored, restore_pictures
from restore.inference.tones import Pixels
from restore.inference.windows.sampling import FEW, RANKS, Stacked, sample_of
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

    def tried(self, damage: Damage) -> Trial:
        told = self.sample.damaged(damage)
        (restored,), marginals = restore_pictures(self.sample.stack, [self.sample.grey], told, invert=self.invert)
        return Trial(self, restored, marginals)


@dataclass(frozen=True, eq=False)
class Trial:
    """What came of the sample in one way."""

    way: Way
    restored: Restored
    marginals: Marginals

    @property
    def evidence(self) -> float:
        """log p(sample | prior), in nats; -inf if there is none."""
        assert self.marginals.evidence is not None  # conditional priors are not compared
        evidence = float(self.marginals.evidence[0] - self.way.sample.stack.log_partition)
        return evidence if np.isfinite(evidence) else -np.inf


def choose(engines: Sequence[PictureEngine], pixels: Pixels, damage: Damage, *, invert: bool) -> Choice:
    """The prior, the polarity and the level under which a sample of an image is most probable.

    Priors and polarities are compared at a few levels if it is unknown, and the level is chosen for the best of them.

    Args:
        engines: the priors, of which several must all know binary images or all grey ones, and none may be conditional.
        pixels: grey values (H, W).
        damage: what is known of it.
        invert: take this polarity, and do not compare it with the other.
    """
    sample = sample_of(pixels, damage, RANKS if len(engines) == 1 else FEW)
    ways = []
    for engine in engines:
        stacked = sample.stacked(engine)
        polarities = (invert,) if invert or engine.description.conditional else (False, True)
        ways += [Way(engine, inverted, stacked) for inverted in polarities]
    if len(ways) == 1:
        trials, best = [], ways[0].tried(damage)
    else:
        trials = _compared(ways, [damage] if damage.unknown is None else [damage.at(level) for level in COARSE])
        best = max(trials, key=lambda trial: trial.evidence)
        if damage.unknown is not None:
            best = best.way.tried(damage)
    noise = best.marginals.noise
    known = damage if noise is None else damage.at(float(noise.chosen[0]))
    engine = best.way.engine
    others = dict.fromkeys(each.way.engine.description.name for each in trials if each.way.engine is not engine)
    return Choice(engine, best.way.invert, known, best.restored, best.marginals, tuple(others))


def _compared(ways: Sequence[Way], levels: Sequence[Damage]) -> list[Trial]:
    """Each way at its best level; those far behind at the middle one are tried at no other.

    A prior that fails where others succeed is left out with a warning.
    """
    middle = len(levels) // 2
    trials: list[Trial] = []
    faults: dict[str, ModelError] = {}
    for way in ways:
        try:
            trials.append(way.tried(levels[middle]))
        except ModelError as fault:
            faults[way.engine.description.name] = fault
    if not trials:
        raise next(iter(faults.values()))
    for each in faults.values():
        leave_out(str(each))
    best = max(trial.evidence for trial in trials)
    others = [*levels[:middle], *levels[middle + 1 :]]
    return [
        max([trial, *map(trial.way.tried, others)], key=lambda one: one.evidence)
        if trial.evidence >= best - FAR * trial.way.sample.grey.size
        else trial
        for trial in trials
    ]
