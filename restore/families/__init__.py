"""Families of priors: each answers for its machines, so that nothing else asks which family a prior is of."""

from restore.families.family import OBSERVED, Family, Observation
from restore.families.spec import Spec
from restore.families.table import FAMILIES

__all__ = ["FAMILIES", "OBSERVED", "Family", "Observation", "Spec"]
