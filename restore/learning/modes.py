"""A prior's own modes: its TAP solutions without evidence, stored as starts for restorations."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from restore.priors import RBM, FullyVisible, LayeredPrior
from restore.priors.bits import pack
from restore.solvers.samplers.gibbs import gibbs_steps, layered_steps
from restore.solvers.tap import TAP
from restore.zoo.inference import Inference

# Gibbs sweeps that lead a chain away from the training image it starts at.
SWEEPS = 500

# How many chains run side by side.
BLOCK = 1000

# With a time limit the clock is looked at after every so many sweeps.
AT_ONCE = 10


def own_modes(
    prior: LayeredPrior | FullyVisible,
    images: Tensor,
    inference: Inference,
    generator: torch.Generator,
    late: Callable[[], bool] | None = None,
) -> Tensor:
    """Find as many modes as an inference has: TAP solutions from samples, as packed binary images (modes, bytes).

    Gibbs chains start at training images (N, D) and leave them, so that modes are found as often as they have mass.
    """
    move: Callable[..., Tensor] = gibbs_steps if isinstance(prior, RBM | FullyVisible) else layered_steps
    at_once = SWEEPS if late is None else AT_ONCE
    solver = TAP(max_iter=inference.max_iter, tol=inference.tol, damping=inference.damping)
    count, blocks = inference.modes, list[Tensor]()
    for first in range(0, count, BLOCK):
        chosen = torch.randint(len(images), (min(BLOCK, count - first),), generator=generator, device=images.device)
        chains = images[chosen]
        for _ in range(0, SWEEPS, at_once):
            if late is None or not late():
                chains = move(prior, chains, at_once, generator)
        blocks.append(pack(solver.solve(prior, chains).means[0] > 0.5))
    return torch.cat(blocks) if blocks else pack(images[:0])
