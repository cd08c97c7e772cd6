"""The pictures of a probe, as matplotlib figures (TAP machine, Figs. 4-7)."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from probing.embedding import Points
from probing.findings import Findings
from probing.receptive import ReceptiveFields
from probing.solutions import Solutions

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# How many solutions are shown, in how many columns.
SHOWN, COLUMNS = 60, 12

# How many receptive fields are shown at each end of a ranking.
EXTREMES = 12

ENERGY = "free energy, nats"


def png(figure: Figure) -> bytes:
    """The content of a PNG file."""
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=110)
    return stream.getvalue()


def solution_grid(solutions: Solutions, support: tuple[float, float], shape: tuple[int, int]) -> Figure:
    """The visible means of the solutions with the largest basins, each with its number of starts above.

    Args:
        solutions: at least one.
        support: smallest and largest value of a pixel; if unbounded, the values that occur are used.
        shape: (H, W) of the images.
    """
    basins = solutions.basins.cpu().numpy()
    order = np.argsort(-basins, kind="stable")[:SHOWN]
    images = solutions.means[0].cpu().numpy()[order].reshape(-1, *shape)
    low, high = (bound if math.isfinite(bound) else None for bound in support)
    title = f"{len(order)} of {solutions.count} solutions, by the number of starts that lead to each"
    titles = [str(basin) for basin in basins[order]]
    height, width = _cell(shape)
    figure, axes = _figure((COLUMNS + 0.5, math.ceil(len(images) / COLUMNS) * height / width + 0.5))
    _draw_rows(axes, [images], [titles], [""], {"cmap": "gray", "vmin": low, "vmax": high}, COLUMNS)
    axes.set_title(title, fontsize=11)
    return figure


def receptive_grid(fields: ReceptiveFields, shape: tuple[int, int]) -> Figure:
    """The receptive fields at both ends of both rankings; see `draw_receptive`."""
    height, width = _cell(shape)
    figure, axes = _figure((EXTREMES + 0.5, 4 * height / width + 0.5))
    draw_receptive(axes, fields, shape, EXTREMES)
    axes.set_title(f"receptive fields of {len(fields.weights)} hidden units, each on its own scale", fontsize=11)
    return figure


def draw_receptive(axes: Any, fields: ReceptiveFields, shape: tuple[int, int], count: int) -> None:
    """This many receptive fields from each end of both rankings, each on its own scale; blue negative, red positive."""
    weights = fields.weights.cpu().numpy()
    by_spread = np.argsort(-fields.spread.cpu().numpy(), kind="stable")
    by_activity = np.argsort(-fields.activity.cpu().numpy(), kind="stable")
    ranked = {
        "most spread": (by_spread, fields.spread),
        "least spread": (by_spread[::-1], fields.spread),
        "most active": (by_activity, fields.activity),
        "least active": (by_activity[::-1], fields.activity),
    }
    rows, titles = [], []
    for order, values in ranked.values():
        chosen = order[:count]
        scale = np.abs(weights[chosen]).max(1, keepdims=True)
        rows.append((weights[chosen] / np.where(scale > 0, scale, 1)).reshape(-1, *shape))
        titles.append([f"{value:.2g}" for value in values.cpu().numpy()[chosen]])
    _draw_rows(axes, rows, titles, list(ranked), {"cmap": "RdBu_r", "vmin": -1, "vmax": 1}, count)


def histogram(solutions: Solutions) -> Figure:
    """How many solutions have which free energy, and how many starts lead to them (Fig. 5, bottom)."""
    figure, axes = _figure((7, 4))
    energies = solutions.free_energies.cpu().numpy()
    edges = draw_energies(axes, energies)
    axes.axvline(solutions.helmholtz, color="C3", label=f"average {solutions.helmholtz:.2f}")
    starts = axes.twinx()
    starts.hist(
        energies, bins=edges, weights=solutions.basins.cpu().numpy(), histtype="step", color="C1", label="starts"
    )
    starts.set_ylabel("starts that lead there")
    figure.legend(loc="outside upper center", ncols=3, fontsize=9)
    return figure


def draw_energies(axes: Any, energies: Points) -> Points:
    """Bars of how many solutions have which free energy, (S,); returns their edges."""
    # The square-root rule; a single free energy has no width.
    bins = min(60, max(1, math.ceil(math.sqrt(len(energies)))))
    _, edges, _ = axes.hist(energies, bins=bins, color="C0", alpha=0.8, label="solutions")
    axes.set(xlabel=ENERGY, ylabel="solutions")
    return edges


def map_of(places: tuple[Points, Points], solutions: Solutions) -> Figure:
    """The Isomap picture: images as grey dots, solutions coloured by free energy, larger for larger basins."""
    figure, axes = _figure((7.5, 6))
    images, among = places
    axes.scatter(*images.T, s=6, color="0.75", linewidths=0)
    basins = solutions.basins.cpu().numpy()
    # Area proportional to the basin, but large enough to be seen.
    size = np.maximum(250 * basins / basins.max(), 12)
    # Small ones are drawn last, so that none is hidden.
    order = np.argsort(-basins, kind="stable")
    energies = solutions.free_energies.cpu().numpy()
    drawn = axes.scatter(
        *among[order].T,
        s=size[order],
        c=energies[order],
        cmap="viridis",
        edgecolors="black",
        linewidths=0.4,
    )
    figure.colorbar(drawn, ax=axes, label=ENERGY)
    axes.set(xticks=[], yticks=[], title=f"Isomap of {len(images)} images (grey), with {len(among)} solutions on it")
    return figure


def along(found: Sequence[Findings]) -> Figure:
    """Free energies of all solutions, their average and their number, by epoch (Fig. 5, top)."""
    figure, axes = _figure((8, 4.5))
    draw_along(axes, found)
    figure.legend(loc="outside upper center", ncols=3, fontsize=9)
    return figure


def draw_along(axes: Any, found: Sequence[Findings]) -> Any:
    """As `along`, for probes with equally many starts; returns the axes of the numbers, on the right."""
    dots = [(entry.epoch, energy) for entry in found for energy in entry.free_energies]
    if dots:
        averages = [(entry.epoch, entry.free_energy) for entry in found if entry.free_energy is not None]
        axes.plot(*zip(*dots, strict=True), ".", color="C0", alpha=0.25, markersize=4, label="free energies")
        axes.plot(*zip(*averages, strict=True), "-", color="C3", label="their average")
    axes.set(xlabel="epoch", ylabel=ENERGY)
    axes.grid(alpha=0.3)
    counts = axes.twinx()
    numbers = [entry.solutions for entry in found]
    counts.plot([entry.epoch for entry in found], numbers, "o-", color="C2", markersize=4, label="solutions")
    counts.set_ylabel(f"solutions from {found[-1].starts} starts", color="C2")
    counts.set_ylim(bottom=0)
    return counts


def _figure(size: tuple[float, float]) -> tuple[Figure, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.subplots()


def _cell(shape: tuple[int, int]) -> tuple[int, int]:
    """Height and width that an image takes, with room for the words."""
    height, width = shape
    return height + max(3, round(0.3 * height)), width + max(1, width // 10)


def _draw_rows(
    axes: Any,
    rows: Sequence[np.ndarray],
    titles: Sequence[Sequence[str]],
    labels: Sequence[str],
    scale: dict[str, Any],
    columns: int,
) -> None:
    """Draw images in rows, each with a line above; a row that is too long continues below, without its label."""
    lines = [
        (row[first : first + columns], above[first : first + columns], label if first == 0 else "")
        for row, above, label in zip(rows, titles, labels, strict=True)
        for first in range(0, len(row), columns)
    ]
    # One picture of all images, with empty room for the words: an axis for each would take seconds.
    height, width = rows[0].shape[1:]
    high, wide = _cell((height, width))
    mosaic = np.full((len(lines) * high, columns * wide), np.nan)
    for line, (images, above, label) in enumerate(lines):
        bottom = (line + 1) * high
        axes.text(-1, bottom - height / 2, label, rotation=90, ha="right", va="center", fontsize=9)
        for column, (image, words) in enumerate(zip(images, above, strict=True)):
            left = column * wide
            mosaic[bottom - height : bottom, left : left + width] = image
            axes.text(left + width / 2, bottom - height - 1, words, ha="center", va="bottom", fontsize=8)
    axes.imshow(mosaic, interpolation="nearest", **scale)
    axes.axis("off")
