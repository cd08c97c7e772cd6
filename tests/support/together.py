"""Training runs for test_parallel.py, which makes them in its own process and in two."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import fits
import pytest
import torch
from fits import CONDITIONAL, LEARNERS, after_step, conditional_recipe, damaged_images, log_of, recipe_of, run
from machines import bars_and_stripes
from oracle import log_likelihood
from processes import HANG
from safetensors.torch import save_file
from torch import Tensor

from restore.errors import TrainingError
from restore.learning.recipe.recipe import parse
from restore.learning.recipe.spec import Optimizer, PriorShape, Training
from restore.learning.rules.contrastive import ContrastiveDivergence
from restore.learning.rules.frank_wolfe import FrankWolfe
from restore.learning.rules.spectral import SpectralDescent
from restore.learning.rules.tap_likelihood import TAPLikelihood
from restore.learning.run import checkpoint as checkpoints
from restore.learning.run.folder import Stopped
from restore.learning.run.parallel import joined, rank
from restore.learning.run.session import Progress, Session
from restore.learning.steps import fit
from restore.learning.train import train

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
    "timed": {
        "data": {"source": "bars", "validation": 4},
        "prior": {"hidden": 4},
        "learner": {"method": "contrastive"},
        "training": {"minutes": 0.02, "batch": 6},
    },
    "bslm": {"prior": {"family": "fvbm"}, "learner": {"method": "bslm", "l2": 0.01}},
}


# Runs without a draw, by the size of a mini-batch: of equal and of unequal shares, and with fewer rows than processes.
CERTAIN = {f"batches of {size}": size for size in (4, 5, 1)}

# Learners that draw, and rates at which they soon know more than single pixels.
DRAWING: dict[str, tuple[Any, float]] = {
    "cd": (ContrastiveDivergence(steps=2), 0.2),
    "pcd": (ContrastiveDivergence(starts="persistent", chains=30, centring=False), 0.07),
    "cs-dcp": (ContrastiveDivergence(steps=2, inner_steps=3), 0.1),
    "ssd": (SpectralDescent(starts="persistent", chains=30), 0.005),
    "tap-redrawn": (TAPLikelihood(starts="redrawn", solutions=30, damping=0.2), 0.1),
}
SEEDS = 6


def certain(folder: Path) -> dict[str, Tensor]:
    """The parameters after training that draws nothing but the order of images."""
    found: dict[str, Tensor] = {}
    for name, size in CERTAIN.items():
        learner = TAPLikelihood(centring=False)
        machine = run(recipe_of(learner, training=Training(epochs=3, batch=size)), folder / name)
        found |= {f"{name}/{key}": value.clone() for key, value in machine.parameters.items()}
    return found


def curves(folder: Path) -> dict[str, Tensor]:
    """The mean log-likelihood of all images after each epoch, by enumeration, for some seeds: (seeds, epochs)."""
    found: dict[str, Tensor] = {}
    for name, (learner, rate) in DRAWING.items():
        rows = []
        for seed in range(SEEDS):
            curve: list[Tensor] = []

            def watch(passed: Progress, curve: list[Tensor] = curve) -> None:
                curve.append(log_likelihood(passed.machine, fits.IMAGES).mean())

            recipe = recipe_of(
                learner,
                Optimizer(rate=rate, momentum=0.9, weight_decay=0.0, schedule="constant"),
                prior=PriorShape(hidden=8, weight_scale=0.3),
                training=Training(epochs=10, batch=28, checkpoint_every=10),
                seed=seed,
            )
            run(recipe, folder / f"{name}-{seed}", images=fits.IMAGES.repeat(16, 1), watch=watch)
            rows.append(torch.stack(curve))
        found[name] = torch.stack(rows)
    return found


@patch.object(FrankWolfe, "samples", 100)
def outcomes(folder: Path) -> dict[str, Tensor]:
    """What runs of every learner end with in this process, by names that begin with the run's."""
    found: dict[str, Tensor] = {}

    def keep(name: str, tensors: dict[str, Tensor]) -> None:
        found.update({f"{name}/{key}": value.clone() for key, value in tensors.items()})

    for name in LEARNERS:
        keep(name, run(recipe_of(name), folder / name).parameters)
    for name in CONDITIONAL:
        fitted = fit(conditional_recipe(name), damaged_images(), Session(folder / name, "data"))
        error = torch.tensor([fitted.score, fitted.done], dtype=torch.float64)
        keep(name, fitted.machine.parameters | {"error": error})
    common = {"name": "test", "data": {"source": "bars"}, "inference": {"modes": 0, "starts": 1}}
    for name, tables in PIPELINES.items():
        recipe = parse(common | tables)
        prior = train(recipe, bars_and_stripes(3), (3, 3), Session(folder / name, "data"), every=1).prior
        keep(name, prior.machine.parameters | {"modes": prior.modes})
    return found


def raised(kind: type[BaseException], work: Callable[[], Any]) -> str:
    try:
        work()
    except kind as fault:
        return f"{type(fault).__name__}: {fault}"
    return "nothing"


def stopped_and_resumed(folder: Path) -> tuple[str, dict[str, Tensor]]:
    """A run that process 1 is told to stop in step 6, and where it ends."""
    recipe = recipe_of("pcd")

    def stop(step: int) -> None:
        if step == 6 and rank() == 1:
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.MonkeyPatch.context() as patched:
        after_step(patched, recipe.learner, stop)
        said = raised(Stopped, lambda: run(recipe, folder))
    last = checkpoints.load(folder)
    assert last is not None
    return f"{said} at step {last.step}", run(recipe, folder, resume=True).parameters


def refused_by_disk(folder: Path) -> str:
    """What is raised when the first process cannot write."""

    def full(*arguments: Any) -> None:
        assert rank() == 0
        raise TrainingError("the disk is full")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(checkpoints, "save", full)
        return raised(TrainingError, lambda: run(recipe_of("cd"), folder))


def main(folder: Path) -> None:
    os.fsync = lambda descriptor: None
    torch.set_num_threads(1)
    with joined():
        number = rank()
        found = outcomes(folder / "together")
        stopped, after = stopped_and_resumed(folder / "stopped")
        found |= {f"stopped/{name}": value for name, value in after.items()}
        found |= certain(folder / "certain") | {
            f"curve/{name}": value for name, value in curves(folder / "curves").items()
        }
        save_file(found, folder / f"{number}.safetensors")
        lines = [stopped, refused_by_disk(folder / "full")]
        # The run of one process, made by the test.
        lines.append(raised(TrainingError, lambda: run(recipe_of("pcd"), folder / "alone", resume=True)))
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
