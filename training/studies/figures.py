"""The papers' figures drawn again, from the records of the studies alone, beside the numbers that the papers print.

    python training/studies/figures.py

Each PNG carries a digest of what is drawn in it, so that a test tells a figure that is older than its record.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from io import BytesIO
from typing import TYPE_CHECKING, Any

from harness import TRAINING, panels_for
from paper_panels import FIGURES, Panel
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from restore.console import say
from restore.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FOLDER = TRAINING / "figures"

# The entry of a PNG that has the digest, and in how many colours a figure is kept: more would make large files.
DRAWN, COLOURS = "drawn", 255

# Dots per inch, and the size of a panel in inches.
DPI, SIZE = 85, (4.8, 3.3)

# A legend of more entries stands beside its panel.
FEW = 3


def digest(panels: Sequence[Panel]) -> str:
    """SHA-256 of all that is drawn."""
    return hashlib.sha256(json.dumps([asdict(panel) for panel in panels], sort_keys=True).encode()).hexdigest()


def figure_of(panels: Sequence[Panel]) -> Figure:
    """Panels in rows of three, or of two where they are four."""
    columns = 2 if len(panels) == 4 else min(3, len(panels))
    figure, grid = panels_for(len(panels), columns, SIZE)
    for axes, panel in zip(grid, panels, strict=True):
        _draw(axes, panel)
    told = [axes.get_legend_handles_labels() for axes in grid]
    if len(grid) > 1 and all(labels == told[0][1] for _, labels in told):
        figure.legend(*told[0], loc="outside right upper", fontsize=8)
        return figure
    for axes, (_, labels) in zip(grid, told, strict=True):
        many = {"loc": "upper left", "bbox_to_anchor": (1, 1)} if len(labels) > FEW else {}
        axes.legend(fontsize=7, **many)
    return figure


def _draw(axes: Any, panel: Panel) -> None:
    for one in panel.lines:
        colour = "black" if one.colour < 0 else f"C{one.colour}"
        axes.plot(one.x, one.y, one.style, color=colour, label=one.label, markersize=4, linewidth=1.3)
    for values, draw in ((panel.across, axes.axhline), (panel.upright, axes.axvline)):
        for style, (label, value) in zip((":", "-."), values.items(), strict=False):
            draw(value, color="black", linestyle=style, linewidth=1.2, label=label)
    for name in panel.logs:
        getattr(axes, f"set_{name}scale")("log")
    if panel.names:
        axes.set_xticks(range(len(panel.names)), panel.names, rotation=40, ha="right", fontsize=8)
    if panel.limits:
        axes.set_ylim(panel.limits)
    axes.set_title(panel.title, fontsize=10)
    axes.set_xlabel(panel.along, fontsize=9)
    axes.set_ylabel(panel.up, fontsize=9)
    axes.tick_params(labelsize=8)
    axes.grid(alpha=0.3)


def as_png(panels: Sequence[Panel]) -> bytes:
    """The figure in few colours, with the digest of what is drawn."""
    drawn, packed, note = BytesIO(), BytesIO(), PngInfo()
    figure_of(panels).savefig(drawn, dpi=DPI)
    note.add_text(DRAWN, digest(panels))
    Image.open(drawn).convert("RGB").quantize(COLOURS).save(packed, "png", pnginfo=note, optimize=True)
    return packed.getvalue()


def is_current(name: str) -> bool:
    """Whether a figure shows what the records hold."""
    path = FOLDER / f"{name}.png"
    return path.exists() and Image.open(path).info.get(DRAWN) == digest(FIGURES[name]())


if __name__ == "__main__":
    for each, found in FIGURES.items():
        if not is_current(each):
            write_atomically(FOLDER / f"{each}.png", as_png(found()))
            say(f"{each}.png")
