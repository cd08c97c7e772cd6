"""Maximum likelihood in closed form: probabilistic PCA as a machine of Gaussian units.

Tipping & Bishop, Probabilistic Principal Component Analysis (J. R. Stat. Soc. B 61, 1999), sec. 3.2 (eq. 7 and 8):
among all normal distributions whose covariance is a matrix of rank H plus a multiple of the unit matrix, the likeliest
has the mean of the images, their H largest principal variances λ_k along the directions u_k, and in all other
directions the mean 1/v of the remaining variances.

A machine of Gaussian units, V = v for every pixel and 1 for every hidden unit, has the precision v I - W Wᵀ over its
pixels. It is that distribution if W has the columns √(v - 1/λ_k) u_k; biases of v m for the pixels and -Wᵀm for the
hidden units give it the mean m, with hidden units around 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from restore.couplings import Dense
from restore.errors import TrainingError, require
from restore.learning.recipe.spec import PriorShape
from restore.learning.rules.contract import InRounds, LearnerState, Round
from restore.priors import RBM
from restore.units import Gaussian, TruncatedGaussian

# If components leave pixels a smaller share of the variance than this, it counts as none.
NOTHING = 1e-12


@dataclass(frozen=True)
class Principal(InRounds):
    """Probabilistic PCA, without settings: as many components as there are hidden units."""

    any_units: ClassVar[bool] = True

    @property
    def restores_with(self) -> Mapping[str, Any]:
        # Its couplings are too strong for TAP. Mean field has the right means of Gaussian units, however strong.
        return {"solver": "mean_field", "max_iter": 5000, "tol": 1e-3, "damping": 0.0}

    def check(self, prior: PriorShape) -> None:
        require(
            (prior.visible, prior.hidden_type) == ("truncated-gaussian", "gaussian"),
            '[learner] principal is for [prior] visible = "truncated-gaussian" and hidden_type = "gaussian"; give them',
        )

    def at_work(self, prior: PriorShape, validation: Tensor) -> PrincipalComponents:
        return PrincipalComponents(prior.hidden, validation)

    def machine(self, state: Mapping[str, Tensor]) -> RBM:
        return components_machine(state)


@dataclass(frozen=True)
class PrincipalComponents:
    """Finds, in a single round, the likeliest machine with one curvature for all pixels, if grey levels were unbounded.

    The bounds at black and white are only in the trained machine, whose pixels are truncated Gaussian units. Little of
    the probability lies beyond them unless images are mostly black or white. With hidden = "auto" there are as many
    components as make the validation images (M, D) likeliest.
    """

    rounds: ClassVar[int] = 1

    hidden: int | Literal["auto"]
    validation: Tensor | None = None

    def begin(self, images: Tensor, generator: torch.Generator) -> LearnerState:
        return {}

    def advance(self, images: Tensor, state: LearnerState, generator: torch.Generator) -> Round:
        """The machine's parameters by their names in `components_machine`, in double precision."""
        count, pixels = images.shape
        if self.hidden != "auto" and self.hidden >= pixels:
            raise TrainingError(
                f"{self.hidden} principal components of {pixels} pixels; lower [prior] hidden to at most {pixels - 1}"
            )
        if count < 2:
            raise TrainingError(f"{count} images have no principal components; give at least two")
        images = images.double()
        mean = images.mean(0)
        variances, directions = torch.linalg.eigh((images - mean).T @ (images - mean) / count)
        hidden = self.hidden
        if hidden == "auto":
            assert self.validation is not None
            hidden = 1 + int(held_out_fit(variances, (self.validation.double() - mean) @ directions).argmax())
        left = variances[: pixels - hidden].mean()
        if not left > NOTHING * variances.sum():
            raise TrainingError(
                f"{count} images vary along no more than {hidden} directions, which leaves pixels no variance of "
                "their own; lower [prior] hidden or give more images"
            )
        curvature = 1 / left
        components = variances[pixels - hidden :].flip(0), directions[:, pixels - hidden :].flip(1)
        weights = components[1] * (curvature - 1 / components[0]).clamp_min(0).sqrt()
        parameters = {
            "weights.0": weights,
            "units.0.bias": curvature * mean,
            "units.0.quadratic": curvature.expand(pixels).clone(),
            "units.1.bias": -mean @ weights,
            "units.1.quadratic": torch.ones_like(components[0]),
        }
        explained = components[0].sum() / variances.sum()
        return Round(
            parameters,
            {"residual_variance": float(left), "explained": float(explained)},
            f"the likeliest machine, in closed form; it explains {float(explained):.1%} of the variance",
        )


def held_out_fit(variances: Tensor, projections: Tensor) -> Tensor:
    """The mean log-likelihood of held-out images for 1, 2, ... D - 1 components, up to a common constant.

    Minus infinity where these leave pixels no variance. Variances are the principal ones of the training images in
    ascending order, (D,); projections those of held-out images, minus the mean, along their directions, (M, D).
    """
    known = variances.flip(0)
    held_out = projections.square().mean(0).flip(0)
    pixels = len(known)
    numbers = torch.arange(1, pixels, device=known.device)
    rest, unseen = ((values.sum() - values.cumsum(0))[:-1] for values in (known, held_out))
    left = rest / (pixels - numbers)
    sure = known.clamp_min(torch.finfo(known.dtype).tiny)
    cost = (sure.log() + held_out / sure).cumsum(0)[:-1] + (pixels - numbers) * left.clamp_min(0).log() + unseen / left
    return torch.where(left > NOTHING * known.sum(), -cost / 2, -torch.inf)


def components_machine(state: Mapping[str, Tensor]) -> RBM:
    """The machine with grey pixels from 0 to 1 that `PrincipalComponents` has found, in single precision."""
    named = {name: value.float() for name, value in state.items()}
    visible = TruncatedGaussian(named["units.0.bias"], named["units.0.quadratic"])
    return RBM((visible, Gaussian(named["units.1.bias"], named["units.1.quadratic"])), (Dense(named["weights.0"]),))
