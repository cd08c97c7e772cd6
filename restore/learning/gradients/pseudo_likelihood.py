"""The log-pseudo-likelihood of fully visible machines: value, gradient, and images for which it has no maximum.

A machine over spins x in {-1, 1}^D has p(x) ∝ exp(xᵀMx / 2 + bᵀx). Given all others, each unit has the log-odds 2f with
f = Mx + b. The log-pseudo-likelihood of an image is the sum of log p(x_j | all others) = x_j f_j - log 2 cosh f_j over
its units (BSLM, eq. 2.1). All values here are means over images, 1/n of the paper's.

It rises for ever along a direction that predicts no unit of any image wrongly: all margins x_j f_j are at least 0, and
one is positive. A coupling belongs to two units, so one unit that the others predict without error is no proof. What is
found here is proved; directions whose margins are 0 for some images are not found.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from restore.errors import TrainingError, some

# Images of at most this many pixels are coded as numbers, to find equal ones. Larger images are hardly ever equal.
CODED = 62


class Spins(NamedTuple):
    """The parameters of a machine over spins, or a direction: M (D, D), symmetric with a zero diagonal, and b (D,)."""

    couplings: Tensor
    bias: Tensor

    def plus(self, other: Spins, length: float = 1.0) -> Spins:
        return Spins(self.couplings + length * other.couplings, self.bias + length * other.bias)

    def dot(self, other: Spins) -> Tensor:
        """Inner product over all entries of M, so that each coupling counts twice."""
        return (self.couplings * other.couplings).sum() + self.bias @ other.bias


@dataclass(frozen=True)
class Sample:
    """Images, equal small ones merged: spins in columns (D, n), each with its share of all (n,); and their number."""

    spins: Tensor
    shares: Tensor
    count: int

    @classmethod
    def of(cls, images: Tensor, dtype: torch.dtype = torch.float64) -> Sample:
        """Make the sample of binary images (N, D); a TrainingError if there are none, or other values than 0 and 1."""
        if not len(images):
            raise TrainingError("there are no images to learn from; give some")
        # Written so that NaN fails too.
        if not bool(((images == 0) | (images == 1)).all()):
            raise TrainingError("images hold other values than 0 and 1; cut them to black and white first")
        pixels = images.shape[1]
        counts = torch.ones(len(images), device=images.device)
        if pixels <= CODED:
            places = torch.arange(pixels, device=images.device)
            codes, counts = torch.unique((images.long() << places).sum(1), return_counts=True)
            images = (codes[:, None] >> places) & 1
        shares = (counts.double() / counts.sum()).to(dtype)
        return cls((2 * images.T.to(dtype) - 1).contiguous(), shares, int(counts.sum()))

    @cached_property
    def pairs(self) -> Tensor:
        """Means of x_j x_k, (D, D)."""
        return (self.spins * self.shares) @ self.spins.T

    @cached_property
    def means(self) -> Tensor:
        """Means of x_j, (D,)."""
        return self.spins @ self.shares

    @cached_property
    def curvature(self) -> float:
        """An upper bound, at most D, of the log-pseudo-likelihood's curvature along any direction u, over u·u.

        For unit j it is the mean of sech²(f_j) (u_jᵀ(1, x))² <= λ |u_j|², with λ the largest eigenvalue of the second
        moments of (1, x); the |u_j|² sum to u·u. Without x_j in x, λ <= D, the trace.
        """
        corner = torch.ones(1, 1, dtype=self.pairs.dtype, device=self.pairs.device)
        moments = torch.cat([torch.cat([corner, self.means[None]], 1), torch.cat([self.means[:, None], self.pairs], 1)])
        return min(float(torch.linalg.eigvalsh(moments.double())[-1]), float(len(self.means)))


class Evaluation(NamedTuple):
    """The penalised log-pseudo-likelihood at one point, and its gradient in the inner product of `Spins.dot`.

    The gradient's bias is the derivative in b_j; its couplings are half that in m_jk, which moves two entries of M.
    """

    value: float
    gradient: Spins


@dataclass(frozen=True)
class Objective:
    """The mean log-pseudo-likelihood of a sample, minus l2 / 2 times the squares of all biases and entries of M.

    So the log-likelihood of each unit given the others has the penalty l2 / 2 on its own bias and couplings.
    """

    sample: Sample
    l2: float = 0.0

    def fields(self, at: Spins) -> Tensor:
        """f = Mx + b of every unit in every distinct image, (D, n)."""
        return torch.addmm(at.bias[:, None], at.couplings, self.sample.spins)

    def value(self, at: Spins) -> float:
        """The objective, summed in double precision."""
        return self._value(at, self.fields(at))

    def evaluate(self, at: Spins) -> Evaluation:
        spins, shares = self.sample.spins, self.sample.shares
        fields = self.fields(at)
        value = self._value(at, fields)
        predicted = fields.tanh_().mul_(shares)
        error = self.sample.pairs - predicted @ spins.T
        gradient = Spins(
            ((error + error.T) / 2).fill_diagonal_(0) - self.l2 * at.couplings,
            self.sample.means - predicted.sum(1) - self.l2 * at.bias,
        )
        return Evaluation(value, gradient)

    def _value(self, at: Spins, fields: Tensor) -> float:
        # log p(x_j | all others) = log σ(2 x_j f_j).
        terms = logsigmoid(2 * self.sample.spins * fields).sum(0, dtype=torch.float64)
        return float(terms @ self.sample.shares.double()) - self.l2 / 2 * float(at.dot(at))


def refuse_unbounded(images: Tensor) -> None:
    """Refuse images (N, D) with a pixel that never changes, or two that never show one of their four combinations.

    In the first case the direction is the pixel's bias. In the second, say never 1 and 0, it is the coupling with
    biases -1 and 1 in spins: the margins are 0, 2, 0 and 0, 0, 2 for the rest. The TrainingError names the pixels.
    """
    ones = images.double()
    count = ones.sum(0)
    both = ones.T @ ones
    constant = ((count == 0) | (count == len(images))).nonzero().squeeze(-1)
    remedy = "the pseudo-likelihood has no maximum; set [learner] l2, such as 1e-3"
    if len(constant):
        changes = "changes" if len(constant) == 1 else "change"
        raise TrainingError(f"{list_units(constant)} never {changes} in {len(images)} images: {remedy}")
    alone = count - both.T
    cells = torch.stack([both, alone, alone.T, len(images) - count - count[:, None] + both])
    missing = (cells == 0).any(0).triu(1).nonzero()
    if len(missing):
        first, second = missing[0].tolist()
        more = f" and {len(missing) - 1} more pairs" if len(missing) > 1 else ""
        fault = f"pixels {first} and {second}{more} never show one of their four combinations"
        raise TrainingError(f"{fault} in {len(images)} images: {remedy}")


def separated_units(objective: Objective, at: Spins) -> Tensor:
    """Find units for which these parameters prove that there is no maximum.

    Units whose margins are all positive are kept, with only the parameters among them, until the rest is a direction
    without an error, or empty.
    """
    spins = objective.sample.spins
    kept = torch.arange(len(at.bias), device=spins.device)
    while len(kept):
        fields = torch.addmm(at.bias[kept, None], at.couplings[kept][:, kept], spins[kept])
        sure = (spins[kept] * fields > 0).all(1)
        if bool(sure.all()):
            break
        kept = kept[sure]
    return kept


def list_units(units: Tensor) -> str:
    """Name pixels in words: the first few by number."""
    return f"{'pixel' if len(units) == 1 else 'pixels'} {some(map(str, units.tolist()))}"
