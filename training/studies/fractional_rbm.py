"""Fractional RBMs: each hidden unit counts with a power of its own (FW, sec. 3.1 and 3.3)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from restore.couplings import Dense
from restore.errors import UsageError
from restore.priors import RBM
from restore.units import Bernoulli


@dataclass(frozen=True)
class FractionalRBM:
    """log p(v) = bᵀv + Σ_j k_j log(1 + exp(c_j + (Wᵀv)_j)) - log Z with powers k_j (eq. 11).

    With all powers 1 this is the marginal of the RBM itself; with all of them α / t it is the paper's infinite RBM
    whose distribution q has t weights.

    Attributes:
        machine: a binary RBM with W, b and c.
        powers: k, shape (H,), positive. (The paper writes them c_i.)

    Raises:
        UsageError: for powers of another shape, or not positive and finite.
    """

    machine: RBM
    powers: Tensor

    def __post_init__(self) -> None:
        if tuple(self.powers.shape) != (self.machine.hidden.size,):
            raise UsageError(f"powers of shape {tuple(self.powers.shape)} do not fit {self.machine.hidden.size} units")
        if not bool(((self.powers > 0) & torch.isfinite(self.powers)).all()):
            raise UsageError("powers must be positive and finite")

    def softplus(self, visible: Tensor) -> Tensor:
        """log(1 + exp(c + Wᵀv)) of every hidden unit, shape (batch, H).

        Its mean over images minus that over the model is the gradient of the log-likelihood in the powers, and with
        the shares of q as weights that in α.
        """
        return self.machine.hidden.log_partition(self.machine.hidden_fields(visible))

    def free_energy(self, visible: Tensor) -> Tensor:
        """F(v) with log p(v) = -F(v) - log Z, shape (batch,)."""
        return -self.machine.visible.log_weight(visible).sum(-1) - self.softplus(visible) @ self.powers

    def approximation(self) -> RBM:
        """The RBM that comes near (eq. 12): a unit of power k <= 1 has k times the couplings and bias.

        A larger power is split into whole copies of the unit and one for the rest. The log of the unnormalised
        probability errs by at most log 2 times the distance of the powers from the next whole number above
        (Prop. 3.2); where all are whole it does not err.
        """
        copies = self.powers.ceil().long()
        owner = torch.repeat_interleave(torch.arange(len(copies), device=copies.device), copies)
        scale = torch.ones_like(self.powers)[owner]
        scale[copies.cumsum(0) - 1] = self.powers - (copies - 1)
        bias = self.machine.hidden.parameters["bias"][owner] * scale
        return RBM((self.machine.visible, Bernoulli(bias)), (Dense(self.machine.weights[:, owner] * scale),))

    def metropolis_steps(
        self, visible: Tensor, steps: int, generator: torch.Generator | None = None
    ) -> tuple[Tensor, Tensor]:
        """Visible states (batch, D) after `steps` proposals each, and the share accepted (sec. 3.3).

        A Gibbs sweep of the RBM near it proposes, which is in detailed balance with that; so the acceptance
        probability is the least of 1 and p(v') p̃(v) / (p(v) p̃(v')).
        """
        near, accepted = self.approximation(), visible.new_zeros(())
        excess = near.free_energy(visible) - self.free_energy(visible)
        for _ in range(steps):
            proposal = near.gibbs_sweep(visible, generator)
            proposed = near.free_energy(proposal) - self.free_energy(proposal)
            draw = torch.rand(excess.shape, dtype=excess.dtype, device=excess.device, generator=generator)
            moves = draw.log() < proposed - excess
            visible, excess = torch.where(moves[:, None], proposal, visible), torch.where(moves, proposed, excess)
            accepted = accepted + moves.to(accepted).mean()
        return visible, accepted / max(1, steps)
