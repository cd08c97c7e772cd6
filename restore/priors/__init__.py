"""Priors: Boltzmann machines built of layers of units and the couplings between them."""

from restore.priors.conditional import ConditionalRBM
from restore.priors.fractional import FractionalRBM
from restore.priors.layered import LayeredPrior
from restore.priors.rbm import RBM

__all__ = ["RBM", "ConditionalRBM", "FractionalRBM", "LayeredPrior"]
