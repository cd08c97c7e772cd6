"""Adaptive TAP: a solver that corrects each unit for its own effect on itself, given the actual couplings.

(TAP assumes the correction that random couplings would need.)

TAP machine, appendix D; Opper & Winther 2001. The joint distribution of all units is approximated twice: by independent
units under fields B, A, with their true unit types; and by a Gaussian, with all couplings J at once,

    exp(B₂ x - x (diag(A₂) - J) x / 2),   means a₂, covariance C₂ = (diag(A₂) - J)⁻¹.

At the fixed point both have the same means and variances. The iteration is VAMP (Alg. 3): each side is given what only
the other knows. It works for all unit types.

Alg. 3 divides by variances, and a certain pixel has variance 0. So with a, c the moments of the independent units this
file uses

    S = 1/A₂ = c / (1 - A c),   m = B₂/A₂ = (a - c B) / (1 - A c),   R = diag(J C₂ J)

and C₂ = S^½ (1 - S^½ J S^½)⁻¹ S^½, a₂ = m + C₂ J m. The updates of Alg. 3 become A = -R / (1 + S R) and
B = (J a₂ - R m) / (1 + S R), without small divisors. (At the fixed point B = J a + A a, as in TAP, where R would be
(J∘J) c.)

An RBM needs no inverse of the size of J: by the Schur complement, 1 - S^½ J S^½ is solved with a matrix of the size of
the smaller layer, positive definite if the larger one is, and factorised by Cholesky for each image. (If all units of a
layer had the same variance, one singular value decomposition of W would do for all images.)
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from restore.fields import Fields
from restore.priors import BoltzmannMachine, LayeredPrior
from restore.solvers.heavy_map import HeavyMap
from restore.solvers.layered_map import mean_field_state
from restore.solvers.loop import State, damped
from restore.solvers.tap import cavity_fields

# Arrays of the size of the couplings per image; counted.
COUPLINGS = 10

# Arrays of the size of the factorised matrix per image.
SQUARES = 14

# An inverse with a larger relative error is useless.
SPOILT = 1e-3


class Response(NamedTuple):
    """The answer of the Gaussian side.

    Attributes:
        means: a₂ of all units, (batch, units of a layer) per layer.
        reactions: R, in the same shapes.
        log_determinant: log det(1 - S^½ J S^½), (batch,); NaN where the Gaussian does not exist, or nearly so.
    """

    means: tuple[Tensor, ...]
    reactions: tuple[Tensor, ...]
    log_determinant: Tensor


def gaussian_response(machine: BoltzmannMachine, scales: State, centres: State) -> Response:
    """The answer of the Gaussian side to S and m, given per layer, (batch, units)."""
    if isinstance(machine, LayeredPrior) and len(machine.layers) == 2:
        return bipartite_response(machine.couplings[0].matrix, scales, centres)
    sizes = [layer.size for layer in machine.layers]
    means, reactions, log_determinant = joint_response(
        joint_couplings(machine), torch.cat(scales, 1), torch.cat(centres, 1)
    )
    return Response(means.split(sizes, 1), reactions.split(sizes, 1), log_determinant)


def bipartite_response(weights: Tensor, scales: State, centres: State) -> Response:
    """`gaussian_response` for one visible and one hidden layer with weights (D, H)."""
    if weights.shape[0] < weights.shape[1]:
        swapped = bipartite_response(weights.T, scales[::-1], centres[::-1])
        return Response(swapped.means[::-1], swapped.reactions[::-1], swapped.log_determinant)
    (scale, small_scale), (centre, small_centre) = scales, centres
    through, factor, half = _reduced(weights, scale, small_scale)
    reaction = (half @ weights.T).square().sum(1)
    small_reaction = through.diagonal(dim1=1, dim2=2) + (half @ through).square().sum(1)
    # (1/S - J) x = J m, with the larger layer expressed by the smaller one.
    field = small_centre @ weights.T
    small_field = centre @ weights
    known = (small_field + (scale * field) @ weights)[:, :, None]
    small_shift = (half.mT @ (half @ known)).squeeze(2)
    shift = scale * (field + small_shift @ weights.T)
    log_determinant = log_determinant_of(factor, small_scale * small_reaction)
    return Response((centre + shift, small_centre + small_shift), (reaction, small_reaction), log_determinant)


def bipartite_covariance(weights: Tensor, scales: State) -> Tensor:
    """C₂ between visible and hidden units, averaged over a batch in which the Gaussian exists throughout; (D, H).

    The iteration does not need it, but the gradient of log Z does.
    """
    if weights.shape[0] < weights.shape[1]:
        return bipartite_covariance(weights.T, scales[::-1]).T
    scale, small_scale = scales
    *_, half = _reduced(weights, scale, small_scale)
    return (scale[:, :, None] * (weights @ (half.mT @ half))).mean(0)


def _reduced(weights: Tensor, scale: Tensor, small_scale: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Eliminate the larger layer, with S, in favour of the smaller one, with s; results (batch, H, H) each.

    Returns:
        Wᵀ S W; the factor L of 1 - s^½ Wᵀ S W s^½ from `cholesky`; and L⁻¹ s^½, with which `half.mT @ half` is C₂ of
        the smaller layer. (Multiplying with it takes half the time of solving with L.)
    """
    root = small_scale.sqrt()
    scaled = scale.sqrt()[:, :, None] * weights
    through = scaled.mT @ scaled
    factor = cholesky(root[:, :, None] * through * root[:, None])
    return through, factor, torch.linalg.solve_triangular(factor, root.diag_embed(), upper=False)


