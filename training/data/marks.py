"""Marks drawn over pictures of ink: specks, patterns of dots, rules, streaks, black borders, islands, clusters.

Pictures are boolean, True for ink. Every drawing takes a strength of 1 to 3, which says how much there is of it, and
returns the marked picture and where the marks lie.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter, map_coordinates

Ink = np.ndarray
Drawn = tuple[Ink, Ink]

# Specks to a million pixels, by strength.
SPECKS = (60, 250, 900)


def blob(rng: Generator, size: int) -> NDArray[np.int_]:
    """A joined shape of `size` pixels, (size, 2), round or long: grown from a pixel, nearest first with some chance."""
    cells, stretch = [(0, 0)], rng.uniform(0.6, 1.6)
    taken = {(0, 0)}
    while len(cells) < size:
        row, column = cells[int(rng.integers(len(cells)))]
        down, right = ((0, 1), (1, 0), (0, -1), (-1, 0))[int(rng.integers(4))]
        cell = row + down, column + right
        near = math.hypot(cell[0] * stretch, cell[1] / stretch) <= 0.85 * math.sqrt(size) + rng.exponential(0.5)
        if near and cell not in taken:
            taken.add(cell)
            cells.append(cell)
    return np.array(cells)


def scattered(ink: Ink, rng: Generator, count: int, sizes: tuple[int, int], light: float) -> Drawn:
    """Blobs at random places; sizes are uniform, or small ones the more frequent, and so many are light."""
    marked, low, high = ink.copy(), *sizes
    uniform = rng.random() < 0.5
    for _ in range(count):
        size = rng.integers(low, high + 1) if uniform else round(math.exp(rng.uniform(math.log(low), math.log(high))))
        cells = blob(rng, int(size)) + rng.integers(0, ink.shape)
        cells = cells[((cells >= 0) & (cells < ink.shape)).all(1)]
        marked[tuple(cells.T)] = rng.random() >= light
    return marked, marked != ink


def specks(ink: Ink, rng: Generator, strength: int = 2) -> Drawn:
    """Dirt of 1 to 20 pixels, a quarter of it light."""
    return scattered(ink, rng, max(12, round(SPECKS[strength - 1] * ink.size / 1e6)), (1, 20), 0.25)


def islands(ink: Ink, rng: Generator, strength: int = 2) -> Drawn:
    """Islands and holes of up to 60 pixels, alike often."""
    return scattered(ink, rng, round((60, 150, 400)[strength - 1] * ink.size / 1e6), (3, 60), 0.5)


def clusters(ink: Ink, rng: Generator, strength: int = 2) -> Drawn:
    """Heaps of islands and holes of up to 30 pixels."""
    marked = ink.copy()
    for _ in range(round((8, 20, 40)[strength - 1] * ink.size / 1e6) + 1):
        centre, spread = rng.integers(0, ink.shape), rng.uniform(6, 25)
        for _ in range(int(rng.integers(5, 25))):
            cells = np.rint(blob(rng, int(rng.integers(2, 31))) + centre + rng.normal(0, spread, 2)).astype(int)
            cells = cells[((cells >= 0) & (cells < ink.shape)).all(1)]
            marked[tuple(cells.T)] = rng.random() < 0.5
    return marked, marked != ink


def dots(ink: Ink, rng: Generator, strength: int = 2) -> Drawn:
    """A band or a box of dots, or of short dashes, on a lattice: straight, in quincunx, or turned."""
    height, width = ink.shape
    top, left = rng.uniform(0.05, 0.5) * height, rng.uniform(0, 0.3) * width * (rng.random() < 0.5)
    bottom, right = top + (0.12, 0.25, 0.5)[strength - 1] * height, width - left
    pitch, side = rng.uniform(5, 11), int(rng.integers(1, 4))
    pitch, long = max(pitch, side + 3), side * (1 + (rng.random() < 0.2))
    angle, shift = rng.choice([0.0, rng.uniform(-0.5, 0.5), math.pi / 4]), 0.5 * (rng.random() < 0.5)
    reach = int(2 * math.hypot(height, width) / pitch)
    rows, columns = np.mgrid[-reach : reach + 1, -reach : reach + 1].reshape(2, -1)
    down, across = pitch * rows, pitch * (columns + shift * (rows % 2))
    cos, sin = math.cos(angle), math.sin(angle)
    places = np.stack([down * cos + across * sin, across * cos - down * sin], 1)
    places = np.rint(places + rng.uniform(0, pitch, 2)).astype(int)
    inside = (places >= (top, left)).all(1) & (places <= (min(bottom, height) - side, right - long)).all(1)
    dotted = np.zeros(ink.shape, bool)
    for row, column in places[inside]:
        dotted[row : row + side, column : column + long] = True
    return ink | dotted, dotted & ~ink


def rules(ink: Ink, rng: Generator, strength: int = 2) -> Drawn:
    """Rules across a page, level or upright, or squared paper; straight, or tilted by up to a degree."""
    tilt = math.tan(math.radians(rng.choice([0.0, rng.uniform(-1, 1)])))
    thick, squared = int(rng.integers(1, 4)), rng.random() < 0.25
    lines = np.zeros(ink.shape, bool)
    for turn in range(2 if squared else 1):
        own: Ink = np.zeros(ink.shape if turn == 0 else ink.shape[::-1], bool)
        count = (3, 7, 15)[strength - 1]
        for place in np.linspace(0.06, 0.94, count) + rng.uniform(-0.3, 0.3, count) / count * (not squared):
            margin = int(0.05 * own.shape[1] * (rng.random() < 0.5))
            columns = np.arange(margin, own.shape[1] - margin)
            middle = np.rint(place * own.shape[0] + tilt * (columns - own.shape[1] / 2)).astype(int)
            for more in range(thick):
                inside = (middle + more >= 0) & (middle + more < own.shape[0])
                own[(middle + more)[inside], columns[inside]] = True
        lines |= own.T if turn else own
    return ink | lines, lines & ~ink


def streaks(ink: Ink, rng: Generator, strength: int = 2) -> Drawn:
    """Dark upright streaks of a drum or a print head, from edge to edge, of 1 to 4 pixels."""
    marked = ink.copy()
    for _ in range((1, 3, 6)[strength - 1]):
        column = int(rng.integers(ink.shape[1] - 4))
        marked[:, column : column + int(rng.integers(1, 5))] = True
    return marked, marked != ink


def light_streaks(ink: Ink, rng: Generator, strength: int = 2) -> Drawn:
    """Light upright streaks of 1 to 6 pixels among what is drawn, half of them leaning by up to .3 degrees."""
    marked, rows = ink.copy(), np.arange(len(ink)) - len(ink) / 2
    drawn = np.flatnonzero(ink.any(0))
    for _ in range((1, 3, 6)[strength - 1]):
        lean = math.tan(math.radians(rng.choice([0.0, rng.uniform(-0.3, 0.3)])))
        column, width = rng.integers(drawn[0], drawn[-1] + 1), rng.integers(1, 7)
        first = column + np.rint(lean * rows).astype(int)
        across = np.arange(ink.shape[1]) - first[:, None]
        marked[(across >= 0) & (across < width)] = False
    return marked, marked != ink


def border(ink: Ink, rng: Generator, strength: int = 2) -> Drawn:
    """Black edges of a scan that reach into its margins, with a rough and slanted rim, on one to four sides."""
    marked: Ink = np.zeros(ink.shape, bool)
    for side in rng.permutation(4)[: int(rng.integers(1, 5))]:
        turned: Ink = np.rot90(marked, side)
        margin = int(np.rot90(ink, side).any(1).argmax())
        room = min(margin, turned.shape[0] // 3) - 6
        if room < 8:
            continue
        deep = rng.uniform(0.3, 1) * room * (0.4, 0.7, 1.0)[strength - 1]
        slope = rng.uniform(-0.3, 0.3) * deep * np.linspace(-1, 1, turned.shape[1])
        rough = gaussian_filter(rng.normal(0, 1, turned.shape[1]), 3) * rng.uniform(0, 6)
        depth = (deep + slope + rough).clip(4, room)
        turned |= np.arange(turned.shape[0])[:, None] < depth
    return ink | marked, marked & ~ink


MARKS: dict[str, Callable[[Ink, Generator, int], Drawn]] = {
    "specks": specks,
    "dots": dots,
    "rules": rules,
    "streaks": streaks,
    "light streaks": light_streaks,
    "border": border,
    "islands": islands,
    "clusters": clusters,
}


def scanned(ink: Ink, rng: Generator) -> Ink:
    """A picture as a scanner sees it: turned, resampled, blurred, with grain, and cut again, so that no dots agree."""
    angle, scale = math.radians(rng.uniform(-1, 1)), rng.uniform(0.95, 1.15)
    middle = (np.array(ink.shape) - 1) / 2
    places = np.indices(ink.shape).astype(float) - middle[:, None, None] + rng.uniform(-1, 1, (2, 1, 1))
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]) / scale
    seen = np.einsum("ij,jhw->ihw", turn, places) + middle[:, None, None]
    grey = map_coordinates(ink.astype(np.float32), seen, order=1, mode="nearest")
    grain = gaussian_filter(rng.standard_normal(ink.shape), 0.8)
    grey = gaussian_filter(grey, rng.uniform(0.4, 0.8)) + rng.uniform(0.02, 0.08) * grain / grain.std()
    return np.asarray(grey > rng.uniform(0.3, 0.45))
