"""Write the graph of a prior next to its weights."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from restore import zoo
from restore.errors import RestoreError
from restore.files import write_atomically
from restore.zoo.made import remember


def add_graph(folders: Sequence[Path], error: type[RestoreError]) -> str:
    """Write the graph of a prior next to its weights in each of these folders.

    Returns:
        The reason if there is no graph, such as a missing library; else empty.
    """
    try:
        from restore.export.packing import beside_weights

        graph = beside_weights(folders[0])
    except ModuleNotFoundError as fault:
        return f"{fault.name} is not installed"
    except (RestoreError, OSError) as fault:
        return str(fault)
    for folder in folders:
        write_atomically(folder / zoo.GRAPH, graph, error)
        remember(folder)
    return ""
