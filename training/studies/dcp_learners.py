"""What is compared: learners of RBMs that cost the same number of Gibbs sweeps per mini-batch."""

from __future__ import annotations

from torch import Tensor

from restore.learning.rules.contract import Learner
from restore.learning.rules.contrastive import ContrastiveDivergence
from restore.learning.rules.spectral import SpectralDescent
from restore.priors import RBM

ALGORITHMS = ("CD", "PCD", "CG", "SSD", "S-DCP", "CS-DCP")

TITLES = {
    "shifting-bar": "Shifting Bar",
    "bars-and-stripes": "Bars & Stripes",
    "mnist": "MNIST",
    "omniglot": "Omniglot",
}

# A curve has arrived when it is 90 % of the way up: at its target divided by this, since log-likelihoods are negative.
ARRIVED = 0.9

# Standard deviation of the first weights.
WEIGHT_SCALE = 0.01


def learner_of(algorithm: str, sweeps: int, inner: int, chains: int) -> Learner[RBM, Tensor]:
    """A learner with so many Gibbs sweeps per mini-batch, which S-DCP and CS-DCP divide among `inner` steps.

    Args:
        algorithm: of `ALGORITHMS`.
        sweeps: a multiple of `inner`.
        inner: d.
        chains: of PCD; as many as a mini-batch has images makes its sweeps cost what those of the others cost.
    """
    learners: dict[str, Learner[RBM, Tensor]] = {
        "CD": ContrastiveDivergence(steps=sweeps, centring=False),
        "PCD": ContrastiveDivergence("persistent", chains, sweeps, centring=False),
        "CG": ContrastiveDivergence(steps=sweeps),
        "SSD": SpectralDescent(steps=sweeps),
        "S-DCP": ContrastiveDivergence(steps=sweeps // inner, centring=False, inner_steps=inner),
        "CS-DCP": ContrastiveDivergence(steps=sweeps // inner, inner_steps=inner),
    }
    return learners[algorithm]
