"""A whole run: train a lesson, keep its prior, and report on it, all within its time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import torch

from restore.errors import TrainingError, shown
from restore.learning.run.keeping import Place
from restore.learning.run.parallel import is_first
from restore.learning.run.report import RECORD, Drawer, Verdict, best_filter, judged, write_record
from restore.learning.run.session import Passed, Session
from restore.learning.train import Learnt, Lesson, learn

# Seconds left for the last lines, and for the process to end.
LEAVING = 1.0


@dataclass(frozen=True)
class Made:
    """The outcome of a run.

    Attributes:
        learnt: the prior.
        found: its scores and the verdict; nothing without a report.
        graph: why there is no graph; empty if there is one, or none was asked for.
        folder: the folder of the report; None without one.
    """

    learnt: Learnt
    found: Verdict
    graph: str
    folder: Path | None

    @property
    def lines(self) -> list[str]:
        """What a user should know, a sentence each."""
        trained, about = self.learnt.trained, self.learnt.trained.prior.description
        name, units = about.name, f"{about.hidden} hidden units; " if self.learnt.lesson.recipe.prior.grows else ""
        lines = [f"{name}: {units}{trained.verdict}"] if trained.verdict else []
        lines += [f"{name}: {self.found.said}"] if self.found.said else []
        lines += [f"{name}: without a graph: {self.graph}; `restore export` makes one"] if self.graph else []
        return lines + ([f"{shown(self.folder / RECORD)}: the scores in full"] if self.folder else [])


def carry_out(
    lesson: Lesson, place: Place, session: Session, device: torch.device, *, report: bool = True, every: int = 0
) -> Made:
    """Train a prior, keep it, score it, and add its graph; the best prior so far is kept all the while.

    Args:
        lesson: what to train, and on what.
        place: where the prior is kept; nowhere if it has no folder.
        session: where, and who is told; its clock counts from the moment that the time limit does.
        device: where to train.
        report: whether to draw and to write what was learnt, in the run's folder.
        every: as in `restore.learning.pipeline.train`.

    Raises:
        RestoreError: as `learn` and `Place.keep`.
        KeyboardInterrupt: with a note of what to do now.
    """
    clock = session.clock
    drawer = Drawer(lesson, session.folder, device, clock)

    def usable(passed: Passed) -> None:
        place.keep_unfinished(lesson, passed)
        if report and not clock.later_than(0.0):
            drawer.draw(passed.machine)

    try:
        learnt = learn(lesson, replace(session, usable=usable), device=device, every=every)
        found = Verdict({})
        if not is_first() or not (place.run or place.target):
            return Made(learnt, found, "", None)
        place.keep(learnt)
        if report:
            session.note("scoring it beside simple filters")
            found = judged(learnt, clock)
            if found.worth == 0:
                learnt = marked(learnt, place)
                place.keep(learnt)
            session.note("writing the report")
            name = learnt.trained.prior.description.name
            rival = best_filter(name, next(iter(found.scores.values()))) if found.scores else ""
            drawer.draw(learnt.trained.prior, rival, last=True)
            write_record(session.folder, replace(learnt, seconds=clock.used), found)
        session.note("making its graph")
        # Last, as it can be cut short and made later.
        graph = place.add_graph(TrainingError, clock.left - LEAVING)
        return Made(replace(learnt, seconds=clock.used), found, graph, session.folder if report else None)
    except BaseException as stop:
        # Errors say themselves what to do.
        if not isinstance(stop, Exception):
            stop.add_note(place.remedy)
        raise


def marked(learnt: Learnt, place: Place) -> Learnt:
    """A prior that is behind simple filters counts as unfinished: its header says so."""
    about = learnt.trained.prior.description
    run = shown(str(place.run.resolve())) if place.run else ""
    about = replace(about, unfinished="not worth using yet, as simple filters restore better", run=run)
    prior = replace(learnt.trained.prior, description=about)
    return replace(learnt, trained=replace(learnt.trained, prior=prior))
