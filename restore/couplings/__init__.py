"""Couplings between units: what one layer tells another, and the statistics that learners need of both."""

from restore.couplings.contract import Coupling
from restore.couplings.convolution import Convolution
from restore.couplings.dense import Dense
from restore.couplings.strided import Strided
from restore.couplings.symmetric import Symmetric

__all__ = ["Convolution", "Coupling", "Dense", "Strided", "Symmetric"]
