"""`restore denoise` told nothing against filters that know p, on pictures from elsewhere that are kept for measuring.

    python benchmarks/peers/elsewhere.py
    python benchmarks/peers/elsewhere.py --first 1 --flips 0.1 --kinds staves maps

Nothing of these is drawn by this project, and nothing was learnt from or tuned on it: other programs draw them, other
people's fonts and icons hold them, or a camera took them. Each of 17 kinds has its pixels inverted with five
probabilities. BM3D and medians have, for each probability, the setting that leaves least wrong on other pictures of all
kinds. A case is won where no filter leaves fewer pixels wrong. Needs `pip install bm3d segno verovio resvg-py schemdraw
networkx fontawesomefree`, and RESTORE_DATA with Omniglot.
"""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from skimage import data, filters

from benchmarks.choices.families import filtered, without_options, wrong_of_each
from benchmarks.filters.binary import FILTERS, MORE, Candidate
from benchmarks.measures.scoring import inverted
from benchmarks.measures.script import command_line, head, row
from benchmarks.pictures.kinds import code, icon, mask, stroke
from benchmarks.pictures.line_art import KINDS as LINE_ART
from benchmarks.pictures.line_art import cut, figure_of, shot
from restore.learning.run.card import machine_facts

SIZE = 160, 200
FLIPS = (0.03, 0.05, 0.1, 0.15, 0.2)
# Filters that know p have their settings from these pixels of other pictures.
MIDDLE = slice(32, 96), slice(32, 96)

Draw = Callable[[np.random.Generator], np.ndarray]


def part(picture: np.ndarray, dice: np.random.Generator) -> np.ndarray:
    """Of four parts of a picture at random, 160x200 pixels at most, the one with most edges."""
    parts = []
    for _ in range(4):
        top, left = (
            int(dice.integers(max(1, size - most + 1))) for size, most in zip(picture.shape, SIZE, strict=True)
        )
        parts.append(picture[top : top + SIZE[0], left : left + SIZE[1]])
    return max(parts, key=lambda each: int((each[:, 1:] != each[:, :-1]).sum()))


def numbered(draw: Callable[[int], np.ndarray]) -> Draw:
    """A part of one of the pictures of a family."""
    return lambda dice: part(draw(int(dice.integers(100, 600))), dice)


def page(dice: np.random.Generator) -> np.ndarray:
    """A photographed page, unevenly lit, cut by a threshold for each place."""
    grey = data.page()
    return part(grey > filters.threshold_sauvola(grey, 35, 0.1), dice)


def text(dice: np.random.Generator) -> np.ndarray:
    """A photograph of words, enlarged for a lens."""
    grey = data.text()
    return part(grey > filters.threshold_local(grey, 51, offset=5), dice)


def stars(dice: np.random.Generator) -> np.ndarray:
    """Galaxies of a deep field, half as large."""
    grey = data.hubble_deep_field().mean(-1)[::2, ::2]
    return part(grey > 60, dice)


def cells(dice: np.random.Generator) -> np.ndarray:
    """Stained tissue under a microscope, cut in two."""
    grey = filters.gaussian(data.immunohistochemistry().mean(-1), 2)
    return part(grey > filters.threshold_otsu(grey), dice)


