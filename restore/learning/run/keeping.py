"""Keep the prior of a run in the run's folder and under its name; unfinished ones, too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from restore import zoo
from restore.errors import ModelError, OutputError, RestoreError, TrainingError, shown
from restore.files import write_atomically
from restore.learning.run.card import write_card
from restore.learning.run.outcome import Trained
from restore.learning.train import Learnt, Lesson
from restore.progress import Passed
from restore.zoo.description import Description

# About how long `Place.keep` takes, in seconds, mostly for the graph; 11 to 13 on one core were measured, and 19 to 23
# for one that takes images of any size.
KEEPING, KEEPING_ANY_SIZE = 10.0, 20.0


def seconds_to_keep(lesson: Lesson) -> float:
    """About how long it takes to keep the prior of a lesson."""
    return KEEPING_ANY_SIZE if lesson.recipe.prior.kernel else KEEPING


@dataclass(frozen=True)
class Place:
    """Where the prior of a run is kept.

    Attributes:
        run: the run's folder; None if nobody will look into it.
        target: the folder that the name, or -o, stands for; None if the prior is kept in the run only.
        overwrite: whether a prior of another run may be replaced in the target.
    """

    run: Path | None
    target: Path | None
    overwrite: bool = False

    def holds_own(self) -> bool:
        """Whether the target holds a prior of this run."""
        held = _held(self.target)
        if held is None or self.run is None:
            return False
        if held.unfinished:
            return held.run == shown(str(self.run.resolve()))
        ended = _held(self.run)
        return ended is not None and not ended.unfinished and ended.recipe == held.recipe

    def keeper(self, lesson: Lesson, command: Callable[[], str], device: torch.device) -> Callable[[Passed], None]:
        """A function that keeps the best prior so far, for the session of `restore.learning.train.learn`.

        A finished prior under the name stays until this one is finished, even if it may be overwritten.
        """

        def keep(passed: Passed) -> None:
            trained = Trained(passed.machine, passed.done, passed.score, "", lesson.recipe)
            card = _card(lesson, trained, lesson.text, command(), (passed.seconds,), device)
            held = _held(self.target)
            free = held is None or (bool(held.unfinished) and (self.overwrite or self.holds_own()))
            for folder in (self.run, self.target if free else None):
                if folder is not None:
                    zoo.save(folder, trained.prior, card, TrainingError)

        return keep

    def keep(self, learnt: Learnt, command: str) -> None:
        """Write the prior at the end of training with its card and, if possible, its graph.

        Raises:
            OutputError: if the target holds a prior of another run that may not be overwritten; the run's is written.
            TrainingError: if a file cannot be written; what was there before stays as it was.
        """
        card = _card(learnt.lesson, learnt.trained, learnt.text, command, learnt.seconds, learnt.device)
        prior = learnt.trained.prior
        # Found out before the run's prior is replaced, with which the target's is compared.
        own = self.holds_own()
        if self.run is not None:
            zoo.save(self.run, prior, card, TrainingError)
        if self.target is not None:
            held = _held(self.target)
            if held is not None and not (self.overwrite or own or held.recipe == prior.description.recipe):
                raise _taken(self.target, held)
            zoo.save(self.target, prior, card, TrainingError)
        self.add_graph(TrainingError)

    def add_graph(self, error: type[RestoreError]) -> None:
        """Write the graph beside the weights just saved, if the library for it is there."""
        folders = [folder for folder in (self.target, self.run) if folder is not None]
        try:
            from restore.export.packing import beside_weights

            graph = beside_weights(folders[0])
        except ModuleNotFoundError:
            # Without a graph only torch can load the prior.
            return
        for folder in folders:
            write_atomically(folder / zoo.GRAPH, graph, error)

    def best_so_far(self) -> tuple[Path, Description] | None:
        """The folder with a usable prior of this run, and its description; None if there is none yet."""
        folder = self.target if self.holds_own() else self.run
        held = _held(folder)
        return None if folder is None or held is None else (folder, held)


def reserve(name: str, output: Path | None, *, overwrite: bool, run: Path | None, resume: bool) -> Place:
    """Make the place for a run's prior before the work begins.

    Args:
        name: name of the prior.
        output: the folder, instead of the one with its name in the user's folder.
        overwrite: whether an existing prior may be replaced.
        run: the run's folder.
        resume: whether the run is resumed; an existing prior may then be its own.

    Raises:
        OutputError: if a prior exists already, the name is that of a published one, or the folder cannot be made.
    """
    target = output or zoo.search.user_folder() / name
    place = Place(run, target, overwrite)
    held = _held(target)
    if held is not None and not overwrite and not (resume and place.holds_own()):
        raise _taken(target, held)
    if output is None and (zoo.search.published_folder() / name).exists():
        raise OutputError(f"{name}: is the name of a published prior; choose another name, or give -o")
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise OutputError(f"{shown(target)}: cannot be made ({fault.strerror}); choose another -o") from fault
    return place


def _held(folder: Path | None) -> Description | None:
    """The description of the prior in a folder; None if there is none."""
    if folder is None or not (folder / zoo.WEIGHTS).exists():
        return None
    try:
        return zoo.describe(folder)
    except ModelError:
        # An unreadable prior is treated as someone else's.
        return Description(folder.name, (1, 1), 1, 0, "", "")


def _taken(target: Path, held: Description) -> OutputError:
    other = "name" if target.parent == zoo.search.user_folder() else "-o"
    if held.unfinished:
        return OutputError(
            f"{shown(target)}: holds the unfinished prior of a run in {held.run}; give --resume to go on with it, "
            f"--overwrite or another {other}"
        )
    return OutputError(f"{shown(target)}: holds a prior already; give --overwrite or another {other}")


def _card(
    lesson: Lesson, trained: Trained, text: str, command: str, seconds: Sequence[float], device: torch.device
) -> str:
    images = max(1, lesson.recipe.data.variations.copies) * len(lesson.training.images)
    return write_card(trained, lesson.recipe, text, command, images, seconds, str(device))
