"""Contrastive divergence, and S-DCP, which generalises it by programming with differences of convex functions.

The mean log-likelihood is g(θ) - f(θ) with f = log Z and g the mean of log Σ_h exp(-E(v, h)), both convex. Contrastive
divergence (Hinton 2002; persistent: Tieleman 2008) ascends along ∇g - ∇f̂, with ∇f̂ from a few Gibbs sweeps. S-DCP
(Upadhya & Sastry, ACML 2017, Alg. 3) keeps ∇g of a mini-batch for several steps. These descend on the *convex* function
f(θ') - θ'ᵀ∇g(θ), which lies above -log-likelihood, up to a constant, and touches it at θ. The samples come from one
chain that starts at the data and continues through the steps. One step per mini-batch is contrastive divergence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, NamedTuple, Self

import torch
from torch import Tensor

from restore.errors import UsageError, require
from restore.learning.gradients.centring import follow, translated
from restore.learning.gradients.statistics import Clamped, difference
from restore.learning.rules.contract import Gradient, LearnerState, LearningRule, Step
from restore.priors import RBM
from restore.solvers.samplers.gibbs import gibbs_steps


class _Batch(NamedTuple):
    """The data's part of the gradient in all steps on a mini-batch, and the means of visible and hidden units."""

    weights: Tensor
    units: Gradient
    means: tuple[Tensor, Tensor]


@dataclass(frozen=True)
class ContrastiveDivergence(LearningRule):
    """CD-k, PCD-k, the centred gradient (CG), S-DCP and CS-DCP.

    | | starts | centring | inner_steps |
    | --- | --- | --- | --- |
    | CD | data | false | 1 |
    | PCD | persistent | false | 1 |
    | CG | data | true | 1 |
    | S-DCP | data | false | d |
    | CS-DCP | data | true | d |

    Attributes:
        starts: "data" restarts the chains from every mini-batch (CD); "persistent" continues the chains of the one
            before (PCD).
        chains: number of persistent chains.
        steps: Gibbs sweeps per gradient (k, or K').
        centring: take the gradient in the centred gauge.
        inner_steps: gradient steps per mini-batch (d). All use the data's statistics from before the first, and the
            chains continue. In each step the offsets of the centred gauge move towards the means of the mini-batch,
            also those of the visible units; the data's part of the gradient stays in the gauge of the first (Alg. 4).
    """

    any_units: ClassVar[bool] = True

    starts: Literal["data", "persistent"] = "data"
    chains: int = 100
    steps: int = 1
    centring: bool = True
    inner_steps: int = 1

    def __post_init__(self) -> None:
        if self.chains < 1 or self.steps < 1:
            raise UsageError(f"chains and steps must be at least 1, not {self.chains} and {self.steps}")
        require(self.inner_steps >= 1, f"inner_steps must be at least 1, not {self.inner_steps}")

    @property
    def sweeps(self) -> int:
        """Gibbs sweeps per mini-batch, d K'. Comparisons of learners hold it fixed (sec. 3.1 of the paper)."""
        return self.inner_steps * self.steps

    def divided(self, parts: int) -> Self:
        return replace(self, chains=math.ceil(self.chains / parts))

    def init(self, prior: RBM, images: Tensor, generator: torch.Generator) -> LearnerState:
        state = {"offset.0": images.mean(0), "offset.1": torch.full_like(prior.hidden.parameters["bias"], 0.5)}
        if self.starts == "persistent":
            chosen = torch.randint(len(images), (self.chains,), generator=generator, device=images.device)
            state["chains"] = prior.sample_hidden(images[chosen], generator)
        return state

    def step(self, prior: RBM, batch: Tensor, state: LearnerState, generator: torch.Generator, epoch: int = 0) -> Step:
        fields = prior.hidden_fields(batch)
        # Chains are kept as hidden states, so that a sweep ends with the fields that statistics need.
        hidden = state["chains"] if "chains" in state else prior.hidden.sample(fields, generator)
        data = Clamped.of(prior, batch, fields)
        means = data.units["units.0.bias"], data.units["units.1.bias"]
        states = data.weighed(1 / len(batch), self._offsets(_followed(state, means)))
        whole = _Batch(prior.couplings[0].product(*states), data.units, means)
        return self._inner_step(prior, whole, hidden, state, generator, self.inner_steps)

    def _offsets(self, state: LearnerState) -> tuple[Tensor, ...]:
        return (state["offset.0"], state["offset.1"]) if self.centring else ()

    def _inner_step(
        self,
        prior: RBM,
        batch: _Batch,
        hidden: Tensor,
        state: LearnerState,
        generator: torch.Generator,
        remaining: int,
    ) -> Step:
        visible = gibbs_steps(prior, prior.sample_visible(hidden, generator), self.steps - 1, generator)
        fields = prior.hidden_fields(visible)
        model = Clamped.of(prior, visible, fields)
        state = _followed(state, batch.means)
        offsets = self._offsets(state)
        # Later steps on the mini-batch need the data's part again.
        weights = batch.weights.clone() if remaining > 1 else batch.weights
        weights = prior.couplings[0].product(*model.weighed(-1 / len(visible), offsets), onto=weights)
        gradient = {"weights.0": weights} | difference(batch.units, model.units)
        gap = gradient["units.0.bias"].square().mean().sqrt()
        if offsets:
            gradient = translated(prior.couplings, gradient, offsets)
        monitors = {"pixel_mean_gap": gap, "sweeps": torch.full_like(gap, self.sweeps)}
        if remaining > 1:

            def again(moved: RBM) -> Step:
                onwards = moved.sample_hidden(visible, generator)
                return self._inner_step(moved, batch, onwards, state, generator, remaining - 1)

            return Step(gradient, state, monitors, again)
        if self.starts == "persistent":
            state = state | {"chains": prior.hidden.sample(fields, generator)}
        return Step(gradient, state, monitors)


def _followed(state: LearnerState, means: tuple[Tensor, Tensor]) -> LearnerState:
    """The state whose offsets have moved once more towards the means."""
    return state | {f"offset.{layer}": follow(state[f"offset.{layer}"], mean) for layer, mean in enumerate(means)}
