"""One HTML page for a browser: no scripts, nothing loaded from elsewhere, light and dark.

All text is escaped here and nowhere else, so sections need not think of it.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TypeAlias

from restore.report.chart import Chart, svg


@dataclass(frozen=True)
class Sentence:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Command:
    """A command line, or a piece of code."""

    text: str


@dataclass(frozen=True)
class Rows:
    """A table: names in the first column, figures in the others.

    Attributes:
        head: titles of the columns; empty for a table of facts.
        rows: cells, as many as in `head`.
        best: row and column of each cell to mark.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    best: frozenset[tuple[int, int]] = frozenset()


@dataclass(frozen=True)
class Strip:
    """Images with a word beside them.

    Attributes:
        label: what they are; empty if that is clear.
        png: the content of a PNG file.
        width: in pixels, as shown.
    """

    label: str
    png: bytes
    width: int


@dataclass(frozen=True)
class Strips:
    """Strips of images, one below the other."""

    strips: Sequence[Strip]


@dataclass(frozen=True)
class Charts:
    """Curves side by side."""

    charts: Sequence[Chart]


Part: TypeAlias = Sentence | Command | Rows | Strips | Charts


@dataclass(frozen=True)
class Section:
    """A title and what is below it."""

    title: str
    parts: Sequence[Part]


def page(title: str, lead: str, sections: Sequence[Section]) -> str:
    """The page.

    Args:
        title: the first heading, and the name of the window.
        lead: a sentence below it.
        sections: in order.
    """
    body = "\n".join(map(_section, sections))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<meta name="color-scheme" content="light dark">
<title>{escape(title)}</title>
<style>{_STYLE}</style>
</head>
<body>
<main>
<header><h1>{escape(title)}</h1>
<p>{escape(lead)}</p></header>
{body}
</main>
</body>
</html>
"""


def _section(section: Section) -> str:
    return f"<section>\n<h2>{escape(section.title)}</h2>\n" + "\n".join(map(_part, section.parts)) + "\n</section>"


def _part(part: Part) -> str:
    match part:
        case Sentence(text):
            return f"<p>{escape(text)}</p>"
        case Command(text):
            return f"<pre>{escape(text)}</pre>"
        case Rows():
            return _table(part)
        case Strips(strips):
            return f'<div class="strips">{"".join(map(_strip, strips))}</div>'
        case Charts(charts):
            drawn = "".join(f"<figure>{svg(chart)}</figure>" for chart in charts)
            return f'<div class="charts">{drawn}</div>'


def _table(table: Rows) -> str:
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in table.head)
    lines = [f"<thead><tr>{head}</tr></thead>"] if head else []
    for number, (name, *cells) in enumerate(table.rows):
        figures = "".join(
            f'<td class="best">{escape(cell)}</td>' if (number, column) in table.best else f"<td>{escape(cell)}</td>"
            for column, cell in enumerate(cells, 1)
        )
        lines.append(f'<tr><th scope="row">{escape(name)}</th>{figures}</tr>')
    kind = "figures" if head else "facts"
    return f'<div class="wide"><table class="{kind}">{"".join(lines)}</table></div>'


def _strip(strip: Strip) -> str:
    data = base64.b64encode(strip.png).decode()
    image = f'<img src="data:image/png;base64,{data}" width="{strip.width}" alt="{escape(strip.label or "images")}">'
    label = f"<span>{escape(strip.label)}</span>" if strip.label else ""
    return f"<div>{label}{image}</div>"


_STYLE = """
:root {
  --ink: #1d2128; --soft: #656d7a; --paper: #fff; --card: #f5f6f8; --rule: #d9dde3;
  --line: #2563c9; --good: #0a7a43;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ink: #e6e8ec; --soft: #9aa3b0; --paper: #14171c; --card: #1d2127; --rule: #343a44;
    --line: #6ea8ff; --good: #5ad394;
  }
}
* { box-sizing: border-box }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif }
main { max-width: 60rem; margin: 0 auto; padding: 2rem 1.25rem 4rem }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0; overflow-wrap: anywhere }
header p { margin: .4rem 0 0; color: var(--soft); font-size: 1.05rem }
h2 { font-size: 1.2rem; margin: 2.4rem 0 .6rem; padding-top: .9rem; border-top: 1px solid var(--rule) }
p { margin: .5rem 0; max-width: 46rem; overflow-wrap: anywhere }
pre {
  background: var(--card); border-radius: 6px; padding: .7rem .9rem; overflow-x: auto;
  font: .88rem/1.5 ui-monospace, monospace;
}
.wide { overflow-x: auto; margin: .7rem 0 }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { padding: .28rem .9rem .28rem 0; text-align: left; vertical-align: top; font-weight: 400 }
.facts th { color: var(--soft); white-space: nowrap }
.facts td { overflow-wrap: anywhere }
.figures td, .figures thead th:not(:first-child) { text-align: right; padding: .28rem .9rem }
.figures thead th { color: var(--soft); border-bottom: 1px solid var(--rule) }
.figures .best { color: var(--good); font-weight: 650 }
.strips { display: grid; gap: .3rem; margin: .7rem 0 1.1rem }
.strips div { display: flex; align-items: center; gap: .8rem }
.strips span { flex: 0 0 8.5rem; color: var(--soft); font-size: .88rem; line-height: 1.25; overflow-wrap: anywhere }
img { image-rendering: pixelated; max-width: 100%; min-width: 0; height: auto; display: block }
.strips span + img { max-width: calc(100% - 9.3rem) }
.charts { display: grid; gap: 1rem; margin: .7rem 0; grid-template-columns: repeat(auto-fill, minmax(17rem, 1fr)) }
figure { margin: 0; background: var(--card); border-radius: 6px; padding: .6rem }
svg { width: 100%; height: auto; display: block; font: 11px system-ui, sans-serif }
svg text { fill: var(--soft) }
svg .title { fill: var(--ink); font-size: 12px }
svg .grid { stroke: var(--rule) }
svg .curve { fill: none; stroke: var(--line); stroke-width: 1.8; stroke-linejoin: round }
svg .dot { fill: var(--line) }
svg .kept { stroke: var(--good); stroke-dasharray: 4 3 }
svg text.kept { fill: var(--good); stroke: none }
@media print { section { break-inside: avoid } }
"""
