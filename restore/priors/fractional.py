"""Fractional RBMs: each hidden unit counts with a power of its own (Frank-Wolfe RBM, sec. 3.1 and 3.3)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from restore.couplings import Dense
from restore.errors import UsageError
from restore.priors.rbm import RBM
from restore.units import Bernoulli


@dataclass(frozen=True)
class FractionalRBM:
    """log p(v) = bᵀv + Σ_j k_j log(1 + exp(c_j + (Wᵀv)_j)) - log Z with powers k_j (eq. 11).

    With all powers 1 this is the marginal of the RBM itself.

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

    def free_energy(self, visible: Tensor) -> Tensor:
        """F(v) with log p(v) = -F(v) - log Z, shape (batch,)."""
        hidden = self.machine.hidden.log_partition(self.machine.hidden_fields(visible)) @ self.powers
        return -self.machine.visible.log_weight(visible).sum(-1) - hidden

    def approximation(self) -> RBM:
        """The RBM that comes near (eq. 12): a unit of power k <= 1 has k times the couplings and bias.

        A larger power is split into whole copies of the unit and one for the rest. The log of the unnormalised
        probability errs by at most log 2 times the distance of the powers from the next whole number above
        (Proposition 3.2); where all are whole it does not err.
        """
        copies = self.powers.ceil().long()
        owner = torch.repeat_interleave(torch.arange(len(copies), device=copies.device), copies)
        scale = torch.ones_like(self.powers)[owner]
        scale[copies.cumsum(0) - 1] = self.powers - (copies - 1)
        bias = self.machine.hidden.parameters["bias"][owner] * scale
        return RBM((self.machine.visible, Bernoulli(bias)), (Dense(self.machine.weights[:, owner] * scale),))
