"""Why errors are lower than the paper's (CRBM-BP, tables 1 to 3): damage drawn once, as there, and plain steps.

It is tested with logistic regression on the silhouettes, whose runs are short; no inference can be to blame.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from restore.evaluation.card import plus_minus, table
from restore.learning.course import DamagedImages, Pairs, split
from restore.learning.loop import fit
from restore.learning.recipe.recipe import read_recipe
from restore.learning.run.session import Session
from restore.priors import ConditionalRBM

METHOD, TASK = "lr", "caltech-flip20"

# Instead of the 60 of the tables: what learns from damage that is drawn once is best before.
EPOCHS = 20


@dataclass(frozen=True)
class Changed:
    """A prior on the test images: wrong pixels in per cent, and the standard error."""

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


# The course, and what is other than in the recipe in [optimizer].
PLAIN = {"momentum": 0.0, "average": 0.0, "schedule": "constant"}
CHANGES: Mapping[str, tuple[type[DamagedImages], Mapping[str, Any]]] = {
    "damage drawn once": (DrawnOnce, {}),
    "damage drawn anew in every epoch": (DamagedImages, {}),
    "damage drawn once, plain steps": (DrawnOnce, PLAIN),
}


def learn(asked: Asked, change: str) -> Changed:
    """Train by the recipe of the tables with a change, and restore the test images."""
    kind, optimizer = CHANGES[change]
    plan = read_recipe(asked.recipes / "crbm" / f"crbm-{METHOD}-{TASK}.toml")
    training = replace(plan.training, epochs=EPOCHS)
    plan = replace(plan, optimizer=replace(plan.optimizer, **optimizer), training=training)
    images = asked.images(plan.data.source, "train")
    course = kind(*split(plan, images), SHAPE, parse_task(plan.data.task), plan.seed)
    folder = asked.runs / "noise" / change.replace(" ", "-")
    machine = fit(plan, course, Session(folder, TASK, resume=True)).machine
    assert isinstance(machine, ConditionalRBM)
    truth = asked.images(plan.data.source, "test", asked.n)
    observed = course.task.damage(truth, SHAPE, torch.Generator().manual_seed(asked.seed)).observed
    return Changed(change, wrong(machine, plan.inference_after(EPOCHS - 1), observed, truth))


def reported() -> str:
    """What the paper says that logistic regression leaves wrong, in per cent."""
    return f"{PAPER[METHOD][list(TASKS).index(TASK)][0]:.3f}"


def as_table(found: Sequence[Changed]) -> str:
    """Markdown: a row per change, and the paper's."""
    rows = [[one.change, plus_minus(one.error[0], one.error[1], 3)] for one in found]
    return table([f"{METHODS[METHOD]}, {TASKS[TASK]}", "wrong, % of all"], [*rows, ["paper", reported()]])


@torch.inference_mode()
def study(asked: Asked) -> None:
    """Learn with damage drawn once; write crbm-noise.json and a table. What is there is kept."""
    path, settings = asked.records / "crbm-noise.json", {"seed": asked.seed, "n": asked.n}
    found: list[Changed] = read(path, settings, changed=Changed)["changed"]
    for change in CHANGES:
        if not any(one.change == change for one in found):
            found.append(learn(asked, change))
            say(f"{found[-1]}")
            write(path, settings | {"changed": found})
    publish(asked, {"crbm-noise": as_table(found)})


if __name__ == "__main__":
    main(study)
