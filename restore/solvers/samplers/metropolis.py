"""Sampling a fractional RBM: a Gibbs sweep of the RBM near it proposes, and is accepted or not (FW, sec. 3.3)."""

from __future__ import annotations

import torch
from torch import Tensor

from restore.priors import RBM, FractionalRBM
from restore.solvers.samplers.gibbs import gibbs_steps


def metropolis_steps(
    prior: FractionalRBM, visible: Tensor, steps: int, generator: torch.Generator | None = None
) -> tuple[Tensor, Tensor]:
    """Visible states (batch, D) after `steps` proposals each, and the share of proposals accepted, zero-dimensional.

    A sweep is in detailed balance with the proposing RBM, so that the acceptance probability is the least of 1 and
    p(v') p̃(v) / (p(v) p̃(v')): four free energies (eq. after 12).
    """
    proposer = prior.approximation()
    excess = _excess(prior, proposer, visible)
    accepted = visible.new_zeros(())
    for _ in range(steps):
        proposal = gibbs_steps(proposer, visible, 1, generator)
        proposed = _excess(prior, proposer, proposal)
        draw = torch.rand(excess.shape, dtype=excess.dtype, device=excess.device, generator=generator)
        moves = draw.log() < proposed - excess
        visible = torch.where(moves[:, None], proposal, visible)
        excess = torch.where(moves, proposed, excess)
        accepted = accepted + moves.to(accepted).mean()
    return visible, accepted / max(1, steps)


def _excess(prior: FractionalRBM, proposer: RBM, visible: Tensor) -> Tensor:
    """log p(v) - log p̃(v) up to a constant, shape (batch,)."""
    return proposer.free_energy(visible) - prior.free_energy(visible)
