"""The table of the study, and its pictures of what is in the record (Figs. 3, 5 and 11)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from dynamics_measure import PROBED, Moment, PerUnit, courses, last
from harness import finish, panels, panels_for, spread
from probing.pictures import draw_along, draw_energies

from restore.evaluation.markdown import plus_minus, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Epochs whose free energies are shown as bars, and how many solutions there must be for that.
SLICES, ENOUGH = 3, 10


def figures(moments: Sequence[Moment]) -> dict[str, Figure]:
    """The pictures, by the name of the file: that of solutions if there are such runs."""
    found = {"dynamics.png": likelihoods(moments)}
    probed = {run: course for run, course in courses(moments).items() if run in PROBED}
    return found | ({"dynamics-solutions.png": solutions(probed, moments)} if probed else {})


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


def likelihoods(moments: Sequence[Moment]) -> Figure:
    """Likelihood per unit of training images over epochs; a panel per data set, or deep machine with test images."""
    by_title: dict[str, list[list[Moment]]] = {}
    for course in courses(moments).values():
        by_title.setdefault(course[0].title, []).append(course)
    figure, grid = panels_for(len(by_title), min(3, len(by_title)), (4.4, 3.6))
    for axes, (name, runs) in zip(grid, by_title.items(), strict=True):
        for course in runs:
            if course[0].deep:
                _line(axes, course, "train", "training images")
                _line(axes, course, "test", "test images")
            else:
                _line(axes, course, "train", f"{course[0].sizes[1]} hidden units")
        axes.set(title=name, xlabel="epoch", ylabel="TAP log-likelihood per unit, nats")
        _by_factors(axes, max(runs, key=lambda course: course[-1].epoch))
        finish(axes)
    return figure


def _by_factors(axes: Any, course: Sequence[Moment]) -> None:
    """Epochs as they were chosen, at about equal factors, and named as they are."""
    epochs = [one.epoch for one in course]
    axes.set_xscale("log")
    axes.set_xticks(epochs, list(map(str, epochs)))
    axes.minorticks_off()


def _line(axes: Any, course: Sequence[Moment], kind: str, label: str) -> None:
    """A likelihood over epochs, in a band of its standard error."""
    known = [(one.epoch, found) for one in course if (found := getattr(one, kind)) is not None]
    epochs = np.array([epoch for epoch, _ in known])
    mean, error = (np.array([getattr(found, name) for _, found in known]) for name in ("mean", "standard_error"))
    (line,) = axes.plot(epochs, mean, "o-", markersize=3, linewidth=1, label=label)
    axes.fill_between(epochs, mean - error, mean + error, alpha=0.3, color=line.get_color(), linewidth=0)


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
