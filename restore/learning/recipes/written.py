"""Write recipes as TOML, which Python's library only reads."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any


def written(tables: Mapping[str, Any], within: str = "") -> str:
    """The TOML of nested tables of texts, numbers, truth values and lists, inside the table `within`."""
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
        # JSON texts are TOML texts, except for one control character that only TOML escapes.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Sequence):
        return f"[{', '.join(map(_value, value))}]"
    return repr(value)
