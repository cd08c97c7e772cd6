"""Download published files and check every byte."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from restore.data.archives import readable
from restore.errors import InputError, OutputError, reason


@dataclass(frozen=True)
class RemoteFile:
    """A published file: its name, its checksum, and the folders that hold it, in the order to try them.

    `origin` says where a user can get it if there are no mirrors.
    """

    name: str
    sha256: str
    mirrors: tuple[str, ...]
    origin: str = "no mirror is known"


def fetch(file: RemoteFile, folder: Path) -> Path:
    """Return the path of the file in `folder`; download it, from the first mirror that has it, if needed.

    Raises InputError, which says why for each mirror, and OutputError if the folder cannot be written to.
    """
    import pooch
    import requests

    pooch.get_logger().setLevel("WARNING")
    faults = []
    for mirror in file.mirrors:
        try:
            return Path(pooch.retrieve(f"{mirror.rstrip('/')}/{file.name}", f"sha256:{file.sha256}", file.name, folder))
        except (requests.RequestException, ValueError) as fault:  # a ValueError is a wrong checksum
            faults.append(f"{mirror}: {reason(fault)}")
        except OSError as fault:
            raise OutputError(
                f"cannot be written ({fault.strerror or reason(fault)}); set RESTORE_DATA to another place", folder
            ) from fault
    raise InputError(f"could not be downloaded ({'; '.join(faults) or file.origin})", file.name)


def read_intact(path: Path, file: RemoteFile) -> bytes:
    """Read a copy of a published file; raises InputError if it differs in any bit from what was published."""
    with readable(path):
        content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != file.sha256:
        raise InputError(f"is not the published file; remove it, or get it from {file.mirrors[0]}", path)
    return content
