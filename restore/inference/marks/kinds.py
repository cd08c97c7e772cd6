"""The table of the kinds of marks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from restore.inference.marks.borders import border
from restore.inference.marks.dots import patterns
from restore.inference.marks.ground import as_high_as_letters
from restore.inference.marks.lines import apart, count_of, lines
from restore.inference.marks.pieces import around
from restore.inference.marks.scene import Mark, Scene
from restore.inference.marks.specks import specks_of, specks_of_size
from restore.inference.marks.streaks import streaks

# Nats by which specks have to explain bare ground better than none: if somebody says that there are some, and if not.
ASKED_LEAD, UNASKED_LEAD = 3.0, 40.0

# The share of dirt, at least, among pieces near print that look alike, for these to go: by .85 a hundredth of the full
# stops and dots of dirty pages do, by .5 a fiftieth.
ASKED_SHARE, UNASKED_SHARE = 0.5, 0.85

# Dirt lies anywhere, what is drawn by itself: if nobody says that there is dirt, so large a share of what bare ground
# lets expect near print has to be found there. Some of it looks like print.
AMONG_PRINT = 1 / 6


def _border(scene: Scene) -> Mark | None:
    mask = border(scene.ink)
    if not mask.any() or not (scene.told or scene.without(mask).ground.print):  # the first bar of a code is none
        return None
    # Never sure: a heading in a black band, or a drawing at the foot of a page, lies at its edge, too.
    return Mark("border", mask, 1, on_ground=True)


def _dots(scene: Scene) -> Mark | None:
    found = [one for one in patterns(scene.ink, scene.components) if one.behind or scene.told]
    if not found:
        return None
    mask = np.any([pattern.mask for pattern in found], 0)
    behind = all(pattern.behind for pattern in found) and _behind_letters(mask, scene.without(mask))
    return Mark("dots", mask, len(found), behind)


def _behind_letters(mask: np.ndarray, rest: Scene) -> bool:
    """True if most of what touches a mask on a page of print is as high as letters: fills of figures have outlines."""
    beside = rest.components[rest.ink & (around(mask, 1) > 0)]
    if not rest.ground.print or not beside.size:
        return False
    *_, letters = as_high_as_letters(rest.ink, rest.components)
    return bool(letters[beside].mean() > 0.5)


def _lines(scene: Scene) -> Mark | None:
    drawn = scene.ink & ~scene.leaders
    level, upright = whole = lines(drawn)
    dark = apart(whole, drawn)
    expected = partial(scene.call(scene.white, dark).expected, scene.light)
    light = [*streaks(scene.ink, expected), *(mask.T for mask in streaks(scene.ink.T, expected))]
    mask = np.any([dark, *light], 0)
    return Mark("lines", mask, count_of(level) + count_of(upright) + len(light)) if mask.any() else None


def _specks(scene: Scene) -> Mark | None:
    pieces, ground = scene.pieces, scene.ground
    sized = scene.most is not None
    # Without letters nothing but the prior tells specks from content, and it takes dots of a map for dirt: there
    # somebody has to say how large they are, and what is far likelier with dirt is only counted.
    if not pieces.count or (scene.told and not sized and not ground.print):
        return None
    judge = partial(scene.call(scene.white, pieces.inside).log_odds, scene.white)
    if sized and not ground.print:
        found = specks_of_size(pieces, partial(judge, together=True))
    else:
        found = specks_of(pieces, judge, ground, ASKED_LEAD, ASKED_SHARE if scene.told else UNASKED_SHARE)
    if found.lead <= ASKED_LEAD or not found.which.any():
        return None
    mask = pieces.mask(found.which)
    count = int(found.which.sum())
    if ground.print or sized:
        sure = not scene.told and found.lead > UNASKED_LEAD and found.spread > AMONG_PRINT
        return Mark("specks", mask, count, sure)
    largest = int(pieces.sizes[found.which].max())
    return Mark("specks", mask, count, largest=largest) if found.lead > UNASKED_LEAD else None


# Kinds that are looked for though nobody asks: these cost little on a clean picture.
QUICK = ("border", "dots", "specks")

# What finds the marks of each kind of `restore.registry.MARKS` in a scene, or None where there are none.
KINDS: dict[str, Callable[[Scene], Mark | None]] = {
    "border": _border,
    "dots": _dots,
    "lines": _lines,
    "specks": _specks,
}
