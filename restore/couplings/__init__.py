"""Couplings between units: the fields on a layer from another, and the statistics of both for learners."""

from restore.couplings.contract import Coupling
from restore.couplings.convolution import Convolution
from restore.couplings.dense import Dense
from restore.couplings.symmetric import Symmetric

__all__ = ["Convolution", "Coupling", "Dense", "Symmetric"]
