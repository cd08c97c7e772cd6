"""What all studies share: options, images, training what is missing, records, figures, and tables in a document."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import torch
import typer
from kept import kept_epochs
from torch import Tensor

from restore import zoo
from restore.console import progress, say, tell
from restore.data import Split, as_pixels, load
from restore.errors import InputError, RestoreError, TrainingError, shown
from restore.files import write_atomically
from restore.inference.devices import pick_device
from restore.inference.torch_engine import Engine
from restore.learning.lesson import lesson_of
from restore.learning.options import TrainOptions
from restore.learning.recipe.recipe import Recipe, read_recipe
from restore.learning.run.checkpoint import load as load_checkpoint
from restore.learning.run.session import Session
from restore.learning.train import train_and_save
from restore.zoo.structure import structure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The folder that holds recipes/ and studies/records/.
TRAINING = Path(__file__).parents[1]

# The documents that tables go into, seen from the folder of recipes.
DOCUMENTS = ("log.md", "../benchmarks/priors.md")

# The part of a document that a study writes.
BEGIN, END = "<!-- {}: begin -->", "<!-- {}: end -->"

# Dots per inch of all figures.
DPI = 110


@dataclass(frozen=True)
class Asked:
    """What the command line asked of a study.

    Attributes:
        root: folder of recipes, records and the document, laid out as `TRAINING`.
        runs: folder of training runs.
        priors: folder of trained priors that are not published.
        models: priors by name; empty for all published ones.
        train_missing: whether to train what is missing first.
        n: number of images, test images but where a study says otherwise; None for all, or as many as it has by itself.
        seed: of everything random.
        data: where named data sets lie; None for RESTORE_DATA.
        device: as of all commands.
    """

    root: Path = TRAINING
    runs: Path = Path("runs")
    priors: Path = Path("runs/priors")
    models: tuple[str, ...] = ()
    train_missing: bool = False
    n: int | None = None
    seed: int = 0
    data: Path | None = None
    device: str = "auto"

    @property
    def recipes(self) -> Path:
        return self.root / "recipes"

    @property
    def records(self) -> Path:
        return self.root / "studies" / "records"

    @property
    def documents(self) -> list[Path]:
        """Those there are of the documents with room for tables."""
        return [path for path in map(self.root.joinpath, DOCUMENTS) if path.exists()]

    def images(self, source: str, split: Split, n: int | None = None, *, grey: bool = False, cut: int = 127) -> Tensor:
        """The first `n` images (N, D) of a part of a named data set: ink above grey level `cut`, or grey levels."""
        found = load(source, split=split, root=self.data).images[:n]
        return torch.from_numpy(as_pixels(found, "grey" if grey else "threshold", cut, 0))

    def engines(self) -> dict[str, Engine]:
        """The priors that are asked for, ready to restore, by name."""
        published = [folder.name for folder in zoo.folders() if folder.parent == zoo.published_folder()]
        return {name: Engine.load(name, self.device) for name in self.models or sorted(published)}

    def prior(self, recipe: Path, every: int = 0) -> Path | None:
        """The folder of a recipe's prior: published, or trained before, or, if so asked, now; None if there is none."""
        folder = zoo.published_folder() / recipe.stem
        # A name alone does not make it the prior of this recipe.
        if not (folder / zoo.WEIGHTS).exists() or zoo.describe(folder).recipe != read_recipe(recipe).digest:
            folder = self.priors / recipe.stem
        if self.train_missing and not (folder / zoo.WEIGHTS).exists():
            self.train(recipe, folder, self.runs / recipe.stem, every)
        return folder if (folder / zoo.WEIGHTS).exists() else None

    def train(self, recipe: Path, folder: Path, run: Path, every: int = 0) -> None:
        """Train a prior, or go on with it, as `restore train RECIPE --threads 1` does; without graph and report."""
        torch.set_num_threads(1)
        plan, text = read_recipe(recipe), recipe.read_text(encoding="utf-8")
        lesson = lesson_of(plan, TrainOptions(data=self.data), text)
        with progress(plan.name, plan.training.epochs or None) as meter:
            session = Session(run, resume=True, watch=lambda passed: meter(passed.done, passed.stage))
            trained = train_and_save(lesson, session, pick_device(self.device), report=False, every=every)
        zoo.save(folder, trained.prior, f"# {plan.name}\n\n```toml\n{lesson.text.strip()}\n```\n", TrainingError)


def kept_of(plan: Recipe, run: Path) -> dict[int, Path]:
    """The priors that a run has kept, by epoch; none if it has not begun.

    Raises:
        InputError: if it is the run of another recipe. Its checkpoint says so, which has all settings in full.
    """
    kept = kept_epochs(run)
    found = load_checkpoint(run) if kept else None
    if kept and (found is None or found.facts["identity"]["recipe"] not in (plan.training_facts, plan.growth_facts)):
        raise InputError(f"{shown(run)}: holds a run of another recipe; remove it, or give another --runs")
    return kept


def checksum(folder: Path) -> str:
    """SHA-256 of the tensors of a prior. Its header is left out: that changes, and nothing measured depends on it."""
    content = (folder / zoo.WEIGHTS).read_bytes()
    return hashlib.sha256(content[8 + int.from_bytes(content[:8], "little") :]).hexdigest()


