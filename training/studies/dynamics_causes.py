"""Why solutions are more than in the paper, and how free energies begin (TAP machine, Fig. 5): one change at a time.

Table 1's machine with 100 hidden units is trained with the paper's first weights, and with steps that iterate until
solutions settle; and the solutions of the machine that there is are sought with other damping.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from harness import Asked, kept_of, main, publish, read, write
from opened import free_machine
from probing.solutions import BLOCK, PROBING, SAME, distinct, tap_solutions
from torch import Tensor

from restore.console import say
from restore.evaluation.card import table
from restore.inference.torch_engine import Engine
from restore.learning.course import CleanImages
from restore.learning.loop import fit
from restore.learning.recipe.recipe import Recipe, read_recipe
from restore.learning.run.session import Progress, Session
from restore.priors import LayeredPrior
from restore.solvers.solution import concatenate
from restore.status import Status

RECIPE = "dynamics/dynamics-mnist-100.toml"

# First weights N(0, σ²) of table 1, and iterations until no mean moves by more than .001, with damping .5.
PAPER_WEIGHTS = {"weight_scale": 0.001}
SETTLED = {"iterations": 50, "tol": 1e-3, "damping": 0.5}

# What changes in [prior] and in [learner], by what it is called.
CHANGES: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {
    "nothing": ({}, {}),
    "first weights": (PAPER_WEIGHTS, {}),
    "first weights, settled steps": (PAPER_WEIGHTS, SETTLED),
}

# Epochs of training, at which solutions are sought from so many images.
EPOCHS, STARTS = (0, 1, 10), 500

# With what damping the solutions of the trained machine are sought, from how many images, in how many iterations.
DAMPINGS, MANY, ITERATIONS = (0.0, 0.5, 0.9), 500, 1000


@dataclass(frozen=True)
class Sought:
    """Solutions of a machine.

    Attributes:
        change: a key of `CHANGES`.
        epoch: after which they were sought; 0 is before training.
        damping: of the search; None where starts that do not settle get more.
        starts, converged, solutions: how many images, how many of them led to a solution, and to how many.
        free_energy: mean over the solutions, in nats; None if there are none.
    """

    change: str
    epoch: int
    damping: float | None
    starts: int
    converged: int
    solutions: int
    free_energy: float | None


def changed(plan: Recipe, change: str) -> Recipe:
    """The recipe with a change, as long as its solutions are sought."""
    prior, learner = CHANGES[change]
    return replace(
        plan,
        prior=replace(plan.prior, **prior),
        learner=replace(plan.learner, **learner),
        training=replace(plan.training, epochs=max(EPOCHS)),
    )


def sought(machine: LayeredPrior, starts: Tensor, change: str, epoch: int) -> Sought:
    """The solutions that images lead to, as in the study of training."""
    found = tap_solutions(machine, starts)
    return Sought(change, epoch, None, found.starts, found.converged, found.count, found.helmholtz)


def with_damping(machine: LayeredPrior, starts: Tensor, damping: float, epoch: int) -> Sought:
    """The solutions that images lead to with this damping; a start that does not settle gets no other."""
    # By the paper's criterion of convergence, a step of so much damping moves that much less.
    solver = replace(PROBING, damping=damping, max_iter=ITERATIONS, tol=(1 - damping) * 1e-4)
    machine = machine.to(torch.float64)
    found = concatenate([solver.solve(machine, block) for block in starts.double().split(BLOCK)])
    settled = (found.status == int(Status.CONVERGED)) & found.log_partition.isfinite()
    index, _ = distinct(found.means[0][settled], SAME)
    energy = -float(found.log_partition[settled][index].mean()) if len(index) else None
    return Sought("nothing", epoch, damping, len(starts), int(settled.sum()), len(index), energy)


def learn(plan: Recipe, change: str, images: Tensor, starts: Tensor, folder: Path) -> list[Sought]:
    """Train with a change, and seek solutions along the way."""
    altered, course, found = changed(plan, change), CleanImages(images), list[Sought]()

    def seek(machine: Any, epoch: int) -> None:
        if epoch in EPOCHS:
            found.append(sought(machine, starts, change, epoch))
            say(f"{found[-1]}")

    def after_epoch(passed: Progress) -> None:
        seek(passed.machine, passed.done)

    generator = torch.Generator().manual_seed(altered.seed)
    seek(course.initial(int(plan.prior.hidden), altered.prior.weight_scale, generator), 0)
    if change != "nothing":
        fit(altered, course, Session(folder, change, watch=after_epoch))
    return found


def as_table(found: list[Sought]) -> str:
    """Markdown: solutions along training by what was changed, and at the end by the damping of the search."""

    def row(first: str, one: Sought) -> list[str]:
        energy = "-" if one.free_energy is None else f"{one.free_energy:.1f}"
        share = f"{100 * one.solutions / one.starts:.1f} %"
        return [first, str(one.epoch), f"{one.starts:,}", f"{one.converged:,}", str(one.solutions), share, energy]

    along = [row(one.change, one) for one in found if one.damping is None]
    damped = [row(f"damping of the search {one.damping:g}", one) for one in found if one.damping is not None]
    head = ["changed", "epoch", "starts", "converged", "solutions", "of the starts", "free energy"]
    return table(head, along + damped)


@torch.inference_mode()
def study(asked: Asked) -> None:
    """Test causes for the number of solutions; write dynamics-causes.json and a table. What is there is kept."""
    path, settings = asked.records / "dynamics-causes.json", {"seed": asked.seed, "n": asked.n}
    found: list[Sought] = read(path, settings, sought=Sought)["sought"]
    plan, run = read_recipe(asked.recipes / RECIPE), asked.runs / Path(RECIPE).stem
    images = asked.images("mnist", "train", asked.n)
    drawn = images[torch.randperm(len(images), generator=torch.Generator().manual_seed(asked.seed))]
    if asked.train_missing and not kept_of(plan, run):
        asked.train(asked.recipes / RECIPE, run / "prior", run, every=1)
    last = max(kept_of(plan, run), default=0)
    for damping in DAMPINGS if last else ():
        if not any(one.damping == damping for one in found):
            machine = free_machine(Engine.load(str(kept_of(plan, run)[last]), asked.device), "TAP solutions")
            assert isinstance(machine, LayeredPrior)
            found.append(with_damping(machine, drawn[:MANY], damping, last))
            say(f"{found[-1]}")
            write(path, settings | {"sought": found})
    for change in CHANGES:
        if not any(one.change == change and one.damping is None for one in found):
            found += learn(plan, change, images, drawn[:STARTS], asked.runs / "causes" / change.replace(" ", "-"))
            write(path, settings | {"sought": found})
    publish(asked, {"dynamics-causes": as_table(found)})


if __name__ == "__main__":
    main(study)
