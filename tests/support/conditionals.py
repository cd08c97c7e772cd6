"""Conditional priors written out, in numpy and by enumeration, for the tests of them."""

from __future__ import annotations

import itertools

import numpy as np
import torch
from machines import seeded
from textbook import total
from torch import Tensor

from restore.learning.rules.contract import Pairs
from restore.priors import RBM, ConditionalRBM

# D visible units, H hidden units, and pixels of the observed image.
SIZES = [(4, 3, 4), (5, 3, 2), (6, 3, 7)]


def all_states(count: int) -> np.ndarray:
    return np.array(list(itertools.product((0.0, 1.0), repeat=count)))


def plain(prior: ConditionalRBM) -> dict[str, np.ndarray]:
    return {name: value.double().numpy() for name, value in prior.parameters.items()}


def scores(prior: ConditionalRBM, observed: Tensor, clean: Tensor | None = None) -> np.ndarray:
    """vᵀWh + vᵀ(b + Wvx x) + hᵀ(c + Whx x) of every v and h, (images, 2**D, 2**H); or of one v each, (images, 2**H)."""
    own, x = plain(prior), observed.double().numpy()
    hidden = all_states(prior.weights.shape[1])
    visible_own = own["units.0.bias"] + np.einsum("ik,nk->ni", own["inputs.0"], x)
    hidden_own = own["units.1.bias"] + np.einsum("jk,nk->nj", own["inputs.1"], x)
    answered = np.einsum("nj,mj->nm", hidden_own, hidden)
    if clean is not None:
        truth = clean.double().numpy()
        joint = np.einsum("ni,ij,mj->nm", truth, own["weights.0"], hidden)
        return joint + answered + (truth * visible_own).sum(1, keepdims=True)
    visible = all_states(prior.weights.shape[0])
    joint = np.einsum("si,ij,mj->sm", visible, own["weights.0"], hidden)
    return joint + np.einsum("ni,si->ns", visible_own, visible)[:, :, None] + answered[:, None, :]


def log_weight(prior: ConditionalRBM, pairs: Pairs) -> np.ndarray:
    """log of the unnormalised p(v | x), (images,)."""
    return total(scores(prior, pairs.observed, pairs.clean))


def log_z(prior: ConditionalRBM, observed: Tensor) -> np.ndarray:
    return total(total(scores(prior, observed)))


def sigmoid(values: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-values))


def random_prior(
    sizes: tuple[int, int, int] = (5, 3, 4), scale: float = 1.0, inputs: float = 0.6, seed: int = 0
) -> ConditionalRBM:
    """A conditional machine in float64; `scale` is that of W alone."""
    visible, hidden, pixels = sizes
    shapes = ((visible, hidden), (visible,), (hidden,), (visible, pixels), (hidden, pixels))
    draw = seeded(seed)
    weights, b, c, wvx, whx = (torch.randn(shape, generator=draw, dtype=torch.float64) for shape in shapes)
    return ConditionalRBM(RBM.binary(scale * weights, 0.7 * b, 0.7 * c), inputs * wvx, inputs * whx)


def some_pairs(sizes: tuple[int, int, int] = (5, 3, 4), count: int = 4, seed: int = 1, binary: bool = False) -> Pairs:
    """Observed images, of any value unless binary, and binary clean ones."""
    draw = seeded(seed)
    observed = torch.randn(count, sizes[2], generator=draw, dtype=torch.float64)
    clean = torch.bernoulli(torch.full((count, sizes[0]), 0.5, dtype=torch.float64), generator=draw)
    return Pairs((observed > 0).double() if binary else observed, clean)


def mean_field(prior: ConditionalRBM, observed: Tensor, iterations: int) -> tuple[np.ndarray, np.ndarray]:
    """Visible and hidden means after as many iterations from what x alone says of the pixels."""
    own, x = plain(prior), observed.double().numpy()
    visible_own, hidden_own = own["units.0.bias"] + x @ own["inputs.0"].T, own["units.1.bias"] + x @ own["inputs.1"].T
    visible = sigmoid(visible_own)
    for _ in range(iterations):
        hidden = sigmoid(hidden_own + visible @ own["weights.0"])
        visible = sigmoid(visible_own + hidden @ own["weights.0"].T)
    return visible, hidden
