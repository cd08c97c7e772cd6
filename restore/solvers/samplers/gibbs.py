"""Gibbs sampling: exact in the long run, and slow to leave a mode. Bipartite machines are sampled layer by layer."""

from __future__ import annotations

import torch
from torch import Tensor

from restore.priors import RBM, FullyVisible, LayeredPrior
from restore.solvers.layered_map import mean_field_state


def gibbs_steps(
    machine: RBM | FullyVisible, visible: Tensor, steps: int, generator: torch.Generator | None = None
) -> Tensor:
    """Visible states (batch, D) after `steps` sweeps over all units."""
    for _ in range(steps):
        visible = machine.gibbs_sweep(visible, generator)
    return visible


def layered_steps(
    machine: LayeredPrior, visible: Tensor, steps: int, generator: torch.Generator | None = None
) -> Tensor:
    """As `gibbs_steps`, for any number of hidden layers, which start from the means that follow from the image."""
    states = mean_field_state(machine, visible)[: len(machine.layers)]
    for _ in range(steps):
        states = machine.sweep(states, generator)
    return states[0]
