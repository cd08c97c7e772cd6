"""Figures of panels in rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def panels(count: int, columns: int, size: tuple[float, float]) -> tuple[Figure, list[Any]]:
    """A figure with axes for so many panels of a size (width, height) in inches; the rest of the last row is empty."""
    from matplotlib.figure import Figure

    rows = -(-count // columns)
    figure = Figure(figsize=(size[0] * columns, size[1] * rows), layout="constrained")
    grid: Any = figure.subplots(rows, columns, squeeze=False)
    for axes in grid.flat[count:]:
        axes.axis("off")
    return figure, list(grid.flat[:count])
