"""Find priors: the published ones, and the user's own.

Published priors are in the repository's models/ folder, which a wheel carries inside the package. A user's own are in
the user data folder. Other packages may bring more: an entry point of the group `restore.priors` names a module, and
each folder in it that holds a prior is one.
"""

from __future__ import annotations

import contextlib
import difflib
import json
import os
import re
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from restore.errors import ModelError, RestoreWarning, UsageError, extra, pip, reason, remedy, shown
from restore.zoo.store import GRAPH, WEIGHTS

if TYPE_CHECKING:
    from importlib.metadata import Distribution

PACKAGE = Path(__file__).parent.parent


def published_folder() -> Path:
    """The folder of published priors.

    >>> (published_folder() / "tap-mnist" / WEIGHTS).is_file()
    True
    """
    return shipped("models")


def shipped(name: str) -> Path:
    """A folder that is inside the package in a wheel, and next to it in a checkout."""
    inside = PACKAGE / name
    return inside if inside.is_dir() else PACKAGE.parent / name


@cache
def installed_folders() -> tuple[Path, ...]:
    """The folders of priors that other installed packages bring; their code is not run.

    A package whose entry point is broken is left out, with a warning that names it.
    """
    from importlib.metadata import EntryPoint, distributions

    places = dict[Path, None]()
    for package in distributions():
        entries = list[EntryPoint]()
        with _left_out(package):
            entries += package.entry_points.select(group="restore.priors")
        for entry in entries:
            with _left_out(package):
                places |= dict.fromkeys(_folders_of(entry.module))
    return tuple(places)


@contextlib.contextmanager
def _left_out(package: Distribution) -> Iterator[None]:
    """Whatever an installed package says of itself, it becomes a warning that names the package, or where it is."""
    try:
        yield
    except Exception as fault:
        name = f"in {package.locate_file('')}"
        with contextlib.suppress(Exception):
            name = package.metadata["Name"] or name
        why = f"the entry point restore.priors of the package {shown(name)} is broken ({reason(fault)})"
        warnings.warn(f"{why} and is left out; update or remove it", RestoreWarning, stacklevel=2)


def _folders_of(module: str) -> list[Path]:
    """The folders of a module that is not loaded; a module inside a package would be found by running that."""
    from importlib.util import find_spec

    package, *inner = module.split(".")
    spec = find_spec(package)
    places = (spec.submodule_search_locations if spec else None) or ()
    there = [folder for place in places if (folder := Path(place, *inner)).is_dir()]
    if not there:
        raise ModuleNotFoundError(f"there is no package {shown(module)}")
    return there


def is_published(folder: Path) -> bool:
    """True for the folder of a published prior, or of one that an installed package brings."""
    return folder.parent == published_folder() or folder.parent in installed_folders()


def data_folder() -> Path:
    """The folder of what this user keeps."""
    import platformdirs

    return Path(platformdirs.user_data_dir("restore"))


def user_folder() -> Path:
    """The folder of priors trained by this user."""
    return data_folder() / "models"


def _parents() -> Iterator[Path]:
    """The folders that hold priors, in the order in which names are looked up."""
    yield published_folder()
    yield user_folder()
    yield from installed_folders()


def folders() -> Iterator[Path]:
    """The folders of all priors that can be named, published ones first; each name once.

    >>> "tap-mnist" in {folder.name for folder in folders()}
    True
    """
    names: set[str] = set()
    for parent in _parents():
        for weights in sorted(parent.glob(f"*/{WEIGHTS}")):
            if weights.parent.name not in names:
                names.add(weights.parent.name)
                yield weights.parent


def check_name(name: str) -> None:
    """Raise UsageError for an invalid name of a prior."""
    if not re.fullmatch(r"\w[\w.+-]{0,59}", name):
        allowed = "at most 60 letters, digits and . _ + -, not beginning with . + or -"
        raise UsageError(f"name becomes a folder: {allowed}, not {name!r}")


def find(name_or_path: str) -> Path:
    """Find the folder of a prior by its name, folder or weights file; or a file made by `restore export`.

    Raises:
        ModelError: if there is none; the message lists similar names.

    >>> find("tap-mnist").name
    'tap-mnist'
    """
    path = Path(name_or_path)
    for parent in _parents() if path.name == name_or_path else ():
        folder = parent / path
        if os.path.isfile(folder / WEIGHTS):  # noqa: PTH113 - False where a name is too long
            return folder
    # A name too long for the file system, or in a folder without permission, is no model either.
    with contextlib.suppress(OSError, ValueError):
        if path.name == WEIGHTS and path.is_file():
            return path.parent
        if (path / WEIGHTS).is_file() or (path.suffix == Path(GRAPH).suffix and path.is_file()):
            return path
    near = difflib.get_close_matches(name_or_path, [folder.name for folder in folders()], 3, 0.6)
    hint = remedy("`restore models` lists them", "restore.list_models() lists them")
    if near:
        hint = f"perhaps {' or '.join(near)} is meant"
    if published_folder().parent == PACKAGE:  # a wheel, which leaves out priors that only repeat papers
        hint += f"; {_papers()} adds those of papers"
    raise ModelError(f"there is no such model; {hint}", name_or_path)


def _papers() -> str:
    """Command that installs the other published priors, from the installed clone if there is one."""
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    with contextlib.suppress(PackageNotFoundError, ValueError):
        origin = json.loads(distribution("restore-prior").read_text("direct_url.json") or "{}").get("url", "")
        folder = Path(url2pathname(urlsplit(origin).path)) / "models"
        if origin.startswith("file:") and (folder / "pyproject.toml").is_file():
            return pip(f'install "{folder}"')
    return extra("papers")
