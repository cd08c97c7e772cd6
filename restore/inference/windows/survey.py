"""What a sample of a large image says: which prior is to restore it, in which polarity, under which level of noise."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from restore.channels.values import log_odds_of
from restore.errors import ModelError
from restore.inference import threads
from restore.inference.damage import Damage
from restore.inference.explained import FORGIVEN, INDEPENDENT, ODDS, Observed, independent, wanting
from restore.inference.held_out import FOLDS, SURER, foretold, foretold_by_share
from restore.inference.pictures import PictureEngine, Restored, restore_pictures, solved
from restore.inference.tones import Pixels
from restore.inference.windows.field import COARSE, PATCHES, allowed, of_objects, rival
from restore.inference.windows.moments import expected, moments
from restore.inference.windows.sampling import FEW, RANKS, Crop, Sample, Stacked, sample_of, side_for
from restore.inference.windows.tally import Tally
from restore.marginals import Marginals
from restore.zoo import leave_out

# Nats per pixel by which a way may be behind another at one level and ahead at another.
FAR = 0.02

# The most folds of pixels that are held out, each a fourth of them, where what predicts them is compared.
HELD_OUT = 2

# The share of white in the images that a prior of both polarities has learnt from is that near to a half.
EVEN = 0.05

# Nats per pixel held out by which a prior of windows has to predict them better than a convolutional one, to be taken
# instead: what they predict of noisy pixels differs less than what they restore.
LEAD = 0.005

# Nats by which one fold decides alone, as in 156 of 192 pictures of six families: three more turned none of these
# decisions. The leads in one fold and on average over four differ by 7.0 (standard deviation).
CLEAR = 10.0


@dataclass(frozen=True, eq=False)
class Choice:
    """What is to restore an image, as a sample of it says.

    Attributes:
        engine: the prior under which the sample is most probable, or a convolutional one that predicts it better.
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

    @property
    def allowed(self) -> float:
        """By how many nats rivals may be ahead."""
        return float(allowed(int((~self.sample.hidden).sum())))

    def certain(self, damage: Damage) -> bool:
        """Whether no pixel of the sample is a guess."""
        seen = Observed(self.sample.grey[None], self.sample.damaged(damage))
        return damage.unknown is None and bool(seen.certain.all())

    def evidence(self, damage: Damage) -> float:
        """log p(sample | prior) under damage of known levels, in nats; -inf if there is none."""
        told = self.sample.damaged(damage.inverted() if self.invert else damage)
        told.check_for(self.sample.stack.description)
        grey = 1 - self.sample.grey if self.invert else self.sample.grey
        found, _ = solved(self.sample.stack, Observed(grey[None], told))
        assert found.evidence is not None  # conditional priors are not compared
        evidence = float(found.evidence[0] - self.sample.stack.log_partition)
        return evidence if np.isfinite(evidence) else -np.inf

    def predicted(self, crop: Crop, damage: Damage, folds: Iterable[int]) -> float:
        """log p(pixels held out | others) under damage of known levels, in nats; restored as the image would be."""
        told, about = damage.inverted() if self.invert else damage, self.engine.description
        alone, total = expected(self.engine), 0.0
        grey = 1 - crop.grey if self.invert else crop.grey
        known = replace(told, p=crop.p) if crop.p is not None else told
        white = about.as_known(grey) > 0
        for asked, hidden in crop.held_out(folds):
            mean, _ = moments(self.engine, grey, replace(known, hidden=hidden), alone, Tally())
            rates = [np.broadcast_to(rate, grey.shape)[asked] for rate in known.rates]
            total += foretold(log_odds_of(mean[asked]), white[asked], (rates[0], rates[1]))
        return total

    def restored(self, damage: Damage) -> tuple[Restored, Marginals]:
        """The sample, at the most probable level if none is told."""
        told = self.sample.damaged(damage)
        (restored,), marginals = restore_pictures(self.sample.stack, [self.sample.grey], told, invert=self.invert)
        return restored, marginals


# Evidence of the sample, in nats, and what it is called that has it.
Known = tuple[float, str]