def icons(dice: np.random.Generator) -> np.ndarray:
    """Twelve icons of Font Awesome, 40 pixels high."""
    import resvg_py

    found = find_spec("fontawesomefree")
    assert found is not None and found.origin is not None
    names = sorted((Path(found.origin).parent / "static" / "fontawesomefree" / "svgs").glob("[rs]*/*.svg"))
    sheet = Image.new("L", (200, 160), 255)
    for place, number in enumerate(dice.choice(len(names), 12, replace=False).tolist()):
        drawn = resvg_py.svg_to_bytes(svg_string=names[number].read_text("utf-8"), height=40, background="white")
        sheet.paste(Image.open(io.BytesIO(bytes(drawn))).convert("L"), (4 + 50 * (place % 4), 6 + 52 * (place // 4)))
    return cut(sheet)


def chart(dice: np.random.Generator) -> np.ndarray:
    """Lines of several styles between axes."""
    figure, axes = figure_of(SIZE[1], SIZE[0], (0.14, 0.12, 0.83, 0.84))
    axes.set_axis_on()
    for style in ("-", "--", ":", "-."):
        axes.plot(np.cumsum(dice.normal(0, 1, 40)), style, color="black", linewidth=float(dice.uniform(1, 2.5)))
    axes.tick_params(labelsize=7)
    return shot(figure)


def bars(dice: np.random.Generator) -> np.ndarray:
    """Bars in several hatchings."""
    figure, axes = figure_of(SIZE[1], SIZE[0], (0.14, 0.12, 0.83, 0.84))
    axes.set_axis_on()
    for place, hatch in enumerate(("//", "\\\\", "xx", "--", "||", "..")):
        axes.bar(place, dice.uniform(2, 10), hatch=hatch, facecolor="white", edgecolor="black")
    axes.tick_params(labelsize=7)
    return shot(figure)


def graph(dice: np.random.Generator) -> np.ndarray:
    """A network of named nodes."""
    import networkx

    figure, axes = figure_of(SIZE[1], SIZE[0])
    nodes = networkx.random_geometric_graph(14, 0.4, seed=int(dice.integers(2**31)))
    networkx.draw_networkx(
        nodes,
        dict(enumerate(dice.random((14, 2)))),
        ax=axes,
        node_size=120,
        node_color="white",
        edgecolors="black",
        font_size=7,
    )
    return shot(figure)


def mesh(dice: np.random.Generator) -> np.ndarray:
    """A triangulation."""
    figure, axes = figure_of(SIZE[1], SIZE[0])
    axes.triplot(*dice.random((2, 40)), color="black", linewidth=1.2)
    return shot(figure)


PICTURES: Mapping[str, Draw] = {
    **{name: lambda dice, draw=draw: part(draw(dice), dice) for name, draw in LINE_ART.items()},
    "masks": numbered(mask),
    "codes": numbered(code),
    "strokes": numbered(stroke),
    "signs": lambda dice: icon(int(dice.integers(200))),
    "icons": icons,
    "page, photographed": page,
    "words, photographed": text,
    "stars": stars,
    "cells": cells,
    "line chart": chart,
    "hatched bars": bars,
    "network": graph,
    "mesh": mesh,
}


def picture(name: str, number: int) -> np.ndarray:
    """The picture of a kind and a number."""
    return PICTURES[name](np.random.default_rng([5, number, *name.encode()]))


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--first", type=int, default=0, help="number of the pictures, and seed [%(default)s]")
    parser.add_argument("--flips", type=float, nargs="+", default=FLIPS, help="probabilities [%(default)s]")
    parser.add_argument("--kinds", nargs="+", default=[*PICTURES], choices=[*PICTURES], help="[all]")
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="keeps filters' results [%(default)s]")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    print(machine_facts())
    candidates: dict[str, Candidate] = {name: (FILTERS | MORE)[name] for name in ("median", "BM3D")}
    clean = [picture(name, asked.first) for name in asked.kinds]
    other = [picture(name, asked.first + 10_000)[MIDDLE] for name in PICTURES]
    head("picture", "p", "without options", *candidates, "ratio", "restored with", left=("restored with",))
    won = 0
    for p in asked.flips:
        seen = inverted(clean, p, asked.first)
        shares = filtered(candidates, other, inverted(other, p, asked.first + 1), clean, seen, asked.runs)
        ours, priors = zip(*map(without_options, seen), strict=True)
        for place, share in enumerate(wrong_of_each(clean, seen, ours)):
            others = [shares[name][place] for name in candidates]
            won += share <= min(others)
            row(
                asked.kinds[place],
                f"{p:g}",
                *(f"{100 * each:.3f}" for each in (share, *others)),
                f"{share / min(others):.2f}" if min(others) else "-",
                priors[place],
            )
    print(f"\nno filter leaves less wrong in {won} of {len(clean) * len(asked.flips)} cases")


if __name__ == "__main__":
    main()
