"""Where the prior of a run is kept: in the run's folder and under its name, unfinished ones from the first on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from restore import zoo
from restore.errors import ModelError, OutputError, TrainingError, shown
from restore.files import write_atomically
from restore.learning.run.card import write_card
from restore.learning.run.outcome import Trained
from restore.learning.train import Learnt, Lesson
from restore.progress import Passed
from restore.zoo.description import Description

# About how long `Place.keep` takes, in seconds, nearly all of it for the graph; 11 to 13 of one core were measured.
KEEPING = 10.0


@dataclass(frozen=True)
class Place:
    """Where the prior of a run is kept.

    Attributes:
        run: the folder of the run; None for one that nobody will look into.
        target: the folder that the name, or -o, stands for; None if it is kept in the run alone.
        overwrite: whether a prior of another run may be replaced in the target.
    """

    run: Path | None
    target: Path | None
    overwrite: bool = False

    def holds_own(self) -> bool:
        """Whether there is a prior in the target, and it is this run's."""
        held = _held(self.target)
        if held is None or self.run is None:
            return False
        if held.unfinished:
            return held.run == shown(str(self.run.resolve()))
        ended = _held(self.run)
        return ended is not None and not ended.unfinished and ended.recipe == held.recipe

    def keeper(self, lesson: Lesson, command: str, device: torch.device) -> Callable[[Passed], None]:
        """What keeps the best prior so far, for the session of `restore.learning.train.learn`.

        A finished prior under the name stays until this one is finished too, even where it may be overwritten.
        """

        def keep(passed: Passed) -> None:
            trained = Trained(passed.machine, passed.done, passed.score, "", lesson.recipe)
            card = _card(lesson, trained, lesson.text, command, (passed.seconds,), device)
            held = _held(self.target)
            free = held is None or (bool(held.unfinished) and (self.overwrite or self.holds_own()))
            for folder in (self.run, self.target if free else None):
                if folder is not None:
                    zoo.save(folder, trained.prior, card, TrainingError)

        return keep

    def keep(self, learnt: Learnt, command: str) -> None:
        """Write the prior that training has ended with, its card and, where it can be made, its graph.

        Raises:
            OutputError: if the target holds a prior of another run, and may not be overwritten; the run has its own.
            TrainingError: if a file cannot be written; what was there before is then as it was.
        """
        card = _card(learnt.lesson, learnt.trained, learnt.text, command, learnt.seconds, learnt.device)
        prior = learnt.trained.prior
        # Before that of the run is replaced, by which one knows that of the target.
        own = self.holds_own()
        if self.run is not None:
            zoo.save(self.run, prior, card, TrainingError)
        if self.target is not None:
            held = _held(self.target)
            if held is not None and not (self.overwrite or own or held.recipe == prior.description.recipe):
                raise _taken(self.target, held)
            zoo.save(self.target, prior, card, TrainingError)
        folders = [folder for folder in (self.target, self.run) if folder is not None]
        try:
            from restore.export.packing import beside_weights

            graph = beside_weights(folders[0])
        except ModuleNotFoundError:
            # Only torch starts it then.
            return
        for folder in folders:
            write_atomically(folder / zoo.GRAPH, graph, TrainingError)

    def best_so_far(self) -> tuple[Path, Description] | None:
        """The folder that has a prior of this run to restore with, and what that is; None if there is none yet."""
        folder = self.target if self.holds_own() else self.run
        held = _held(folder)
        return None if folder is None or held is None else (folder, held)


def reserve(name: str, output: Path | None, *, overwrite: bool, run: Path | None, resume: bool) -> Place:
    """The place for the prior of a run under its name, made before the work begins.

    Args:
        name: of the prior.
        output: another folder than that in the user's folder with its name.
        overwrite: whether a prior that is there already may be replaced.
        run: folder of the run.
        resume: whether it is gone on with; the prior that is there may then be its own.

    Raises:
        OutputError: if a prior is there already, the name is that of a published one, or the folder cannot be made.
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
    """What the prior in a folder says about itself; None if there is none."""
    if folder is None or not (folder / zoo.WEIGHTS).exists():
        return None
    try:
        return zoo.describe(folder)
    except ModelError:
        # Whatever it is, it is nobody else's to replace.
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
