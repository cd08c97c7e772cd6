"""Families of priors: all code that depends on the kind of machine."""

from restore.families.family import OBSERVED as OBSERVED
from restore.families.family import SPECIAL as SPECIAL
from restore.families.family import Family as Family
from restore.families.family import Features as Features
from restore.families.family import Observation as Observation
from restore.families.machines import FAMILIES as FAMILIES
from restore.families.spec import Spec as Spec