@dataclass(frozen=True, eq=False)
class Rivals:
    """What else may explain the sample of a prior of whole objects: independent pixels, and priors of patches."""

    way: Way
    patches: Sequence[Way]

    @classmethod
    def of(cls, sample: Sample, way: Way) -> Rivals:
        opened = [engine for name in PATCHES if (engine := rival(name)) is not None]
        return cls(way, [each for engine in opened for each in _ways(engine, sample, False)])

    def of_patches(self, damage: Damage) -> Known:
        """log p(sample) under the best prior of patches."""
        each = [(way.evidence(damage), f"`{way.name}`") for way in self.patches]
        return max(each, default=(-np.inf, ""))

    def alone(self, damage: Damage) -> Known:
        """log p(sample) under independent pixels."""
        seen = Observed(self.way.sample.grey[None], self.way.sample.damaged(damage))
        return float(independent(self.way.engine.description, seen)[0]), INDEPENDENT

    def best(self, damage: Damage) -> Known:
        return max(self.of_patches(damage), self.alone(damage))


def choose(
    engines: Sequence[PictureEngine], pixels: Pixels, damage: Damage, *, invert: bool, force: bool = False
) -> Choice:
    """The prior, the polarity and the level under which a sample of an image is most probable.

    Convolutional priors have no evidence that can be compared. They are held against the best of the others by how well
    each predicts pixels that are held out.

    Priors and polarities are compared at a few levels if it is unknown, and the level is chosen for the best of them;
    not where other priors are far ahead of a prior of whole objects, which then restores nothing.

    Args:
        engines: the priors, of which several must all know binary images or all grey ones, and none may be conditional.
        pixels: grey values (H, W).
        damage: what is known of it.
        invert: take this polarity, and do not compare it with the other.
        force: choose a level in any case.
    """
    compared = [engine for engine in engines if not engine.description.convolutional] or engines
    side = side_for({engine.description.image_shape for engine in compared})
    objects = len(engines) == 1 and of_objects(engines[0].description)
    sample = sample_of(pixels, damage, RANKS if len(engines) == 1 and not objects else FEW, side)
    ways = [way for engine in compared for way in _ways(engine, sample, invert)]
    levels = [damage] if damage.unknown is None else [damage.at(level) for level in COARSE]
    rivals = Rivals.of(sample, ways[0]) if objects and not ways[0].certain(damage) else None
    theirs: list[Known] = [] if rivals is None else [rivals.of_patches(level) for level in levels]
    best, evidence, level, others = ways[0], -np.inf, levels[0], tuple[str, ...]()
    if len(ways) > 1 or rivals is not None:
        best, evidence, level, others = _compared(ways, levels, theirs[len(theirs) // 2][0] if theirs else -np.inf)
    theirs += [] if rivals is None else map(rivals.alone, levels)
    ahead = max(theirs, default=(-np.inf, ""))[0] - evidence
    hopeless = damage.unknown is not None and ahead > max(0.0, best.allowed) + FAR * best.sample.grey.size
    further = [way for engine in engines if engine not in compared for way in _ways(engine, sample, invert)]
    restorer = _better(best, further, sample, level) if further else best
    # What is not restored needs no level; under little noise solvers are quickest.
    restored, marginals = restorer.restored(levels[0] if hopeless and not force else damage)
    noise = marginals.noise
    known = damage if noise is None else damage.chosen(noise, 0)
    if rivals is not None:
        theirs += [] if noise is None else [rivals.best(known)]
        lack, name = _behind_rivals(best, rivals, damage, theirs, evidence, marginals)
        restored = replace(restored, shortfall=lack, rival=name)
    if noise is not None and len(engines) > 1:
        found = best.evidence(known) if restorer is not best else _log_p(best, marginals)
        lack = _behind_noise(best, damage, max(evidence, found))
        foreseen = lack > 0 and _ahead_of_share(restorer, sample, known) > np.log(ODDS)
        restored = replace(restored, shortfall=0.0 if foreseen else lack)
    if further:
        others = tuple(dict.fromkeys(way.name for way in (best, *further) if way.name != restorer.name)) + others
    return Choice(restorer.engine, restorer.invert, known, restored, marginals, others)


def _ways(engine: PictureEngine, sample: Sample, invert: bool) -> list[Way]:
    """A prior in the polarity given, or in both."""
    about, stacked = engine.description, sample.stacked(engine)
    alike = about.conditional or about.mixture or (about.convolutional and _even(engine))
    polarities = (invert,) if invert or alike else (False, True)
    return [Way(engine, inverted, stacked) for inverted in polarities]


def _even(engine: PictureEngine) -> bool:
    """Whether a prior has seen as much black as white, and so knows either polarity."""
    return abs(float(engine.pixel_means().mean()) - 0.5) < EVEN


def _compared(
    ways: Sequence[Way], levels: Sequence[Damage], floor: float = -np.inf
) -> tuple[Way, float, Damage, tuple[str, ...]]:
    """The best way, its evidence at its best level, this level, and the names of other priors.

    Those far behind another, or behind `floor`, are tried at no other level. A prior that fails where others succeed is
    left out with a warning.
    """
    middle = len(levels) // 2

    def tried(way: Way) -> float | ModelError:
        try:
            return way.evidence(levels[middle])
        except ModelError as fault:
            return fault

    answers = list(zip(threads.each(tried, ways), ways, strict=True))
    found = [(answer, way) for answer, way in answers if not isinstance(answer, ModelError)]
    faults = {way.name: answer for answer, way in answers if isinstance(answer, ModelError)}
    if not found:
        raise next(iter(faults.values()))
    for each in faults.values():
        leave_out(str(each))
    least = max([floor, *(evidence for evidence, _ in found)]) - FAR * ways[0].sample.grey.size
    others = [*levels[:middle], *levels[middle + 1 :]]
    at_each = [(evidence, levels[middle], way) for evidence, way in found]
    near = [(way, level) for evidence, way in found if evidence >= least for level in others]
    elsewhere = threads.each(lambda each: each[0].evidence(each[1]), near)
    at_each += [(evidence, level, way) for evidence, (way, level) in zip(elsewhere, near, strict=True)]
    evidence, level, best = max(at_each, key=lambda each: each[0])
    return best, evidence, level, tuple(dict.fromkeys(way.name for _, way in found if way.name != best.name))


def _behind_rivals(
    way: Way, rivals: Rivals, damage: Damage, theirs: Sequence[Known], evidence: float, marginals: Marginals
) -> Known:
    """By how many nats a prior explains the sample less well than it should beside its rivals, and the best of these.

    A level that was told may be wrong, as in `Observed.forgiven`.
    """
    best, name = max(theirs)
    lead = best - max(evidence, _log_p(way, marginals))
    if damage.unknown is None and lead > way.allowed:
        noisier = damage.with_at_least(FORGIVEN, way.engine.description)
        lead = min(lead, rivals.best(noisier)[0] - way.evidence(noisier))
    return (max(0.0, lead - way.allowed) if np.isfinite(lead) else 0.0), name


def _better(best: Way, further: Sequence[Way], sample: Sample, level: Damage) -> Way:
    """The way, of the best by evidence and convolutional ones, that predicts held-out pixels of the sample best."""
    ways, found = [best, *further], np.zeros(1 + len(further))
    pixels = sum(crop.grey.size for crop in sample.crops) / FOLDS
    for fold in range(HELD_OUT):
        asked = [(way, crop, fold) for way in ways for crop in sample.crops]
        scores = threads.each(lambda each: each[0].predicted(each[1], level, [each[2]]), asked)
        found += np.reshape(scores, (len(ways), -1)).sum(1)
        lead = found[0] - found[1:].max() - LEAD * pixels * (fold + 1)
        if abs(lead) > CLEAR:
            break
    return best if lead > 0 else further[int(found[1:].argmax())]


def _ahead_of_share(way: Way, sample: Sample, damage: Damage) -> float:
    """By how many nats a way predicts held-out pixels of the sample better than the share of white of the others."""
    about, folds, ahead = way.engine.description, range(HELD_OUT), -float(np.log(len(SURER)))
    for crop in sample.crops:
        white = about.as_known(crop.grey) > 0
        alone = sum(foretold_by_share(white[asked], white[~hidden]) for asked, hidden in crop.held_out(folds))
        ahead += way.predicted(crop, damage, folds) - alone
    return ahead


def _log_p(way: Way, marginals: Marginals) -> float:
    """log p(sample) of what a way made of it."""
    assert marginals.evidence is not None  # conditional priors are not compared, and choose no level
    return float(marginals.evidence[0] - way.sample.stack.log_partition)


def _behind_noise(way: Way, damage: Damage, evidence: float) -> float:
    """By how many nats a way fails to explain the sample better than noise; 0 if it does."""
    sample, about = way.sample, way.engine.description
    tried = [sample.damaged(damage.at(level)) for level in damage.scale(about).levels.tolist()]
    return wanting(about, evidence, Observed(sample.grey[None], tried[0]), tried)
