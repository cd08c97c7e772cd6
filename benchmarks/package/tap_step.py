"""One TAP iteration against its own four matrix products.

    python benchmarks/package/tap_step.py

784 visible and 500 hidden units, 100 images, float32. A step multiplies the means and the variances of either layer
with the couplings and their squares; the peer does these four products with the same tensors and nothing else.
"""

from __future__ import annotations

import torch

from benchmarks.measures.script import command_line
from benchmarks.measures.timing import medians, report
from restore.fields import Fields
from restore.priors import RBM
from restore.solvers import TAP

VISIBLE, HIDDEN, BATCH = 784, 500, 100

# Iterations in one turn: enough for the clock.
ITERATIONS = 20


def main() -> None:
    chosen = command_line(__doc__, repeats=50).parse_args()
    torch.set_num_threads(chosen.threads)
    torch.manual_seed(0)
    weights = torch.randn(VISIBLE, HIDDEN) / VISIBLE**0.5
    prior = RBM.binary(weights, torch.randn(VISIBLE), torch.randn(HIDDEN))
    machine = prior.tilt(Fields(torch.randn(BATCH, VISIBLE)))
    plain, damped = TAP(), TAP(damping=0.5)
    start = plain.init(machine, torch.rand(BATCH, VISIBLE))
    visible, hidden, visible_variance, hidden_variance = start
    squares = weights * weights

    def steps(solver: TAP) -> None:
        state = start
        for _ in range(ITERATIONS):
            state = solver.step(machine, state)

    def products() -> None:
        for _ in range(ITERATIONS):
            _ = visible @ weights, visible_variance @ squares, hidden @ weights.T, hidden_variance @ squares.T

    with torch.inference_mode():
        candidates = {
            "TAP.step": lambda: steps(plain),
            "TAP.step, damped": lambda: steps(damped),
            "its four products": products,
        }
        seconds = medians(candidates, chosen.repeats)
    report({name: value / ITERATIONS for name, value in seconds.items()}, "its four products")


if __name__ == "__main__":
    main()
