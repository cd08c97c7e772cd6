"""Draw a curve as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

# The size of the drawing, and the area between its axes.
WIDTH, HEIGHT = 320, 190
LEFT, RIGHT, TOP, BOTTOM = 46, 310, 28, 164

# Up to this many points, each has a dot.
DOTTED = 40

# Readable step widths, per power of ten; and how many lines there should be.
STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
LINES = 4


@dataclass(frozen=True)
class Chart:
    """A curve.

    Attributes:
        title: what is drawn.
        points: pairs of x and a finite y, at least two, x increasing.
        along: what x is.
        kept: the x to mark; None for none.
    """

    title: str
    points: Sequence[tuple[float, float]]
    along: str
    kept: float | None = None


def ticks(low: float, high: float) -> list[float]:
    """A few round numbers from at most `low` to at least `high`; `high` must be at least `low`."""
    # A constant curve is drawn in the middle.
    room = high - low or abs(high) or 1.0
    low, high = (low, high) if high > low else (low - room / 2, high + room / 2)
    rough = room / LINES
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * width for width in STEPS if power * width >= rough * (1 - 1e-9))
    return [step * number for number in range(math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9) + 1)]


def svg(chart: Chart) -> str:
    """The drawing as SVG; the page's style colours it."""
    first, last = chart.points[0][0], chart.points[-1][0]
    values = [value for _, value in chart.points]
    marks = ticks(min(values), max(values))

    def across(x: float) -> float:
        return LEFT + (RIGHT - LEFT) * (x - first) / (last - first)

    def up(y: float) -> float:
        return BOTTOM - (BOTTOM - TOP) * (y - marks[0]) / (marks[-1] - marks[0])

    parts = [f'<text class="title" x="4" y="14">{escape(chart.title)}</text>']
    for mark in marks:
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{RIGHT}" y1="{up(mark):.1f}" y2="{up(mark):.1f}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{up(mark) + 4:.1f}" text-anchor="end">{mark:.4g}</text>')
    for x, anchor in ((first, "start"), (last, "end")):
        parts.append(f'<text x="{across(x):.1f}" y="{BOTTOM + 17}" text-anchor="{anchor}">{x:g}</text>')
    middle = (LEFT + RIGHT) // 2
    parts.append(f'<text x="{middle}" y="{BOTTOM + 17}" text-anchor="middle">{escape(chart.along)}</text>')
    if chart.kept is not None and first <= chart.kept <= last:
        place = across(chart.kept)
        # The word is on the side with more room.
        anchor, aside = ("end", -4) if place > middle else ("start", 4)
        parts.append(f'<line class="kept" x1="{place:.1f}" x2="{place:.1f}" y1="{TOP}" y2="{BOTTOM}"/>')
        parts.append(f'<text class="kept" x="{place + aside:.1f}" y="{TOP + 9}" text-anchor="{anchor}">kept</text>')
    way = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in chart.points)
    parts.append(f'<polyline class="curve" points="{way}"/>')
    if len(chart.points) <= DOTTED:
        parts += [f'<circle class="dot" cx="{across(x):.1f}" cy="{up(y):.1f}" r="2.4"/>' for x, y in chart.points]
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(chart.title)}">{"".join(parts)}</svg>'
