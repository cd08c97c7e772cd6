"""The pictures of the study that take the machines and their solutions themselves (Figs. 4, 6 and 7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from harness import panels, panels_for
from probing.embedding import Points, isomap
from probing.pictures import draw_receptive
from probing.receptive import ReceptiveFields
from probing.solutions import Solutions

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Receptive fields of either end of a ranking, and machines beside each other.
FIELDS, COLUMNS = 8, 2

# Epochs whose solutions are put on a map.
MAPS = 4


@dataclass(frozen=True)
class Features:
    """The receptive fields of a machine, and the shape (H, W) of its images."""

    found: ReceptiveFields
    shape: tuple[int, int]


@dataclass(frozen=True)
class Course:
    """The solutions of a machine along its training, and images that they are to be seen among.

    Attributes:
        solutions: at a few epochs, at least one each.
        images: shape (N, D).
    """

    solutions: Mapping[int, Solutions]
    images: Points


def fields(machines: Mapping[str, Features]) -> Figure:
    """Receptive fields at the ends of both rankings, a panel per machine under its title."""
    figure, grid = panels_for(len(machines), COLUMNS, (7.4, 4.9))
    for axes, (name, machine) in zip(grid, machines.items(), strict=True):
        draw_receptive(axes, machine.found, machine.shape, FIELDS)
        axes.set_title(name, fontsize=12)
    return figure


def isomaps(courses: Mapping[str, Course]) -> Figure:
    """For every machine two rows of maps: of its solutions alone, and of images with the solutions among them.

    The first are put on a map of the solutions of the last epoch, visible and hidden means together (Fig. 6), the
    others on one of the images (Fig. 7). Colours go from the lowest to the highest free energy of each epoch.
    """
    figure, grid = panels(2 * len(courses), MAPS, (3.1, 3.1))
    for row, (name, course) in enumerate(courses.items()):
        final = course.solutions[max(course.solutions)]
        own = _on_one_map(_joined(final), {epoch: _joined(found) for epoch, found in course.solutions.items()})
        among = _on_one_map(course.images, {epoch: _visible(found) for epoch, found in course.solutions.items()})
        _draw_row(grid[2 * row], course.solutions, own, f"{name}\nsolutions", ground=False)
        _draw_row(grid[2 * row + 1], course.solutions, among, f"{name}\nimages and solutions", ground=True)
    return figure


def _visible(found: Solutions) -> Points:
    return found.means[0].double().cpu().numpy()


def _joined(found: Solutions) -> Points:
    """Means of the units of all layers, (S, units)."""
    return np.concatenate([mean.double().cpu().numpy() for mean in found.means], 1)


def _on_one_map(ground: Points, points: Mapping[int, Points]) -> tuple[Points, dict[int, Points]] | None:
    """Places of the ground that a map is fitted to, and of points by epoch; None where the ground spans no plane."""
    places = isomap(ground, np.concatenate(list(points.values())))
    if places is None:
        return None
    ends = np.cumsum([0, *map(len, points.values())])
    return places[0], {epoch: places[1][low:high] for epoch, (low, high) in zip(points, pairwise(ends), strict=True)}


def _draw_row(
    row: Sequence[Any],
    solutions: Mapping[int, Solutions],
    places: tuple[Points, dict[int, Points]] | None,
    label: str,
    *,
    ground: bool,
) -> None:
    """Solutions on a map, one epoch beside the other; with what the map was fitted to in grey where that is ground."""
    for axes, epoch in zip(row, solutions, strict=False):
        found = solutions[epoch]
        axes.set(xticks=[], yticks=[])
        axes.set_title(f"epoch {epoch}: {found.count} solutions", fontsize=10)
        if places is None:
            axes.text(0.5, 0.5, "too few for a map", ha="center", va="center", transform=axes.transAxes)
            continue
        fitted, among = places
        if ground:
            axes.scatter(*fitted.T, s=4, color="0.8", linewidths=0)
        energies = found.free_energies.cpu().numpy()
        axes.scatter(*among[epoch].T, s=14, c=energies, cmap="viridis", edgecolors="black", linewidths=0.2)
        _same_limits(axes, np.concatenate([fitted, *among.values()]))
    row[0].set_ylabel(label, fontsize=10)
    for axes in row[len(solutions) :]:
        axes.axis("off")


def _same_limits(axes: Any, points: Points) -> None:
    """Limits that hold all points, with a margin."""
    low, high = points.min(0), points.max(0)
    margin = 0.05 * (high - low)
    axes.set(xlim=(low[0] - margin[0], high[0] + margin[0]), ylim=(low[1] - margin[1], high[1] + margin[1]))
