"""Write the sets that published priors learn from into a data folder, where recipes find them by name.

    python training/data/make.py drawings text photographs scans parts --data PATH

PATH/NAME/train.npy and test.npy are then what `restore train RECIPE --data PATH` reads, or with RESTORE_DATA=PATH every
command. Pairs of a grey page and its ink, `scans`, or of a page and what on it is none, `parts`, are files in
PATH/NAME/train and PATH/NAME/test.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, get_args

import numpy as np
import typer

from restore.console import say, tell
from restore.data.dataset import Images, Split
from restore.errors import InputError, RestoreError, UsageError
from training.data import drawings, parts, photographs, scans, text

SETS: dict[str, Callable[[Split], Images]] = {
    "drawings": drawings.images,
    "text": text.images,
    "photographs": photographs.images,
}
# Sets of pairs, which are written into a folder as files of their own.
PAIRS: dict[str, Callable[[Path, Split], list[Path]]] = {"scans": scans.write, "parts": parts.write}


def make(names: list[str], root: Path) -> list[Path]:
    """Write both splits of these sets below a folder; a split that cannot be drawn here is left out, and said.

    Raises:
        UsageError: if a name is not one of `SETS` or `PAIRS`.
    """
    for name in names:
        if name not in SETS and name not in PAIRS:
            raise UsageError(f"{name}: not a set that is drawn here; give {', '.join((*SETS, *PAIRS))}")
    written = []
    for name in names:
        for split in get_args(Split):
            try:
                if name in PAIRS:
                    written += PAIRS[name](root / name / split, split)
                    continue
                images = SETS[name](split)
            except InputError as fault:
                say(f"without {name}/{split}.npy: {fault}")
                continue
            (root / name).mkdir(parents=True, exist_ok=True)
            written.append(root / name / f"{split}.npy")
            np.save(written[-1], images)
    return written


def command(
    names: Annotated[list[str], typer.Argument(help=f"Of {', '.join((*SETS, *PAIRS))}.")],
    data: Annotated[Path | None, typer.Option(help="Folder of named data sets [RESTORE_DATA].")] = None,
) -> None:
    """Write sets that are drawn by code into a data folder."""
    root = data or Path(os.environ.get("RESTORE_DATA", "."))
    for path in make(names, root):
        tell(str(path))


if __name__ == "__main__":
    try:
        typer.run(command)
    except RestoreError as fault:
        say(str(fault))
        sys.exit(fault.exit_code)
