"""The facts of a choice, and of an answer."""

from __future__ import annotations

import numpy as np

from restore.inference.choose import Choice
from restore.inference.decision.facts import Facts, lead_of, pairs_of, stays_of
from restore.inference.painting import Draft


def facts_of_choice(choice: Choice) -> Facts:
    """What was measured when a candidate was chosen; nothing if there was no other."""
    if choice.ahead is None:
        return Facts()
    damage = choice.damage
    harmless = not damage.touched and damage.hidden is not None
    lead = lead_of(choice.ahead, damage.known("p"), choice.pixels, harmless=harmless)
    return Facts(lead=lead, field=choice.field)


def facts_of_draft(choice: Choice, draft: Draft, visible: np.ndarray, *, sized: bool) -> Facts:
    """What was measured of an answer in black and white that may change visible pixels, boolean (H, W).

    Of a picture `sized` as a prior that was named the noise that stays is not measured: such a prior may change few
    pixels, with little to gain.
    """
    p, level, differs = choice.damage.p, choice.level, draft.before != draft.after
    if draft.grey or p is None or not visible.any():
        return Facts()
    facts = Facts(flips=float(differs[visible].mean()))
    if not differs.any():
        return facts
    if level is not None and level.name == "p":
        facts |= Facts(level=float(np.mean(level.value)))
    if not sized:
        facts |= Facts(stays=stays_of(draft.means, choice.damage.known("p"), visible))
    return (
        facts if isinstance(p, np.ndarray) else facts | Facts(pairs=pairs_of(differs & visible, draft.after, visible))
    )
