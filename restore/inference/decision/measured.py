"""The facts of a choice, and of an answer, or of parts of it."""

from __future__ import annotations

import numpy as np

from restore.inference.choose import Choice
from restore.inference.decision.facts import Facts, lead_of, pairs_of, stays_of
from restore.inference.decision.rules import objection
from restore.inference.painting import Draft

# The least side of a part that is judged by itself, in pixels.
TILE = 128


def facts_of_choice(choice: Choice) -> Facts:
    """What was measured when a candidate was chosen; nothing if there was no other."""
    if choice.ahead is None:
        return Facts()
    damage = choice.damage
    harmless = not damage.touched and damage.hidden is not None
    facts = Facts(lead=lead_of(choice.ahead, damage.known("p"), choice.pixels, harmless=harmless), field=choice.field)
    level = choice.level
    return facts | Facts(level=float(np.mean(level.value))) if level and level.name == "p" else facts


def patterned(draft: Draft, visible: np.ndarray) -> np.ndarray:
    """Where an answer in black and white is not to be trusted: tiles whose changed pixels form a pattern, (H, W).

    Of a picture that is one tile, all of it.
    """
    after = draft.after
    stays = np.zeros(visible.shape, bool)
    differs = (draft.before != after) & visible
    for rows in _tiles(visible.shape[0]):
        for columns in _tiles(visible.shape[1]):
            tile = rows, columns
            pairs = pairs_of(differs[tile], after[tile], visible[tile])
            stays[tile] = objection(Facts(pairs=pairs)) is not None
    return stays


def _tiles(length: int) -> list[slice]:
    """Slices of at least `TILE`, but of a shorter axis."""
    starts = [TILE * number for number in range(max(1, length // TILE))]
    return [slice(start, end) for start, end in zip(starts, [*starts[1:], length], strict=True)]


def facts_of_draft(choice: Choice, draft: Draft, visible: np.ndarray, *, sized: bool) -> Facts:
    """What was measured of an answer in black and white that may change visible pixels, boolean (H, W).

    Of a picture `sized` as a prior that was named the noise that stays is not measured: such a prior may change few
    pixels, with little to gain.
    """
    p = choice.damage.p
    after = draft.after
    differs = draft.before != after
    if draft.grey or p is None or not visible.any():
        return Facts()
    facts = Facts(flips=float(differs[visible].mean()))
    if not differs.any():
        return facts
    if not sized:
        facts |= Facts(stays=stays_of(draft.means, choice.damage.known("p"), visible))
    return facts if isinstance(p, np.ndarray) else facts | Facts(pairs=pairs_of(differs & visible, after, visible))
