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
            state["chains"] = prior.sample_hidden(images[chosen], generator)
        return state

    def step(self, prior: RBM, batch: Tensor, state: LearnerState, generator: torch.Generator, epoch: int = 0) -> Step:
        batch_fields = prior.hidden_fields(batch)
        # Chains rest in their hidden states, so that a sweep ends with the fields its statistics need.
        hidden = state["chains"] if "chains" in state else prior.hidden.sample(batch_fields, generator)
        visible = gibbs_steps(prior, prior.sample_visible(hidden, generator), self.steps - 1, generator)
        fields = prior.hidden_fields(visible)
        data = clamped(prior, batch, batch_fields)
        gradient = difference(data, clamped(prior, visible, fields))
        gap = gradient["units.0.bias"].square().mean().sqrt()
        hidden_offset = follow(state["hidden_offset"], data["units.1.bias"])
        if self.centring:
            gradient = centred(gradient, state["visible_offset"], hidden_offset)
        after = state | {"hidden_offset": hidden_offset}
        if self.starts == "persistent":
            after["chains"] = prior.hidden.sample(fields, generator)
        return Step(gradient, after, {"pixel_mean_gap": gap})