def joint_response(couplings: Tensor, scales: Tensor, centres: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Means, reactions and log-determinant as in `Response`, for all units at once with J (N, N)."""
    root = scales.sqrt()[:, :, None]
    factor = cholesky(root * couplings * root.mT)
    reactions = torch.linalg.solve_triangular(factor, root * couplings, upper=False).square().sum(1)
    known = (centres @ couplings)[:, :, None]
    shift = (root * torch.cholesky_solve(root * known, factor)).squeeze(2)
    return centres + shift, reactions, log_determinant_of(factor, scales * reactions)


def joint_couplings(machine: BoltzmannMachine) -> Tensor:
    """The couplings J of all units, symmetric, (N, N)."""
    if not isinstance(machine, LayeredPrior):
        return machine.couplings[0].matrix
    sizes = [layer.size for layer in machine.layers]
    joint = machine.couplings[0].weights.new_zeros(sum(sizes), sum(sizes))
    blocks = [rows.split(sizes, 1) for rows in joint.split(sizes)]
    for index, coupling in enumerate(machine.couplings):
        blocks[index][index + 1].copy_(coupling.matrix)
        blocks[index + 1][index].copy_(coupling.matrix.T)
    return joint


def cholesky(less: Tensor) -> Tensor:
    """The Cholesky factor of 1 - `less`, (batch, n, n); NaN if there is none."""
    one = torch.eye(less.shape[-1], dtype=less.dtype, device=less.device)
    factor, failed = torch.linalg.cholesky_ex(one - less)
    return torch.where(failed[:, None, None] == 0, factor, torch.nan)


def log_determinant_of(factor: Tensor, excess: Tensor) -> Tensor:
    """The log-determinant from Cholesky factors (batch, n, n); NaN where rounding has spoilt the inverse; (batch,).

    Args:
        factor: from `cholesky`.
        excess: S R, the excess of the inverse's diagonal over 1, (batch, n). No eigenvalue of the inverse exceeds 1 by
            more than their sum, and none of the matrix itself exceeds 1.
    """
    log_determinant = 2 * factor.diagonal(dim1=1, dim2=2).log().sum(1)
    error = torch.finfo(factor.dtype).eps * (1 + excess.sum(1))
    return torch.where(error < SPOILT, log_determinant, torch.nan)


class AdaptiveTAP(HeavyMap[BoltzmannMachine]):
    """TAP whose correction of each unit follows from the actual couplings; exact for Gaussian units.

    For other units it accounts fully for the second-order statistics of the couplings.

    The Gaussian side does not exist where the largest eigenvalue of S^½ J S^½ reaches 1 within rounding. For undecided
    binary units S is at most 1/4, so this takes couplings of a spectral norm of at least 4, which trained machines
    have; evidence decides units and so prevents it. If it happens during the iteration, the fields of TAP are used
    instead, which helps most images; an image that ends there counts as diverged.

    >>> import math
    >>> from restore.priors import RBM
    >>> from restore.units import Gaussian
    >>> layers = Gaussian(torch.ones(2), torch.ones(2)), Gaussian(torch.zeros(1), torch.ones(1))
    >>> machine = RBM(layers, (torch.full((2, 1), 0.5),))
    >>> round(AdaptiveTAP(damping=0).solve(machine).log_partition.item(), 3)
    5.103
    >>> precision, bias = torch.tensor([[1, 0, -0.5], [0, 1, -0.5], [-0.5, -0.5, 1]]), torch.tensor([1.0, 1, 0])
    >>> fit = bias @ precision.inverse() @ bias
    >>> round(((fit + 3 * math.log(2 * math.pi) - precision.logdet()) / 2).item(), 3)
    5.103
    """

    name = "adaptive TAP"

    def init(self, machine: BoltzmannMachine, start: Tensor) -> State:
        """Means, variances, B and A of all layers: the state of the units under the fields of TAP from the start."""
        moments = mean_field_state(machine, start)
        depth = len(machine.layers)
        means, variances = list(moments[:depth]), list(moments[depth:])
        fields = [cavity_fields(machine, layer, means, variances) for layer in range(depth)]
        return _under(machine, tuple(field.linear for field in fields), tuple(field.quadratic for field in fields))

    def step(self, machine: BoltzmannMachine, state: State) -> State:
        """One iteration: update the Gaussian side, then the independent units."""
        *_, linear, quadratic = _parts(machine, state)
        (new_linear, new_quadratic), _ = _answer(machine, state)
        return _under(machine, damped(new_linear, linear, self.damping), damped(new_quadratic, quadratic, self.damping))

    def log_partition(self, machine: BoltzmannMachine, state: State) -> Tensor:
        """The expectation-consistent estimate of log Z (Opper & Winther 2005), (batch,), float64.

        It is log Z of the independent units, plus log Z of the Gaussian, minus log Z of independent Gaussians with
        B + B₂ and A + A₂, which both count. What is infinite for certain pixels cancels:

            Σ log Z_i + ½ Σ [(c B² - 2 a B + A a²) / (1 - A c) - log(1 - A c)] + ½ m J a₂ - ½ log det(1 - S^½ J S^½)

        It is stationary in A and B where both sides agree.
        """
        machine = machine.to(torch.float64)
        means, variances, linear, quadratic = _parts(machine, tuple(value.double() for value in state))
        scales, centres = _given(means, variances, linear, quadratic)
        response = gaussian_response(machine, scales, centres)
        terms = [-response.log_determinant / 2]
        for layer, units in enumerate(machine.layers):
            a, c, B, A = means[layer], variances[layer], linear[layer], quadratic[layer]
            kept = 1 - A * c
            own = units.log_partition(Fields(B, A))
            exchanged = (c * B * B - 2 * a * B + A * a * a) / kept - kept.log()
            joint = centres[layer] * machine.inputs(layer, response.means)
            terms.append((own + (exchanged + joint) / 2).sum(-1))
        return torch.stack(terms).sum(0)

    def numbers(self, machine: BoltzmannMachine) -> int:
        """Mostly matrices for log Z, which is computed in double precision."""
        sizes = [layer.size for layer in machine.layers]
        if len(sizes) == 2:
            return COUPLINGS * sizes[0] * sizes[1] + SQUARES * min(sizes) ** 2
        return SQUARES * sum(sizes) ** 2


class Closing(NamedTuple):
    """The last iteration of an RBM, undamped, with the terms of a likelihood gradient.

    Attributes:
        state: the state after it.
        fields: the fields of the units then, per layer.
        covariance: of visible and hidden units, averaged over the batch, (D, H).
        lawless: the images without a Gaussian side, (batch,), for which TAP gave the answer.
    """

    state: State
    fields: tuple[Fields, ...]
    covariance: Tensor
    lawless: Tensor


def closing(machine: LayeredPrior, state: State) -> Closing:
    """Do the last iteration; see `Closing`.

    At a fixed point the derivative of log Z in a weight is a_v a_h plus this covariance: the estimate is stationary in
    all fields, so it depends on J only through the Gaussian. Images without one count with TAP's value, W c c.
    """
    weights = machine.couplings[0].matrix
    (linear, quadratic), lawless = _answer(machine, state)
    after = _under(machine, linear, quadratic)
    _, variances, *_ = _parts(machine, after)
    scales, _ = _given(*_parts(machine, state))
    some = lawless.nonzero().squeeze(1)
    covariance = weights * (variances[0][some].T @ variances[1][some])
    if len(some) < len(lawless):
        others = (~lawless).nonzero().squeeze(1)
        covariance = covariance + len(others) * bipartite_covariance(weights, tuple(scale[others] for scale in scales))
    fields = tuple(Fields(*pair) for pair in zip(linear, quadratic, strict=True))
    return Closing(after, fields, covariance / len(lawless), lawless)


def _answer(machine: BoltzmannMachine, state: State) -> tuple[tuple[State, State], Tensor]:
    """The Gaussian side's B and A per layer, and the images (batch,) without one, where TAP answers."""
    means, variances, linear, quadratic = _parts(machine, state)
    scales, centres = _given(means, variances, linear, quadratic)
    response = gaussian_response(machine, scales, centres)
    lawless = response.log_determinant.isnan()
    new_linear, new_quadratic = [], []
    for layer, reaction in enumerate(response.reactions):
        gain = 1 + scales[layer] * reaction
        own = (machine.inputs(layer, response.means) - reaction * centres[layer]) / gain
        tap = cavity_fields(machine, layer, list(means), list(variances))
        new_linear.append(torch.where(lawless[:, None], tap.linear, own))
        new_quadratic.append(torch.where(lawless[:, None], tap.quadratic, -reaction / gain))
    return (tuple(new_linear), tuple(new_quadratic)), lawless


def _under(machine: BoltzmannMachine, linear: State, quadratic: State) -> State:
    moments = [units.moments(Fields(*f)) for units, *f in zip(machine.layers, linear, quadratic, strict=True)]
    means, variances = zip(*moments, strict=True)
    return (*means, *variances, *linear, *quadratic)


def _parts(machine: BoltzmannMachine, state: State) -> tuple[State, State, State, State]:
    depth = len(machine.layers)
    means, variances, linear, quadratic = (state[first : first + depth] for first in range(0, 4 * depth, depth))
    return means, variances, linear, quadratic


def _given(means: State, variances: State, linear: State, quadratic: State) -> tuple[State, State]:
    """S and m per layer, the message of the independent units."""
    kept = [1 - A * c for A, c in zip(quadratic, variances, strict=True)]
    scales = tuple(c / k for c, k in zip(variances, kept, strict=True))
    centres = tuple((a - c * B) / k for a, c, B, k in zip(means, variances, linear, kept, strict=True))
    return scales, centres
