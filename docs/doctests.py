"""Shows the `>>>` blocks of docstrings on the site as examples, for which it looks in a section of that name."""

from __future__ import annotations

import re
from typing import Any

import griffe

BLOCK = re.compile(r"(?:^[ ]*>>> .*\n(?:^[ ]*\S.*\n?)*\n?)+", re.MULTILINE)


class Doctests(griffe.Extension):
    """Puts the examples of a docstring under `Examples:`, where they are laid out as a Python session."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring and ">>>" in obj.docstring.value and "Examples:" not in obj.docstring.value:
            obj.docstring.value = BLOCK.sub(_section, obj.docstring.value)


def _section(found: re.Match[str]) -> str:
    lines = "".join(f"    {line.strip()}\n" if line.strip() else "\n" for line in found[0].splitlines())
    return f"Examples:\n{lines}"
