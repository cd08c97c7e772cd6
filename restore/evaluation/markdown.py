"""Tables in Markdown, as the studies and the cards have them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose first column holds names, to the left, and whose others hold figures, to the right."""
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def plus_minus(value: float, error: float, digits: int) -> str:
    """A figure with its standard error."""
    return f"{value:.{digits}f} ± {error:.{digits}f}"
