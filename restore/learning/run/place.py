"""Where the prior of a run is kept: in the run's folder the best so far, and under its name the last one, too."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from restore import zoo
from restore.errors import ModelError, OutputError, TrainingError, option, shown
from restore.zoo.description import Description

if TYPE_CHECKING:
    from restore.learning.lesson import Lesson
    from restore.learning.run.outcome import Trained
    from restore.learning.run.session import Session


def reserve(name: str, output: Path | None, overwrite: bool, run: Path | None = None, resume: bool = False) -> Path:
    """Find the folder for a run's prior before the work begins; nothing is made yet.

    An OutputError if a prior exists already, the name is that of a published one, or the folder cannot be made.
    """
    target = output or zoo.search.user_folder() / name
    if _held(target) is not None and not overwrite and not (resume and _is_of(target, run)):
        other = option("name" if output is None else "output")
        raise OutputError(f"holds a prior already; give {option('overwrite')} or another {other}", target)
    if output is None and (zoo.search.published_folder() / name).exists():
        raise OutputError(f"is the name of a published prior; choose another name, or give {option('output')}", name)
    above = next(folder for folder in (target, *target.absolute().parents) if os.path.lexists(folder))
    if not (above.is_dir() and os.access(above, os.W_OK | os.X_OK)):
        raise OutputError(f"cannot be made in {shown(above)}; choose another {option('output')}", target)
    return target


def keep(session: Session, lesson: Lesson, trained: Trained, seconds: float) -> None:
    """Write the prior at the end of training with its card; what cannot be written leaves what was there before.

    If the target holds a prior that may not be overwritten, an OutputError after the run's is written.
    """
    target, run = session.target, session.kept_in
    digest = trained.prior.description.recipe
    taken = target is not None and not session.overwrite and not _is_of(target, run, digest)
    for folder in (run, None if taken else target):
        if folder is not None:
            save(folder, trained, lesson, session.command, seconds)
    if taken:
        raise OutputError(f"holds a prior already; give {option('overwrite')} or another name", target)


def save(folder: Path, trained: Trained, lesson: Lesson, command: str, used: float) -> None:
    """Write a prior with its card, which says what was typed, and the seconds used."""
    from restore.learning.run.card import write_card

    try:
        zoo.save(folder, trained.prior, write_card(trained, lesson, command, used), TrainingError)
    except BaseException:
        # A folder that was made for it is removed, if it is empty.
        with suppress(OSError):
            folder.rmdir()
        raise


def remedy(session: Session) -> str:
    """Advice after a stop: how to go on, and which prior can be used until then."""
    held = _held(session.kept_in)
    there = "there is no prior to restore with yet"
    if held is not None:
        there = f"model {shown(str(session.kept_in))} restores with {held.unfinished or 'what it has come to'}"
    return f"{session.again} goes on; {there}" if session.again else there


def _is_of(target: Path, run: Path | None, recipe: str = "") -> bool:
    """True if the target is free, or holds the prior of a run, or of a recipe with this digest."""
    held, ours = _held(target), _held(run)
    return held is None or held.recipe in {recipe, ours.recipe if ours else ""} - {""}


def _held(folder: Path | None) -> Description | None:
    """The description of the prior in a folder; None if there is none."""
    if folder is None or not (folder / zoo.WEIGHTS).exists():
        return None
    try:
        return zoo.describe(folder)
    except ModelError:
        # An unreadable prior is treated as someone else's.
        return Description(folder.name, (1, 1), 0, "", "", hidden=1)
