"""One TAP iteration with grey pixels against one with binary pixels of the same machine.

    python benchmarks/package/units.py

Batches of 100 images in float32: 784 visible and 500 hidden units as of digits, 361 and 256 as of faces.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from benchmarks.measures.script import command_line
from benchmarks.measures.timing import medians, report
from restore.priors import RBM
from restore.solvers import TAP
from restore.units import Bernoulli
from restore.units.layers import blank

SIZES = ((784, 500), (361, 256))
KINDS = ("bernoulli", "truncated-gaussian", "truncated-gauss-bernoulli")


def step(machine: RBM, state: tuple[Tensor, ...]) -> None:
    TAP().step(machine, state)


def main() -> None:
    parser = command_line(__doc__, repeats=31)
    parser.add_argument("--batch", type=int, default=100, help="[%(default)s]")
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    torch.manual_seed(0)
    for visible, hidden in SIZES:
        weights = 0.05 * torch.randn(visible, hidden)
        images = torch.rand(chosen.batch, visible)
        with torch.inference_mode():
            machines = {
                kind: RBM((blank(kind, visible, weights), Bernoulli(torch.zeros(hidden))), (weights,)) for kind in KINDS
            }
            # A state in the middle of an iteration.
            states = {kind: TAP().step(machine, TAP().init(machine, images)) for kind, machine in machines.items()}
            seconds = medians({kind: partial(step, machines[kind], states[kind]) for kind in KINDS}, chosen.repeats)
        report(seconds, "bernoulli", f"{visible} x {hidden}, {chosen.batch} images")


if __name__ == "__main__":
    main()
