"""Write recipes as TOML, which Python's library only reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def written(tables: Mapping[str, Any]) -> str:
    """The TOML of nested tables of texts, numbers, truth values and lists."""
    import tomli_w

    return tomli_w.dumps(tables)
