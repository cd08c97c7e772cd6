"""The rules by which a picture comes back as it was: do no harm. Each is one fact with one limit.

`benchmarks/choices/rules.py` leaves out one rule at a time, and says what each prevents and what it costs.
"""

from __future__ import annotations

from enum import Enum
from typing import Literal, NamedTuple

from restore.inference.decision.facts import Facts
from restore.status import Status


class Rule(NamedTuple):
    """Decide so if a fact lies above, or below, a limit.

    Attributes:
        status: why the picture comes back as it was, which the user reads; None for `READ_BY_OTHERS`.
        fact: an attribute of `Facts`.
        side: on which side of the limit.
        limit: the limit.
        chosen_by: the script in `benchmarks/choices` that chose it.
    """

    status: Status | None
    fact: str
    side: Literal["above", "below"]
    limit: float
    chosen_by: str

    def holds(self, facts: Facts) -> bool:
        """True if the fact was measured and lies on that side."""
        value = getattr(facts, self.fact)
        return value > self.limit if self.side == "above" else value < self.limit  # never for NaN


# These refuse nothing: they tell the pages that other priors restore, from their grey levels, better than the prior of
# pages. These have noise all over, or are as full of ink as codes are: in 63 of 65 pages at most .35 of the pixels near
# ink are ink themselves, in QR codes .41, in other codes and in shapes .45 at least.
CROWDED = Rule(None, "crowded", "above", 0.38, "grey_shapes.py")
READ_BY_OTHERS = (Rule(None, "grain", "above", 0.2, "grey_shapes.py"), CROWDED)

# Their order decides which reason the user reads.
RULES = (
    # What was measured when it was read: is it ink on paper?
    Rule(Status.CLASSES, "classes", "above", 0.5, "rules.py"),
    Rule(Status.NOT_INK, "page", "below", 0.5, "page_parts.py"),
    # Digits have .87 at least, soft drawings .85; maps in six greys have .76 at most, all but one of 200 faces .84.
    Rule(Status.NOT_INK, "two_tones", "below", 0.84, "two_tones.py"),
    # Of 95 parts of pages that the prior has not learnt from 3 have more, of 83 blank parts of pages 65.
    Rule(Status.FAINT, "false_ink", "above", 0.25, "page_limits.py"),
    # All but two of 160 parts of pages have less. Of 81 parts of photographs 6 have, too, and are let through.
    Rule(Status.NOT_INK, "left", "above", 0.073, "page_limits.py"),
    # When a prior was chosen: does one know such pictures?
    Rule(Status.UNRECOGNISED, "lead", "below", 1.0, "recognised.py"),
    # When it was restored: would the answer do harm?
    # Above this level of flips little is left of a picture: (1 - 2p)^4 < .01.
    Rule(Status.TOO_NOISY, "level", "above", 0.35, "no_harm.py"),
    # A prior that knows a picture changes about as many pixels as were flipped. Of 1,180 inputs this stops all 6 that
    # no other rule keeps from harm, and 12 of 713 that would be helped.
    Rule(Status.NOT_NOISE, "disagreement", "above", 0.05, "rules.py"),
    # Of harmed pictures that no other rule stops mazes of one pixel have .37 at least, and all others .5.
    Rule(Status.NOT_NOISE, "pairs", "above", 0.28, "rules.py"),
)

# A picture comes back as clean if the level of flips found is the lowest that is tried (.002), and a smaller share of
# its pixels than this would change: as many do of clean pictures. Where three times as many are flipped, restoring
# mends more pixels than it spoils (`benchmarks/choices/no_harm.py`).
SPOTLESS = 1e-4


class Ask(Enum):
    """What the caller fixed. A rule may refuse a picture only if prior or level is to be found."""

    FIND = "prior or level is to be found"
    FORCE = "it is to be restored in any case"
    TOLD = "prior and level are given"


def limit_of(status: Status, fact: str) -> float:
    """The limit of a rule, for messages and documents."""
    return next(rule.limit for rule in RULES if (rule.status, rule.fact) == (status, fact))


def for_others(facts: Facts) -> bool:
    """True for a page that other priors restore."""
    return any(rule.holds(facts) for rule in READ_BY_OTHERS)


def objection(facts: Facts) -> Status | None:
    """The first reason against restoring a picture, which the user reads; None to restore it."""
    return next((rule.status for rule in RULES if rule.holds(facts)), None)
