"""Why errors are lower than the paper's (CRBM-BP, tables 1 to 3): damage drawn once, as there, and plain steps.

It is tested with logistic regression, whose runs take minutes; no inference can be to blame.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from crbm import METHODS, PAPER, TASKS
from crbm_inference import SHAPE, wrong
from harness import Asked, main, publish, read, write
from torch import Tensor

from restore.channels import parse_task
from restore.console import say
from restore.evaluation.markdown import plus_minus, table
from restore.learning.course import DamagedImages, Pairs
from restore.learning.loop import fit
from restore.learning.recipe.recipe import read_recipe
from restore.learning.run.session import Session

METHOD, COMPARED = "lr", ("mnist-flip20", "mnist-patch12")

# What changes in [optimizer], by what it is called; damage is drawn once in all of them.
PLAIN = {"momentum": 0.0, "average": 0.0, "schedule": "constant"}
CHANGES: Mapping[str, Mapping[str, Any]] = {"damage drawn once": {}, "and plain steps": PLAIN}


@dataclass(frozen=True)
class Changed:
    """A prior on the test images: wrong pixels in per cent, and the standard error."""

    task: str
    change: str
    error: tuple[float, ...]


@dataclass(frozen=True)
class DrawnOnce(DamagedImages):
    """The course of a conditional RBM whose images are damaged once, before learning."""

    @cached_property
    def observed(self) -> Tensor:
        generator = torch.Generator(self.images.device).manual_seed(self.seed)
        return self.task.damage(self.images, self.image_shape, generator).observed

    def batch(self, index: Tensor, generator: torch.Generator) -> Pairs:
        return Pairs(self.observed[index], self.images[index])


def learn(asked: Asked, task: str, change: str) -> Changed:
    """Train by the recipe of the tables with a change, and restore the test images."""
    plan = read_recipe(asked.recipes / "crbm" / f"crbm-{METHOD}-{task}.toml")
    plan = replace(plan, optimizer=replace(plan.optimizer, **CHANGES[change]))
    images, held_out = asked.images("mnist", "train"), plan.data.validation
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(plan.seed))
    training, validation = images[order[held_out:]], images[order[:held_out]]
    course = DrawnOnce(training, validation, SHAPE, parse_task(plan.data.task), plan.seed)
    folder = asked.runs / "noise" / f"{task}-{change.replace(' ', '-')}"
    machine = fit(plan, course, Session(folder, task, resume=True)).machine
    truth = asked.images("mnist", "test", asked.n)
    observed = course.task.damage(truth, SHAPE, torch.Generator().manual_seed(asked.seed)).observed
    return Changed(task, change, wrong(machine, plan.inference_after(plan.training.epochs - 1), observed, truth))


def as_table(found: list[Changed]) -> str:
    """Markdown: a row per change, beside the paper."""
    by = {(one.task, one.change): plus_minus(one.error[0], one.error[1], 3) for one in found}
    rows = [[change, *(by.get((task, change), "-") for task in COMPARED)] for change in CHANGES]
    paper = [f"{PAPER[METHOD][list(TASKS).index(task)][0]:.3f}" for task in COMPARED]
    head = [f"{METHODS[METHOD]}, wrong, % of all", *(TASKS[task] for task in COMPARED)]
    return table(head, [*rows, ["paper", *paper]])


@torch.inference_mode()
def study(asked: Asked) -> None:
    """Learn with damage drawn once; write crbm-noise.json and a table. What is there is kept."""
    path, settings = asked.records / "crbm-noise.json", {"seed": asked.seed, "n": asked.n}
    found: list[Changed] = read(path, settings, changed=Changed)["changed"]
    for task in COMPARED:
        for change in CHANGES:
            if not any((one.task, one.change) == (task, change) for one in found):
                found.append(learn(asked, task, change))
                say(f"{found[-1]}")
                write(path, settings | {"changed": found})
    publish(asked, {"crbm-noise": as_table(found)})


if __name__ == "__main__":
    main(study)
