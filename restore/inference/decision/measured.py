"""The facts of a choice, and of an answer, or of parts of it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from restore.inference.choose import Choice
from restore.inference.decision.facts import Facts, lead_of, pairs_of
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
    facts = Facts(lead=lead_of(choice.ahead, damage.known("p"), choice.pixels, harmless=harmless))
    level = choice.level
    return facts | Facts(level=float(np.mean(level.value))) if level and level.name == "p" else facts


def patterned(draft: Draft, visible: np.ndarray) -> np.ndarray:
    """Where an answer in black and white is not to be trusted: tiles whose changed pixels form a pattern, (H, W).

    Of a picture that is one tile, all of it.
    """
    stays = np.zeros(visible.shape, bool)
    for tile, pairs in _pairs(draft, visible):
        stays[tile] = objection(Facts(pairs=pairs)) is not None
    return stays


def _pairs(draft: Draft, visible: np.ndarray) -> Iterator[tuple[tuple[slice, ...], float]]:
    """The tiles of an answer, and how many of their changed pixels belong together."""
    after = draft.after
    differs = (draft.before != after) & visible
    for tile in product(*map(_tiles, visible.shape)):
        yield tile, pairs_of(differs[tile], after[tile], visible[tile])


def _tiles(length: int) -> list[slice]:
    """Slices of at least `TILE`, but of a shorter axis."""
    starts = [TILE * number for number in range(max(1, length // TILE))]
    return [slice(start, end) for start, end in zip(starts, [*starts[1:], length], strict=True)]


def facts_of_draft(choice: Choice, draft: Draft, visible: np.ndarray, *, sized: bool) -> Facts:
    """What was measured of an answer in black and white that may change visible pixels, boolean (H, W).

    Of a picture `sized` as a prior that was named it is not measured how many pixels change, as those are few.
    """
    p = choice.damage.p
    differs = draft.before != draft.after
    if draft.grey or p is None or not visible.any():
        return Facts()
    facts = Facts(changed=float(differs[visible].mean()))
    if not differs.any():
        return facts
    if not sized:
        level = np.broadcast_to(choice.damage.known("p"), visible.shape)[visible].mean()
        facts |= Facts(disagreement=float(abs(facts.changed - level)))
    if isinstance(p, np.ndarray):
        return facts
    return facts | Facts(pairs=max(pairs for _, pairs in _pairs(draft, visible)))
