"""What `matched-mnist` has of its start, and what several starts are worth, on digits held out of its training.

    python benchmarks/shares.py [--data DIR] [--n 300]

The machine that was trained is found from the published one, a fifth of which is `tap-mnist`, up to the rounding of
weights. `tap-mnist` has learnt from these digits, so that its own row is too good.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from digits import calibration
from torch import Tensor

from restore import zoo
from restore.channels import parse_task
from restore.data import binarise, load
from restore.evaluation.metrics import error_all, matthews
from restore.inference.torch_engine import Engine
from restore.learning.run.card import machine_facts
from restore.zoo import TrainedPrior

# The share of `tap-mnist` in `matched-mnist`, and how its recipe holds digits out.
SHARE, SEED = 0.2, 0
SHARES = (0.0, 0.1, 0.2, 0.25, 0.5, 1.0)
TASKS = ("flip:0.05", "flip:0.1", "flip:0.2", "flip:0.3", "patch:8", "patch:12")


def mixed(published: TrainedPrior, start: TrainedPrior, share: float) -> TrainedPrior:
    """The prior with another share of its start."""
    before = start.machine.parameters
    trained = {
        name: (value - SHARE * before[name]) / (1 - SHARE) for name, value in published.machine.parameters.items()
    }
    parameters = {name: torch.lerp(value, before[name], share) for name, value in trained.items()}
    return replace(published, machine=published.machine.with_parameters(parameters))


def with_settings(prior: TrainedPrior, **settings: Any) -> TrainedPrior:
    header = prior.description
    return replace(prior, description=replace(header, inference=replace(header.inference, **settings)))


def restored(prior: TrainedPrior, clean: Tensor, task: str) -> Tensor:
    """The probabilities of white after damage."""
    seen, channel = parse_task(task).damage(clean, prior.description.image_shape, torch.Generator().manual_seed(3))
    return Engine.of(prior, torch.device("cpu")).restore(seen, channel).means[0]


def main() -> None:
    parser = argparse.ArgumentParser(description="Shares of the start, and starts.")
    parser.add_argument("--data", type=Path, help="where MNIST lies [RESTORE_DATA]")
    parser.add_argument("--n", type=int, default=300, help="digits, at most 1000 [%(default)s]")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="[%(default)s]")
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    images = load("mnist", split="train", root=asked.data).images
    held_out = torch.randperm(len(images), generator=torch.Generator().manual_seed(SEED))[: asked.n].numpy()
    clean = torch.from_numpy(binarise(images[held_out], 127)).flatten(1).float()
    published, start = (zoo.load(zoo.find(name)) for name in ("matched-mnist", "tap-mnist"))
    print(f"{asked.n} digits; {machine_facts()}\n\n| share | {' | '.join(TASKS)} |\n| ---: |{' ---: |' * len(TASKS)}")
    for share in SHARES:
        prior = with_settings(mixed(published, start, share), starts=1)
        print(f"| {share} | {' | '.join(scored(prior, clean, task) for task in TASKS)} |", flush=True)
    print("\n| prior, task, starts, open bits that need one | wrong, % | MCC | calibration |")
    print("| --- | ---: | ---: | ---: |")
    rows: list[tuple[TrainedPrior, str, Mapping[str, Any]]] = [
        *((published, "flip:0.3", {"starts": count}) for count in (1, 6, 11, 21)),
        *((start, "flip:0.05", {"clear": clear}) for clear in (0.0, 1.0)),
    ]
    for prior, task, settings in rows:
        used = with_settings(prior, **settings)
        found, header = restored(used, clean, task), used.description
        print(
            f"| `{header.name}`, {task}, {header.inference.starts}, {header.inference.clear} "
            f"| {100 * float(error_all(clean, found).mean()):.3f} | {float(matthews(clean, found).mean()):.4f} "
            f"| {calibration(found, clean)[0]:.4f} |",
            flush=True,
        )


def scored(prior: TrainedPrior, clean: Tensor, task: str) -> str:
    """MCC after flips; of holes the share of wrong pixels."""
    found = restored(prior, clean, task)
    if task.startswith("flip"):
        return f"{float(matthews(clean, found).mean()):.4f}"
    return f"{100 * float(error_all(clean, found).mean()):.3f} %"


if __name__ == "__main__":
    main()
