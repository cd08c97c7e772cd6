"""Mean log-likelihoods of images under a prior, in nats, by every method that fits it.

    python training/studies/likelihood.py tap-mnist --data mnist --n 1000

Grey and deep priors have a TAP likelihood alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import torch
import typer
from harness import run
from likelihoods import SCHEDULE, STARTS, measure
from opened import free_machine
from tap_likelihood import precise_solver, tap_likelihood

from restore.console import say, tell
from restore.data import as_pixels, load
from restore.inference.torch_engine import Engine


def likelihood(
    model: Annotated[str, typer.Argument(help="Name or folder of a prior.")],
    data: Annotated[str, typer.Option(help="Data set by name or path, images of the prior's size.")],
    n: Annotated[int | None, typer.Option("--n", min=1, help="The first N test images [all].")] = None,
    schedule: Annotated[str, typer.Option(help="Of AIS: linear:K, or a paper's.")] = SCHEDULE,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all that is drawn.")] = 0,
    data_root: Annotated[Path | None, typer.Option(help="Where named data sets lie [RESTORE_DATA].")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda[:N].")] = "auto",
) -> None:
    """Measure how probable a prior finds images."""
    engine = Engine.load(model, device)
    header = engine.header
    images = load(data, split="test", root=data_root).images[:n]
    rows = torch.from_numpy(as_pixels(images, "grey" if header.grey else "threshold", header.threshold, 0))
    if header.plain:
        found = list(measure(engine, rows, seed, schedule).likelihoods.values())
    else:
        machine, rows = free_machine(engine, "likelihood"), rows.to(engine.device)
        found = [tap_likelihood(machine, rows, rows[:STARTS], precise_solver(header.inference))]
    for each in found:
        tell(each.as_text())
        for warning in each.warnings:
            say(f"{model}: {warning}")


if __name__ == "__main__":
    run(likelihood)
