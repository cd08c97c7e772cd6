"""Look first: of a large picture a few parts are solved, which may tell that it comes back as it came.

Where no noise was found, the parts are those that most speak for it: how many pixels would change in all is estimated
from the odd ones among them, which differ from all around them and cost little to count (a ratio estimate: Cochran,
Sampling Techniques, 1977, chapter 6). Where some was, parts all over the picture tell whether any restoration
of it can be trusted.
"""

from __future__ import annotations

import math

import numpy as np

from restore.channels.damage import Damage, Observed
from restore.inference.candidates import Prior
from restore.inference.case import Case
from restore.inference.choose import Choice
from restore.inference.crops import CROPS
from restore.inference.decision.facts import Facts, pairs_of
from restore.inference.decision.rules import Ask, objection
from restore.inference.painting import isolated, spotless, sure_changes
from restore.inference.tiles.blocks import CORE_MARGIN, PART_SIDE
from restore.status import Status

# The side of a part without what is solved around it. As many parts are looked at as there are crops to choose by; of
# fewer than four times as many all are solved.
LOOKED_SIDE = PART_SIDE - 2 * CORE_MARGIN


def found_clean(case: Case, choice: Choice) -> bool:
    """True for a large picture in black and white of which next to nothing would change."""
    corners = _parts(case, choice)
    if not corners or not spotless(choice, Facts(changed=0.0)):
        return False
    picture = case.picture
    odd = np.array([_odd(picture, corner) for corner in corners])
    places = np.argsort(-odd, kind="stable")[:CROPS]
    seen, means = _solved(picture, choice, [corners[place] for place in places.tolist()])
    changed = int(sure_changes(seen, means).sum())
    in_all = changed * (1 + odd.sum()) / (1 + odd[places].sum())
    return spotless(choice, Facts(changed=float(in_all) / math.prod(picture.shape)))


def found_hopeless(case: Case, choice: Choice) -> Status | None:
    """Why no restoration of a large picture in black and white can be trusted, if that of no part all over it can."""
    corners = _parts(case, choice) if case.ask is Ask.FIND and choice.level is not None else []
    if not corners:
        return None
    spread = np.linspace(0, len(corners) - 1, CROPS).astype(int).tolist()
    seen, means = _solved(case.picture, choice, [corners[place] for place in spread])
    level = float(choice.damage.known("p"))
    reasons = [_reason(*part, level) for part in zip(seen > 0.5, means > 0.5, strict=True)]
    return reasons[0] if all(reasons) else None


def _reason(before: np.ndarray, after: np.ndarray, level: float) -> Status | None:
    """Why the restoration of a part cannot be trusted."""
    differs = before != after
    if not differs.any():
        return None
    pairs = pairs_of(differs, after, np.ones(differs.shape, bool))
    return objection(Facts(disagreement=abs(float(differs.mean()) - level), pairs=pairs))


def _parts(case: Case, choice: Choice) -> list[tuple[int, int]]:
    """The corners of all parts of a large picture whose pixels are all seen; none of another."""
    picture = case.picture
    simple = isinstance(choice.candidate, Prior) and not case.header.grey and picture.damage.hidden is None
    if not simple or choice.noiseless or np.ndim(choice.damage.known("p")):
        return []
    tops, lefts = (_starts(size) for size in picture.shape[:2])
    corners = [(top, left) for top in tops for left in lefts]
    return corners if len(corners) >= 4 * CROPS else []


def _starts(size: int) -> list[int]:
    """Where parts start along an axis, side by side; the last one may reach over the one before."""
    last = size - LOOKED_SIDE - CORE_MARGIN
    return [*range(CORE_MARGIN, last, LOOKED_SIDE), last] if last >= CORE_MARGIN else []


def _odd(picture: Observed, corner: tuple[int, int]) -> int:
    """How many odd pixels there are in a part."""
    top, left = corner
    part = picture.part(slice(top - 1, top + LOOKED_SIDE + 1), slice(left - 1, left + LOOKED_SIDE + 1))
    return int(isolated(part.values() > 0.5)[1:-1, 1:-1].sum())


def _solved(picture: Observed, choice: Choice, corners: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    """Parts as they are seen, and the posterior means of their pixels, (N, LOOKED_SIDE, LOOKED_SIDE)."""
    starts = [(top - CORE_MARGIN, left - CORE_MARGIN) for top, left in corners]
    parts = [picture.part(slice(top, top + PART_SIDE), slice(left, left + PART_SIDE)) for top, left in starts]
    seen = np.stack([part.values() for part in parts])
    means = choice.candidate.solve(seen, Damage(choice.damage.p), starts).means
    inner = (slice(None), slice(CORE_MARGIN, -CORE_MARGIN), slice(CORE_MARGIN, -CORE_MARGIN))
    return seen[inner], means[inner]
