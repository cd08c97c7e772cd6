"""Graphs that were made on this machine: programs that `auto` may run, as it runs those of published priors."""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path

from restore.errors import OutputError
from restore.files import check_regular, make_folder, write_atomically
from restore.zoo import limits
from restore.zoo.search import data_folder, user_folder
from restore.zoo.store import GRAPH


def remember(folder: Path) -> None:
    """Note that the graph beside a prior was made here, if it lies where `auto` looks; without a note it is not run."""
    if folder.resolve().parent != user_folder().resolve():
        return
    with contextlib.suppress(OSError, OutputError):
        note = _note(folder)
        make_folder(note.parent, "choose another place", OutputError)
        write_atomically(note, b"")


def made_here(folder: Path) -> bool:
    """True if the graph beside a prior is one that was made on this machine, by training or `restore export`."""
    try:
        return _note(folder).is_file()
    except (OSError, ValueError):
        return False


def _note(folder: Path) -> Path:
    """The file that is there if the graph beside a prior was made here; its name is the checksum of the graph."""
    check_regular(folder / GRAPH, limits.FILE)
    return data_folder() / "graphs" / hashlib.sha256((folder / GRAPH).read_bytes()).hexdigest()
