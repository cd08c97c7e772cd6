"""What the studies share: training what they lack, and writing their tables into a document."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

# The part of README.md that a study writes.
BEGIN, END = "<!-- {}: begin -->", "<!-- {}: end -->"


def report(output: Path, parts: Mapping[str, str]) -> None:
    """Print the tables of a study, and put each between its marks in README.md of the folder, where there is one."""
    from restore.files import write_atomically

    readme = output / "README.md"
    if readme.exists():
        text = readme.read_text()
        for mark, part in parts.items():
            text = section(text, mark, part)
        write_atomically(readme, text.encode())
    print("\n\n".join(parts.values()))


def section(document: str, name: str, text: str) -> str:
    """The document with the part between the marks of a study replaced; without marks it stays as it is."""
    begin, end = BEGIN.format(name), END.format(name)
    head, opened, rest = document.partition(begin)
    _, closed, tail = rest.partition(end)
    return f"{head}{begin}\n{text}\n{end}{tail}" if opened and closed else document


def train_run(recipe: Path, folder: Path, run: Path, data_root: Path | None, device: str, every: int = 0) -> None:
    """`restore train` with the recipe's own data, on one thread as the published priors."""
    from restore.cli.train import train
    from restore.data.named import folders
    from restore.learning.recipe import read_recipe

    # What does not lie there is looked for where `load` looks next; `train` would take the folder for images.
    there = data_root is not None and folders(data_root, read_recipe(recipe).data.source)
    data = str(data_root) if there else None
    train(recipe, data, folder, run, resume=True, every=every, threads=1, device=device)
