"""A good recipe as text, and what is said of bad ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from restore.errors import UsageError
from restore.learning.recipe.recipe import read_recipe

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


def assert_refused(path: Path, *subjects: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_recipe(path)
    text = str(caught.value)
    assert text.startswith(f"{path}: ")
    assert all(subject in text for subject in subjects)
    assert "\n" not in text and len(text) < len(str(path)) + 500
    assert caught.value.exit_code == 2


def with_line(table: str, line: str) -> str:
    """The good recipe with one more line in a table; "" is the top of the file."""
    head = f"[{table}]\n" if table else "\n"
    if head in GOOD:
        return GOOD.replace(head, f"{head}{line}\n", 1)
    return f"{GOOD}{head}{line}\n"
