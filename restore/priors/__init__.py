"""Priors: Boltzmann machines built of layers of units and the couplings between them."""

from restore.priors.conditional import ConditionalRBM
from restore.priors.convolutional import ConvolutionalRBM
from restore.priors.deep_convolutional import ConvolutionalDBM
from restore.priors.fractional import FractionalRBM
from restore.priors.fully_visible import FullyVisible
from restore.priors.layered import LayeredPrior
from restore.priors.machine import BoltzmannMachine
from restore.priors.mixture import GaussianMixture
from restore.priors.rbm import RBM

__all__ = [
    "RBM",
    "BoltzmannMachine",
    "ConditionalRBM",
    "ConvolutionalDBM",
    "ConvolutionalRBM",
    "FractionalRBM",
    "FullyVisible",
    "GaussianMixture",
    "LayeredPrior",
]
