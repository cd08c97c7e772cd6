"""Training runs for test_parallel.py, which makes them in its own process and in two."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import fits
import torch
from fits import CONDITIONAL, LEARNERS, after_step, conditional_recipe, damaged_images, log_of, recipe_of
from machines import bars_and_stripes
from processes import HANG
from safetensors.torch import save_file
from torch import Tensor

from restore.errors import TrainingError
from restore.learning.loop import fit
from restore.learning.recipe.recipe import parse
from restore.learning.recipe.spec import Training
from restore.learning.rules.frank_wolfe import FrankWolfe
from restore.learning.run import checkpoint as checkpoints
from restore.learning.run.folder import Stopped
from restore.learning.run.parallel import joined, rank
from restore.learning.run.session import Session
from restore.learning.train import train
from restore.priors import RBM

PIPELINES: dict[str, dict[str, Any]] = {
    "deep": {
        "prior": {"family": "deep", "hidden": 4, "deeper": [3]},
        "learner": {"method": "tap", "starts": "redrawn", "solutions": 7},
        "training": {"epochs": 2, "batch": 6},
        "pretraining": {"epochs": 1},
    },
    "grey": {
        "prior": {"hidden": 4, "visible": "truncated-gaussian"},
        "learner": {"method": "tap", "starts": "redrawn", "solutions": 7, "grey_unit": 0.5},
        "optimizer": {"rate": 0.001},
        "training": {"epochs": 2, "batch": 6},
    },
    "grown": {
        "data": {"source": "bars", "validation": 4},
        "prior": {"hidden": "auto"},
        "growth": {"units": 2},
        "learner": {"method": "contrastive"},
        "training": {"epochs": 2, "batch": 6},
        "inference": {"modes": 3, "starts": 1},
    },
    "matched": {
        "prior": {"hidden": 4},
        "learner": {"method": "matched", "tasks": ["flip:0.1", "patch:2"], "iterations": 4},
        "training": {"epochs": 2, "batch": 6},
    },
    "bslm": {"prior": {"family": "fvbm"}, "learner": {"method": "bslm", "l2": 0.01}},
}


@contextmanager
def precisely() -> Iterator[None]:
    """Double precision: sums over processes are rounded in another order, and a state that is drawn must not notice."""
    usual = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(usual)


@precisely()
def run(recipe: Any, folder: Path, **options: Any) -> RBM:
    return fits.run(recipe, folder, images=fits.IMAGES.double(), **options)


@precisely()
@patch.object(FrankWolfe, "samples", 100)
def outcomes(folder: Path) -> dict[str, Tensor]:
    """What runs of every learner end with, by names that begin with the run's."""
    found: dict[str, Tensor] = {}

    def keep(name: str, tensors: dict[str, Tensor]) -> None:
        found.update({f"{name}/{key}": value.clone() for key, value in tensors.items()})

    for name in LEARNERS:
        keep(name, run(recipe_of(name), folder / name).parameters)
    for name in ("tap-data", "cd"):
        # Batches of one image leave a process without any.
        alone = recipe_of(name, training=Training(epochs=1, batch=1))
        keep(f"{name}-alone", run(alone, folder / f"{name}-alone").parameters)
    for name in CONDITIONAL:
        images = damaged_images()
        images = replace(images, images=images.images.double(), validation=images.validation.double())
        fitted = fit(conditional_recipe(name), images, Session(folder / name, "data"))
        error = torch.tensor([fitted.score, fitted.done], dtype=torch.float64)
        keep(name, fitted.machine.parameters | {"error": error})
    # Half precision would be made single again before modes are drawn.
    common = {"name": "test", "storage": "float32", "data": {"source": "bars"}, "inference": {"modes": 0, "starts": 1}}
    for name, tables in PIPELINES.items():
        recipe = parse(common | tables)
        prior = train(recipe, bars_and_stripes(3).double(), (3, 3), Session(folder / name, "data"), every=1).prior
        keep(name, prior.machine.parameters | {"modes": prior.modes})
    return found


def raised(kind: type[BaseException], work: Callable[[], Any]) -> str:
    try:
        work()
    except kind as fault:
        return f"{type(fault).__name__}: {fault}"
    return "nothing"


class Patch:
    """As much of pytest's as `after_step` needs."""

    def setattr(self, place: Any, name: str, value: Any) -> None:
        setattr(place, name, value)


def stopped_and_resumed(folder: Path) -> tuple[str, dict[str, Tensor]]:
    """A run that process 1 is told to stop in step 6, and where it ends."""
    recipe = recipe_of("pcd")
    original = type(recipe.learner).step

    def stop(step: int) -> None:
        if step == 6 and rank() == 1:
            os.kill(os.getpid(), signal.SIGTERM)

    after_step(Patch(), recipe.learner, stop)  # type: ignore[arg-type]
    said = raised(Stopped, lambda: run(recipe, folder))
    type(recipe.learner).step = original
    last = checkpoints.load(folder)
    assert last is not None
    return f"{said} at step {last.step}", run(recipe, folder, resume=True).parameters


def refused_by_disk(folder: Path) -> str:
    """What is raised when the first process cannot write."""
    original = checkpoints.save

    def full(*arguments: Any) -> None:
        assert rank() == 0
        raise TrainingError("the disk is full")

    checkpoints.save = full
    try:
        return raised(TrainingError, lambda: run(recipe_of("cd"), folder))
    finally:
        checkpoints.save = original


def main(folder: Path) -> None:
    os.fsync = lambda descriptor: None
    torch.set_num_threads(1)
    with joined():
        number = rank()
        found = outcomes(folder / "together")
        stopped, after = stopped_and_resumed(folder / "stopped")
        found |= {f"stopped/{name}": value for name, value in after.items()}
        save_file(found, folder / f"{number}.safetensors")
        lines = [stopped, refused_by_disk(folder / "full")]
        # The run of one process, made by the test.
        lines.append(raised(TrainingError, lambda: run(recipe_of("pcd"), folder / "alone" / "pcd", resume=True)))
        (folder / f"{number}.txt").write_text("\n".join(lines))
    assert log_of(folder / "stopped") == log_of(folder / "together" / "pcd")


def differing(folder: Path) -> None:
    """Process 1 has other data than the first."""

    def together() -> None:
        with joined():
            run(recipe_of("cd"), folder / "differing", data=f"data of {rank()}")

    number = os.environ["RANK"]
    said = raised(TrainingError, together)
    (folder / f"{number}-differing.txt").write_text(said)


def in_two_processes(work: Callable[[Path], None], folder: Path) -> None:
    """Let two processes work together that find what torchrun tells those it starts, each as far as this file is.

    What torchrun does besides is for the tests of the command. Here it and the imports would take most of the time.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    with socket.create_server(("127.0.0.1", 0)) as free:
        variables = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1])}
    both = [
        context.Process(target=_as_one, args=(variables | {"RANK": rank}, work, folder), daemon=True) for rank in "01"
    ]
    for process in both:
        process.start()
    for process in both:
        process.join(timeout=HANG)
    assert [process.exitcode for process in both] == [0, 0]


def _as_one(variables: dict[str, str], work: Callable[[Path], None], folder: Path) -> None:
    os.environ |= variables
    work(folder)
