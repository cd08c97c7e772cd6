"""Marks of a picture that is to be restored: found under the prior that predicts it best, hidden, and named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from restore.channels.damage import Damage, Observed
from restore.errors import UsageError, option
from restore.inference.candidates import Prior
from restore.inference.case import Case
from restore.inference.choose import choose
from restore.inference.decision.measured import facts_of_choice
from restore.inference.decision.remedies import Attempt
from restore.inference.decision.rules import objection
from restore.inference.marks.find import find, with_soft_edges
from restore.inference.marks.kinds import QUICK
from restore.inference.marks.scene import Mark
from restore.inference.marks.witness import Witness
from restore.inference.options import Options
from restore.inference.painting import Draft, at_lowest
from restore.inference.restored import Restored, as_it_came, share_changed
from restore.inference.scans.reading import Reading
from restore.registry import MARKS
from restore.status import Outcome, Status


def marks_of(case: Case, priors: Sequence[Prior]) -> list[Mark]:
    """The marks of a picture: of the kinds that its options name, or of all that are found quickly.

    Raises:
        UsageError: if kinds are named, and the picture is not in black and white; or if no prior is to judge specks.
    """
    options = case.options
    if options.marks and (case.header.grey or len(case.original.shape) > 2):
        raise UsageError("is for pictures in black and white; leave it out", option("remove"))
    white = np.asarray(case.picture.values()) > 0.5

    def chosen(seen: np.ndarray, hidden: np.ndarray) -> Prior | None:
        if not priors and "specks" in options.marks:
            raise UsageError("reads pages, and knows no specks; leave it out", option("model", case.header.name))
        if not priors:
            return None
        picture = Observed(seen.astype(np.float32), Damage("auto", hidden=hidden))
        (choice,) = choose([picture], priors, grey=False)
        unknown = objection(facts_of_choice(choice)) is not None and not options.force
        return None if unknown else choice.candidate.prior

    def call(seen: np.ndarray, hidden: np.ndarray) -> Witness:
        return Witness(lambda: chosen(seen, hidden))

    return find(white, options.marks or QUICK, call, options.specks, told=bool(options.marks))


def without(case: Case, priors: Sequence[Prior], attempt: Attempt) -> Restored:
    """A picture without the marks that are to be removed."""
    found = marks_of(case, priors)
    if found:
        return _hiding(case, found, attempt)
    clean = as_it_came(case.original, none_of(case.options))
    usual = attempt(case.original, replace(case.options, remove="none", specks=None))
    if usual.unchanged or usual.level is None or at_lowest(usual.level):
        return clean
    why = f"{_any_of(case.options)} cannot be told from its noise ({usual.level.sentence})"
    what = f"leave {option('remove')} out to remove that"
    return replace(clean, outcome=Outcome.NOT_SURE, status=Status.TOO_NOISY, reason=why, remedy=what)


def looked_over(case: Case, answer: Restored, priors: Sequence[Prior], attempt: Attempt) -> Restored:
    """An answer that found no noise, without the marks that cannot be part of the picture; others are named."""
    found = marks_of(case, priors)
    sure, rest = ([mark for mark in found if mark.sure is wanted] for wanted in (True, False))
    cleaned = _hiding(case, sure, attempt) if sure else answer
    if cleaned.not_sure:  # then none goes, and all are named
        cleaned, rest = answer, found
    return replace(cleaned, notes=(*cleaned.notes, *left(rest)))


def named(case: Case, answer: Restored, priors: Sequence[Prior]) -> Restored:
    """The answer about a grey page, with a note on the marks that are left in it: parts that are no page have none."""
    if answer.not_sure:
        return answer
    return replace(answer, notes=(*answer.notes, *left(marks_of(as_read(case, answer.means), priors))))


def as_read(case: Case, means: np.ndarray) -> Case:
    """A grey page in black and white as its reader answers, by probabilities of white; other parts are blank."""
    reading = case.reading
    white = means > 0.5
    if reading.other is not None:
        white = np.where(reading.other, not reading.inverted, white)
    page = Observed(white.astype(np.float32), Damage())
    return replace(case, original=page, reading=Reading(page))


def from_page(
    case: Case, draft: Draft, priors: Sequence[Prior], attempt: Attempt
) -> tuple[Draft, dict[str, np.ndarray], list[str]]:
    """The answer of the reader of a grey page without the marks in it, where these are, and notes."""
    found = without(as_read(case, draft.means), priors, attempt)
    if not found.marks:
        return draft, {}, [found.objection]
    mask = np.any([*found.marks.values()], 0)
    return replace(draft, means=np.where(mask, found.means, draft.means)), dict(found.marks), [*found.notes]


def _hiding(case: Case, marks: Sequence[Mark], attempt: Attempt) -> Restored:
    """The answer about a picture without marks: ground where they lie on nothing else, filled as any hole elsewhere."""
    bare = np.any([np.zeros_like(marks[0].mask), *(mark.mask for mark in marks if mark.on_ground)], 0)
    rest = [mark for mark in marks if not mark.on_ground]
    bared = _bared(case, bare)
    if rest or case.original.damage.hidden is not None:
        answer = attempt(hidden_in(bared, rest), replace(case.options, remove="none", specks=None))
    else:
        answer = replace(as_it_came(bared.original, ""), outcome=Outcome.RESTORED)
    if answer.not_sure:
        return answer
    replaced = None if answer.replaced is None else answer.replaced | bare
    return replace(
        answer,
        notes=(*removed(marks), *answer.notes),
        marks={mark.kind: mark.mask for mark in marks},
        observed=case.original,
        replaced=replaced,
        changed=share_changed(case.original, answer.estimate, replaced),
    )


def _bared(case: Case, mask: np.ndarray) -> Case:
    """A picture with ground where a mask is True; on a grey one at its soft edges, too."""
    if not mask.any():
        return case
    white = np.asarray(case.picture.values()) > 0.5
    values = case.original.values()
    ground = white == (white.mean() >= 0.5)
    if _soft(case):
        mask = with_soft_edges(mask, white, values)
    pixels = np.where(mask, np.median(values[ground]), values).astype(values.dtype)
    return replace(case, original=replace(case.original, pixels=pixels))


def hidden_in(case: Case, marks: Sequence[Mark]) -> Observed:
    """The picture with marks hidden, beside what is hidden already; on a grey one with their soft edges."""
    original, white = case.original, np.asarray(case.picture.values()) > 0.5
    hidden = ~original.visible
    for mark in marks:
        hidden |= mark.mask
    if _soft(case):
        hidden = with_soft_edges(hidden, white, original.values())
    return replace(original, damage=replace(original.damage, hidden=hidden))


def _soft(case: Case) -> bool:
    """True for a picture with grey levels, on which marks have soft edges."""
    return case.reading.cut is not None or case.reading.sheet is not None


def removed(marks: Sequence[Mark]) -> list[str]:
    """What is said of marks that were removed."""
    return [f"{_counted(marks)} removed"] if marks else []


def none_of(options: Options) -> str:
    """What is said where there are none."""
    words = f"no {_any_of(options)} were found"
    asked = "specks" in options.marks and options.specks is None
    return f"{words}; if you see specks, say how large they are: {option('specks', 20)}" if asked else words


def _any_of(options: Options) -> str:
    *others, last = [MARKS[kind].many for kind in options.marks]
    return " or ".join(filter(None, (", ".join(others), last)))


def left(marks: Sequence[Mark]) -> list[str]:
    """What is said of marks that were found, and left."""
    if not marks:
        return []
    sizes = [option("specks", mark.largest) for mark in marks if mark.largest]
    kinds = ",".join(mark.kind for mark in marks if not mark.largest)
    names = " ".join([*([option("remove", kinds)] if kinds else []), *sizes])
    return [f"{_counted(marks)} left; {names} removes {'them' if _several(marks) else 'it'}"]


def _counted(marks: Sequence[Mark]) -> str:
    words = [MARKS[mark.kind].counted(mark.count) for mark in marks]
    return f"{' and '.join(filter(None, (', '.join(words[:-1]), words[-1])))} {'were' if _several(marks) else 'was'}"


def _several(marks: Sequence[Mark]) -> bool:
    return len(marks) > 1 or marks[0].count > 1
