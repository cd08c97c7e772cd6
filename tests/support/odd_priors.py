"""Priors whose headers say what none of ours does, and how they are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from restore.errors import ModelError
from restore.zoo import WEIGHTS

PUBLISHED = Path(__file__).parents[2] / "models"

Header = dict[str, Any]


def refused(call: Callable[[], object]) -> str:
    """The message of a prior that is refused: one printable line that one can read, with exit code 4."""
    with pytest.raises(ModelError) as caught:
        call()
    text = str(caught.value)
    assert caught.value.exit_code == 4 and text.isprintable() and len(text) < 1000
    return text


def rewritten(folder: Path, change: Callable[[Header], str | Header | None]) -> None:
    """Write a weights file with another header, its tensors as they are."""
    content = (folder / WEIGHTS).read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    changed = change(header)
    text = (changed if isinstance(changed, str) else json.dumps(changed or header)).encode()
    (folder / WEIGHTS).write_bytes(len(text).to_bytes(8, "little") + text + content[start:])


def inference(**settings: str) -> dict[str, str]:
    """The solver's settings, some of them other JSON."""
    whole = {"solver": '"tap"', "max_iter": "1000", "modes": "7", "starts": "3", **settings}
    return {"inference": "{" + ", ".join(f'"{key}": {value}' for key, value in whole.items()) + "}"}
