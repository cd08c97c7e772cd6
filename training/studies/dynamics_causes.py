"""Why solutions are more than in the paper, and how free energies begin (TAP machine, Fig. 5): one change at a time.

Table 1's machine with 100 hidden units is trained with the paper's first weights, and with steps that iterate until
solutions settle; the solutions of the machine that there is are sought with other damping, and counted by other rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
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
from restore.learning.recipe.recipe import Recipe, read_recipe
from restore.learning.run.session import Progress, Session
from restore.learning.steps import fit
from restore.priors import BoltzmannMachine, LayeredPrior
from restore.solvers.loop import Change, State
from restore.solvers.solution import concatenate
from restore.solvers.tap import TAP
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

# By what a start has converged: whether the root of the mean squared change of all means counts or the largest change,
# and which without damping is small enough. The search has a damping of .5, by which most starts converge.
PAPERS = "mean squared change 1e-8"
CRITERIA = {"largest change 1e-4": (False, 1e-4), PAPERS: (True, 1e-4), "largest change 1e-8": (False, 1e-8)}
DAMPED = 0.5

# By what two solutions are distinct: some pixel's mean differs by more than this; or, cut at 1/2, more than a share of
# all pixels do.
APART, SHARE = (SAME, 0.2, 0.5), 0.05

# After which epochs they are counted, from how many starts: by all criteria, and by the paper's from as many as it has.
COUNTED, BY_ALL, BY_PAPER = (10, 100), 500, 10_000


@dataclass(frozen=True)
class Counted:
    """How many solutions a machine has by different rules.

    Attributes:
        epoch: of training.
        criterion: a key of `CRITERIA`.
        starts, converged: how many images, and how many of them led to a solution.
        apart: the numbers of distinct solutions by the thresholds `APART`.
        by_share: by the share of pixels.
    """

    epoch: int
    criterion: str
    starts: int
    converged: int
    apart: tuple[int, ...]
    by_share: int


@dataclass(frozen=True)
class ByMeanSquare(TAP):
    """TAP that has converged once the root of the mean squared change of all means is small."""

    def watched(self, machine: BoltzmannMachine) -> Change:
        depth = len(machine.layers)

        def change(new: State, old: State) -> Tensor:
            return (torch.cat(new[:depth], 1) - torch.cat(old[:depth], 1)).square().mean(1).sqrt()

        return change


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


def counted(machine: LayeredPrior, starts: Tensor, criterion: str, epoch: int) -> Counted:
    """Count the solutions that images lead to, by all rules; of two that are not distinct the better one counts."""
    mean_square, change = CRITERIA[criterion]
    kind = ByMeanSquare if mean_square else TAP
    solver = kind(max_iter=PROBING.max_iter, damping=DAMPED, tol=(1 - DAMPED) * change)
    machine = machine.to(torch.float64)
    found = concatenate([solver.solve(machine, block) for block in starts.double().split(BLOCK)])
    settled = ((found.status == int(Status.CONVERGED)) & found.log_partition.isfinite()).nonzero().squeeze(1)
    means = found.means[0][settled[found.log_partition[settled].argsort(descending=True, stable=True)]]
    apart = tuple(len(distinct(means, least)[0]) for least in APART)
    digits, pixels = (means > 0.5).float(), means.shape[1]
    return Counted(epoch, criterion, len(starts), len(means), apart, len(distinct(digits, SHARE * pixels, 1)[0]))


def counts_table(found: list[Counted]) -> str:
    """Markdown: solutions by each criterion of convergence and each rule of what is distinct."""

    def count(solutions: int, one: Counted) -> str:
        return f"{solutions:,} ({100 * solutions / one.starts:.1f} %)"

    rows = [
        [
            *(str(one.epoch), one.criterion, f"{one.starts:,}", f"{one.converged:,}"),
            *(count(solutions, one) for solutions in (*one.apart, one.by_share)),
        ]
        for one in found
    ]
    head = ["epoch", "converged by", "starts", "converged", *(f"a mean differs by {least:g}" for least in APART)]
    return table([*head, f"more than {100 * SHARE:g} % of the pixels differ"], rows)


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

    along = [row(one.change, one) for one in found if one.damping is None and one.epoch]  # before it all lead to one
    damped = [row(f"damping of the search {one.damping:g}", one) for one in found if one.damping is not None]
    head = ["changed", "epoch", "starts", "converged", "solutions", "of the starts", "free energy"]
    return table(head, along + damped)


@torch.inference_mode()
def study(asked: Asked) -> None:
    """Test causes for the number of solutions; write dynamics-causes.json and its tables. What is there is kept."""
    path, settings = asked.records / "dynamics-causes.json", {"seed": asked.seed, "n": asked.n}
    known = read(path, settings, sought=Sought, counted=Counted)
    found: list[Sought] = known["sought"]
    counts: list[Counted] = known["counted"]

    def keep() -> None:
        write(path, settings | {"sought": found, "counted": counts})

    plan, run = read_recipe(asked.recipes / RECIPE), asked.runs / Path(RECIPE).stem
    images = asked.images("mnist", "train", asked.n)
    drawn = images[torch.randperm(len(images), generator=torch.Generator().manual_seed(asked.seed))]
    if asked.train_missing and not kept_of(plan, run):
        asked.train(asked.recipes / RECIPE, run / "prior", run, every=1)
    kept = kept_of(plan, run)

    def machine_of(epoch: int) -> LayeredPrior:
        machine = free_machine(Engine.load(str(kept[epoch]), asked.device), "TAP solutions")
        assert isinstance(machine, LayeredPrior)
        return machine

    last = max(kept, default=0)
    for damping in DAMPINGS if last else ():
        if not any(one.damping == damping for one in found):
            found.append(with_damping(machine_of(last), drawn[:MANY], damping, last))
            say(f"{found[-1]}")
            keep()
    for epoch, (criterion, starts) in product(COUNTED, [*((each, BY_ALL) for each in CRITERIA), (PAPERS, BY_PAPER)]):
        there = any((one.epoch, one.criterion, one.starts) == (epoch, criterion, starts) for one in counts)
        if epoch in kept and not there:
            counts.append(counted(machine_of(epoch), drawn[:starts], criterion, epoch))
            say(f"{counts[-1]}")
            keep()
    for change in CHANGES:
        if not any(one.change == change and one.damping is None for one in found):
            found += learn(plan, change, images, drawn[:STARTS], asked.runs / "causes" / change.replace(" ", "-"))
            keep()
    publish(asked, {"dynamics-causes": as_table(found), "dynamics-counted": counts_table(counts)})


if __name__ == "__main__":
    main(study)
