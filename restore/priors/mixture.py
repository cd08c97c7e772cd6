"""Mixtures of Gaussians, for patches of natural images: the posterior under noise is known in closed form.

A component k is a Gaussian of principal components (probabilistic PCA): x = 1/2 + W_k h + e with h ~ N(0, I) and
e ~ N(0, s_k I). A photograph's patch belongs to one: flat, an edge of some direction, or a texture. Under Gaussian
noise, and with pixels hidden, the posterior is again a mixture: its mean is the sum of one Wiener filter per component,
each weighted by how probable its component is (Zoran & Weiss, ICCV 2011; Tipping & Bishop, Neural Computation 11,
1999).

With a precision q and a linear field b = q y of each pixel, and e = q / (1 + q s), the precision of y given h,

    log Z_k = log π_k - Σ log(1 + q s) / 2 - log det M / 2 + gᵀM⁻¹g / 2 - Σ e (y - 1/2)² / 2 + a term common to all k,

M = I + Wᵀ diag(e) W and g = Wᵀ e (y - 1/2) (Woodbury). M depends on q alone, so that patches with the same noise share
all but two matrix products.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from restore.fields import Fields
from restore.tracing import tracing

# The mean of every component: photographs have no preferred polarity.
CENTRE = 0.5

# Components less probable than this, given a patch, are left out.
NEGLIGIBLE = 1e-9


@dataclass(frozen=True)
class GaussianMixture:
    """log p(x) = log Σ_k π_k N(x; 1/2, W_k W_kᵀ + s_k I), under evidence.

    Attributes:
        loadings: W_k, (K, D, R).
        noise: s_k, positive, (K,).
        log_share: log π_k, (K,).
        evidence: the fields on the pixels: `linear` (batch, D) and `quadratic` (batch or 1, D); nothing is known if it
            is zero.

    >>> mixture = GaussianMixture(torch.ones(1, 2, 1), torch.ones(1), torch.zeros(1))  # variances of 2, covariance of 1
    >>> mean, variance, _ = mixture.tilt(Fields(torch.tensor([[3.0, 0.0]]), torch.tensor([[2.0, 0.0]]))).posterior()
    >>> [round(value, 3) for value in (*mean[0].tolist(), *variance[0].tolist())]  # the first seen as 1.5 ± 1/√2
    [1.3, 0.9, 0.4, 1.6]
    """

    loadings: Tensor
    noise: Tensor
    log_share: Tensor
    evidence: Fields | None = None

    @property
    def parameters(self) -> dict[str, Tensor]:
        """By name, as in a weights file: the loadings side by side, (D, K·R)."""
        components, pixels, rank = self.loadings.shape
        flat = self.loadings.transpose(0, 1).reshape(pixels, components * rank)
        return {"weights.0": flat, "units.noise": self.noise, "units.log_share": self.log_share}

    @classmethod
    def of(cls, parameters: Mapping[str, Tensor]) -> GaussianMixture:
        flat, share = parameters["weights.0"], parameters["units.log_share"]
        loadings = flat.unflatten(1, (len(share), -1)).transpose(0, 1)
        return cls(loadings, parameters["units.noise"], share)

    def with_parameters(self, parameters: Mapping[str, Tensor]) -> GaussianMixture:
        return replace(self.of(parameters), evidence=self.evidence)

    def to(self, target: torch.device | torch.dtype) -> GaussianMixture:
        return self.with_parameters({name: value.to(target) for name, value in self.parameters.items()})

    def tilt(self, evidence: Fields) -> GaussianMixture:
        before = self.evidence
        return replace(self, evidence=evidence if before is None else before + evidence)

    def posterior(self) -> tuple[Tensor, Tensor, Tensor]:
        """Mean and variance of every pixel, (batch, D) each, and log Z, (batch,)."""
        nothing = self.loadings.new_zeros(1, self.loadings.shape[1])
        evidence = self.evidence or Fields(nothing, nothing)
        linear = evidence.linear
        precision = evidence.quadratic.expand(-1, nothing.shape[1])
        # In a graph all patches have the same precisions.
        if tracing() or len(precision) == 1:
            return self._of_kind(linear, precision)
        kinds, kind = precision.unique(dim=0, return_inverse=True)
        if len(kinds) == 1:
            return self._of_kind(linear, kinds)
        results = (torch.empty_like(linear), torch.empty_like(linear), linear.new_empty(len(linear)))
        for number, rows in enumerate(kind.argsort(stable=True).split(kind.bincount().tolist())):
            for whole, part in zip(results, self._of_kind(linear[rows], kinds[number : number + 1]), strict=True):
                whole[rows] = part
        return results

    def _of_kind(self, linear: Tensor, precision: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The posterior of patches (batch, D) whose pixels have the same precisions (1, D)."""
        damped = 1 / (1 + precision * self.noise[:, None])
        trust = precision * damped
        axes, log_determinant = whitened(self.loadings, trust)
        # Of all components together.
        excess = linear - precision * CENTRE
        off = excess / precision.clamp_min(torch.finfo(excess.dtype).tiny)
        along = (off @ (axes * trust[:, None]).flatten(0, 1).T).unflatten(1, axes.shape[:2])
        fit = along.square().sum(-1) - off.square() @ trust.T
        log_weight = self.log_share + (damped.log().sum(-1) - log_determinant + fit) / 2
        total = log_weight.logsumexp(1)
        # Products with numbers that are all but zero would take ten times as long.
        probable = torch.threshold((log_weight - total[:, None]).exp(), NEGLIGIBLE, 0.0)
        shift, variance = self._moments(axes, damped, along, probable, excess)
        shared = off * (linear + precision * CENTRE) + precision * CENTRE**2
        return CENTRE + shift, variance, total + shared.sum(-1) / 2

    def _moments(
        self, axes: Tensor, damped: Tensor, along: Tensor, probable: Tensor, excess: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Mean less the centre, and variance, of every pixel, (batch, D), over all components."""
        # A component shifts the centre by `gains` along its axes, and by `own` times the excess. One product gives the
        # mean of that and its product with `own`; the squares alone need the shift by each component.
        gains = axes * damped[:, None]
        excess_gain = self.noise[:, None] * damped
        weighted = (along * probable[..., None]).flatten(1)
        both = weighted @ torch.cat([gains, gains * excess_gain[:, None]], 2).flatten(0, 1)
        mean, crossed = both.split(excess_gain.shape[1], 1)
        shift = mean + excess * (probable @ excess_gain)
        apart = (along * probable.sqrt()[..., None]).transpose(0, 1) @ gains
        squares = torch.linalg.vector_norm(apart, dim=0).square() + excess * (
            2 * crossed + excess * (probable @ excess_gain.square())
        )
        spread = excess_gain + axes.square().sum(1) * damped.square()
        return shift, probable @ spread + (squares - shift.square()).clamp_min(0)


def whitened(loadings: Tensor, trust: Tensor) -> tuple[Tensor, Tensor]:
    """P with P Pᵀ = W M⁻¹ Wᵀ, and log det M, where M = I + Wᵀ diag(trust) W, by Gram and Schmidt.

    A row at a time, as in a Kalman filter: graphs have no factorisation of matrices.

    Args:
        loadings: W, (K, D, R).
        trust: (K, D).

    Returns:
        The columns of P as rows, (K, R, D); and the log-determinants, (K,).

    >>> axes, log_determinant = whitened(torch.tensor([[[1.0], [2.0]]]), torch.tensor([[3.0, 0.0]]))
    >>> axes.flatten().tolist(), round(log_determinant.exp().item(), 3)  # W / √(1 + 3)
    ([0.5, 1.0], 4.0)
    """
    # A first row of zeros, which changes nothing: onnxruntime fails at products over no rows.
    axes = torch.zeros_like(loadings[:, None, :, 0])
    scales = []
    for loading in loadings.unbind(2):
        trusted = loading * trust
        before = (axes @ trusted[..., None]).squeeze(-1)
        scale = 1 + (loading * trusted).sum(-1) - before.square().sum(-1)
        axis = (loading - (before[:, None] @ axes).squeeze(1)) / scale.sqrt()[:, None]
        axes = torch.cat([axes, axis[:, None]], 1)
        scales.append(scale)
    return axes[:, 1:], torch.stack(scales).log().sum(0)
