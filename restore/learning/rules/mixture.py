"""Expectation-maximisation for mixtures of principal components (Tipping & Bishop, Neural Computation 11, 1999).

The mean of a patch is a Gaussian by itself, the same for all components: a texture or an edge is no other in the light
than in the shade. So a component learns what is left of patches without their means. A round says how probable each
component is for each patch, and then takes, for each component, the likeliest Gaussian of a few directions: the
largest principal variances of its patches, and the mean of the other variances for all other directions. The likelihood
of the training patches never falls.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from restore.errors import TrainingError, require
from restore.learning.recipe.spec import PriorShape
from restore.learning.rules.contract import InRounds, LearnerState, Round
from restore.priors import GaussianMixture
from restore.priors.mixture import CENTRE

# Grey levels are whole numbers of 255: no pixel is known better, and no component is flatter.
FLATTEST = 1 / (12 * 255**2)

# Patches whose components are found together.
PATCHES_AT_ONCE = 8192


@dataclass(frozen=True)
class ExpectationMaximisation(InRounds):
    """A mixture of [prior] components, each of `hidden` directions: one is that of the mean of a patch.

    Attributes:
        rounds: how many there are.
    """

    any_units: ClassVar[bool] = True
    # Closer tiles gain little and take more time.
    tile_overlap: ClassVar[int] = 3

    rounds: int = 20

    @property
    def restores_with(self) -> Mapping[str, Any]:
        return {"solver": "exact", "max_iter": 1, "tol": 0.0, "damping": 0.0, "modes": 0, "starts": 0}

    def check(self, prior: PriorShape) -> None:
        require(
            prior.hidden != "auto" and prior.hidden >= 2,
            f"[prior] hidden of a mixture is at least 2, not {prior.hidden}",
        )
        require(self.rounds >= 1, f"[learner] rounds must be at least 1, not {self.rounds}")

    def at_work(self, prior: PriorShape, validation: Tensor) -> Maximisation:
        assert prior.hidden != "auto"
        return Maximisation(prior.components, prior.hidden - 1, self.rounds)

    def machine(self, state: Mapping[str, Tensor]) -> GaussianMixture:
        """With one direction more: that of a patch's mean."""
        loadings = state["loadings"].float()
        level = state["level"].float().expand(*loadings.shape[:2], 1)
        return GaussianMixture(torch.cat([loadings, level], 2), state["noise"].float(), state["log_share"].float())


@dataclass(frozen=True)
class Maximisation:
    """The rounds, over a number of Gaussians and of the directions of each besides that of the mean."""

    components: int
    hidden: int
    rounds: int

    def begin(self, images: Tensor, generator: torch.Generator) -> LearnerState:
        """Each component varies along one training patch, half as much as that, and as much in all other directions."""
        count, pixels = images.shape
        if count < self.components or self.hidden >= pixels - 1:
            raise TrainingError(
                f"{self.components} components of {self.hidden} directions need as many patches, and more than "
                f"{self.hidden + 1} pixels, not {count} patches of {pixels}; lower [prior] components or hidden"
            )
        chosen = torch.randperm(count, generator=generator, device=images.device)[: self.components]
        patches = _without_means(images[chosen])
        loadings = images.new_zeros(self.components, pixels, self.hidden)
        loadings[:, :, 0] = patches / math.sqrt(2)
        return {
            "loadings": loadings,
            "noise": (patches.square().sum(1) / (2 * (pixels - 1))).clamp_min(FLATTEST),
            "log_share": images.new_full((self.components,), -math.log(self.components)),
            "level": (images.mean(1) - CENTRE).square().mean().sqrt(),
        }

    def advance(self, images: Tensor, state: LearnerState, generator: torch.Generator) -> Round:
        count, pixels = images.shape
        covariances = images.new_zeros(self.components, pixels, pixels)
        weight = images.new_zeros(self.components)
        total = 0.0
        explain = densities(state)
        for part in images.split(PATCHES_AT_ONCE):
            patches = _without_means(part)
            log_weight = explain(patches)
            log_density = log_weight.logsumexp(1, keepdim=True)
            probable = (log_weight - log_density).exp()
            total += float(log_density.double().sum())
            weight += probable.sum(0)
            for component, share in enumerate(probable.T):
                # A patch belongs to few components; to the others it adds less than is rounded.
                its = share > torch.finfo(share.dtype).eps
                covariances[component] += (patches[its] * share[its, None]).T @ patches[its]
        variances, directions = torch.linalg.eigh((covariances / weight.clamp_min(1e-9)[:, None, None]).double())
        # The least variance is that of the mean, which was taken out.
        largest = variances[:, -self.hidden :]
        noise = variances[:, 1 : -self.hidden].mean(1).clamp_min(FLATTEST)
        lengths = (largest - noise[:, None]).clamp_min(0).sqrt()
        parameters = {
            "loadings": (directions[:, :, -self.hidden :] * lengths[:, None]).to(images),
            "noise": noise.to(images),
            "log_share": (weight.clamp_min(1e-9) / weight.sum()).log(),
            "level": state["level"],
        }
        return Round(parameters, {"nats_per_pixel": total / count / pixels})


def densities(state: Mapping[str, Tensor]) -> Any:
    """Make a function from patches without their means, (N, D), to log π_k p_k of each component, (N, K), in nats."""
    loadings, noise, share = state["loadings"], state["noise"], state["log_share"]
    components, pixels, hidden = loadings.shape
    unit = torch.eye(hidden).to(loadings)
    factor = torch.linalg.cholesky(unit + loadings.mT @ loadings / noise[:, None, None])
    whitened = torch.linalg.solve_triangular(factor, loadings.mT, upper=False) / noise[:, None, None]
    # They have one dimension less than pixels.
    spread = (pixels - 1) * (2 * math.pi * noise).log() + 2 * factor.diagonal(dim1=1, dim2=2).log().sum(1)

    def explain(patches: Tensor) -> Tensor:
        explained = (patches @ whitened.flatten(0, 1).T).unflatten(1, (components, hidden)).square().sum(2)
        return share - (spread + patches.square().sum(1, keepdim=True) / noise - explained) / 2

    return explain


def _without_means(images: Tensor) -> Tensor:
    return images - images.mean(1, keepdim=True)
