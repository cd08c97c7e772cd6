"""`restore study`: the experiments behind the published figures, one command each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from restore.cli.study_dcp import study_dcp
from restore.cli.study_likelihoods import study_likelihoods

if TYPE_CHECKING:
    from torch import Tensor

    from restore.engine import Engine

EXAMPLE = "Example:  restore study denoising --data-root path/to/data -o training/"

# Test images by default, for priors that are told of the damage.
TOLD = 1000

# The part of README.md that a study writes.
BEGIN, END = "<!-- {}: begin -->", "<!-- {}: end -->"


def study(
    name: Annotated[
        Literal["denoising", "scores", "crbm", "likelihoods", "dcp"],
        typer.Argument(
            help="denoising: table and figure of MCC over p. scores: the cards of the priors. "
            "crbm: eight methods on six tasks, from the recipes crbm-*.toml in the output folder and below. "
            "likelihoods: three measures of them along a training run, and of priors. "
            "dcp: learners of RBMs at equal numbers of Gibbs sweeps."
        ),
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="All but scores: folder for tables and figures.")
    ] = Path("training"),
    models: Annotated[list[str] | None, typer.Option("--model", help="Priors [all published ones].")] = None,
    n: Annotated[
        int | None, typer.Option("--n", help="Number of test images [1000; for conditional priors all].")
    ] = None,
    priors: Annotated[Path, typer.Option(help="crbm: folder of trained priors that are not published.")] = Path(
        "runs/priors"
    ),
    runs: Annotated[
        Path, typer.Option(help="All but denoising and scores: folder of the runs, whose logs or results are read.")
    ] = Path("runs"),
    train_missing: Annotated[
        bool,
        typer.Option("--train", help="The same: train what is missing first; crbm and dcp: many hours."),
    ] = False,
    seed: Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Seed of the damage.")] = 0,
    data_root: Annotated[Path | None, typer.Option(help="Where named data sets lie [RESTORE_DATA].")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda[:N].")] = "auto",
) -> None:
    """Repeat a study and write its results where they are published."""
    from importlib.util import find_spec

    import torch

    from restore import zoo
    from restore.data import binarise, load
    from restore.engine import Engine
    from restore.errors import OutputError, UsageError

    if n is not None and n < 2:
        raise UsageError(f"--n must be at least 2, not {n}")
    if name != "scores" and not output.is_dir():
        raise OutputError(f"{output}: is no folder; make it or choose another -o")
    if name != "scores" and find_spec("matplotlib") is None:
        raise UsageError("the figure of this study needs matplotlib; pip install matplotlib")
    if name == "crbm":
        _crbm(output, priors, runs, train_missing, n, seed, data_root, device)
        return
    if name == "dcp":
        study_dcp(output, runs / "dcp", train_missing, n, seed, data_root)
        return
    published = zoo.published_folder()
    names = models or sorted(folder.name for folder in zoo.folders() if folder.parent == published)
    if name == "likelihoods":
        study_likelihoods(output, names, runs, train_missing, n, seed, data_root, device)
        return
    if name == "scores":
        for model in names:
            engine = Engine.load(model, device)
            about = engine.trained.description
            truth = torch.from_numpy(binarise(load(about.data, split="test", root=data_root).images, about.threshold))
            _score(zoo.find(model), engine, truth[: n or (len(truth) if about.conditional else TOLD)], n, seed)
        return
    engines = {model: Engine.load(model, device) for model in names}
    engines = {model: engine for model, engine in engines.items() if not engine.trained.description.conditional}
    if not engines:
        raise UsageError("no prior here is told of the flips; name others with --model")
    truth = torch.from_numpy(binarise(load("mnist", split="test", root=data_root).images))
    training = torch.from_numpy(binarise(load("mnist", split="train", root=data_root).images))
    _denoising(output, engines, training, truth[: n or TOLD], seed)


def _score(folder: Path, engine: Engine, truth: Tensor, n: int | None, seed: int) -> None:
    from restore.evaluation.scores import as_section, measure
    from restore.files import write_atomically
    from restore.learning.card import with_scores
    from restore.zoo import CARD

    some = f" --n {n}" if n is not None else ""
    command = f"restore study scores --model {folder.name}{some} --seed {seed}"
    scored = as_section(measure(engine, truth, seed), command)
    card = folder / CARD
    write_atomically(card, with_scores(card.read_text(), scored, str(card)).encode())
    print(f"{folder.name}\n{scored}\n")


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
        write_atomically(readme, section(readme.read_text(), "denoising", text).encode())
    print(text)


def section(document: str, name: str, text: str) -> str:
    """The document with the part between the marks of a study replaced; without marks it stays as it is."""
    begin, end = BEGIN.format(name), END.format(name)
    head, opened, rest = document.partition(begin)
    _, closed, tail = rest.partition(end)
    return f"{head}{begin}\n{text}\n{end}{tail}" if opened and closed else document


def _crbm(
    output: Path,
    priors: Path,
    runs: Path,
    train_missing: bool,
    n: int | None,
    seed: int,
    data_root: Path | None,
    device: str,
) -> None:
    import json
    import sys

    import torch

    from restore import zoo
    from restore.data import binarise, load
    from restore.engine import Engine
    from restore.errors import InputError
    from restore.evaluation import crbm_study as crbm
    from restore.files import write_atomically
    from restore.learning.recipe import read_recipe

    recipes = {path.stem: path for path in sorted(output.rglob("crbm-*.toml")) if crbm.key_of(path.stem)}
    cells, shares, missing = [], {}, []
    for name, recipe in recipes.items():
        folder = zoo.published_folder() / name
        # A name alone does not make it the prior of this recipe.
        if not (folder / zoo.WEIGHTS).exists() or zoo.describe(folder).recipe != read_recipe(recipe).digest:
            folder = priors / name
        if train_missing and not (folder / zoo.WEIGHTS).exists():
            train_run(recipe, folder, runs / name, data_root, device)
        if not (folder / zoo.WEIGHTS).exists():
            missing.append(name)
            continue
        engine = Engine.load(str(folder), device)
        about = engine.trained.description
        truth = torch.from_numpy(binarise(load(about.data, split="test", root=data_root).images[:n], about.threshold))
        cells.append(crbm.measure(engine, truth, seed))
        log = runs / name / "log.jsonl"
        if cells[-1].method == "bp" and cells[-1].task in crbm.TASKS and log.exists():
            shares[crbm.TASKS[cells[-1].task]] = crbm.convergence(log)
        print(f"{name}: {cells[-1].everywhere[0]:.3f} % of all pixels wrong", file=sys.stderr)
    if missing:
        print(f"no prior yet for {', '.join(missing)}; train them with --train", file=sys.stderr)
    if not cells:
        raise InputError(f"{output}: none of its recipes crbm-*.toml has a trained prior; give --train, or --priors")
    parts = {"crbm": crbm.as_tables(cells), "crbm-sizes": crbm.curve_table(cells)}
    if shares:
        parts["crbm-converged"] = crbm.convergence_table(shares)
    write_atomically(output / "crbm.json", json.dumps(crbm.as_record(cells, shares, seed), indent=1).encode())
    crbm.as_figure(cells, shares, output / "crbm.png")
    readme = output / "README.md"
    if readme.exists():
        text = readme.read_text()
        for mark, part in parts.items():
            text = section(text, mark, part)
        write_atomically(readme, text.encode())
    print("\n\n".join(parts.values()))


def train_run(recipe: Path, folder: Path, run: Path, data_root: Path | None, device: str, every: int = 0) -> None:
    """`restore train` with the recipe's own data, on one thread as the published priors."""
    from restore.cli.train import train
    from restore.data.named import folders
    from restore.learning.recipe import read_recipe

    # What does not lie there is looked for where `load` looks next; `train` would take the folder for images.
    there = data_root is not None and folders(data_root, read_recipe(recipe).data.source)
    data = str(data_root) if there else None
    train(recipe, data, folder, run, resume=True, every=every, threads=1, device=device)
