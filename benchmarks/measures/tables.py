"""Tables in Markdown, printed row by row; the harness keeps them."""

from __future__ import annotations

from collections.abc import Collection


def head(*columns: str, left: Collection[str] = ()) -> None:
    """Print the head of a new table. The first column, and those named, are aligned to the left, the others right."""
    print()
    row(*columns)
    row(*("---:" if place and name not in left else "---" for place, name in enumerate(columns)))


def row(*cells: object) -> None:
    """Print a row at once, so that each can be read as soon as it is known."""
    print(f"| {' | '.join(map(str, cells))} |", flush=True)
