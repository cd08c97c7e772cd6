"""One iteration of each solver against one of TAP, by batch size.

    python benchmarks/package/solvers.py

784 visible and 500 hidden binary units, float32, weak random weights, under which every method has an answer. Each
method takes as many images at once as it does in `solve`. The paper of the TAP machine (Fig. 10, right) has adaptive
TAP, with an inverse of all units for each image, a thousand times slower than TAP.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from benchmarks.measures.script import command_line
from benchmarks.measures.timing import medians, report
from restore.fields import Fields
from restore.priors import RBM
from restore.solvers import TAP, AdaptiveTAP, LayeredMap, MeanField, RelaxedBeliefPropagation
from restore.solvers.parts import CACHED

# One turn is this many iterations.
ITERATIONS = 3

Solver = LayeredMap | RelaxedBeliefPropagation | AdaptiveTAP


def portion(solver: Solver, machine: RBM, batch: int) -> int:
    """The number of images solved at once, as `restore.solvers.parts` chooses it on a processor."""
    if isinstance(solver, LayeredMap):
        return batch
    return max(1, CACHED // (solver.numbers(machine) * machine.weights.element_size()))


def iterations(solver: Solver, machine: RBM, start: Tensor) -> None:
    """A few iterations of a batch of images."""
    for rows in torch.arange(len(start)).split(portion(solver, machine, len(start))):
        part = machine.rows(rows)
        state = solver.init(part, start[rows])
        for _ in range(ITERATIONS):
            state = solver.step(part, state)


def main() -> None:
    parser = command_line(__doc__, repeats=5)
    parser.add_argument("--visible", type=int, default=784, help="[%(default)s]")
    parser.add_argument("--hidden", type=int, default=500, help="[%(default)s]")
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 10, 100], help="[%(default)s]")
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    torch.manual_seed(0)
    weights = torch.randn(chosen.visible, chosen.hidden) / (chosen.visible**0.5 + chosen.hidden**0.5)
    prior = RBM.binary(weights, torch.randn(chosen.visible), torch.randn(chosen.hidden))
    solvers: dict[str, Solver] = {
        "TAP": TAP(),
        "mean field": MeanField(),
        "relaxed belief propagation": RelaxedBeliefPropagation(),
        "adaptive TAP": AdaptiveTAP(),
    }
    for batch in chosen.batches:
        machine = prior.tilt(Fields(torch.randn(batch, chosen.visible)))
        start = torch.rand(batch, chosen.visible)
        with torch.inference_mode():
            work = {name: partial(iterations, solver, machine, start) for name, solver in solvers.items()}
            seconds = medians(work, chosen.repeats)
        of_each = {name: value / ITERATIONS / batch for name, value in seconds.items()}
        report(of_each, "TAP", f"batch {batch}, per image and iteration")


if __name__ == "__main__":
    main()
