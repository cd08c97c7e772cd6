"""Recipes as text: tables to TOML, which Python reads but does not write."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any


def written(tables: Mapping[str, Any], within: str = "") -> str:
    """The TOML of nested tables of texts, numbers, truth values and lists; `within` is the table they are in."""
    plain = {key: value for key, value in tables.items() if not isinstance(value, Mapping)}
    lines = [f"{key} = {_value(value)}\n" for key, value in plain.items()]
    head = f"[{within}]\n" if within and (plain or not tables) else ""
    parts = [head + "".join(lines)] if head or lines else []
    for key, value in tables.items():
        if isinstance(value, Mapping):
            parts.append(written(value, f"{within}.{key}" if within else key))
    return "\n".join(parts)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        # Texts of JSON are texts of TOML, but for one control character that only the latter escapes.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Sequence):
        return f"[{', '.join(map(_value, value))}]"
    return repr(value)
