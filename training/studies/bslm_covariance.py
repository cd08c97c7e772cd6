"""Fits by pseudo-likelihood from any start, and the covariance of where they end: the maximum."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from restore.errors import TrainingError, UsageError
from restore.learning.gradients.pseudo_likelihood import Sample, Spins
from restore.learning.rules.bslm import PseudoLikelihoodAscent, state_at
from restore.learning.rules.contract import Round

# How many numbers the matrices of a block of images may hold.
BLOCK = 2**24

# Standard errors are computed for at most this many units: they need two matrices of half their number to the fourth.
MAX_UNITS = 100


def standard_errors(images: Tensor, at: Spins) -> Spins:
    """Standard errors of the maximum of the unpenalised log-pseudo-likelihood, from its sandwich covariance.

    Args:
        images: the images it was fitted to, (N, D), in {0, 1}.
        at: the maximum.

    Raises:
        UsageError: for more than MAX_UNITS units.
        TrainingError: if the images do not distinguish some parameters.
    """
    return unflattened((covariance(Sample.of(images), at).diagonal() / len(images)).sqrt())


def covariance(sample: Sample, at: Spins) -> Tensor:
    """The asymptotic covariance of sqrt(n) (θ̂ - θ), H⁻¹ J H⁻¹ (Godambe), (q, q).

    H is the mean of minus the second derivatives of an image's log-pseudo-likelihood, and J that of the outer product
    of its first derivatives, in θ: the biases, then the couplings m_jk, j < k, row by row. With all states as the
    sample, and their probabilities as shares, it is that of a true machine.

    Raises:
        UsageError: for more than MAX_UNITS units.
        TrainingError: if H is singular.
    """
    count = len(sample.spins)
    if count > MAX_UNITS:
        raise UsageError(f"standard errors of {count} units would take too much memory; give at most {MAX_UNITS} units")
    place = parameter_places(count, sample.spins.device)
    size = count * (count + 1) // 2
    bends, scatter = (sample.spins.new_zeros(size, size) for _ in range(2))
    upper = torch.triu_indices(count, count, 1, device=place.device)
    for spins, shares in zip(
        *(part.split(max(1, BLOCK // size), -1) for part in (sample.spins, sample.shares)), strict=True
    ):
        fields = torch.addmm(at.bias[:, None], at.couplings, spins)
        error = spins - fields.tanh()
        scores = torch.cat([error, error[upper[0]] * spins[upper[1]] + error[upper[1]] * spins[upper[0]]])
        scatter += (scores * shares) @ scores.T
        for unit, weight in enumerate(shares / fields.cosh() ** 2):
            # The factors of the parameters in row `unit` of `place` in its field: x, and 1 for its bias.
            seen = spins.clone()
            seen[unit] = 1
            bends[place[unit][:, None], place[unit]] += (seen * weight) @ seen.T
    factor, singular = torch.linalg.cholesky_ex(bends)
    if int(singular) or float(factor.diagonal().min()) < 1e-7 * float(factor.diagonal().max()):
        raise TrainingError("the images do not tell some parameters from others; give more images, or fewer pixels")
    inverse = torch.cholesky_inverse(factor)
    return inverse @ scatter @ inverse


def parameter_places(count: int, device: torch.device | None = None) -> Tensor:
    """The positions among all parameters of b_j (on the diagonal) and of m_jk (elsewhere), (count, count)."""
    place = torch.diag(torch.arange(count, device=device))
    upper = torch.triu_indices(count, count, 1, device=device)
    place[upper[0], upper[1]] = torch.arange(count, count * (count + 1) // 2, device=device)
    return torch.maximum(place, place.T)


def unflattened(parameters: Tensor) -> Spins:
    """Matrix and vector from all parameters (q,) in the order of `covariance`."""
    count = int((8 * len(parameters) + 1) ** 0.5 - 1) // 2
    whole = parameters[parameter_places(count, parameters.device)]
    return Spins(whole.clone().fill_diagonal_(0), whole.diagonal().clone())


def flattened(at: Spins) -> Tensor:
    """All parameters (q,) of a matrix and vector, in the order of `covariance`."""
    upper = torch.triu_indices(len(at.bias), len(at.bias), 1, device=at.bias.device)
    return torch.cat([at.bias, at.couplings[upper[0], upper[1]]])


def rounds_of(learner: PseudoLikelihoodAscent, images: Tensor, start: Spins) -> Iterator[Round]:
    """All rounds of a learner from given parameters."""
    objective = learner.objective(images)
    state = state_at(objective, start)
    for _ in range(learner.rounds):
        found = learner.round(objective, state)
        yield found
        if found.verdict:
            return
        state = found.state
