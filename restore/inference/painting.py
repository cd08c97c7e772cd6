"""What of an answer goes into the picture: which pixels are replaced, by which grey levels, in which size."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from restore.channels.damage import Observed
from restore.channels.levels import FLIPS, NOISE
from restore.errors import option
from restore.images import enlarge
from restore.images.tones import between_tones
from restore.inference.case import Case
from restore.inference.choose import Choice
from restore.inference.decision.facts import Facts
from restore.inference.decision.rules import SPOTLESS
from restore.inference.engine import Posterior
from restore.inference.restored import Level, Restored, share_changed
from restore.inference.scans.reading import LEAST_PAGE
from restore.inference.scans.sheet import Sheet
from restore.registry import LEVELS
from restore.status import Outcome, Status

# Said of a page with parts that are none.
PARTS_STAY = (
    "{} of it is no ink on paper, such as a photograph, ink in another colour or what it lies on, and stays as it was; "
    "{} reads all of it"
)

# Said of a clean picture in grey: programs that scan with a telephone whiten paper, and leave dirt on it.
AS_DRAWN = "has no grain, and was judged as a drawing; if it is a scan, {} reads it as a page"

# Said of a picture that comes back as it came, though nothing had to be found.
UNCHANGED = "no pixel had to change"

# The probability from which a pixel has changed for sure. At the lowest level .0001 of clean pictures changes if less
# will do, and with this next to nothing, and four of five of the flips that are found stay found (all kinds, by hand).
SURE_CHANGE = 0.9

# The lowest level of each kind that is looked for.
LOWEST = {name: float(scale.levels[0]) for name, scale in (("p", FLIPS), ("sigma", NOISE))}


@dataclass(frozen=True, eq=False)
class Draft:
    """An answer in the pixels of its prior.

    Attributes:
        seen: the picture before, (H, W).
        means, deviations: the posterior, (H, W).
        grey: True if these are grey levels, False for black and white.
    """

    seen: np.ndarray
    means: np.ndarray
    deviations: np.ndarray
    grey: bool

    @classmethod
    def of(cls, case: Case, choice: Choice, whole: Posterior, index: int) -> Draft:
        """The answer about picture `index` of a posterior."""
        variances = whole.variances[index]
        deviations = variances if choice.unchanged else np.sqrt(variances.clip(0))
        draft = cls(case.picture.values(), whole.means[index], deviations, case.header.grey)
        if draft.grey:
            return draft
        if case.original.filled_only:
            return draft.without_strays(case.picture.damage.hidden)
        tones = case.reading.tones
        if tones is not None and case.keeps_levels:  # a flip has one of both tones: between them are soft edges
            draft = draft.untouched(case.picture.visible & between_tones(case.original.values(), *tones))
        return draft.where_sure(case.picture.visible) if at_lowest(choice.level) else draft

    @property
    def before(self) -> np.ndarray:
        return self.seen if self.grey else self.seen > 0.5

    @property
    def after(self) -> np.ndarray:
        return self.means if self.grey else self.means > 0.5

    def without_strays(self, hidden: np.ndarray | None) -> Draft:
        """The same, with filled pixels that differ from all eight around them turned."""
        return replace(self, means=np.where(isolated(self.means > 0.5, hidden), 1 - self.means, self.means))

    def untouched(self, visible: np.ndarray) -> Draft:
        """The same, with visible pixels as they were seen, and certain."""
        means = np.where(visible, self.before, self.means)
        deviations = np.where(visible, 0, self.deviations)
        return replace(self, means=means, deviations=deviations)

    def where_sure(self, visible: np.ndarray) -> Draft:
        """The same, where visible pixels change only if that is sure: for a level at which clean ones change, too."""
        return self.untouched(visible & ~sure_changes(self.before, self.means))

    def enlarged(self, shape: tuple[int, ...]) -> Draft:
        """The answer in another size; thresholded after enlarging, so that contours are smooth."""
        size = shape[0], shape[1]
        return replace(self, means=enlarge(self.means, size), deviations=enlarge(self.deviations, size))


def sure_changes(before: np.ndarray, means: np.ndarray) -> np.ndarray:
    """Where pixels of 0 and 1 surely have the other colour, by the probabilities of white."""
    return np.abs(means - before) > SURE_CHANGE


def spotless(choice: Choice, facts: Facts, why: Status | None = None) -> bool:
    """True if no flips were found: the level is the lowest, and next to nothing would change, or nothing like noise.

    Args:
        choice: with the level.
        facts: with the share that would change.
        why: the objection to the answer, if there is one.
    """
    most = {None: SPOTLESS, Status.NOT_NOISE: LOWEST["p"]}.get(why, 0.0)
    return at_lowest(choice.level) and facts.changed < most


def at_lowest(level: Level | None) -> bool:
    """True for the lowest level of flips that is looked for."""
    return level is not None and level.name == "p" and np.allclose(level.value, LOWEST["p"])


def painted(case: Case, choice: Choice, draft: Draft, doubt: str, **others: Any) -> Restored:
    """The answer in the levels and the size of the picture.

    Args:
        case: the picture.
        choice: what restored it.
        draft: its answer.
        doubt: why it may be wrong.
        others: further attributes of `Restored`.
    """
    original = case.original
    reading = case.reading
    soft = case.answered_by_reader and case.options.soft and draft.means.shape == original.shape
    lightened = _lightened(case, reading.sheet, draft) if soft and reading.sheet is not None else None
    replaced, tones, note = _replaced(case, choice, draft)
    before = draft.before
    if draft.means.shape != original.shape:
        before, draft = enlarge(before, (original.shape[0], original.shape[1])) > 0.5, draft.enlarged(original.shape)
    estimate = draft.after
    if tones is not None and not draft.grey:
        estimate = np.where(draft.after, tones[1], tones[0])
    share = share_changed(original, estimate, replaced)
    ending: dict[str, Any] = {"notes": (*others.pop("notes"), *note)}
    if not share:
        known = (*reading.notes, AS_DRAWN.format(option("p", "scan"))) if _may_be_scanned(case) else reading.notes
        ending = {"outcome": Outcome.CLEAN, "reason": looked_for(original, choice), "notes": known}
    return Restored(
        **chosen(choice, original),
        **ending,
        observed=original,
        estimate=estimate,
        means=draft.means,
        deviations=draft.deviations,
        changed=_share_of_ink(before, draft, replaced, share) if reading.sheet else None if draft.grey else share,
        doubt=doubt,
        replaced=replaced,
        lightened=lightened,
        **others,
    )


def _may_be_scanned(case: Case) -> bool:
    """True for a grey drawing as large as a page, which a scanning program may have freed of its grain."""
    return case.keeps_levels and min(case.original.shape) >= LEAST_PAGE


def _replaced(case: Case, choice: Choice, draft: Draft) -> tuple[np.ndarray | None, Any, tuple[str, ...]]:
    """The pixels that the answer replaces, None for all; by which levels of black and white; and a note on the rest."""
    original, reading = case.original, case.reading
    if original.filled_only or choice.noiseless:
        return ~original.visible, reading.tones, ()
    if reading.other is not None:
        share = reading.other.mean()
        said = PARTS_STAY.format("less than 1%" if share < 0.01 else f"{share:.0%}", option("p", "scan"))
        return ~reading.other, reading.tones, (said,)
    if reading.cut is None:
        return None, reading.tones, ()
    if case.keeps_levels:
        return draft.before != draft.after, reading.tones, ()
    return None, None, (f"has grey levels, which were cut to black and white at {round(255 * reading.cut)} of 255",)


def _share_of_ink(before: np.ndarray, draft: Draft, replaced: np.ndarray | None, share: float) -> float:
    """The share of a page's pixels where ink became paper, or paper ink; of all that are replaced."""
    differs = before != draft.after
    return float(np.mean(differs if replaced is None else differs & replaced)) if share else 0.0


