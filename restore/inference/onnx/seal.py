"""The checksum at the end of an exported file, over all bytes before it: a file that was damaged is never run.

It is appended as a last model property. Protobuf messages can be concatenated, so nothing of the graph is rewritten,
and other programs see one property more.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from restore.errors import ModelError, reason, shown
from restore.files import check_regular
from restore.zoo.limits import FILE

KEY = "file_sha256"

# As protobuf writes it: field 14 of a model, `metadata_props`, with `key` (1) and `value` (2), each with its length.
_DIGITS = 64
_ENTRY = b"\x0a%c%s\x12%c" % (len(KEY), KEY.encode(), _DIGITS)
_HEAD = b"\x72%c%s" % (len(_ENTRY) + _DIGITS, _ENTRY)
SIZE = len(_HEAD) + _DIGITS


def sealed(content: bytes) -> bytes:
    """Append the checksum to a file's bytes."""
    return content + _HEAD + hashlib.sha256(content).hexdigest().encode()


def read_intact(path: Path) -> bytes:
    """Read an exported file; raises ModelError if it cannot be read, is too large, or its checksum is wrong."""
    where = shown(path)
    try:
        check_regular(path, FILE)
        content = path.read_bytes()
    except (OSError, ValueError) as fault:
        raise ModelError(f"cannot be read ({reason(fault)}); get the file again", where) from fault
    if sealed(content[:-SIZE]) != content:
        raise ModelError("is no file of `restore export`, or was damaged or changed since; export it again", where)
    return content
