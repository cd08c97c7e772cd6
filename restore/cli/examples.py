"""`restore examples`: the pictures that the documentation names, to try its commands on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from restore.console import tell

EXAMPLE = "Example:  restore examples && restore denoise assets/page-noisy.png"


def examples(
    folder: Annotated[Path, typer.Argument(help="Folder to copy them to.", metavar="FOLDER")] = Path("assets"),
) -> None:
    """Copy pages, scans, masks and digits to try `restore` on; a file that is there already stays as it is."""
    from restore.files import make_folder, write_atomically
    from restore.zoo.search import shipped

    pictures = [
        path for path in sorted(shipped("assets").glob("*.png")) if not path.name.startswith(("before-", "app"))
    ]
    make_folder(folder, "name another folder")
    for picture in pictures:
        if not (folder / picture.name).exists():
            write_atomically(folder / picture.name, picture.read_bytes())
    for picture in pictures:
        tell(str(folder / picture.name))
