"""The checksum at the end of an exported file, over all bytes before it: a file that was damaged is never run.

It is appended as a last model property. Protobuf messages can be concatenated, so nothing of the graph is rewritten,
and other programs see one property more.
"""

from __future__ import annotations

import hashlib

from restore.errors import ModelError

KEY = "file_sha256"

# As protobuf writes it: field 14 of a model, `metadata_props`, with `key` (1) and `value` (2), each with its length.
_DIGITS = 64
_ENTRY = b"\x0a%c%s\x12%c" % (len(KEY), KEY.encode(), _DIGITS)
_HEAD = b"\x72%c%s" % (len(_ENTRY) + _DIGITS, _ENTRY)


def sealed(content: bytes) -> bytes:
    """Append the checksum to a file's bytes."""
    return content + _HEAD + hashlib.sha256(content).hexdigest().encode()


def check_seal(content: bytes, where: str) -> None:
    """Refuse a file whose checksum is wrong; old exports have none.

    Raises:
        ModelError: if it is wrong, or no longer at the end; `where` names the file in the message.
    """
    body, head, found = content[: -_DIGITS - len(_HEAD)], content[-_DIGITS - len(_HEAD) : -_DIGITS], content[-_DIGITS:]
    intact = head == _HEAD and found == hashlib.sha256(body).hexdigest().encode()
    if not intact and _HEAD in content:
        raise ModelError(
            f"{where}: was damaged or changed after it was exported; get the file again, or export it again"
        )
