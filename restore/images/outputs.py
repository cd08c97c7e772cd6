"""Decide, before any work begins, which images are read and where each result goes."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from hashlib import sha256
from itertools import takewhile
from pathlib import Path, PurePath

from restore.buckets import Place, Remote, existing, identity, is_folder, listed, path_of
from restore.errors import InputError, OutputError, UsageError, option, shown
from restore.files import make_folder, remove_abandoned
from restore.images.formats import FORMATS, IMAGE_SUFFIXES, format_of

# A result has the ending of its image if that may hold pages; that of any other image is a PNG.
_PAGED = frozenset(suffix for format in FORMATS.values() if format.pages for suffix in format.suffixes)
# A file by its name, or a standard stream by its number; the shell may have redirected it to a file.
File = Place | int
# The numbers of the standard streams, as in POSIX; and what stands for both.
STDIN, STDOUT = 0, 1
STDIO = "-"


def expand(inputs: Sequence[str | os.PathLike[str]], *, suffix: str = "restored") -> list[Place]:
    """Replace folders by the images in them, sorted by name; leave all else as given, whether it exists or not.

    Subfolders, hidden files and our own outputs, such as `NAME.restored.png` and `NAME.SUFFIX.tif`, are left out.
    Raises InputError for a folder without images, and UsageError for the empty text.
    """
    if any(not os.fspath(entry) for entry in inputs):
        raise UsageError("an input is the empty text; name an image or a folder")
    images = list[Place]()
    for path in map(path_of, inputs):
        paths = _images_in(path, suffix) if is_folder(path) else [path]
        if not paths:
            raise InputError("the folder holds no images to restore; name images or another folder", path)
        images += paths
    return images


def names_below(paths: Sequence[Place]) -> list[str]:
    """The names of images below the folder that holds all of them: the same wherever that is."""
    levels = zip(*(path.parent.parts for path in paths), strict=False)
    common = sum(1 for _ in takewhile(lambda names: len(set(names)) == 1, levels))
    return ["/".join(path.parts[common:]) for path in paths]


def in_part(name: str, part: tuple[int, int]) -> bool:
    """True if an image of this name below its folder belongs to part K of N, K from 1 to N.

    Nothing else decides, so that N machines never take the same one, and a file that comes later moves no other.
    """
    number, count = part
    return int(sha256(os.fsencode(name)).hexdigest(), 16) % count == number - 1


def _images_in(folder: Place, suffix: str) -> list[Place]:
    """The images in a folder, as in `expand`; raises InputError if it cannot be listed."""
    ours = {f".{suffix}", ".restored"}
    try:
        if isinstance(folder, Remote):
            entries: Iterable[Place] = [folder / name for name, is_file in listed(folder).items() if is_file]
        else:
            entries = folder.iterdir()
        return sorted(
            entry
            for entry in entries
            if entry.suffix.lower() in IMAGE_SUFFIXES
            and not entry.name.startswith(".")
            and not (entry.suffix.lower() in {".png", *_PAGED} and Path(entry.stem).suffix in ours)
            # Broken links stay, so that they are reported; a pipe would be waited for without end.
            and (isinstance(entry, Remote) or entry.is_file() or not entry.exists())
        )
    except OSError as fault:
        raise InputError(f"cannot be listed ({fault.strerror}); check its permissions", folder) from fault


def paired(
    inputs: Sequence[Place], output: str | os.PathLike[str] | None, suffix: str = "restored"
) -> list[tuple[Place, Place]]:
    """Give every input its output, whether that exists or not: beside it, in a folder, or the one file named.

    Raises UsageError if one file is given for several inputs, or its ending is not that of a format written here.
    """
    if output is None:
        return [(path, path.with_name(named(path, suffix))) for path in inputs]
    if means_folder(output):
        return [(path, path_of(output) / named(path, suffix)) for path in inputs]
    if len(inputs) > 1:
        raise UsageError("is one file for several inputs; give a folder, ending with /", output)
    format_of(output)
    return [(path, path_of(output)) for path in inputs]


def refuse_clashes(reads: Iterable[File], writes: Iterable[File]) -> None:
    """Raise UsageError if a file that is to be written is also read, or written twice, by any name or link."""
    read: dict[object, File] = {key: file for file in reads for key in _keys(file)}
    written: dict[object, File] = {}
    for file in writes:
        keys = _keys(file)
        for key in keys:
            if key in read:
                raise UsageError(
                    f"{_name_of(file)}: would replace the input {_name_of(read[key])}; choose another output"
                )
            if key in written:
                raise UsageError(f"{_name_of(file)}: is to be written twice; choose another for one of them")
        written |= dict.fromkeys(keys, file)


def to_write(
    targets: Sequence[Place],
    output: str | os.PathLike[str] | None,
    *,
    overwrite: bool,
    skip_existing: bool,
) -> set[Place]:
    """Those of the targets of one output, as `paired` gives them, that are to be written, before any model is loaded.

    The output is as the user gave it (a `Path` drops the final slash of a folder); it may be a new folder if its parent
    exists. With `skip_existing` targets that exist are left out.

    Raises:
        UsageError: both `overwrite` and `skip_existing` are given.
        OutputError: a target exists already, or is in a folder that does not exist or may not be written to.
    """
    if overwrite and skip_existing:
        raise UsageError(f"{option('overwrite')} and {option('skip_existing')} exclude each other; give one of them")
    there = existing(targets)
    left = [target for target in targets if not (skip_existing and target in there)]
    for target in left:
        if target in there and (not overwrite or (isinstance(target, Path) and target.is_dir())):
            again = f"{option('overwrite')}, {option('skip_existing')} or another -o"
            raise OutputError(f"exists already; give {again}", target)
    folder = path_of(output) if output is not None and means_folder(output) else None
    for parent in dict.fromkeys(target.parent for target in left if isinstance(target, Path)):
        new = parent == folder and not os.path.exists(parent)  # noqa: PTH110 - False where a name is too long
        require_writable(parent.parent if new else parent)
    return set(left)


def make_ready(targets: Iterable[Place]) -> None:
    """Make the folders of files that are to be written, and remove what killed processes have left there."""
    for parent in {target.parent for target in targets if isinstance(target, Path)}:
        make_folder(parent, "choose another with -o")
        remove_abandoned(parent)


def named(path: PurePath | Remote, suffix: str) -> str:
    """The name of an image's output, which no other image of its folder has: it depends on nothing but its own.

    >>> [named(Path(name), "restored") for name in ("x.png", "x.tif", "x.jpg", "x.jpg.png")]
    ['x.restored.png', 'x.restored.tif', 'x.jpg.restored.png', 'x.jpg.png.restored.png']
    """
    if path.suffix.lower() in _PAGED:
        return f"{path.stem}.{suffix}{path.suffix}"
    plain = path.suffix == ".png" and Path(path.stem).suffix.lower() not in IMAGE_SUFFIXES
    return f"{path.stem if plain else path.name}.{suffix}.png"


def means_folder(output: str | os.PathLike[str]) -> bool:
    """True if an output's name means a folder: one that exists, or a name that ends with a slash."""
    return os.fspath(output).endswith(("/", os.sep)) or is_folder(output)


def require_writable(folder: Path) -> None:
    """Raise OutputError if a folder does not exist or may not be written to."""
    if not is_folder(folder) or not os.access(folder, os.W_OK | os.X_OK):
        raise OutputError("is not a folder that can be written to; make it or choose another with -o", folder)


def _keys(file: File) -> list[object]:
    """Keys of a file: its device and number if it exists, and its path with links to its folder resolved."""
    same = identity(file) if isinstance(file, Remote) else file
    if not isinstance(same, Path | int):
        return [same]
    keys: list[object] = [] if isinstance(same, int) else [Path(os.path.realpath(same.parent), same.name)]
    try:
        status = os.fstat(same) if isinstance(same, int) else same.stat()
    except (OSError, ValueError):
        return keys
    # Pipes, terminals and devices do not count: nothing in them can be lost.
    return [*keys, (status.st_dev, status.st_ino)] if stat.S_ISREG(status.st_mode) else keys


def _name_of(file: File) -> str:
    return ("stdin", "stdout")[file] if isinstance(file, int) else shown(file)
