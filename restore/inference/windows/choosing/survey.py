"""What a sample of a large image says: which prior is to restore it, in which polarity, under which level of noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from restore.errors import ModelError
from restore.inference import threads
from restore.inference.damage import Damage
from restore.inference.explained import FORGIVEN, INDEPENDENT, ODDS, Observed, independent, wanting
from restore.inference.noise.held_out import SURER, foretold_by_share
from restore.inference.noise.lone import Flips
from restore.inference.noise.rates import possible
from restore.inference.pictures import PictureEngine, Restored
from restore.inference.tones import Pixels
from restore.inference.windows.choosing.field import COARSE, FIELD, PATCHES, of_objects, rival
from restore.inference.windows.choosing.levels import MANY, at_best, audible, flips_in, scored, two_rates
from restore.inference.windows.choosing.sampling import FEW, RANKS, Sample, sample_of, side_for
from restore.inference.windows.choosing.ways import Way
from restore.inference.windows.moments import Turned
from restore.inference.windows.regions import CLEAR, HELD_OUT, Both
from restore.marginals import Marginals, NoiseLevel
from restore.zoo import leave_out

# Nats per pixel by which a way may be behind another at one level and ahead at another.
FAR = 0.02

# The share of white in the images that a prior of both polarities has learnt from is that near to a half.
EVEN = 0.05


@dataclass(frozen=True, eq=False)
class Choice:
    """What is to restore an image, as a sample of it says.

    Attributes:
        engine: the prior under which the sample is most probable, or a convolutional one that predicts it better.
        invert: whether the image is to be inverted for it.
        damage: of the image, none of its levels to be chosen.
        sample: what came of the sample, with the level that was chosen, and its shortfall.
        marginals: of the sample.
        tried: names of all priors that it was compared under.
        prior: what restores the whole image: this prior, or it and another one.
    """

    engine: PictureEngine
    invert: bool
    damage: Damage
    sample: Restored
    marginals: Marginals
    tried: tuple[str, ...]
    prior: Turned | Both

    @property
    def names(self) -> tuple[str, ...]:
        """Of all priors that restore the image."""
        return tuple(engine.description.name for engine in self.prior.engines)

    @property
    def others(self) -> tuple[str, ...]:
        """The priors under which it is less probable."""
        return tuple(name for name in self.tried if name not in self.names)


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
    flips = flips_in(engines[0].description, pixels, damage)
    levels = [damage] if damage.unknown is None else [damage.at(level) for level in COARSE]
    levels = levels if flips is None else [damage.at(flips.rate)]
    rivals = Rivals.of(sample, ways[0]) if objects and not ways[0].certain(damage) else None
    theirs: list[Known] = [] if rivals is None else [rivals.of_patches(level) for level in levels]
    ranked, evidence, foretold = list(ways), -np.inf, None
    if compared[0].description.convolutional and not compared[0].description.grey:
        ranked, foretold = _by_prediction(ways, pixels, damage, flips)
    elif len(ways) > 1 or rivals is not None:
        ranked, evidence = _compared(ways, levels, theirs[len(theirs) // 2][0] if theirs else -np.inf)
    best, *behind = ranked
    theirs += [] if rivals is None else map(rivals.alone, levels)
    ahead = max(theirs, default=(-np.inf, ""))[0] - evidence
    hopeless = damage.unknown is not None and ahead > max(0.0, best.allowed) + FAR * best.sample.grey.size
    further = [way for engine in engines if engine not in compared for way in _ways(engine, sample, invert)]
    if further:
        restorer, prior, restored, marginals = _of_all(ranked, further, pixels, damage, flips)
    else:
        # What is not restored needs no level; under little noise solvers are quickest.
        restorer, prior = best, best
        guess = hopeless and not force
        restored, marginals = best.restored(levels[0]) if guess else at_best(best, damage, flips, foretold)
    noise = marginals.noise
    if noise is not None and noise.rates is not None and not _possible(noise.rates[0], pixels, restorer, damage):
        noise = replace(noise, rates=None) if flips is None else flips.level
        restored, marginals = restorer.at_level(damage, noise)
    known = damage if noise is None else damage.chosen(noise, 0)
    if rivals is not None:
        theirs += [] if noise is None else [rivals.best(known)]
        lack, name = _behind_rivals(best, rivals, damage, theirs, evidence, marginals)
        restored = replace(restored, shortfall=lack, rival=name)
    if noise is not None and len(engines) > 1:
        found = best.evidence(known) if restorer is not best else _log_p(best, marginals)
        lack = _behind_noise(best, damage, max(evidence, found))
        drawn = flips is not None and flips.drawn
        foreseen = drawn or (lack > 0 and _ahead_of_share(restorer, sample, known) > np.log(ODDS))
        restored = replace(restored, shortfall=0.0 if foreseen else lack)
    if flips is not None and flips.places is not None and noise is not None and not two_rates(noise):
        known, restored = replace(known, p=flips.places), replace(restored, notes=(flips.note, *restored.notes))
    tried = dict.fromkeys(way.name for way in (best, *further, *behind))
    return Choice(restorer.engine, restorer.invert, known, restored, marginals, tuple(tried), prior)


def _possible(rates: np.ndarray, pixels: Pixels, way: Way, damage: Damage) -> bool:
    """Whether two rates of flips are possible in an image (H, W), as far as it is looked through as a whole."""
    height, width = pixels.shape
    if rates[0] == rates[1] or height * width > MANY:
        return True
    white = way.engine.description.as_known(pixels[slice(None), slice(None)]) > 0
    return possible(rates, white, np.ones(white.shape, bool) if damage.hidden is None else ~damage.hidden[0])


def _ways(engine: PictureEngine, sample: Sample, invert: bool) -> list[Way]:
    """A prior in the polarity given, or in both."""
    about, stacked = engine.description, sample.stacked(engine)
    alike = about.conditional or about.mixture or (about.whole and _even(engine))
    polarities = (invert,) if invert or alike else (False, True)
    return [Way(engine, inverted, stacked) for inverted in polarities]


def _even(engine: PictureEngine) -> bool:
    """Whether a prior has seen as much black as white, and so knows either polarity."""
    return abs(float(engine.pixel_means().mean()) - 0.5) < EVEN


def _compared(ways: Sequence[Way], levels: Sequence[Damage], floor: float = -np.inf) -> tuple[list[Way], float]:
    """The best way of each prior, the best prior first, and its evidence at its best level.

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
    at_each.sort(key=lambda each: -each[0])
    first: dict[str, Way] = {}
    for _, _, way in at_each:
        first.setdefault(way.name, way)
    return list(first.values()), at_each[0][0]


