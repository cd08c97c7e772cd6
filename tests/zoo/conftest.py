"""A small prior on disk."""

from __future__ import annotations

from pathlib import Path

import pytest
from exports import prior_of

from restore.zoo import save


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save(tmp_path / "small", prior_of(), "# small\n")
    return tmp_path / "small"
