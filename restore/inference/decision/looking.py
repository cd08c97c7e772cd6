"""Look first: of a large picture in which no noise was found, solve the parts that most speak for it, and no others.

How many pixels would change in all is estimated from the odd ones among them: those that differ from nearly all around
them, which cost little to count (a ratio estimate: Cochran, Sampling Techniques, 1977, chapter 6).
"""

from __future__ import annotations

import numpy as np

from restore.channels.damage import Damage, Observed
from restore.inference.candidates import Prior
from restore.inference.case import Case
from restore.inference.choose import Choice
from restore.inference.decision.facts import Facts
from restore.inference.painting import spotless

# The side of a part, what is solved around it, and the number of parts that are looked at: of fewer than four times as
# many all are solved.
LOOKED_SIDE, AROUND, LOOKED = 192, 32, 8

# An odd pixel differs from so many of the eight around it.
ODD = 6


def found_clean(case: Case, choice: Choice) -> bool:
    """True for a large picture in black and white of which next to nothing would change."""
    picture = case.picture
    tops, lefts = (_starts(size) for size in picture.shape[:2])
    simple = isinstance(choice.candidate, Prior) and not case.header.grey and picture.damage.hidden is None
    if not simple or len(tops) * len(lefts) < 4 * LOOKED or not spotless(choice, Facts(flips=0.0)):
        return False
    odd = np.array([_odd(picture, top, lefts) for top in tops])
    places = np.argsort(-odd, axis=None, kind="stable")[:LOOKED]
    corners = [(tops[place // len(lefts)], lefts[place % len(lefts)]) for place in places.tolist()]
    changed = _changed(picture, choice, corners)
    among = odd.ravel()[places].sum()
    share = changed * (1 + odd.sum()) / (1 + among) / (picture.shape[0] * picture.shape[1])
    return spotless(choice, Facts(flips=float(share)))


def _starts(size: int) -> list[int]:
    """Where parts start along an axis, side by side; the last one may reach over the one before."""
    last = size - LOOKED_SIDE - AROUND
    return [*range(AROUND, last, LOOKED_SIDE), last] if last >= AROUND else []


def _odd(picture: Observed, top: int, lefts: list[int]) -> list[int]:
    """How many odd pixels there are in each part of a row of parts."""
    part = picture.part(slice(top - 1, top + LOOKED_SIDE + 1), slice(0, picture.shape[1]))
    rows = (part.values() > 0.5).astype(np.uint8)
    across = rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:]
    around = across[:-2] + across[1:-1] + across[2:]
    odd = np.where(rows[1:-1, 1:-1] > 0, around <= 9 - ODD, around >= ODD).sum(0)
    return [int(odd[left - 1 : left - 1 + LOOKED_SIDE].sum()) for left in lefts]


def _changed(picture: Observed, choice: Choice, corners: list[tuple[int, int]]) -> int:
    """How many pixels of these parts the prior would change."""
    side = LOOKED_SIDE + 2 * AROUND
    starts = [(top - AROUND, left - AROUND) for top, left in corners]
    parts = [picture.part(slice(top, top + side), slice(left, left + side)) for top, left in starts]
    seen = np.stack([part.values() for part in parts])
    found = choice.candidate.solve(seen, Damage(choice.damage.p), starts).means
    changed = (found > 0.5) != (seen > 0.5)
    return int(changed[:, AROUND:-AROUND, AROUND:-AROUND].sum())
