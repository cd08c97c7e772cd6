"""Keep the prior of a run: the best so far in the run's folder, and the last one under its name, too."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from restore import zoo
from restore.errors import ModelError, OutputError, RestoreError, TrainingError, UsageError, option, shown
from restore.files import write_atomically
from restore.zoo.description import Description

if TYPE_CHECKING:
    from restore.learning.lesson import Lesson
    from restore.learning.run.outcome import Trained
    from restore.learning.run.session import Passed
    from restore.zoo import TrainedPrior

# Makes a graph in a process of its own, which can be ended when time is up.
EXPORT = "import sys, pathlib; from restore.export.packing import beside_weights; "
EXPORT += "sys.stdout.buffer.write(beside_weights(pathlib.Path(sys.argv[1])))"


@dataclass(frozen=True)
class Place:
    """Where the prior of a run is kept: the run's folder, and the one that its name or -o stands for, if any.

    `overwrite` lets a prior be replaced there. The `command` typed is for the card; `name` calls the prior that is
    kept, and `again` goes on with the run after a stop.
    """

    run: Path | None
    target: Path | None
    overwrite: bool = False
    command: str = ""
    name: str = ""
    again: str = ""

    def keep_unfinished(self, lesson: Lesson, prior: TrainedPrior, passed: Passed) -> None:
        from restore.learning.run.outcome import Trained

        if self.run is not None:
            trained = Trained(prior, passed.done, passed.score, "")
            _save(self.run, trained, lesson, self.command, passed.seconds)

    def keep(self, lesson: Lesson, trained: Trained, seconds: float) -> None:
        """Write the prior at the end of training with its card; what cannot be written leaves what was there before.

        If the target holds a prior that may not be overwritten, an OutputError after the run's is written.
        """
        taken = self.target is not None and not self.overwrite and not self.is_own(trained.prior.description.recipe)
        for folder in (self.run, None if taken else self.target):
            if folder is not None:
                _save(folder, trained, lesson, self.command, seconds)
        if taken:
            raise OutputError(f"holds a prior already; give {option('overwrite')} or another name", self.target)

    def is_own(self, recipe: str = "") -> bool:
        """True if the target is free, or holds the prior of this run, or of a recipe with this digest."""
        held, ours = _held(self.target), _held(self.run)
        return held is None or held.recipe in {recipe, ours.recipe if ours else ""} - {""}

    def add_graph(self, error: type[RestoreError], seconds: float = math.inf) -> str:
        """Write the graph beside the weights just saved, or say why not: there is no time or library for it."""
        folders = [folder for folder in (self.target, self.run) if folder is not None]
        try:
            if math.isinf(seconds):
                from restore.export.packing import beside_weights

                graph = beside_weights(folders[0])
            else:
                words = [sys.executable, "-c", EXPORT, str(folders[0].resolve())]
                graph = subprocess.run(words, capture_output=True, timeout=max(seconds, 0.0), check=True).stdout
        except subprocess.TimeoutExpired:
            return "there was no time for it"
        except subprocess.CalledProcessError as fault:
            return fault.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        except ModuleNotFoundError as fault:
            return f"{fault.name} is not installed"
        except (UsageError, OSError) as fault:
            return str(fault)
        for folder in folders:
            write_atomically(folder / zoo.GRAPH, graph, error)
        return ""

    @property
    def remedy(self) -> str:
        """What to do after a stop: how to go on, and which prior can be used until then."""
        held = _held(self.run)
        there = "there is no prior to restore with yet"
        if held is not None:
            there = f"model {shown(str(self.run))} restores with {held.unfinished or 'what it has come to'}"
        return f"{self.again} goes on; {there}" if self.again else there


def reserve(
    name: str,
    output: Path | None,
    overwrite: bool,
    run: Path | None,
    resume: bool,
    *,
    command: str = "",
    again: str = "",
) -> Place:
    """Find the place for a run's prior before the work begins; nothing is made yet.

    An OutputError if a prior exists already, the name is that of a published one, or the folder cannot be made.
    """
    target = output or zoo.search.user_folder() / name
    place = Place(run, target, overwrite, command, name if output is None else str(output), again)
    if _held(target) is not None and not overwrite and not (resume and place.is_own()):
        other = option("name" if output is None else "output")
        raise OutputError(f"holds a prior already; give {option('overwrite')} or another {other}", target)
    if output is None and (zoo.search.published_folder() / name).exists():
        raise OutputError(f"is the name of a published prior; choose another name, or give {option('output')}", name)
    above = next(folder for folder in (target, *target.absolute().parents) if os.path.lexists(folder))
    if not (above.is_dir() and os.access(above, os.W_OK | os.X_OK)):
        raise OutputError(f"cannot be made in {shown(above)}; choose another {option('output')}", target)
    return place


def _save(folder: Path, trained: Trained, lesson: Lesson, command: str, used: float) -> None:
    from restore.learning.run.card import write_card

    try:
        zoo.save(folder, trained.prior, write_card(trained, lesson, command, used), TrainingError)
    except BaseException:
        # A folder that was made for it is removed, if it is empty.
        with suppress(OSError):
            folder.rmdir()
        raise


def _held(folder: Path | None) -> Description | None:
    """The description of the prior in a folder; None if there is none."""
    if folder is None or not (folder / zoo.WEIGHTS).exists():
        return None
    try:
        return zoo.describe(folder)
    except ModelError:
        # An unreadable prior is treated as someone else's.
        return Description(folder.name, (1, 1), 0, "", "", hidden=1)
