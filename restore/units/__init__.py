"""Unit types: the values of a unit and its response to fields."""

from restore.units.bernoulli import Bernoulli, log_one_plus_exp
from restore.units.contract import Units
from restore.units.gaussian import Gaussian
from restore.units.rectified import Rectified
from restore.units.spiked import Spiked
from restore.units.spin import Spin
from restore.units.truncated_gaussian import TruncatedGaussian

__all__ = ["Bernoulli", "Gaussian", "Rectified", "Spiked", "Spin", "TruncatedGaussian", "Units", "log_one_plus_exp"]
