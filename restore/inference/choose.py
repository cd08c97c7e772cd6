"""Choose prior, polarity and noise level of a picture: those that predict it best (`restore.inference.score`).

Independent pixels, which know the share of white alone, are what every prior has to be ahead of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from restore.errors import ModelError
from restore.inference import threads
from restore.inference.damage import Damage, Observed
from restore.inference.restored import Found
from restore.inference.score import FIRST, FOLDS, Candidate, Prediction, Sample, level_of
from restore.zoo import leave_out

# Further turns are taken until so many pixels are predicted.
ENOUGH = 8000

# A candidate is asked no more that is behind by so many nats, or by the root of the number of pixels asked for if that
# is less: leads vary by about as much.
LOST = 40.0


@dataclass(frozen=True, eq=False)
class Choice:
    """The candidate that restores a picture, and the level.

    Attributes:
        candidate: the prior and the polarity.
        damage: of the picture, with every level known.
        found: the level that was found; None if it was given.
        bits: the score, in bits per pixel; None if nothing was chosen.
        ahead: the lead over independent pixels, in bits per pixel; None if nothing was chosen.
        pixels: the number of pixels predicted.
    """

    candidate: Candidate
    damage: Damage
    found: Found | None = None
    bits: float | None = None
    ahead: float | None = None
    pixels: int = 0


def choose(pictures: Sequence[Observed], candidates: Sequence[Candidate], *, grey: bool) -> list[Choice]:
    """The candidate and the level that predict each picture best.

    Args:
        pictures: of one shape; several are looked at together.
        candidates: at least one, all of grey pictures or all of black and white ones.
        grey: True for priors of grey pictures.
    """
    sample = Sample.of(pictures, grey)
    choices, near = _best(sample, sample.guess, pictures, candidates)
    low, high = sample.damage.scale(grey=grey).near
    far = [index for index, choice in enumerate(choices) if choice.found and not low <= choice.found.value <= high]
    if not far:
        return choices
    rest = [pictures[index] for index in far]
    part = Sample.of(rest, grey)
    levels = [Damage(choices[far[place]].found.value) for place in part.owner]
    again, _ = _best(part, part.damage.at(Damage.stacked(levels, part.seen.shape[1:]).p), rest, near)
    for index, choice in zip(far, again, strict=True):
        choices[index] = choice
    return choices


def _best(
    sample: Sample, damage: Damage, pictures: Sequence[Observed], candidates: Sequence[Candidate]
) -> tuple[list[Choice], list[Candidate]]:
    """The best choice for each picture as predicted under some damage, and the candidates that came near."""
    found = _predicted_by_each(sample, candidates, damage)
    # Those that were given up were asked about other pixels.
    asked = max(each.asked.sum() for each in found.values())
    near = [number for number, each in found.items() if each.asked.sum() == asked]
    scores = np.stack([found[number].bits for number in near])
    alone, choices = sample.independent(), []
    for index, picture in enumerate(pictures):
        place = int(scores[:, index].argmax())
        winner = candidates[near[place]]
        level = level_of(found[near[place]], index)
        bits = float(scores[place, index])
        choices.append(
            Choice(
                winner,
                picture.damage if level is None else picture.damage.at(level.value),
                level,
                bits,
                bits - float(alone[index]),
                int(sample.sums(found[near[place]].asked)[index]),
            )
        )
    return choices, [candidates[number] for number in near]


def _predicted_by_each(sample: Sample, candidates: Sequence[Candidate], damage: Damage) -> dict[int, Prediction]:
    """What each candidate predicts; one that is far behind for every picture is asked no more.

    One of several that cannot be run is left out with a warning.
    """
    first = np.flatnonzero(sample.rank < FIRST)
    plan: list[tuple[Sequence[int], np.ndarray]] = [([0], first)]
    if len(first) < len(sample.seen):
        plan.append(([0], np.flatnonzero(sample.rank >= FIRST)))
    turns = min(FOLDS, -(-ENOUGH * FOLDS // int(sample.seen[sample.owner == 0].size)))
    if turns > 1:
        plan.append((range(1, turns), np.arange(len(sample.seen))))
    found: dict[int, Prediction] = {}
    near = list(range(len(candidates)))
    for folds, crops in plan:

        def predicted(number: int, folds: Sequence[int] = folds, crops: np.ndarray = crops) -> Prediction | ModelError:
            try:
                return Prediction.of(sample, candidates[number], folds, damage, crops)
            except ModelError as reason:
                return reason

        faults: list[ModelError] = []
        for number, new in zip(near, threads.each(predicted, near), strict=True):
            if isinstance(new, ModelError):
                found.pop(number, None)
                faults.append(new)
            else:
                found[number] = found[number] + new if number in found else new
        near = [number for number in near if number in found]
        if not near:
            raise faults[0]
        for fault in faults:
            leave_out(str(fault))
        nats = np.stack([found[number].nats for number in near])
        most = np.minimum(LOST, sample.sums(found[near[0]].asked) ** 0.5)
        near = [number for number, far in zip(near, ((nats.max(0) - nats) > most).all(1), strict=True) if not far]
    return found
