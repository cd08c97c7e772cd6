"""The study of conditional RBMs: eight methods on six tasks, beside the published figures (CRBM-BP, sec. 6).

A method and a task make a recipe, and a recipe a prior, named `crbm-METHOD-DATA-TASK`. The tables hold every such prior
there is; the curve over the size of the hidden patch (Fig. 3) and the share of converged inferences along training
(Fig. 4) come from the same priors and the logs of their runs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from harness import Asked, main, publish, tell_missing, write
from torch import Tensor

from restore.console import say
from restore.errors import InputError, shown
from restore.evaluation.card import plus_minus, table
from restore.evaluation.evaluate import Report, evaluate, task_of
from restore.inference.torch_engine import Engine
from restore.status import Status

METHODS = {
    "lr": "LR",
    "cd1": "CD-1",
    "cd10": "CD-10",
    "percloss": "CD-PercLoss",
    "mf": "MLE-MF",
    "bp": "MLE-BP",
    "lssvm": "LSSVM",
    "mssvm": "MSSVM",
}
TASKS = {
    "mnist-flip10": "MNIST, flip 10 %",
    "mnist-flip20": "MNIST, flip 20 %",
    "mnist-patch8": "MNIST, 8x8 patch",
    "mnist-patch12": "MNIST, 12x12 patch",
    "caltech-flip20": "Caltech, flip 20 %",
    "caltech-patch12": "Caltech, 12x12 patch",
}

# Tables 1-3 of the paper: wrong pixels in per cent, of all and of those the corruption changed, per task as above.
PAPER: dict[str, tuple[tuple[float, float], ...]] = {
    "lr": ((1.960, 12.531), (4.088, 12.609), (1.468, 61.304), (3.498, 53.971), (5.653, 11.460), (4.771, 16.587)),
    "cd1": ((1.925, 12.229), (4.012, 12.597), (1.814, 63.130), (3.983, 58.376), (5.876, 12.423), (5.033, 20.300)),
    "cd10": ((1.816, 11.103), (3.995, 11.271), (1.707, 67.925), (3.921, 63.237), (5.736, 12.013), (5.149, 21.087)),
    "percloss": ((1.760, 11.121), (3.970, 10.876), (1.394, 45.684), (3.483, 35.755), (5.622, 10.808), (5.081, 15.102)),
    "mf": ((1.862, 11.319), (3.917, 10.939), (1.492, 49.553), (3.477, 40.703), (5.617, 11.083), (4.692, 15.995)),
    "bp": ((1.688, 10.718), (3.691, 10.409), (1.329, 39.785), (3.117, 36.233), (5.445, 10.731), (4.548, 16.541)),
    "lssvm": ((1.807, 11.565), (3.910, 11.175), (1.496, 44.037), (3.468, 39.140), (5.628, 11.468), (4.703, 16.014)),
    "mssvm": ((1.751, 11.023), (3.804, 10.627), (1.391, 41.829), (3.273, 35.712), (5.549, 11.389), (4.534, 14.918)),
}

# The curve over the size of the hidden patch compares these two.
CURVES = ("bp", "cd10")
PATCH = re.compile(r"mnist-patch(\d+)")

NAME = re.compile(r"crbm-(?P<method>[a-z0-9]+)-(?P<task>[a-z]+-[a-z]+\d+)")


@dataclass(frozen=True)
class Cell:
    """One prior on its test set.

    Attributes:
        method, task: keys of `METHODS` and `TASKS`; or a task "mnist-patchN" of any size.
        n: number of test images.
        everywhere, changed, unchanged: wrong pixels in per cent, and standard errors.
        converged: share of the test images for which the inference converged within its iterations.
    """

    method: str
    task: str
    n: int
    everywhere: tuple[float, float]
    changed: tuple[float, float]
    unchanged: tuple[float, float]
    converged: float


def key_of(name: str) -> tuple[str, str] | None:
    """Method and task of a prior by its name; None if it belongs to no study."""
    found = NAME.fullmatch(name)
    if found is None or found["method"] not in METHODS:
        return None
    task = found["task"]
    return (found["method"], task) if task in TASKS or PATCH.fullmatch(task) else None


def measure(engine: Engine, truth: Tensor, seed: int) -> Cell:
    """A prior on clean test images (N, D), damaged by a generator with this seed."""
    header = engine.trained.description
    key = key_of(header.name)
    if key is None:
        raise ValueError(f"{header.name} is no prior of this study")
    task = task_of(header)
    settled: list[Tensor] = []

    def restore(observed: Tensor, channel: object, image_shape: tuple[int, int]) -> Tensor:
        found = engine.restore(observed)
        settled.append((found.status == Status.CONVERGED).double().mean())
        return found.means[0]

    report = evaluate(restore, [truth.reshape(-1, *header.image_shape)], task, torch.Generator().manual_seed(seed))
    return _cell(*key, report, float(settled[0]))


def _cell(method: str, task: str, report: Report, converged: float) -> Cell:
    shares = [
        (100 * score.mean, 100 * score.standard_error)
        for score in (report.error_all, report.error_changed, report.error_unchanged)
    ]
    return Cell(method, task, report.n, shares[0], shares[1], shares[2], converged)


def as_tables(cells: Sequence[Cell]) -> str:
    """Markdown: wrong pixels, of all and of the changed, beside the paper's; methods by tasks."""
    found = {(cell.method, cell.task): cell for cell in cells}
    tasks = [task for task in TASKS if any(key[1] == task for key in found)]
    return "\n\n".join(
        [
            _table("wrong, % of all / paper", tasks, found, lambda cell: (*cell.everywhere, 3), 0),
            _table("wrong, % of the changed / paper", tasks, found, lambda cell: (*cell.changed, 2), 1),
        ]
    )


