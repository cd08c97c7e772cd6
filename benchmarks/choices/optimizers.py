"""Which optimizer, order of updates and first weights learn most in equal processor time.

    python benchmarks/choices/optimizers.py pages [--minutes 1.5] [--data PATH]
    python benchmarks/choices/optimizers.py digits [--minutes 1.5] [--data PATH]

Each row changes a recipe in training/recipes, learns on one thread for as long as the others, and restores images that
are held out. Of an RBM the mean log-likelihood of these follows, by annealed importance sampling.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from benchmarks.measures.script import command_line, head, row
from benchmarks.measures.timing import on_processors
from restore.channels import parse_task
from restore.data import load
from restore.evaluation.evaluate import evaluate, restorer_of
from restore.evaluation.likelihoods.ais import estimate, log_weights
from restore.inference.torch_engine import Engine
from restore.learning.lesson import lesson_of
from restore.learning.options import TrainOptions
from restore.learning.recipe.recipe import Recipe, read_recipe
from restore.learning.run.session import Clock, Session
from restore.learning.train import train
from restore.priors import RBM
from restore.zoo.store import TrainedPrior

RECIPES = Path("training/recipes")
FLIPS = ("flip:0.05", "flip:0.1", "flip:0.2", "flip:0.3")
TASKS = {"pages": (*FLIPS, "holes:8:0.1"), "digits": (*FLIPS, "patch:8", "patch:12")}
SCORED, RUNS, TEMPERATURES = 500, 100, "linear:2000"

# What is changed in a recipe, by table.
Changes = Mapping[str, Mapping[str, Any]]


def changed(*changes: Changes) -> Changes:
    """All of these changes; the last one counts."""
    tables = {table for change in changes for table in change}
    return {table: {k: v for change in changes for k, v in change.get(table, {}).items()} for table in tables}


def muon(rate: float = 0.01) -> Changes:
    return {"optimizer": {"name": "muon", "rate": rate, "momentum": 0.95}}


def adam(rate: float) -> Changes:
    return {"optimizer": {"name": "adam", "rate": rate, "momentum": 0.9}}


def beside(name: str, recipe: str) -> dict[str, tuple[str, Changes]]:
    """A recipe as it is, "LEARNER, OPTIMIZER", and by Muon at three rates."""
    learner = name.partition(",")[0]
    rates = {".01": 0.01, ".03": 0.03, ".1": 0.1}
    return {name: (recipe, {})} | {f"{learner}, Muon {said}": (recipe, muon(rate)) for said, rate in rates.items()}


# As `conv-text` first learnt, by four sweeps of all layers at once.
FIRST = changed({"prior": {"start": ""}}, adam(0.002))
TWO: Changes = {"learner": {"iterations": 2, "scored": 2}, "inference": {"max_iter": 2}}
UP_AND_DOWN = changed(TWO, {"learner": {"solver": "up_and_down"}})
WIDE: Changes = {"prior": {"weight_scale": 1.0}}

# By subject and row: the recipe, and what is changed in it.
TRIALS: Mapping[str, Mapping[str, tuple[str, Changes]]] = {
    "pages": {
        "four sweeps, Adam": ("conv-text", FIRST),
        "four sweeps, Muon": ("conv-text", changed(FIRST, muon())),
        "two sweeps, Adam": ("conv-text", changed(FIRST, TWO)),
        "two sweeps, Muon": ("conv-text", changed(FIRST, TWO, muon())),
        "two sweeps up and down, Adam": ("conv-text", changed(FIRST, UP_AND_DOWN)),
        "two sweeps up and down, Muon": ("conv-text", changed(FIRST, UP_AND_DOWN, muon())),
        "the same, first weights twice as large": ("conv-text", changed(FIRST, UP_AND_DOWN, muon(), WIDE)),
    },
    "digits": {
        **beside("PCD, SGD .05", "pcd-mnist"),
        **beside("TAP, SGD .05", "tap-mnist"),
        **beside("belief propagation, SGD .03", "crbm-bp-mnist-flip10"),
        **beside("max-margin, SGD .01", "crbm-mssvm-mnist-patch12"),
    },
}


def recipe_of(name: str, changes: Changes, minutes: float) -> Recipe:
    """A recipe of a published prior with these changes, ended by time alone."""
    recipe = read_recipe(RECIPES / f"{name}.toml")
    length = {"epochs": 10_000, "minutes": minutes, "watch": "", "watch_every": 1, "checkpoint_every": 10_000}
    tables = changed(changes, {"training": length, "inference": {"modes": 0, "starts": 1}})
    return replace(recipe, **{table: replace(getattr(recipe, table), **new) for table, new in tables.items()})


def learnt(recipe: Recipe, data: Path | None) -> tuple[TrainedPrior, torch.Tensor]:
    """A prior, and images (N, H, W) that it has not seen."""
    lesson = lesson_of(recipe, TrainOptions(data=data))
    images, held_out = lesson.pixels(torch.device("cpu")), lesson.held_out_pixels(torch.device("cpu"))
    with tempfile.TemporaryDirectory() as folder:
        session = Session(Path(folder), clock=Clock(now=time.process_time))
        prior = train(recipe, images, lesson.image_shape, session, held_out=held_out).prior
    if held_out is None:
        others = load(recipe.data.source, root=data, split="test").images
        held_out = lesson.as_pixels(others, torch.device("cpu"))
    return prior, held_out[:SCORED].reshape(-1, *lesson.image_shape)


def scores(prior: TrainedPrior, images: torch.Tensor, tasks: Sequence[str], seed: int) -> list[str]:
    """Wrong pixels in %, of holes in % of the hidden pixels; of a conditional machine for its own task alone."""
    cells = []
    for task in tasks:
        if prior.description.task not in ("", task):
            cells.append("")
            continue
        restorer, draw = restorer_of(Engine.of(prior, torch.device("cpu"))), torch.Generator().manual_seed(seed)
        report = evaluate(restorer, [images], parse_task(task), draw)
        cells.append(f"{100 * (report.error_hidden or report.error_all).mean:.3f}")
    return cells


def likelihood(prior: TrainedPrior, images: torch.Tensor, seed: int) -> str:
    """The mean log-likelihood of images under an RBM, and how many runs of annealing count."""
    if not isinstance(prior.machine, RBM) or prior.description.task:
        return ""
    with torch.inference_mode():
        found = estimate(log_weights(prior.machine, TEMPERATURES, RUNS, torch.Generator().manual_seed(seed)))
        mean = float(-prior.machine.free_energy(images.flatten(1)).double().mean())
    return f"{mean - found.log_partition:.1f} ({found.effective_runs:.0f})"


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("subject", choices=TRIALS, help="what to learn")
    parser.add_argument("--minutes", type=float, default=1.5, help="of processor time for each row [%(default)s]")
    parser.add_argument("--data", type=Path, help="folder of named data sets [RESTORE_DATA]")
    parser.add_argument("--seed", type=int, default=900, help="of damage [%(default)s]")
    parser.add_argument("--only", nargs="+", metavar="ROW", help="rows whose names have one of these in them")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    on_processors(1)
    tasks = TASKS[asked.subject]
    generative = ("nats (runs that count)",) if asked.subject == "digits" else ()
    head("", "recipe", *tasks, *generative, left=("recipe",))
    for name, (recipe, changes) in TRIALS[asked.subject].items():
        if asked.only and not any(part in name for part in asked.only):
            continue
        prior, images = learnt(recipe_of(recipe, changes, asked.minutes), asked.data)
        nats = [likelihood(prior, images, asked.seed)] if generative else []
        row(name, f"`{recipe}`", *scores(prior, images, tasks, asked.seed), *nats)


if __name__ == "__main__":
    main()
