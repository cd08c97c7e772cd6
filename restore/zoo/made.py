"""Graphs that were made on this machine: programs that `auto` may run, as it runs those of published priors."""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path

from restore.errors import OutputError
from restore.files import check_regular, make_folder, write_atomically
from restore.zoo import limits
from restore.zoo.search import data_folder
from restore.zoo.store import GRAPH


def remember(graph: bytes) -> None:
    """Note that a graph was made here; where no note can be written, only a name makes it run."""
    note = _note(graph)
    with contextlib.suppress(OSError, OutputError):
        make_folder(note.parent, "choose another place", OutputError)
        write_atomically(note, b"")


def made_here(folder: Path) -> bool:
    """True if the graph beside a prior is one that was made on this machine, by training or `restore export`."""
    path = folder / GRAPH
    try:
        check_regular(path, limits.FILE)
        return _note(path.read_bytes()).is_file()
    except (OSError, ValueError):
        return False


def _note(graph: bytes) -> Path:
    return data_folder() / "graphs" / hashlib.sha256(graph).hexdigest()
