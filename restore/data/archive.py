"""Pictures of a known size in a zip archive, as the sets that are published as files of images have them."""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image, UnidentifiedImageError

from restore.data.dataset import Images
from restore.errors import InputError, shown

# Such pictures are some hundred bytes long each; nothing longer is unpacked, whatever an archive promises.
MAX_BYTES = 1 << 16


def members_of(path: Path, pattern: re.Pattern[str], kind: str) -> Iterator[tuple[re.Match[str], bytes]]:
    """Name, as the pattern matched it, and content of each picture of an archive. Nothing is written anywhere.

    Args:
        path: the archive.
        pattern: of the full names of all pictures in it.
        kind: what they are, for messages: "drawing of Omniglot".

    Raises:
        InputError: if it is no archive, is damaged, or holds anything else, such as names that lead out of it or
            members too large to be a picture.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                if member.is_dir():
                    continue
                found = pattern.fullmatch(member.filename)
                if found is None:
                    raise InputError(f"{shown(path)}: holds {shown(member.filename)}, which is no {kind}")
                with archive.open(member) as stream:
                    content = stream.read(MAX_BYTES + 1)
                if len(content) > MAX_BYTES:
                    raise InputError(f"{shown(path)}: {shown(member.filename)} is larger than {MAX_BYTES} bytes")
                yield found, content
    except InputError:
        raise
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as fault:
        reason = " ".join(str(fault).split())
        raise InputError(f"{shown(path)}: not a sound zip archive ({reason}); get the file again") from fault
    except OSError as fault:
        raise InputError(f"{shown(path)}: cannot be read ({fault.strerror or fault})") from fault


def grey_levels(content: bytes, side: int, where: str, kind: str) -> Images:
    """A square picture, PNG or PGM, as grey levels (side, side).

    Args:
        content: of the file.
        side: height and width that it must have.
        where: what to call it in messages.
        kind: what it is, for messages: "drawing".

    Raises:
        InputError: if it is none.
    """
    try:
        with Image.open(io.BytesIO(content), formats=("PNG", "PPM")) as image:
            if image.size != (side, side):
                raise InputError(f"{where}: is of size {image.size}, and {kind}s are of size {(side, side)}")
            return np.asarray(image.convert("L"))
    except InputError:
        raise
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError, zlib.error) as fault:
        raise InputError(f"{where}: not a readable {kind} ({fault}); get the file again") from fault
