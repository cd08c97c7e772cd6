"""Markdown tables of studies and cards."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table with names on the left in the first column, and figures on the right in the others."""
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def plus_minus(value: float, error: float, digits: int) -> str:
    """A figure with its standard error."""
    return f"{value:.{digits}f} ± {error:.{digits}f}"
