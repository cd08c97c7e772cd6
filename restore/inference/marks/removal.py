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
from restore.inference.restored import Restored, as_it_came, share_changed
from restore.registry import MARKS


def marks_of(case: Case, priors: Sequence[Prior]) -> list[Mark]:
    """The marks of a picture: of the kinds that its options name, or of all that are found quickly.

    Raises:
        UsageError: if kinds are named, and the picture is not in black and white.
    """
    options = case.options
    if options.marks and (case.header.grey or len(case.original.shape) > 2):
        raise UsageError("is for pictures in black and white; leave it out", option("remove"))
    white = np.asarray(case.picture.values()) > 0.5

    def chosen(seen: np.ndarray, hidden: np.ndarray) -> Prior | None:
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
    return _hiding(case, found, attempt) if found else as_it_came(case.original, none_of(case.options))


def looked_over(case: Case, answer: Restored, priors: Sequence[Prior], attempt: Attempt) -> Restored:
    """An answer that found no noise, without the marks that cannot be part of the picture; others are named."""
    found = marks_of(case, priors)
    sure, rest = ([mark for mark in found if mark.sure is wanted] for wanted in (True, False))
    cleaned = _hiding(case, sure, attempt) if sure else answer
    answer = answer if cleaned.not_sure else cleaned
    return replace(answer, notes=(*answer.notes, *left(rest)))


def _hiding(case: Case, marks: Sequence[Mark], attempt: Attempt) -> Restored:
    """The answer about a picture in which marks are hidden, and filled as any hole is."""
    answer = attempt(hidden_in(case, marks), replace(case.options, remove="none", specks=None))
    if answer.not_sure:
        return answer
    notes = (*removed(marks), *answer.notes)
    return replace(
        answer,
        notes=notes,
        marks={mark.kind: mark.mask for mark in marks},
        observed=case.original,
        changed=share_changed(case.original, answer.estimate, answer.replaced),
    )


def hidden_in(case: Case, marks: Sequence[Mark]) -> Observed:
    """The picture with marks hidden, beside what is hidden already; on a grey one with their soft edges."""
    original, white = case.original, np.asarray(case.picture.values()) > 0.5
    hidden = ~original.visible
    for mark in marks:
        hidden |= mark.mask
    if case.reading.cut is not None or case.reading.sheet is not None:
        hidden = with_soft_edges(hidden, white, original.values())
    return replace(original, damage=replace(original.damage, hidden=hidden))


def removed(marks: Sequence[Mark]) -> list[str]:
    """What is said of marks that were removed."""
    return [f"{_counted(marks)} removed"] if marks else []


def none_of(options: Options) -> str:
    """What is said where there are none."""
    *others, last = [MARKS[kind].many for kind in options.marks]
    words = f"no {' or '.join(filter(None, (', '.join(others), last)))} were found"
    asked = "specks" in options.marks and options.specks is None
    return f"{words}; if you see some, say how large they are: {option('specks', 20)}" if asked else words


def left(marks: Sequence[Mark]) -> list[str]:
    """What is said of marks that were found, and left."""
    names = option("remove", ",".join(mark.kind for mark in marks))
    return [f"{_counted(marks)} left; {names} removes them"] if marks else []


def _counted(marks: Sequence[Mark]) -> str:
    words = [MARKS[mark.kind].counted(mark.count) for mark in marks]
    several = len(marks) > 1 or marks[0].count > 1
    return f"{' and '.join(filter(None, (', '.join(words[:-1]), words[-1])))} {'were' if several else 'was'}"
