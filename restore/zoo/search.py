"""Find priors: the published ones, and the user's own.

Published priors are in the repository's models/ folder, which a wheel carries inside the package. A user's own are in
the user data folder.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from restore.errors import ModelError, UsageError, remedy
from restore.zoo.store import GRAPH, WEIGHTS


def published_folder() -> Path:
    """The folder of published priors: inside an installed package, or beside it in a checkout.

    >>> (published_folder() / "tap-mnist" / WEIGHTS).is_file()
    True
    """
    package = Path(__file__).parent.parent
    inside = package / "models"
    return inside if inside.is_dir() else package.parent / "models"


def is_published(folder: Path) -> bool:
    """True for the folder of a published prior."""
    return folder.parent == published_folder()


def user_folder() -> Path:
    """The folder of priors trained by this user."""
    import platformdirs

    return Path(platformdirs.user_data_dir("restore")) / "models"


def folders() -> Iterator[Path]:
    """The folders of all priors that can be named, published ones first; each name once.

    >>> "tap-mnist" in {folder.name for folder in folders()}
    True
    """
    seen: set[str] = set()
    for parent in (published_folder(), user_folder()):
        for weights in sorted(parent.glob(f"*/{WEIGHTS}")):
            if weights.parent.name not in seen:
                seen.add(weights.parent.name)
                yield weights.parent


def check_name(name: str) -> None:
    """Raise UsageError for an invalid name of a prior."""
    if not re.fullmatch(r"\w[\w.+-]{0,59}", name):
        allowed = "at most 60 letters, digits and . _ + -, beginning with no sign"
        raise UsageError(f"name becomes a folder: {allowed}, not {name!r}")


def find(name_or_path: str) -> Path:
    """Find the folder of a prior by its name, folder or weights file; or a file made by `restore export`.

    Raises:
        ModelError: if there is none; the message lists similar names.

    >>> find("tap-mnist").name
    'tap-mnist'
    """
    path = Path(name_or_path)
    for parent in (published_folder, user_folder) if path.name == name_or_path else ():
        folder = parent() / path
        if os.path.isfile(folder / WEIGHTS):  # noqa: PTH113 - False where a name is too long
            return folder
    # A name too long for the file system, or in a folder without permission, is no model either.
    with contextlib.suppress(OSError, ValueError):
        if path.name == WEIGHTS and path.is_file():
            return path.parent
        if (path / WEIGHTS).is_file() or (path.suffix == Path(GRAPH).suffix and path.is_file()):
            return path
    near = difflib.get_close_matches(name_or_path, [folder.name for folder in folders()], 3, 0.6)
    hint = (
        f"did you mean {' or '.join(near)}?"
        if near
        else remedy("`restore models` lists them", "restore.list_models() lists them")
    )
    if (Path(__file__).parent.parent / "models").is_dir():  # a wheel, which leaves out priors that only repeat papers
        hint += "; pip install 'restore-prior[papers]' adds those of papers"
    raise ModelError(f"there is no such model; {hint}", name_or_path)
