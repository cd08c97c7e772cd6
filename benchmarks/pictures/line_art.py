"""Line art that other programs draw: sheet music by Verovio, circuits by Schemdraw, maps and tables by matplotlib.

White is True, (H, W) each. Music and circuits need `pip install verovio resvg-py schemdraw`; the relief of the maps is
surveyed, and matplotlib ships it.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
from PIL import Image
from skimage.filters import gaussian

# Ink covers at least this share of a pixel: engraved lines are a little broader than one.
COVERED = 0.4
DPI = 100

# The parts of a circuit, by their names in Schemdraw.
PARTS = ("Resistor", "ResistorIEC", "Capacitor", "Inductor2", "Diode", "Zener", "Battery", "Switch", "SourceV", "Lamp")
HEADS = ("Item", "Size", "Price", "Weight", "Code", "Date", "Sold", "Left")
GOODS = ("bolt", "washer", "hinge", "bracket", "screw", "handle", "spring", "valve", "gasket", "bearing")


def line_art(number: int) -> np.ndarray:
    """The picture of a number; the four kinds take turns."""
    kinds = tuple(KINDS.values())
    return kinds[number % len(kinds)](np.random.default_rng([4, number]))


def staves(dice: np.random.Generator) -> np.ndarray:
    """Staves of a melody at random, 256x320."""
    import resvg_py
    import verovio

    kit = verovio.toolkit()
    unit = float(dice.uniform(6.5, 10))
    sheet = {"pageWidth": 900, "pageHeight": 720, "pageMarginLeft": 20, "pageMarginTop": 20, "unit": unit}
    lines = {"staffLineWidth": 0.3, "stemWidth": 0.3, "barLineWidth": 0.4}
    kit.setOptions({**sheet, **lines, "header": "none", "footer": "none", "inputFrom": "pae", "svgViewBox": True})
    octaves = {"G-2": ("'", "''"), "F-4": (",", ","), "C-3": ("'", "'")}
    clef = str(dice.choice([*octaves]))
    key = dice.choice(["", "xF", "xFC", "bB", "bBEA"])
    bars = "/".join(_bar(dice, octaves[clef]) for _ in range(24))
    kit.loadData(f"@clef:{clef}\n@keysig:{key}\n@timesig:c\n@data:{bars}//\n")
    drawn = resvg_py.svg_to_bytes(svg_string=kit.renderToSVG(1), width=320, background="white")
    return cut(Image.open(io.BytesIO(bytes(drawn))))


def _bar(dice: np.random.Generator, octaves: tuple[str, str]) -> str:
    """Four beats in the code of Plaine and Easie."""

    def note() -> str:
        return str(dice.choice(octaves)) + str(dice.choice(["", "", "", "x", "b"])) + str(dice.choice([*"CDEFGAB"]))

    written, beats = "", 0
    while beats < 4:
        kind = int(dice.integers(6))
        if kind == 0 and beats <= 2:
            written, beats = f"{written}2{note()}", beats + 2
            continue
        quavers = "{8" + note() + note() + "}"
        semiquavers = "{6" + "".join(note() for _ in range(4)) + "}"
        written += (f"4{note()}", quavers, semiquavers, f"4{note()}", "4-", quavers)[kind]
        beats += 1
    return written


def circuits(dice: np.random.Generator) -> np.ndarray:
    """A ladder of parts at random between two rails, with their names."""
    import schemdraw
    from matplotlib import pyplot
    from schemdraw import elements

    def part() -> Any:
        name = str(dice.choice(PARTS))
        return getattr(elements, name)().label(f"{name[0]}{int(dice.integers(1, 99))}")

    figure, axes = figure_of(320, 256)
    drawing = schemdraw.Drawing(canvas=axes)
    drawing.config(lw=float(dice.uniform(1.0, 2.2)), fontsize=9, unit=float(dice.uniform(2.5, 3.5)))
    start = drawing.here
    for _ in range(int(dice.integers(3, 5))):
        top = drawing.add(part().right())
        drawing.add(elements.Dot())
        rung = drawing.add(part().down().at(top.end))
        if dice.random() < 0.4:
            rung = drawing.add(part().down().at(rung.end))
        drawing.add(elements.Ground().at(rung.end) if dice.random() < 0.5 else elements.Dot(open=True).at(rung.end))
        drawing.move_from(top.end)
    gate = getattr(elements, str(dice.choice(["Opamp", "NFet", "BjtNpn"])))
    drawing.add(gate().at((start[0] + 1, start[1] - 7)))
    drawing.draw(show=False)
    axes.margins(0.06)
    axes.autoscale()
    cut = shot(figure)
    pyplot.close(figure)
    return cut


def maps(dice: np.random.Generator) -> np.ndarray:
    """Contours of a surveyed relief, each fifth of them broader, with a grid, a dashed border and names of places."""
    from matplotlib import cbook

    relief = np.asarray(cbook.get_sample_data("jacksboro_fault_dem.npz")["elevation"], float)
    size = int(dice.integers(40, 100))
    top, left = (int(dice.integers(0, side - size)) for side in relief.shape)
    part = gaussian(relief[top : top + size, left : left + size], size / 40)
    figure, axes = figure_of(280, 240)
    axes.set_xlim(0, size - 1)
    axes.set_ylim(0, size - 1)
    levels = np.linspace(part.min(), part.max(), int(dice.integers(6, 13)))
    width = float(dice.uniform(0.8, 1.6))
    axes.contour(part, levels, colors="black", linewidths=[width + (number % 5 == 0) for number in range(len(levels))])
    walk = np.cumsum(dice.normal(0, size / 14, (12, 2)), axis=0) + size / 2
    axes.plot(*walk.T, color="black", linewidth=1.5, linestyle=str(dice.choice(["dashed", "dashdot", "dotted"])))
    axes.scatter(*dice.uniform(0, size, (2, 5)), marker=str(dice.choice([*"^so+x*"])), color="black", s=30)
    for name in dice.choice(GOODS, 3):
        axes.text(*dice.uniform(0, 0.8 * size, 2), str(name), fontsize=9)
    return shot(figure)


def tables(dice: np.random.Generator) -> np.ndarray:
    """A table of words and figures between rules, with a head."""
    figure, axes = figure_of(320, 240)
    rows, columns = int(dice.integers(5, 11)), int(dice.integers(3, 6))
    cells = [
        [str(dice.choice(GOODS)), *(f"{dice.uniform(0, 10.0 ** dice.integers(1, 4)):.1f}" for _ in range(columns - 1))]
        for _ in range(rows)
    ]
    edges = str(dice.choice(["closed", "closed", "horizontal", "vertical"]))
    heads = [str(head) for head in dice.choice(HEADS, columns, replace=False)]
    drawn = axes.table(cells, colLabels=heads, bbox=(0.03, 0.03, 0.94, 0.94), edges=edges)
    drawn.auto_set_font_size(False)
    drawn.set_fontsize(float(dice.uniform(8, 11)))
    wide = int(dice.integers(1, 4))
    for (row, _), cell in drawn.get_celld().items():
        cell.set_linewidth(wide if row == 0 else 1)
    return shot(figure)


def figure_of(width: int, height: int, box: tuple[float, float, float, float] = (0, 0, 1, 1)) -> tuple[Any, Any]:
    """A sheet of so many pixels, and what draws within a box of it: left, bottom, width and height as shares."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width / DPI, height / DPI), dpi=DPI)
    axes = figure.add_axes(box)
    axes.set_axis_off()
    return figure, axes


def shot(figure: Any) -> np.ndarray:
    """A figure in black and white."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return cut(Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3]))


def cut(image: Image.Image) -> np.ndarray:
    return np.asarray(image.convert("L")) > 255 * (1 - COVERED)


KINDS: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "staves": staves,
    "circuits": circuits,
    "maps": maps,
    "tables": tables,
}
