"""Priors: Boltzmann machines built of layers of units and the couplings between them."""

from restore.priors.conditional import ConditionalRBM as ConditionalRBM
from restore.priors.convolutional import ConvolutionalDBM as ConvolutionalDBM
from restore.priors.fully_visible import FullyVisible as FullyVisible
from restore.priors.layered import LayeredPrior as LayeredPrior
from restore.priors.machine import BoltzmannMachine as BoltzmannMachine
from restore.priors.mixture import GaussianMixture as GaussianMixture
from restore.priors.page import ConditionalDBM as ConditionalDBM
from restore.priors.rbm import RBM as RBM