def _by_prediction(
    ways: Sequence[Way], pixels: Pixels, damage: Damage, flips: Flips | None
) -> tuple[list[Way], NoiseLevel | None]:
    """The best way of each convolutional prior, the best prior first, and the level as in `scored`.

    An image is inverted only where that is clearly better.
    """
    if len(ways) == 1 and (flips is not None or damage.unknown is None):
        return list(ways), None
    scores, foretold = scored(ways, pixels, damage, flips)
    first: dict[str, Way] = {}
    for index in np.argsort([CLEAR * way.invert - score for way, score in zip(ways, scores.sum(1), strict=True)]):
        first.setdefault(ways[index].name, ways[index])
    return list(first.values()), foretold


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


def _of_all(
    ranked: Sequence[Way], further: Sequence[Way], pixels: Pixels, damage: Damage, flips: Flips | None
) -> tuple[Way, Turned | Both, Restored, Marginals]:
    """The way that predicts crops all over an image best, what restores it, and what the sample says of it.

    Two priors restore it if they differ clearly from crop to crop.

    Args:
        ranked: the best way of each prior, by evidence.
        further: ways of convolutional priors.
        pixels: the image (H, W).
        damage: what is known of it.
        flips: its flips, if they are to be found and can be told.
    """
    best = ranked[0]
    first = next((way for way in ranked if way.name != FIELD), best)
    windows = [first] if first is best else [best, first]
    ways = [*windows, *further]
    scores, foretold = scored(ways, pixels, damage, flips)
    restorer = ways[int(scores.sum(1).argmax())]
    alike = len(windows) + int(scores[len(windows) :].sum(1).argmax())
    leads = scores[len(windows) - 1] - scores[alike]
    prior: Turned | Both = restorer
    if restorer in (first, ways[alike]) and leads.min() < -CLEAR and leads.max() > CLEAR:
        prior = Both(first, ways[alike], first if leads.sum() >= 0 else ways[alike])
    if flips is None or flips.alike:
        return restorer, prior, *at_best(restorer, damage, flips, foretold)
    # Priors of windows tell rates of both colours apart.
    noise = at_best(best, damage, flips, foretold)[1].noise
    assert noise is not None  # flips are counted where they are to be found
    return restorer, prior, *restorer.at_level(damage, audible(noise, restorer))


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
