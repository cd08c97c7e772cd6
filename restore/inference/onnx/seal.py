"""The checksum that ends an exported file, over all bytes before it: what was damaged since is never run.

It is a last entry of the model properties. A message of protobuf goes on behind its end, so that no part of the graph
has to be written anew, and other programs see one property more.
"""

from __future__ import annotations

import hashlib

from restore.errors import ModelError

KEY = "file_sha256"

# As protobuf writes it: field 14 of a model, `metadata_props`; in it `key` (1) and `value` (2), each with its length.
_DIGITS = 64
_ENTRY = b"\x0a%c%s\x12%c" % (len(KEY), KEY.encode(), _DIGITS)
_HEAD = b"\x72%c%s" % (len(_ENTRY) + _DIGITS, _ENTRY)


def sealed(content: bytes) -> bytes:
    """The bytes of a file with their checksum."""
    return content + _HEAD + hashlib.sha256(content).hexdigest().encode()


def check_seal(content: bytes, where: str) -> None:
    """Refuse a file whose checksum is wrong; files without one were exported before there was any.

    Raises:
        ModelError: if it is wrong, or no longer at the end; `where` names the file in the message.
    """
    body, head, found = content[: -_DIGITS - len(_HEAD)], content[-_DIGITS - len(_HEAD) : -_DIGITS], content[-_DIGITS:]
    intact = head == _HEAD and found == hashlib.sha256(body).hexdigest().encode()
    if not intact and _HEAD in content:
        raise ModelError(
            f"{where}: was damaged or changed after it was exported; get the file again, or export it again"
        )
