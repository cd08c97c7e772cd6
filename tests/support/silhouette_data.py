"""The Caltech-101 silhouettes for the tests that measure on them; skipped where they are not at hand, as MNIST is."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pytest

from restore.data import Dataset, Split, load

NAME = "caltech101-silhouettes"
FILE = "caltech101_silhouettes_28.mat"
SPELLINGS = [NAME, "caltech101_silhouettes"]

ROOT = Path(os.environ.get("RESTORE_DATA", ""))
COPIES = [path for path in (ROOT / folder / FILE for folder in SPELLINGS) if path.is_file()]

needs_silhouettes = pytest.mark.skipif(
    not COPIES, reason=f"needs the silhouettes: set RESTORE_DATA to a folder that holds {NAME}/{FILE}"
)


@cache
def silhouettes(split: Split) -> Dataset:
    return load(NAME, split=split, root=ROOT)
