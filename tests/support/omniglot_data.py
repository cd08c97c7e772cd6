"""Omniglot for the tests that measure on it; skipped where it is not at hand, as MNIST is."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pytest

from restore.data import Dataset, Split, load

ROOT = Path(os.environ.get("RESTORE_DATA", ""))
FILES = [ROOT / "omniglot" / f"images_background_small{part}.zip" for part in (1, 2)]

needs_omniglot = pytest.mark.skipif(
    not all(path.is_file() for path in FILES),
    reason="needs Omniglot: set RESTORE_DATA to a folder that holds omniglot/images_background_small{1,2}.zip",
)


@cache
def omniglot(split: Split) -> Dataset:
    return load("omniglot", split=split, root=ROOT)
