"""Choose the prior, polarity and noise level that predict a picture best (`restore.inference.score`).

Independent pixels, which know the share of white alone, are what every prior has to be ahead of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

import numpy as np

from restore.channels.damage import Damage, Observed
from restore.channels.levels import FLIPS
from restore.channels.quiet import quietest
from restore.errors import ModelError
from restore.inference import threads
from restore.inference.candidates import Candidate
from restore.inference.crops import FIRST, FOLDS, Crops
from restore.inference.restored import Level
from restore.inference.score import Prediction, level_of
from restore.status import Status
from restore.zoo import leave_out

# The number of predicted pixels after which no further turns are taken: with twice as many a field of grain led by
# chance (`benchmarks/choices/no_harm.py --only grain --seeds 529`).
ENOUGH_PREDICTED = 8000

# The level from which noise of grey pictures is looked for once more. Under a strong one texture is predicted badly, so
# that weak noise counts as texture, and again under the level that is then found. Photographs, by hand.
WEAK_NOISE = 0.03


@dataclass(frozen=True, eq=False)
class Choice:
    """The candidate that restores a picture, and the level.

    Attributes:
        candidate: the prior and the polarity.
        damage: of the picture, with every level known.
        level: the level that was estimated; None if it was given.
        bits: the score, in bits per pixel; None if nothing was chosen.
        ahead: the lead over independent pixels (`Prediction.ahead`), in bits per pixel; None if nothing was chosen.
        pixels: the number of pixels predicted.
        surprise: how many times as many predicted pixels were wrong as the candidate expected.
        ahead_of_it: the name of what predicts the picture better, if the candidate was named.
    """

    candidate: Candidate
    damage: Damage
    level: Level | None = None
    bits: float | None = None
    ahead: float | None = None
    pixels: int = 0
    surprise: float = 1.0
    ahead_of_it: str = ""

    @property
    def noiseless(self) -> bool:
        """True if no noise was found, so that visible pixels stay to the last bit, whatever solvers take for exact."""
        return self.level is not None and bool(np.all(self.level.value == 0)) and self.damage.p is None

    @property
    def without_noise(self) -> Choice:
        """The same of a picture in which no flips were found."""
        level = Level("p", 0.0, at_most=None if self.level is None else self.level.at_most)
        return replace(self, level=level, damage=replace(self.damage, p=None))

    def cautious(self, picture: Observed) -> Choice:
        """The same at the lowest level of flips, if that may be as well: a few pixels may tell of flips by chance."""
        level = self.level
        if level is None or level.name != "p" or level.at_least is None or level.at_least > FLIPS.levels[0]:
            return self
        return replace(self, level=replace(level, value=level.at_least), damage=picture.damage.at(level.at_least))

    @property
    def unchanged(self) -> bool:
        """True if there is nothing to solve: no noise was found, and no pixel is hidden."""
        return self.noiseless and (self.damage.hidden is None or not self.damage.hidden.any())


def choose(pictures: Sequence[Observed], candidates: Sequence[Candidate], *, grey: bool) -> list[Choice]:
    """The candidate and the level that predict each picture best, independently of the other pictures.

    Args:
        pictures: of one shape; several are looked at together.
        candidates: at least one, all of grey pictures or all of black and white ones. One that cannot be run is left
            out with a warning.
        grey: True for priors of grey pictures.

    Raises:
        ModelError: if no candidate can be run.
    """
    sample = Crops.of(pictures, grey)
    most = [quietest(picture) if sample.damage.unknown == "sigma" else np.inf for picture in pictures]
    choices = _best(sample, sample.guess, pictures, candidates, most)
    low, high = sample.damage.scale(grey=grey).near
    far = [index for index, choice in enumerate(choices) if choice.level and not low <= choice.level.value <= high]
    if not far:
        return choices
    rest = [pictures[index] for index in far]
    part = sample.of_some(rest)
    levels = np.array([choice.level.value for choice in choices if choice.level])[far]
    # By all candidates: those that do best under one level may be behind under another.
    most = [most[index] for index in far]
    tries = [_best(part, damage, rest, candidates, most) for damage in _guesses(part, levels)]
    for index, *several in zip(far, *tries, strict=True):
        choices[index] = max(several, key=attrgetter("bits"))
    return choices


def _guesses(sample: Crops, best: np.ndarray) -> list[Damage]:
    """The damage at the level that predicts each picture best, and, of grey ones, under weak noise."""
    levels = [best, np.full_like(best, WEAK_NOISE)] if sample.damage.unknown == "sigma" else [best]
    return [sample.damage.at(level[sample.owner][:, None, None]) for level in levels]


def _best(
    sample: Crops,
    damage: Damage,
    pictures: Sequence[Observed],
    candidates: Sequence[Candidate],
    most: Sequence[float],
) -> list[Choice]:
    """The best choice for each picture, predicted under some damage; `most` is the largest level of each."""
    race = _Race(sample, candidates, damage)
    race.run()
    scores = np.full(race.near.shape, -np.inf)
    for number, prediction in race.predictions.items():
        scores[number] = np.where(race.near[number], prediction.bits, -np.inf)
    winners = scores.argmax(0).tolist()
    levels = [_level(race.predictions[number], index, most[index]) for index, number in enumerate(winners)]
    ahead = {number: race.predictions[number].ahead(levels) for number in set(winners)}
    return [
        Choice(
            candidates[number],
            picture.damage if level is None else picture.damage.at(level.value),
            level,
            float(scores[number, index]),
            float(ahead[number][index]),
            int(sample.sums(race.predictions[number].mask)[index]),
            surprise=1.0 if sample.grey else float(race.predictions[number].surprise[index]),
        )
        for index, (picture, number, level) in enumerate(zip(pictures, winners, levels, strict=True))
    ]


def _level(prediction: Prediction, index: int, most: float) -> Level | None:
    """The level that was found, at most so large."""
    level = level_of(prediction, index)
    return None if level is None else replace(level, value=min(level.value, most))


class _Race:
    """Candidates that predict a sample, turn by turn; those that fall far behind, or fail, take no further part.

    Attributes:
        predictions: of each candidate, by its number.
        near: True where a candidate stays near the best, boolean (candidates, pictures).
    """

    def __init__(self, sample: Crops, candidates: Sequence[Candidate], damage: Damage) -> None:
        self._sample, self._candidates, self._damage = sample, candidates, damage
        self.predictions: dict[int, Prediction] = {}
        self.near = np.ones((len(candidates), sample.count), bool)

    def run(self) -> None:
        for folds, crops in self._plan():
            answers = self._answers(folds, crops)
            sound = any(isinstance(new, Prediction) and not new.diverged for new in answers.values())
            faults = [fault for number, new in answers.items() if (fault := self._taken(number, new, sound))]
            if not self.near.any(0).all():
                raise faults[0]
            for fault in faults:
                leave_out(str(fault))
            self._drop_the_last()

    def _plan(self) -> list[tuple[Sequence[int], np.ndarray]]:
        """Which turns to predict in which crops: a few first."""
        sample = self._sample
        first = np.flatnonzero(sample.rank < FIRST)
        every = np.arange(len(sample.pixels))
        plan: list[tuple[Sequence[int], np.ndarray]] = [([0], first)]
        if len(first) < len(every):
            plan.append(([0], np.flatnonzero(sample.rank >= FIRST)))
        turns = min(FOLDS, -(-ENOUGH_PREDICTED * FOLDS // int(sample.pixels[sample.owner == 0].size)))
        return [*plan, (range(1, turns), every)] if turns > 1 else plan

    def _answers(self, folds: Sequence[int], crops: np.ndarray) -> dict[int, Prediction | ModelError]:
        """The predictions of the candidates that are left, each of the crops of its pictures."""
        wanted = self.near[:, self._sample.owner[crops]]

        def predicted(number: int) -> Prediction | ModelError:
            try:
                return Prediction.of(self._sample, self._candidates[number], folds, self._damage, crops[wanted[number]])
            except ModelError as reason:
                return reason

        numbers = np.flatnonzero(wanted.any(1)).tolist()
        return dict(zip(numbers, threads.run_all(predicted, numbers), strict=True))

    def _taken(self, number: int, new: Prediction | ModelError, sound: bool) -> ModelError | None:
        """Add a prediction, or why the candidate fails: divergence counts where others are sound."""
        if sound and isinstance(new, Prediction) and new.diverged:
            new = ModelError(Status.DIVERGED.sentence, self._candidates[number].names[0])
        if isinstance(new, ModelError):
            self.near[number] = False
            return new
        before = self.predictions.get(number)
        self.predictions[number] = new if before is None else before + new
        return None

    def _drop_the_last(self) -> None:
        nats = np.full(self.near.shape, -np.inf)
        for number in np.flatnonzero(self.near.any(1)).tolist():
            nats[number] = np.where(self.near[number], self.predictions[number].nats, -np.inf)
        count = np.max([self._sample.sums(prediction.mask) for prediction in self.predictions.values()], 0)
        # Leads vary by about as much; but the pixels of a hole are right or wrong together, so that a few tell little.
        self.near &= (nats >= nats.max(0) - count**0.5) | self._sample.in_pieces
