"""The header of a weights file: what it claims to hold, read before any tensor."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from restore.errors import ModelError, reason, shown
from restore.zoo.limits import FILE, HEADER, strict

# The types in which tensors may be stored: those known to both numpy and torch.
FLOATS = ("F16", "F32", "F64")
BYTES = "U8"


@dataclass(frozen=True)
class Header:
    """The header of a weights file.

    Attributes:
        metadata: texts by key; None if there are none.
        types, shapes: of every tensor, by its name; types in safetensors' notation.
    """

    metadata: Mapping[str, str] | None
    types: Mapping[str, str]
    shapes: Mapping[str, tuple[int, ...]]

    @classmethod
    def of(cls, opened: Any) -> Header:
        """The header of a file that safetensors has opened."""
        slices = {name: opened.get_slice(name) for name in opened.keys()}  # noqa: SIM118
        types = {name: part.get_dtype() for name, part in slices.items()}
        return cls(opened.metadata(), types, {name: tuple(part.get_shape()) for name, part in slices.items()})


def read_header(path: Path) -> Header:
    """Read the header of a safetensors file.

    Raises:
        ModelError: if it is damaged or too large, or its tensors do not fill the file.
    """
    from safetensors import SafetensorError, safe_open

    try:
        state = path.stat()
        # Opening something else than a file, such as a pipe, may block.
        if not stat.S_ISREG(state.st_mode) or state.st_size > FILE:
            raise ValueError(f"it is no file, or larger than {FILE} bytes")
        with path.open("rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            if length > HEADER:
                raise ValueError(f"a header of {length} bytes, at most {HEADER} are read")
            # Of two entries with one key safetensors takes the last. It checks all else itself: the form, and that the
            # tensors lie side by side and fill the file.
            strict(stream.read(length))
        with safe_open(path, framework="numpy") as opened:
            return Header.of(opened)
    except (OSError, SafetensorError, ValueError, RecursionError) as fault:
        raise ModelError(
            f"{shown(path)}: damaged or not a safetensors file ({reason(fault)}); get the file again"
        ) from fault
