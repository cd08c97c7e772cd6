"""What a mini-batch costs, by learner, at equal numbers of Gibbs sweeps (S-DCP, sec. 4)."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass

import torch
from dcp_large import BATCH, HIDDEN, INNER, SWEEPS
from dcp_learners import WEIGHT_SCALE, learner_of
from harness import Asked, main, publish, read, write
from torch import Tensor

from restore.evaluation.card import table
from restore.learning.course import initial_prior
from restore.learning.rules.contract import Learner
from restore.priors import RBM

COMPARED = ("CD", "CG", "S-DCP", "CS-DCP")

# Mini-batches of each learner, in turns.
TIMED = 15


@dataclass(frozen=True)
class Cost:
    """CPU time of a mini-batch over that of CD, the median over turns, each beside the CD of its turn."""

    algorithm: str
    ratio: float


def seconds(learner: Learner[RBM, Tensor], machine: RBM, images: Tensor, generator: torch.Generator) -> float:
    """CPU seconds of one mini-batch, with all its gradient steps."""
    state = learner.init(machine, images, generator)
    before = time.process_time()
    step = learner.step(machine, images, state, generator, 0)
    learner.direction(step.gradient)
    while step.again is not None:
        step = step.again(machine)
        learner.direction(step.gradient)
    return time.process_time() - before


def as_table(found: list[Cost]) -> str:
    return table(
        ["learner", "CPU time of a mini-batch, CD = 1"], [[one.algorithm, f"{one.ratio:.2f}"] for one in found]
    )


@torch.inference_mode()
def study(asked: Asked) -> None:
    """Time mini-batches; write dcp-cost.json and a table."""
    path, settings = asked.records / "dcp-cost.json", {"seed": asked.seed, "batches": TIMED}
    found: list[Cost] = read(path, settings, costs=Cost)["costs"]
    if not found:
        torch.set_num_threads(1)
        images, generator = asked.images("mnist", "train", BATCH), torch.Generator().manual_seed(asked.seed)
        machine = initial_prior(images, HIDDEN, WEIGHT_SCALE, generator)
        learners = {name: learner_of(name, SWEEPS, INNER, BATCH) for name in COMPARED}
        turns = [
            {name: seconds(each, machine, images, generator) for name, each in learners.items()} for _ in range(TIMED)
        ]
        found = [Cost(name, statistics.median(turn[name] / turn["CD"] for turn in turns)) for name in COMPARED]
        write(path, settings | {"costs": found})
    publish(asked, {"dcp-cost": as_table(found)})


if __name__ == "__main__":
    main(study)
