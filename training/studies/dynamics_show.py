"""The table of the study, and its picture of what is in the record (Fig. 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from dynamics_measure import PROBED, Moment, PerUnit, courses, last
from harness import panels, spread
from probing.pictures import draw_along, draw_energies

from restore.evaluation.card import plus_minus, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Epochs whose free energies are shown as bars, and how many solutions there must be for that.
SLICES, ENOUGH = 3, 10


def figures(moments: Sequence[Moment]) -> dict[str, Figure]:
    """The picture of solutions by the name of its file, if there are such runs."""
    probed = {run: course for run, course in courses(moments).items() if run in PROBED}
    return {"dynamics-solutions.png": solutions(probed, moments)} if probed else {}


def as_table(moments: Sequence[Moment]) -> str:
    """Markdown: a row per run."""
    rows = []
    for run, course in courses(moments).items():
        first, final = course[0], last(moments, run)
        probe = final.probe
        rows.append(
            [
                f"`{run}`",
                " + ".join(map(str, final.sizes[1:])),
                str(final.epoch),
                f"{final.minutes:.0f}",
                f"{_with_error(first.train)} (epoch {first.epoch})",
                _with_error(final.train),
                "-" if final.summed is None else f"{final.summed:.4f}",
                _with_error(final.test),
                f"{probe.starts:,}",
                str(probe.solutions),
                _percent(probe.solutions, probe.starts),
                _percent(probe.converged, probe.starts),
            ]
        )
    head = ["run", "hidden units", "epochs", "minutes", "TAP log-likelihood per unit, first", "last"]
    head += ["last, by log-sum-exp", "last, test", "starts", "solutions", "of the starts", "starts that converged"]
    return table(head, rows)


def _with_error(found: PerUnit | None) -> str:
    return "-" if found is None else plus_minus(found.mean, found.standard_error, 4)


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %"


def _by_factors(axes: Any, course: Sequence[Moment]) -> None:
    """Epochs as they were chosen, at about equal factors, and named as they are."""
    epochs = [one.epoch for one in course]
    axes.set_xscale("log")
    axes.set_xticks(epochs, list(map(str, epochs)))
    axes.minorticks_off()


def solutions(found: Mapping[str, Sequence[Moment]], moments: Sequence[Moment]) -> Figure:
    """Free energies and numbers of solutions over epochs, above bars at a few of them; a column per run found.

    Args:
        found: some of the runs' courses, at least one.
        moments: all of them; of the last epoch that from the most starts is shown as bars.
    """
    from matplotlib.ticker import MaxNLocator

    rows = 1 + SLICES
    figure, grid = panels(rows, len(found), (5.4, 9.5 / rows), height_ratios=[2.4] + [1] * SLICES)
    for column, (run, course) in enumerate(found.items()):
        above, final = grid[0][column], last(moments, run)
        counts = draw_along(above, [one.probe for one in course])
        _by_factors(above, course)
        many = f"{final.probe.solutions:,} solutions from {final.probe.starts:,} starts at epoch {final.epoch}"
        above.set_title(f"{final.title}, {final.sizes[1]} hidden units\n{many}", fontsize=11)
        if column == 0:
            handles = [handle for axes in (above, counts) for handle in axes.get_legend_handles_labels()[0]]
        shown = _slices(course, final)
        for row in range(SLICES):
            axes = grid[1 + row][column]
            if row >= len(shown):
                axes.axis("off")
                continue
            one = shown[row]
            draw_energies(axes, np.array(one.probe.free_energies))
            axes.set_title(f"epoch {one.epoch}, {one.probe.starts:,} starts", fontsize=10)
            axes.xaxis.set_major_locator(MaxNLocator(6))
            axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
            if row + 1 < len(shown):
                axes.set_xlabel("")
    figure.legend(handles=handles, loc="outside upper center", ncols=3, fontsize=9)
    return figure


def _slices(course: Sequence[Moment], final: Moment) -> list[Moment]:
    """The moments whose free energies are worth bars: a few of those with some solutions, and the last."""
    before = {one.epoch: one for one in course if one.probe.solutions >= ENOUGH and one.epoch < final.epoch}
    several = [before[epoch] for epoch in spread(list(before), SLICES - 1)] if before else []
    return [*several, final] if final.probe.solutions else several