def _table(
    head: str,
    tasks: Sequence[str],
    found: Mapping[tuple[str, str], Cell],
    score: Callable[[Cell], tuple[float, float, int]],
    column: int,
) -> str:
    """Methods by tasks: ours with its standard error, the best of each task in bold, and the paper's."""
    best = {task: min(score(cell)[0] for (_, other), cell in found.items() if other == task) for task in tasks}

    def text(method: str, task: str) -> str:
        theirs = PAPER[method][list(TASKS).index(task)][column]
        if (method, task) not in found:
            return f"- / {theirs:.3f}"
        mean, error, digits = score(found[method, task])
        mark = "**" if mean == best[task] else ""
        return f"{mark}{mean:.{digits}f}{mark} ± {error:.{digits}f} / {theirs:.3f}"

    rows = [[name, *(text(method, task) for task in tasks)] for method, name in METHODS.items()]
    return table([head, *(TASKS[task] for task in tasks)], rows)


def sizes(cells: Sequence[Cell], method: str) -> list[tuple[int, Cell]]:
    """The cells of a method over the size of the hidden patch, smallest first."""
    matches = [(PATCH.fullmatch(cell.task), cell) for cell in cells if cell.method == method]
    return sorted(((int(match[1]), cell) for match, cell in matches if match), key=lambda pair: pair[0])


def curve_table(cells: Sequence[Cell]) -> str:
    """Markdown: wrong pixels over the size of the hidden patch (Fig. 3)."""
    curves = {method: dict(sizes(cells, method)) for method in CURVES}
    columns = sorted(set().union(*curves.values()))
    rows = [
        [METHODS[method], *(plus_minus(*curve[size].everywhere, 3) if size in curve else "-" for size in columns)]
        for method, curve in curves.items()
    ]
    return table(["wrong pixels, % of all", *(f"{size}x{size}" for size in columns)], rows)


def convergence(log: Path) -> list[float]:
    """The share of training images whose inference converged, per epoch, from the log of a run.

    Raises:
        InputError: if it is no such log.
    """
    try:
        return [float(json.loads(line)["converged"]) for line in log.read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError, TypeError, KeyError) as fault:
        raise InputError(f"{shown(log)}: not the log of a run with an inference; remove it or train again") from fault


def convergence_table(runs: Mapping[str, Sequence[float]]) -> str:
    """Markdown: converged inferences along training (Fig. 4), at the first, some of the middle, and the last epoch."""
    length = max(len(shares) for shares in runs.values())
    epochs = sorted({0, *range(4, length, 5), length - 1})
    rows = [
        [name, *(f"{100 * shares[epoch]:.0f}" if epoch < len(shares) else "-" for epoch in epochs)]
        for name, shares in runs.items()
    ]
    return table(["converged, % in epoch", *(str(epoch + 1) for epoch in epochs)], rows)


def study(asked: Asked) -> None:
    """Measure the priors of the recipes crbm-*, and write crbm.json and three tables."""
    recipes = {path.stem: path for path in sorted(asked.recipes.rglob("crbm-*.toml")) if key_of(path.stem)}
    cells: list[Cell] = []
    shares, missing = {}, []
    for name, recipe in recipes.items():
        folder = asked.prior(recipe)
        if folder is None:
            missing.append(name)
            continue
        engine = Engine.load(str(folder), asked.device)
        header = engine.header
        cell = measure(engine, asked.images(header.data, "test", asked.n, cut=header.threshold), asked.seed)
        cells.append(cell)
        log = asked.runs / name / "log.jsonl"
        if cell.method == "bp" and cell.task in TASKS and log.exists():
            shares[TASKS[cell.task]] = convergence(log)
        say(f"{name}: {cell.everywhere[0]:.3f} % of all pixels wrong")
    tell_missing(missing)
    if not cells:
        raise InputError(f"{asked.recipes}: no recipe crbm-*.toml there has a trained prior; give --train, or --priors")
    tables = {"crbm": as_tables(cells), "crbm-sizes": curve_table(cells)}
    if shares:
        tables["crbm-converged"] = convergence_table(shares)
    write(asked.records / "crbm.json", {"seed": asked.seed, "cells": cells, "converged": shares})
    publish(asked, tables)


if __name__ == "__main__":
    main(study)