def chosen(choice: Choice | None, picture: Observed) -> dict[str, Any]:
    """The fields of an answer about the chosen prior and level, if any were chosen."""
    known = Level.given(picture.damage)
    if choice is None:
        return {"model": "", "engine": "", "level": known}
    model, backend = choice.candidate.names
    return {"model": model, "engine": backend, "level": choice.level or known, "bits": choice.bits}


def looked_for(picture: Observed, choice: Choice) -> str:
    """What was looked for in a picture that comes back as it was, and not found."""
    if picture.filled_only:
        return "what fills the hole is what was there"
    if choice.level is None:
        return UNCHANGED
    name = choice.level.name
    bound = LOWEST.get(name) if choice.level.at_most is None else choice.level.at_most
    least = "" if bound is None else f" above {name} = {bound:.2g}"
    return f"no {LEVELS[name].noun} found{least}"


def _lightened(case: Case, sheet: Sheet, draft: Draft) -> np.ndarray:
    """A grey page with white paper."""
    values = case.original.values()
    lightened = sheet.lightened(values, draft.means, inverted=case.reading.inverted)
    return lightened if case.reading.other is None else np.where(case.reading.other, values, lightened)


def isolated(white: np.ndarray, hidden: np.ndarray | None = None) -> np.ndarray:
    """The pixels of a picture (H, W) that differ from all eight around them; if `hidden`, of these alone."""
    padded = np.pad(white, 1, mode="edge").astype(np.int8)
    across = padded[:, :-2] + padded[:, 1:-1] + padded[:, 2:]
    squares = across[:-2] + across[1:-1] + across[2:]
    alone = np.asarray(squares == np.where(white, 1, 8))
    return alone if hidden is None else alone & hidden
