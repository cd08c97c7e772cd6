"""Contrastive divergence: the model's statistics from a few Gibbs steps (Hinton 2002; persistent: Tieleman 2008)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from restore.errors import UsageError
from restore.learning.centring import centred, follow
from restore.learning.contract import LearnerState, Step
from restore.learning.statistics import clamped, difference
from restore.priors import RBM
from restore.solvers.gibbs import gibbs_steps


@dataclass(frozen=True)
class ContrastiveDivergence:
    """CD-k and PCD-k.

    Attributes:
        starts: "data" restarts the chains from the mini-batch at every step (CD); "persistent" goes on from where the
            chains of the step before ended (PCD).
        chains: how many persistent chains are kept.
        steps: Gibbs sweeps per mini-batch (k).
        centring: take the gradient in the centred gauge.
    """

    starts: Literal["data", "persistent"] = "data"
    chains: int = 100
    steps: int = 1
    centring: bool = True

    def __post_init__(self) -> None:
        if self.chains < 1 or self.steps < 1:
            raise UsageError(f"chains and steps must be at least 1, not {self.chains} and {self.steps}")

    def init(self, prior: RBM, images: Tensor, generator: torch.Generator) -> LearnerState:
        state = {"visible_offset": images.mean(0), "hidden_offset": torch.full_like(prior.weights[0], 0.5)}
        if self.starts == "persistent":
            chosen = torch.randint(len(images), (self.chains,), generator=generator, device=images.device)
            state["chains"] = images[chosen]
        return state

    def step(self, prior: RBM, batch: Tensor, state: LearnerState, generator: torch.Generator) -> Step:
        chains = gibbs_steps(prior, state.get("chains", batch), self.steps, generator)
        data = clamped(prior, batch)
        gradient = difference(data, clamped(prior, chains))
        hidden_offset = follow(state["hidden_offset"], data["units.1.bias"])
        if self.centring:
            gradient = centred(gradient, state["visible_offset"], hidden_offset)
        after = state | {"hidden_offset": hidden_offset}
        if self.starts == "persistent":
            after["chains"] = chains
        gap = (batch.mean(0) - chains.mean(0)).square().mean().sqrt()
        return Step(gradient, after, {"pixel_mean_gap": gap})
