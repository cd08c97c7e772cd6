"""Decide, before any work begins, which images are read and where each result goes."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from enum import Enum
from pathlib import Path

from restore.errors import InputError, OutputError, UsageError, shown
from restore.files import remove_abandoned
from restore.images.formats import FORMATS, IMAGE_SUFFIXES, format_of

# A result has the ending of its image if that may hold pages; that of any other image is a PNG.
_PAGED = frozenset(suffix for format in FORMATS.values() if format.pages for suffix in format.suffixes)
_LONGEST_NAME = 255  # bytes, on every file system in common use


class Standing(Enum):
    """What an existing output is to a run."""

    FOREIGN = "nothing is known of it, and it is kept"
    OUTDATED = "an earlier run made it, from what has changed since, and it may be replaced"
    DONE = "it is what this run would make"


def expand(inputs: Sequence[str | os.PathLike[str]], *, suffix: str = "restored") -> list[Path]:
    """Replace folders by the images in them; leave all else as given, whether it exists or not.

    A folder stands for its files with an image's ending, sorted by name. Subfolders, hidden files and our own outputs,
    such as `NAME.restored.png` and `NAME.SUFFIX.tif`, are left out.

    Raises:
        InputError: a folder holds no such file, or may not be read.
        UsageError: an input is the empty text.
    """
    if any(not os.fspath(given) for given in inputs):
        raise UsageError("an input is the empty text; name an image or a folder")
    return [path for given in inputs for path in _images_in(Path(given), {f".{suffix}", ".restored"})]


def _images_in(path: Path, ours: set[str]) -> list[Path]:
    if not is_folder(path):
        return [path]
    try:
        found = sorted(
            entry
            for entry in path.iterdir()
            if entry.suffix.lower() in IMAGE_SUFFIXES
            and not entry.name.startswith(".")
            and not (entry.suffix.lower() in {".png", *_PAGED} and Path(entry.stem).suffix in ours)
            and not entry.is_dir()  # broken links stay, so that they are reported
        )
    except OSError as fault:
        raise InputError(f"{shown(path)}: cannot be listed ({fault.strerror}); check its permissions") from fault
    if not found:
        raise InputError(f"{shown(path)}: the folder holds no images to restore; name image files or another folder")
    return found


def paired(
    inputs: Sequence[Path], output: str | os.PathLike[str] | None, suffix: str = "restored"
) -> list[tuple[Path, Path]]:
    """Give every input its output, whether that exists or not; see `plan`.

    Raises:
        UsageError: two inputs would have one output, one file is given for several inputs, an output is an input (also
            by a link), or its ending is not that of a format written here.
    """
    if output is None:
        pairs = [(path, path.with_name(named(path, suffix))) for path in inputs]
    elif means_folder(output):
        pairs = [(path, Path(output) / named(path, suffix)) for path in inputs]
    elif len(inputs) > 1:
        raise UsageError(f"{shown(output)}: is one file for several inputs; give a folder, ending with /")
    else:
        format_of(output)
        pairs = [(path, Path(output)) for path in inputs]
    read = {_identity(path): path for path in inputs}
    written: dict[Path, Path] = {}
    for path, target in pairs:
        place = Path(os.path.realpath(target.parent), target.name)
        if place in written:
            both = f"{shown(written[place])} and {shown(path)}"
            raise UsageError(f"{shown(target)}: would be the output of both {both}; restore them one by one with -o")
        written[place] = path
        if (identity := _identity(target)) is not None and identity in read:
            raise UsageError(f"{shown(target)}: is the input {shown(read[identity])}; choose another output with -o")
    return pairs


def plan(
    inputs: Sequence[Path],
    output: str | os.PathLike[str] | None,
    *,
    suffix: str = "restored",
    overwrite: bool,
    skip_existing: bool,
    standing: Callable[[Path, Path], Standing] = lambda source, target: Standing.FOREIGN,
) -> list[tuple[Path, Path]]:
    """Give every input its output, and refuse what would lose a file, before any model is loaded.

    Args:
        inputs: image files.
        output: None for a file beside each input, named as by `named`; a folder, either existing or named with a final
            slash, for the same names in it; else the file for the single input's result. A folder that does not exist
            is made, if its parent exists, after all checks. (Pass the user's own text: a `Path` drops the slash.)
        suffix: the middle part of the names made here.
        overwrite: whether existing outputs may be replaced; inputs never are.
        skip_existing: whether to leave out inputs whose output exists.
        standing: what is known about an existing output of an input; finished ones are left out.

    Returns:
        Pairs of input and output, in the order of `inputs`.

    Raises:
        UsageError: as `paired`, or both `overwrite` and `skip_existing` are given.
        OutputError: an output exists already, has too long a name, or is in a folder that does not exist or may not be
            written to.
    """
    if overwrite and skip_existing:
        raise UsageError("--overwrite and --skip-existing exclude each other; give one of them")
    pairs, left = paired(inputs, output, suffix), []
    for path, target in pairs:
        if len(os.fsencode(target.name)) > _LONGEST_NAME:
            raise OutputError(f"{shown(path)}: its output's name is too long; choose a shorter one with -o")
        if is_folder(target):
            raise OutputError(f"{shown(target)}: is a folder where the output should be; choose another with -o")
        exists = os.path.lexists(target)
        known = Standing.OUTDATED if not exists else Standing.DONE if skip_existing else standing(path, target)
        if known is Standing.FOREIGN and not overwrite:
            raise OutputError(f"{shown(target)}: exists already; give --overwrite, --skip-existing or another -o")
        if known is not Standing.DONE:
            left.append((path, target))
    folder = Path(output) if output is not None and means_folder(output) else None
    for parent in dict.fromkeys(target.parent for _, target in left):
        require_writable(parent.parent if parent == folder and not parent.exists() else parent)
    if folder is not None and left:
        try:
            folder.mkdir(exist_ok=True)
        except OSError as fault:
            raise OutputError(f"{shown(folder)}: cannot be made ({fault.strerror}); choose another with -o") from fault
    for parent in {target.parent for _, target in pairs}:
        remove_abandoned(parent)
    return left


def named(path: Path, suffix: str) -> str:
    """The name of an image's output, which no other image of its folder has: it depends on nothing but its own.

    `x.png` gives `x.SUFFIX.png`, `x.tif` gives `x.SUFFIX.tif`, and `x.jpg`, as all others, `x.jpg.SUFFIX.png`. So a PNG
    called `x.jpg.png` keeps its whole name, too.

    >>> named(Path("scan.jpg"), "restored")
    'scan.jpg.restored.png'
    """
    if path.suffix.lower() in _PAGED:
        return f"{path.stem}.{suffix}{path.suffix}"
    plain = path.suffix == ".png" and Path(path.stem).suffix.lower() not in IMAGE_SUFFIXES
    return f"{path.stem if plain else path.name}.{suffix}.png"


def means_folder(output: str | os.PathLike[str]) -> bool:
    """True if an output's name means a folder: one that exists, or a name that ends with a slash."""
    return os.fspath(output).endswith(("/", os.sep)) or is_folder(Path(output))


def is_folder(path: Path) -> bool:
    """True if a path leads to a folder; False if this cannot be found out."""
    try:
        return path.is_dir()
    except OSError:  # a name too long, or a parent that may not be entered; opening the file will report it
        return False


def require_writable(folder: Path) -> None:
    """Raise OutputError if a folder does not exist or may not be written to."""
    if not is_folder(folder):
        raise OutputError(f"{shown(folder)}: is not an existing folder to write to; make it or choose another with -o")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OutputError(f"{shown(folder)}: may not be written to; change its permissions or choose another with -o")


def _identity(path: Path) -> tuple[int, int] | None:
    """What all links to a file share; None if it does not exist."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino
