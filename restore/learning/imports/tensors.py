"""Read the tensors of a file that another program has saved: .npz or safetensors. Nothing is unpickled."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from restore.errors import InputError, ModelError, reason, shown
from restore.zoo.header import read_header

# Bytes of a file, and of what is packed in it: a matrix of 11,000 x 11,000 in double precision.
MOST = 2**30

_SAVE = "save numbers alone, with np.savez or safetensors.torch.save_file"


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a file by name, in double precision.

    Raises:
        InputError: if there is no such file, or it cannot be read.
        ModelError: if it is neither .npz nor safetensors, damaged, or too large; or holds pickled objects, or NaN.
    """
    if not path.is_file():
        raise InputError(f"{shown(path)}: is no file; name one that holds the weights and biases of an RBM")
    try:
        with path.open("rb") as stream:
            head = stream.read(9)
    except OSError as fault:
        raise InputError(f"{shown(path)}: cannot be read ({fault.strerror or fault})") from fault
    if path.stat().st_size > MOST:
        raise ModelError(f"{shown(path)}: has more than {MOST} bytes; save the three tensors of one RBM alone")
    if head[8:] == b"{":
        found = _safetensors(path)
    elif head.startswith(b"PK"):
        found = _npz(path)
    else:
        raise ModelError(f"{shown(path)}: neither .npz nor safetensors, and nothing is unpickled; {_SAVE}")
    for name, value in found.items():
        if not bool(torch.isfinite(value).all()):
            raise ModelError(f"{shown(path)}: {shown(name)} holds NaN or infinite values; train again")
    return found


def _safetensors(path: Path) -> dict[str, Tensor]:
    from safetensors.torch import load_file

    read_header(path)
    try:
        return {name: value.double() for name, value in load_file(path).items()}
    except Exception as fault:  # types of numbers that are packed or not known to torch
        raise ModelError(f"{shown(path)}: its tensors cannot be read ({reason(fault)}); {_SAVE}") from fault


def _npz(path: Path) -> dict[str, Tensor]:
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
            foreign = [name for name in archive.namelist() if not name.endswith(".npy")]
        if size > MOST or foreign:
            raise ValueError(f"{foreign[0]} is no array" if foreign else f"{size} bytes are packed in it")
        with np.load(path, allow_pickle=False) as arrays:
            # A text is an error.
            return {name: torch.from_numpy(np.asarray(arrays[name], np.float64)) for name in arrays.files}
    except Exception as fault:  # numpy parses headers as Python source and lets any exception through
        raise ModelError(f"{shown(path)}: not a usable .npz file ({reason(fault)}); {_SAVE}") from fault
