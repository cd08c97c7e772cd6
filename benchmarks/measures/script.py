"""What every benchmark does: it takes options, and prints tables in Markdown, row by row, which the harness keeps."""

from __future__ import annotations

import argparse
from collections.abc import Collection


def command_line(doc: str | None, repeats: int = 0) -> argparse.ArgumentParser:
    """The options of a script with this docstring; also its turns and threads, if it is one that takes times."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    if repeats:
        # Only here, as others set the number of threads before torch is loaded.
        import torch

        parser.add_argument("--repeats", type=int, default=repeats, help="turns of each candidate [%(default)s]")
        parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="[%(default)s]")
    return parser


def head(*columns: str, left: Collection[str] = ()) -> None:
    """Print the head of a new table. The first column, and those named, are aligned to the left, the others right."""
    print()
    row(*columns)
    row(*("---:" if place and name not in left else "---" for place, name in enumerate(columns)))


def row(*cells: object) -> None:
    """Print a row at once, so that each can be read as soon as it is known."""
    print(f"| {' | '.join(map(str, cells))} |", flush=True)
