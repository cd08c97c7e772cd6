"""A prior's own modes: TAP solutions of the free machine, carried along as starts for restorations."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from restore.priors import RBM, FullyVisible, LayeredPrior
from restore.priors.bits import pack
from restore.solvers.samplers.gibbs import gibbs_steps, layered_steps
from restore.solvers.tap import TAP

# Sweeps of free Gibbs sampling that carry a chain away from the training image it starts at.
SWEEPS = 500

# Chains that run side by side.
BLOCK = 1000

# Sweeps by which their speed is measured; and how many the solver takes the time of.
TIMED = 5
SOLVING = 200


def own_modes(
    prior: LayeredPrior | FullyVisible, images: Tensor, count: int, solver: TAP, generator: torch.Generator
) -> Tensor:
    """Binary images, packed (count, bytes): the modes of TAP solutions started from samples of the prior itself.

    Sampling first spreads the modes as the prior spreads its mass, and leaves the training images behind.

    Args:
        prior: the trained prior.
        images: training images (N, D), where the chains start.
        count: how many.
        solver: the fixed point to run.
        generator: of the chains.
    """
    blocks = []
    for first in range(0, count, BLOCK):
        chosen = torch.randint(len(images), (min(BLOCK, count - first),), generator=generator, device=images.device)
        chains = _moves(prior)(prior, images[chosen], SWEEPS, generator)
        blocks.append(pack(solver.solve(prior, chains).means[0] > 0.5))
    return torch.cat(blocks) if blocks else pack(images[:0])


def _moves(prior: LayeredPrior | FullyVisible) -> Callable[..., Tensor]:
    """What sweeps over the units of a machine."""
    return gibbs_steps if isinstance(prior, RBM | FullyVisible) else layered_steps


def seconds_for_modes(
    prior: LayeredPrior | FullyVisible, images: Tensor, count: int, clock: Callable[[], float]
) -> float:
    """About how long `own_modes` takes for machines of this size, by a few sweeps; see there for the arguments."""
    if not count:
        return 0.0
    chains = images[torch.arange(min(count, BLOCK), device=images.device) % len(images)]
    generator, move = torch.Generator(images.device).manual_seed(0), _moves(prior)
    move(prior, chains, 1, generator)
    started = clock()
    # Fetching a number waits for a device that works asynchronously.
    float(move(prior, chains, TIMED, generator).sum())
    return (clock() - started) / TIMED * (SWEEPS + SOLVING) * -(-count // BLOCK)
