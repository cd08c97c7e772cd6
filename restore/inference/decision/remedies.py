"""What to do about a picture that came back as it was: advice that was tried on a part of it, or is known to apply."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from restore.channels.damage import Damage, Observed
from restore.errors import RestoreError, option
from restore.inference.case import Case
from restore.inference.options import Options, polarity
from restore.inference.restored import Restored
from restore.inference.tiles.blocks import PART_SIDE
from restore.status import Outcome, Status

# Restores a picture, as the caller would if the advice were followed.
Attempt = Callable[[Observed, Options], Restored]

GREY_TONES = (Status.NOT_INK, Status.FAINT)
DETAIL = (Status.NOT_NOISE, Status.UNRECOGNISED)


@dataclass(frozen=True)
class Remedy:
    """Advice, which is printed if it helps.

    Attributes:
        why: the reasons for which it may help.
        words: the advice.
        fits: False for pictures that it cannot help.
        damage, options: what the caller would say instead.
        helped: True if the answer is better than none.
    """

    why: tuple[Status, ...]
    words: Callable[[Case], str]
    fits: Callable[[Case], bool]
    damage: Callable[[Damage], Damage] = lambda damage: damage
    options: Callable[[Options], Options] = lambda options: options
    helped: Callable[[Restored], bool] = lambda answer: answer.outcome is Outcome.RESTORED and not answer.doubt

    def helps(self, case: Case, attempt: Attempt) -> bool:
        """Follow it on a part of the picture."""
        part = _middle(case.original)
        try:
            answer = attempt(replace(part, damage=self.damage(part.damage)), self.options(case.options))
        except RestoreError:
            return False
        return self.helped(answer)


def _middle(picture: Observed) -> Observed:
    """The middle of a picture, at most one part high and wide."""
    rows, columns = (
        slice(max(0, (size - PART_SIDE) // 2), (size + PART_SIDE) // 2) for size in (picture.shape[0], picture.shape[1])
    )
    return picture.part(rows, columns)


def _grey_levels(case: Case) -> bool:
    """True for a grey picture that priors of black and white ones were to see."""
    grey = not np.isin(np.unique(_middle(case.original).values()), (0.0, 1.0)).all()
    return grey and not (case.header.grey or case.original.damage.scanned)


# The first that helps is printed.
REMEDIES = (
    Remedy(
        (*GREY_TONES, *DETAIL),
        lambda case: f"leave {polarity(bool(case.options.invert))} out: the polarity that fits is found without it",
        lambda case: case.options.invert is not None,
        options=lambda options: replace(options, invert=None),
    ),
    Remedy(
        GREY_TONES,
        lambda case: f"name a prior of photographs with {option('model')}, such as em-photographs",
        lambda case: case.original.filled_only and not case.named,
        options=lambda options: replace(options, model="em-photographs"),
    ),
    Remedy(
        (*GREY_TONES, *DETAIL),
        lambda case: (
            f"if it is a page, give {option('p', 'scan')}, with {option('soft')} to keep the grey levels of its ink"
        ),
        _grey_levels,
        damage=lambda damage: Damage("scan", hidden=damage.hidden),
    ),
    Remedy(
        GREY_TONES,
        lambda case: f"give {option('sigma', 'auto')} to remove its grain",
        lambda case: not (case.named or case.original.damage.touched),
        damage=lambda damage: replace(damage, sigma="auto"),
    ),
    Remedy(
        DETAIL,
        lambda case: f"give {option('remove', 'specks')} to remove its specks",
        lambda case: case.original.damage.hidden is None and not case.original.damage.touched,
        options=lambda options: replace(options, remove="specks"),
    ),
)


def remedy(case: Case, why: Status, attempt: Attempt) -> str:
    """What to do about a picture that came back as it was for some reason."""
    if why is Status.DIVERGED:
        return f"choose another prior with {option('model')}"
    if why is Status.CLASSES:
        return "restore each class as a picture of its own"
    for one in REMEDIES:
        if why in one.why and one.fits(case) and one.helps(case, attempt):
            return one.words(case)
    if why in GREY_TONES and not case.original.filled_only:
        return f"give {option('force')} to cut it to black and white all the same"
    return _by_telling(case)


def _by_telling(case: Case) -> str:
    """How to be restored in any case: by naming what was to be found."""
    damage = case.original.damage
    noise = option("sigma" if case.header.grey else "p")
    has_level = case.original.filled_only or (damage.touched and damage.unknown is None)
    if case.named:
        return f"give its noise with {noise}, or {option('force')}"
    known = f"name a prior with {option('model')}" + ("" if has_level else f" and its noise with {noise}")
    return f"{known}, train one with `restore train`, or give {option('force')}"
