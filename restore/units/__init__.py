"""Unit types: what values a unit can take and how it answers to fields."""

from restore.units.bernoulli import Bernoulli, log_one_plus_exp
from restore.units.contract import Units

__all__ = ["Bernoulli", "Units", "log_one_plus_exp"]
