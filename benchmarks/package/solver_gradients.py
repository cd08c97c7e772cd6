"""A step of learning through the solver: back through all iterations against the implicit gradient at a fixed point.

    python benchmarks/package/solver_gradients.py --threads 1

784 visible and 500 hidden units of `tap-mnist`, mini-batches of 100 images after flips of .2, float32. Memory is what
torch saves for the way back, each array counted once.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from benchmarks.measures.script import command_line
from benchmarks.measures.timing import medians, report
from restore import zoo
from restore.channels import BitFlip
from restore.fields import Fields
from restore.learning.rules.contract import Restorations
from restore.learning.rules.matched import MatchedMarginals
from restore.priors import RBM

BATCH, P = 100, 0.2


def mini_batch(machine: RBM) -> Restorations:
    """Samples near the prior's modes, damaged."""
    generator = torch.Generator().manual_seed(0)
    clean = torch.rand(BATCH, machine.visible.size, generator=generator) < 0.2
    clean = machine.gibbs_sweep(clean.float(), generator)
    damaged = torch.where(torch.rand(clean.shape, generator=generator) < P, 1 - clean, clean)
    linear = BitFlip(P).evidence(damaged).linear.float()
    evidence = Fields(linear, torch.zeros_like(linear))
    return Restorations(clean, evidence, torch.sigmoid(evidence.linear), torch.zeros(BATCH, dtype=torch.int64))


def saved(rule: MatchedMarginals, machine: RBM, batch: Restorations) -> float:
    """MiB that a step saves for the way back, without parameters."""
    seen: dict[int, int] = {}
    own = {value.untyped_storage().data_ptr() for value in machine.parameters.values()}

    def keep(value: Tensor) -> Tensor:
        storage = value.untyped_storage()
        if storage.data_ptr() not in own:
            seen[storage.data_ptr()] = storage.nbytes()
            alive.append(value)
        return value

    alive: list[Tensor] = []
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda value: value):
        rule.step(machine, batch, {"loss": torch.zeros(1)}, torch.Generator())
    return sum(seen.values()) / 2**20


def main() -> None:
    chosen = command_line(__doc__, repeats=5).parse_args()
    torch.set_num_threads(chosen.threads)
    machine = zoo.load(zoo.find("tap-mnist")).machine
    assert isinstance(machine, RBM)
    batch = mini_batch(machine)
    base = MatchedMarginals(tasks=(f"flip:{P}",), scored=1, damping=0.2)
    rules = {
        f"{kind}, {iterations} iterations": replace(base, gradient=kind, iterations=iterations)
        for iterations in (10, 30)
        for kind in ("unrolled", "implicit")
    }
    seconds = medians(
        {
            name: lambda rule=rule: rule.step(machine, batch, {"loss": torch.zeros(1)}, torch.Generator())
            for name, rule in rules.items()
        },
        chosen.repeats,
    )
    memory = {name: f"{saved(rule, machine, batch):.1f}" for name, rule in rules.items()}
    report(seconds, "unrolled, 10 iterations", MiB=memory)


if __name__ == "__main__":
    main()
