"""A good recipe as text, and what is said of bad ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from restore.errors import UsageError
from restore.learning.recipes.recipe import read_recipe

GOOD = """
name = "digits"

[data]
source = "mnist"

[prior]
hidden = 5

[learner]
method = "tap"

[training]
epochs = 2
"""


def write(folder: Path, text: str | bytes, name: str = "recipe.toml") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def assert_refused(path: Path, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_recipe(path)
    text = str(caught.value)
    assert text.startswith(f"{path}: ")
    assert says in text
    assert "\n" not in text
    assert caught.value.exit_code == 2
