"""MNIST for the tests that measure on it; they are skipped where it is not at hand, never downloaded."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pytest

from restore.data import Dataset, Split, load

_ROOT = os.environ.get("RESTORE_DATA", "")

needs_mnist = pytest.mark.skipif(
    not all((Path(_ROOT) / "mnist" / f"{part}-images-idx3-ubyte.gz").is_file() for part in ("train", "t10k")),
    reason="needs MNIST: set RESTORE_DATA to a folder that holds mnist/{train,t10k}-images-idx3-ubyte.gz",
)


@cache
def mnist(split: Split) -> Dataset:
    return load("mnist", split=split, root=Path(_ROOT))
