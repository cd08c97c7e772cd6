"""Damage drawn once, as the paper seems to draw it (CRBM-BP, tables 1 to 3): are errors then the paper's, and is
the order of methods? And does MLE-BP lead by smaller steps, after which more of its inferences converge?

Plain steps are tested with logistic regression on the silhouettes, whose runs are short.
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
from restore.learning.recipe.recipe import read_recipe
from restore.learning.run.session import Session
from restore.learning.steps import fit
from restore.priors import ConditionalRBM

# Epochs of each method, of which the best is taken by validation: what learns from damage that is drawn once is best
# early.
EPOCHS = {"lr": 20, "bp": 12, "mssvm": 12}


@dataclass(frozen=True)
class Changed:
    """A prior on the test images.

    Attributes:
        change: what is other than in the recipe of the tables.
        error: wrong pixels in per cent, and the standard error.
        method, task: keys of `METHODS` and `TASKS`.
        epoch: the epoch with the lowest validation error, from 1, of those of `EPOCHS`; 0 if it was not kept.
    """

    change: str
    error: tuple[float, ...]
    method: str = "lr"
    task: str = "caltech-flip20"
    epoch: int = 0


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
    # With momentum as large a step as by the paper's largest rate.
    "a rate of .005": (DamagedImages, {"rate": 0.005}),
}

# What is learnt, in this order: the change, the method and the task.
ONCE, SMALL = "damage drawn once", "a rate of .005"
PLANS = [
    *((change, "lr", "caltech-flip20") for change in CHANGES if change != SMALL),
    *((ONCE, method, "mnist-flip20") for method in ("bp", "mssvm")),
    (SMALL, "bp", "mnist-flip20"),
    *((ONCE, "lr", task) for task in TASKS if task != "caltech-flip20"),
    *((ONCE, method, "mnist-patch12") for method in ("bp", "mssvm")),
]


def learn(asked: Asked, change: str, method: str, task: str) -> Changed:
    """Train by the recipe of the tables with a change, and restore the test images."""
    kind, optimizer = CHANGES[change]
    (recipe,) = asked.recipes.rglob(f"crbm-{method}-{task}.toml")
    plan = read_recipe(recipe)
    training = replace(plan.training, epochs=EPOCHS[method])
    plan = replace(plan, optimizer=replace(plan.optimizer, **optimizer), training=training)
    images = asked.images(plan.data.source, "train")
    course = kind(*split(plan, images), SHAPE, parse_task(plan.data.task), plan.seed)
    folder = asked.runs / "noise" / f"{method}-{task}-{change.replace(' ', '-')}"
    best = fit(plan, course, Session(folder, task, resume=True))
    assert isinstance(best.machine, ConditionalRBM)
    truth = asked.images(plan.data.source, "test", asked.n)
    observed = course.task.damage(truth, SHAPE, torch.Generator().manual_seed(asked.seed)).observed
    error = wrong(best.machine, plan.inference_after(best.done - 1), observed, truth)
    return Changed(change, error, method, task, best.done)


def reported(method: str = "lr", task: str = "caltech-flip20") -> str:
    """What the paper says that a method leaves wrong, in per cent."""
    return f"{PAPER[method][list(TASKS).index(task)][0]:.3f}"


def as_table(found: Sequence[Changed]) -> str:
    """Markdown: a row per prior, beside the paper's."""
    rows = [
        [
            METHODS[one.method],
            TASKS[one.task],
            one.change,
            f"{one.epoch or '-'}",
            plus_minus(one.error[0], one.error[1], 3),
            reported(one.method, one.task),
        ]
        for one in found
    ]
    return table(["method", "task", "change", "epoch", "wrong, % of all", "paper"], rows)


@torch.inference_mode()
def study(asked: Asked) -> None:
    """Learn with damage drawn once; write crbm-noise.json and a table. What is there is kept."""
    path, settings = asked.records / "crbm-noise.json", {"seed": asked.seed, "n": asked.n}
    found: list[Changed] = read(path, settings, changed=Changed)["changed"]
    known = {(one.change, one.method, one.task) for one in found}
    for change, method, task in PLANS:
        if (change, method, task) not in known:
            found.append(learn(asked, change, method, task))
            say(f"{found[-1]}")
            write(path, settings | {"changed": found})
    publish(asked, {"crbm-noise": as_table(found)})


if __name__ == "__main__":
    main(study)
