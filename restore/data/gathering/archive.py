"""Read pictures of a known size from a zip archive, as used by published data sets."""

from __future__ import annotations

import contextlib
import gzip
import io
import lzma
import re
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np
from PIL import Image, UnidentifiedImageError

from restore.data.dataset import Images
from restore.errors import InputError, reason, shown

# Such pictures have some hundred bytes each; nothing longer is unpacked, whatever an archive claims.
MAX_BYTES = 1 << 16

_DAMAGED = (
    zipfile.BadZipFile,
    tarfile.TarError,
    gzip.BadGzipFile,
    lzma.LZMAError,
    zlib.error,
    EOFError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    ValueError,
)


def members_of(path: Path, pattern: re.Pattern[str], kind: str) -> Iterator[tuple[re.Match[str], bytes]]:
    """Name, as a match of the pattern, and content of each picture in an archive. Nothing is written.

    Args:
        path: the archive.
        pattern: for the full names of all pictures in it.
        kind: what they are, for messages: "drawing of Omniglot".

    Raises:
        InputError: if it is not an archive, is damaged, or holds anything else, such as names that lead out of it or
            members too large to be a picture.
    """
    with sound(path, "zip archive"), zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if member.is_dir():
                continue
            found = pattern.fullmatch(member.filename)
            if found is None:
                raise InputError(f"{shown(path)}: holds {shown(member.filename)}, which is no {kind}")
            with archive.open(member) as stream:
                yield found, content_of(stream, MAX_BYTES, f"{shown(path)}: {shown(member.filename)}")


@contextlib.contextmanager
def sound(path: Path, kind: str) -> Iterator[None]:
    """Turn any error of a damaged archive into an `InputError` that names it.

    Args:
        path: the archive.
        kind: what it should be, for messages: "zip archive".
    """
    try:
        yield
    except InputError:
        raise
    except _DAMAGED as fault:
        raise InputError(f"{shown(path)}: not a sound {kind} ({reason(fault)}); get the file again") from fault
    except OSError as fault:
        raise InputError(f"{shown(path)}: cannot be read ({fault.strerror or fault})") from fault


def content_of(stream: IO[bytes], limit: int, where: str) -> bytes:
    """Read a whole stream, which may be longer than its archive claims.

    Raises:
        InputError: if it is longer than `limit` bytes.
    """
    content = stream.read(limit + 1)
    if len(content) > limit:
        raise InputError(f"{where} is larger than {limit} bytes")
    return content


def grey_levels(content: bytes, side: int, where: str, kind: str) -> Images:
    """A square picture, PNG or PGM, as grey levels (side, side).

    Args:
        content: the file's bytes.
        side: its required height and width.
        where: its name for messages.
        kind: what it is, for messages: "drawing".

    Raises:
        InputError: if it is not such a picture.
    """
    try:
        with Image.open(io.BytesIO(content), formats=("PNG", "PPM")) as image:
            if image.size != (side, side):
                raise InputError(f"{where}: is of size {image.size}, and {kind}s are of size {(side, side)}")
            return np.asarray(image.convert("L"))
    except InputError:
        raise
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError, zlib.error) as fault:
        raise InputError(f"{where}: not a readable {kind} ({shown(str(fault))}); get the file again") from fault