def spread(epochs: Sequence[int], count: int) -> list[int]:
    """At most `count` of some epochs, in order: the first, the last, and others at about equal factors between them.

    Most happens early in a training run.
    """
    epochs = sorted(epochs)
    if len(epochs) <= count:
        return epochs
    ratio = (epochs[-1] / epochs[0]) ** (1 / (count - 1))
    chosen: list[int] = []
    for index in range(count):
        # The nearest that leaves enough for the rest.
        left = [epoch for epoch in epochs[: len(epochs) - (count - 1 - index)] if not chosen or epoch > chosen[-1]]
        chosen.append(min(left, key=lambda epoch: abs(epoch - epochs[0] * ratio**index)))
    return chosen


# ------------------------------------------------------------------------------------------------------------- records


def read(path: Path, settings: Mapping[str, Any], **kinds: type) -> dict[str, list[Any]]:
    """What a study has found before, so that it need not find it again; nothing if there is no record.

    Args:
        path: its JSON.
        settings: what has to be the same for that, by their names there.
        kinds: the lists in it by their names, and the dataclass of their entries.

    Raises:
        InputError: if it is no record of this study, or of one with other settings.
    """
    if not path.exists():
        return {name: [] for name in kinds}
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        there = {name: record[name] for name in settings}
        found: dict[str, list[Any]] = {}
        for name, kind in kinds.items():
            found[name] = [structure(kind, entry) for entry in record.get(name, ())]
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as fault:
        raise InputError(f"{shown(path)}: not the record of this study; remove it") from fault
    for name, value in settings.items():
        if there[name] != value:
            raise InputError(f"{shown(path)}: holds the study with {name} {there[name]}, not {value}; remove it")
    return found


def write(path: Path, record: Mapping[str, Any], *, indent: int | None = 1) -> None:
    """Write what a study has found, dataclasses and all; a folder that is missing is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps(record, indent=indent, default=asdict).encode())


def with_others(found: Sequence[Any], known: Sequence[Any]) -> list[Any]:
    """What was found now, and what was known of recipes with other names: a study that is stopped loses nothing."""
    names = {one.name for one in found}
    return [*found, *(one for one in known if one.name not in names)]


# ------------------------------------------------------------------------------------------------- figures and tables


def panels(rows: int, columns: int, size: tuple[float, float], **options: Any) -> tuple[Figure, Any]:
    """A figure with a grid of axes (rows, columns), each of a size (width, height) in inches."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(size[0] * columns, size[1] * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def panels_for(count: int, columns: int, size: tuple[float, float]) -> tuple[Figure, list[Any]]:
    """A figure with so many axes in rows; the rest of the last row is empty."""
    figure, grid = panels(-(-count // columns), columns, size)
    for axes in grid.flat[count:]:
        axes.axis("off")
    return figure, list(grid.flat[:count])


def finish(axes: Any, **legend: Any) -> None:
    """Give a panel its grid and its legend."""
    axes.grid(alpha=0.3)
    axes.legend(**({"fontsize": 8} | legend))


def publish(asked: Asked, tables: Mapping[str, str], figures: Mapping[str, Figure] | None = None) -> None:
    """Write figures beside the record; print tables, and put each between its marks in the documents.

    Args:
        asked: says where.
        tables: by the name of their marks.
        figures: by the name of their files.
    """
    asked.records.mkdir(parents=True, exist_ok=True)
    for name, figure in (figures or {}).items():
        figure.savefig(asked.records / name, dpi=DPI)
    for document in asked.documents:
        text = document.read_text("utf-8")
        for mark, table in tables.items():
            text = section(text, mark, table)
        write_atomically(document, text.encode())
    tell("\n\n".join(tables.values()))


def section(document: str, name: str, text: str) -> str:
    """The document with the part between the marks of a study replaced; without marks it stays as it is."""
    begin, end = BEGIN.format(name), END.format(name)
    head, opened, rest = document.partition(begin)
    _, closed, tail = rest.partition(end)
    return f"{head}{begin}\n{text}\n{end}{tail}" if opened and closed else document


def tell_missing(names: Sequence[str]) -> None:
    """Say which recipes a study goes without."""
    if names:
        say(f"no prior yet for {', '.join(names)}; train them with --train")


# ----------------------------------------------------------------------------------------------------- the command line


def main(study: Callable[[Asked], None]) -> None:
    """The script of a study: read its options, and end with the exit code of what it refuses."""

    def command(
        root: Annotated[
            Path,
            typer.Option("-o", "--output", help="Folder of recipes/ and studies/records/, with log.md for tables."),
        ] = TRAINING,
        models: Annotated[list[str] | None, typer.Option("--model", help="Priors [all published ones].")] = None,
        n: Annotated[int | None, typer.Option("--n", min=2, help="Number of images [the study's own].")] = None,
        runs: Annotated[Path, typer.Option(help="Folder of the runs, whose logs and priors are read.")] = Asked.runs,
        priors: Annotated[Path, typer.Option(help="Folder of trained priors that are not published.")] = Asked.priors,
        train_missing: Annotated[
            bool, typer.Option("--train", help="Train what is missing first, one after the other: often many hours.")
        ] = False,
        seed: Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Seed of everything random.")] = 0,
        data: Annotated[Path | None, typer.Option(help="Where named data sets lie [RESTORE_DATA].")] = None,
        device: Annotated[str, typer.Option(help="auto, cpu or cuda[:N].")] = "auto",
    ) -> None:
        study(Asked(root, runs, priors, tuple(models or ()), train_missing, n, seed, data, device))

    run(command, study.__doc__)


def run(command: Callable[..., None], about: str | None = None) -> None:
    """Run a script's function by the options of the command line; errors end it with a line and their exit code."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.command(help=about or command.__doc__)(command)
    try:
        app()
    except RestoreError as fault:
        say(str(fault))
        sys.exit(fault.exit_code)
