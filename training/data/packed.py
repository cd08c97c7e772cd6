"""Sets of black and white pictures as bits, small enough to be carried to where a prior learns from them.

    python training/data/packed.py pack text drawings --data PATH -o FOLDER
    python training/data/packed.py unpack FOLDER --data PATH

The first writes FOLDER/NAME.npz, of which the second makes PATH/NAME/train.npy again, cut at the threshold.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from restore.console import tell

# A pixel is white when its grey level is above this, as in the recipes.
THRESHOLD = 127

app = typer.Typer(help=__doc__, pretty_exceptions_enable=False)
Data = Annotated[Path, typer.Option(help="Folder of named data sets.")]


@app.command()
def pack(
    names: Annotated[list[str], typer.Argument(help="Of sets below the folder.")],
    data: Data,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the bits.")],
) -> None:
    """Write the training pictures of sets as bits."""
    output.mkdir(parents=True, exist_ok=True)
    for name in names:
        images = np.load(data / name / "train.npy", mmap_mode="r")
        target = output / f"{name}.npz"
        np.savez_compressed(target, bits=np.packbits(images > THRESHOLD), shape=images.shape)
        tell(f"{target}: {len(images)} pictures, {target.stat().st_size / 2**20:.1f} MiB")


@app.command()
def unpack(folder: Annotated[Path, typer.Argument(help="Where the bits are.")], data: Data) -> None:
    """Make the training pictures of all sets in a folder again."""
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as packed:
            shape = tuple(packed["shape"])
            white = np.unpackbits(packed["bits"], count=int(np.prod(shape))).reshape(shape)
        target = data / path.stem / "train.npy"
        target.parent.mkdir(parents=True, exist_ok=True)
        np.save(target, white * np.uint8(255))
        tell(f"{target}: {len(white)} pictures")


if __name__ == "__main__":
    app()
