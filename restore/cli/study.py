"""`restore study`: the experiments behind the published figures, one command each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from torch import Tensor

    from restore.engine import Engine

EXAMPLE = "Example:  restore study denoising --data-root path/to/data -o training/"

# The part of README.md that a study writes.
BEGIN, END = "<!-- {}: begin -->", "<!-- {}: end -->"


def study(
    name: Annotated[
        Literal["denoising", "scores"],
        typer.Argument(help="denoising: table and figure of MCC over p. scores: the cards of the priors."),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="denoising: folder for table and figure.")] = Path(
        "training"
    ),
    models: Annotated[list[str] | None, typer.Option("--model", help="Priors [all published ones].")] = None,
    n: Annotated[int, typer.Option("--n", help="Number of test images.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Seed of the damage.")] = 0,
    data_root: Annotated[Path | None, typer.Option(help="Where MNIST lies [RESTORE_DATA].")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda[:N].")] = "auto",
) -> None:
    """Repeat a study on MNIST and write its results where they are published."""
    from importlib.util import find_spec

    import torch

    from restore import zoo
    from restore.data import binarise, load
    from restore.engine import Engine
    from restore.errors import OutputError, UsageError

    if n < 2:
        raise UsageError(f"--n must be at least 2, not {n}")
    if name == "denoising" and not output.is_dir():
        raise OutputError(f"{output}: is no folder; make it or choose another -o")
    if name == "denoising" and find_spec("matplotlib") is None:
        raise UsageError("the figure of this study needs matplotlib; pip install matplotlib")
    published = zoo.published_folder()
    names = models or sorted(folder.name for folder in zoo.folders() if folder.parent == published)
    if name == "scores":
        for model in names:
            engine = Engine.load(model, device)
            about = engine.trained.description
            truth = torch.from_numpy(binarise(load(about.data, split="test", root=data_root).images, about.threshold))
            _score(zoo.find(model), engine, truth, n, seed)
        return
    engines = {model: Engine.load(model, device) for model in names}
    engines = {model: engine for model, engine in engines.items() if not engine.trained.description.conditional}
    truth = torch.from_numpy(binarise(load("mnist", split="test", root=data_root).images))
    training = torch.from_numpy(binarise(load("mnist", split="train", root=data_root).images))
    _denoising(output, engines, training, truth[:n], seed)


def _score(folder: Path, engine: Engine, truth: Tensor, n: int, seed: int) -> None:
    from restore.evaluation.scores import as_section, measure
    from restore.files import write_atomically
    from restore.learning.card import with_scores
    from restore.zoo import CARD

    command = f"restore study scores --model {folder.name} --n {n} --seed {seed}"
    section = as_section(measure(engine, truth[:n], seed), command)
    card = folder / CARD
    write_atomically(card, with_scores(card.read_text(), section, str(card)).encode())
    print(f"{folder.name}\n{section}\n")


def _denoising(output: Path, engines: dict[str, Engine], training: Tensor, truth: Tensor, seed: int) -> None:
    import json
    import sys
    from dataclasses import asdict

    from restore.evaluation import denoising_study as denoising
    from restore.files import write_atomically

    shape = next(iter(engines.values())).trained.description.image_shape
    curves = denoising.study(engines, training, truth, shape, seed, lambda line: print(line, file=sys.stderr))
    tables = [denoising.as_table(curves)]
    tables += [denoising.depth_table(curves, name) for name in engines]
    record = {"n": len(truth), "seed": seed, "curves": [asdict(curve) for curve in curves]}
    write_atomically(output / "denoising.json", json.dumps(record, indent=1).encode())
    denoising.as_figure(curves, output / "denoising.png")
    text = "\n\n".join(tables)
    readme = output / "README.md"
    if readme.exists():
        write_atomically(readme, _section(readme.read_text(), "denoising", text).encode())
    print(text)


def _section(document: str, name: str, text: str) -> str:
    """The document with the part between the marks of a study replaced; without marks it stays as it is."""
    begin, end = BEGIN.format(name), END.format(name)
    head, opened, rest = document.partition(begin)
    _, closed, tail = rest.partition(end)
    return f"{head}{begin}\n{text}\n{end}{tail}" if opened and closed else document
