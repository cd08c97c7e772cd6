"""Unit types: what values a unit can take and how it answers to fields."""

from restore.units.bernoulli import Bernoulli
from restore.units.contract import Units

__all__ = ["Bernoulli", "Units"]
