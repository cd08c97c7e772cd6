"""What the studies share: what was asked, training what they lack, and writing their tables into a document."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from restore.console import say, tell

if TYPE_CHECKING:
    from torch import Tensor

Found = TypeVar("Found")

# The part of README.md that a study writes.
BEGIN, END = "<!-- {}: begin -->", "<!-- {}: end -->"


@dataclass(frozen=True)
class Asked:
    """What the command line asked of a study.

    Attributes:
        output: folder of its recipes, tables and figures.
        priors: folder of trained priors that are not published.
        runs: folder of training runs.
        train_missing: whether to train what is missing first.
        n: number of images, test images but where a study says otherwise; None for all, or as many as it has by itself.
        seed: of everything random.
        data_root: where named data sets lie.
        device: as of all commands.
    """

    output: Path
    priors: Path
    runs: Path
    train_missing: bool
    n: int | None
    seed: int
    data_root: Path | None
    device: str

    def test_images(self, source: str, threshold: int) -> Tensor:
        """The binary test images (N, D) of a named data set."""
        return self.images(source, threshold, "test")

    def images(self, source: str, threshold: int, split: Literal["train", "test"]) -> Tensor:
        """The binary images (N, D) of a part of a named data set, the first `n` of them."""
        import torch

        from restore.data import binarise, load

        return torch.from_numpy(binarise(load(source, split=split, root=self.data_root).images[: self.n], threshold))

    def prior(self, recipe: Path, every: int = 0) -> Path | None:
        """The folder of a recipe's prior: published, or trained before, or, if so asked, now; None if there is none."""
        from restore import zoo
        from restore.learning.recipe import read_recipe

        name, folder = recipe.stem, zoo.published_folder() / recipe.stem
        # A name alone does not make it the prior of this recipe.
        if not (folder / zoo.WEIGHTS).exists() or zoo.describe(folder).recipe != read_recipe(recipe).digest:
            folder = self.priors / name
        if self.train_missing and not (folder / zoo.WEIGHTS).exists():
            self.train(recipe, folder, self.runs / name, every)
        return folder if (folder / zoo.WEIGHTS).exists() else None

    def train(self, recipe: Path, folder: Path, run: Path, every: int = 0) -> None:
        """`restore train` with the recipe's own data, on one thread as the published priors."""
        from restore.cli.train import train
        from restore.data.named import folders
        from restore.learning.recipe import read_recipe

        # What does not lie there is looked for where `load` looks next; `train` would take the folder for images.
        there = self.data_root is not None and folders(self.data_root, read_recipe(recipe).data.source)
        data = str(self.data_root) if there else None
        train(
            str(recipe),
            data=data,
            output=folder,
            run=run,
            resume=True,
            every=every,
            threads=1,
            device=self.device,
        )


def checksum(folder: Path) -> str:
    """SHA-256 of the weights of a prior."""
    import hashlib

    from restore import zoo

    return hashlib.sha256((folder / zoo.WEIGHTS).read_bytes()).hexdigest()


def report(output: Path, parts: Mapping[str, str]) -> None:
    """Print the tables of a study, and put each between its marks in README.md of the folder, where there is one."""
    from restore.files import write_atomically

    readme = output / "README.md"
    if readme.exists():
        text = readme.read_text()
        for mark, part in parts.items():
            text = section(text, mark, part)
        write_atomically(readme, text.encode())
    tell("\n\n".join(parts.values()))


def section(document: str, name: str, text: str) -> str:
    """The document with the part between the marks of a study replaced; without marks it stays as it is."""
    begin, end = BEGIN.format(name), END.format(name)
    head, opened, rest = document.partition(begin)
    _, closed, tail = rest.partition(end)
    return f"{head}{begin}\n{text}\n{end}{tail}" if opened and closed else document


def read_record(path: Path, settings: Mapping[str, Any], parse: Callable[[dict[str, Any]], Found]) -> Found:
    """What a study has found before, so that it need not find it again; empty if there is nothing.

    Args:
        path: its JSON.
        settings: what has to be the same for that, by their names there.
        parse: what to make of it, or of an empty one where there is none.

    Raises:
        InputError: if it is no record of a study, or of one with other settings.
    """
    from restore.errors import InputError, shown

    if not path.exists():
        return parse({})
    try:
        record = json.loads(path.read_text())
        there, found = {name: record[name] for name in settings}, parse(record)
    except (OSError, ValueError, TypeError, KeyError) as fault:
        raise InputError(f"{shown(path)}: not the record of this study; remove it") from fault
    for name, value in settings.items():
        if there[name] != value:
            raise InputError(f"{shown(path)}: holds the study with {name} {there[name]}, not {value}; remove it")
    return found


def keep_record(path: Path, settings: Mapping[str, Any], kind: str, found: Sequence[Any], known: Sequence[Any]) -> None:
    """Write what a study has found, for `read_record`, as the list `kind` of dataclasses with a recipe's `name` each.

    With what was known of the recipes to come, so that a study that is stopped loses nothing.
    """
    from restore.files import write_atomically

    names = {one.name for one in found}
    entries = [asdict(one) for one in (*found, *(one for one in known if one.name not in names))]
    write_atomically(path, json.dumps({**settings, kind: entries}, indent=1).encode())


def tell_missing(names: Sequence[str]) -> None:
    """Say which recipes a study goes without."""
    if names:
        say(f"no prior yet for {', '.join(names)}; train them with --train")
