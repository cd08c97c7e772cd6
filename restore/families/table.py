"""The families of priors by their names in recipes and headers. A new family is a file beside this one, and a line."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from restore.families.conditional import Conditional
from restore.families.convolutional import Convolutional
from restore.families.deep import Deep
from restore.families.deep_convolutional import DeepConvolutional
from restore.families.family import Family
from restore.families.fully_visible import Pairs
from restore.families.mixture import Mixture
from restore.families.restricted import Restricted

FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        "rbm": Restricted(),
        "crbm": Conditional(),
        "fvbm": Pairs(),
        "deep": Deep(),
        "convolutional": Convolutional(),
        "deep_convolutional": DeepConvolutional(),
        "mixture": Mixture(),
    }
)
