"""The CBCL faces for the tests that measure on them; skipped where they are not at hand, as MNIST is."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pytest

from restore.data import Dataset, Split, load

ROOT = Path(os.environ.get("RESTORE_DATA", ""))

needs_cbcl = pytest.mark.skipif(
    not all((ROOT / "cbcl" / f"{split}_faces.zip").is_file() for split in ("train", "test")),
    reason="needs the CBCL faces: set RESTORE_DATA to a folder that holds cbcl/{train,test}_faces.zip",
)


@cache
def cbcl(split: Split) -> Dataset:
    return load("cbcl", split=split, root=ROOT)
