"""Write the graph of a prior next to its weights. `python -m restore.export.beside FOLDER` writes it to stdout."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from restore import zoo
from restore.errors import RestoreError, UsageError
from restore.files import write_atomically


def add_graph(folders: Sequence[Path], error: type[RestoreError], seconds: float = math.inf) -> str:
    """Write the graph of a prior next to its weights in each of these folders.

    Returns:
        The reason if there is no graph, such as no time or a missing library; else empty.
    """
    try:
        if math.isinf(seconds):
            graph = _graph_of(folders[0])
        else:
            # In a process of its own, which can be ended when time is up.
            words = [sys.executable, "-m", "restore.export.beside", str(folders[0].resolve())]
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


def _graph_of(folder: Path) -> bytes:
    from restore.export.packing import beside_weights

    return beside_weights(folder)


if __name__ == "__main__":
    sys.stdout.buffer.write(_graph_of(Path(sys.argv[1])))
