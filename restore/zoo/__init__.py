"""Priors on disk: find, describe, load and save them."""

from restore.zoo.automatic import candidates, leave_out, preferred, readable
from restore.zoo.search import find, folders, published_folder, user_folder
from restore.zoo.store import (
    CARD,
    GRAPH,
    WEIGHTS,
    TrainedPrior,
    assembled,
    card_of,
    describe,
    light_ground,
    load,
    read,
    save,
)

__all__ = [
    "CARD",
    "GRAPH",
    "WEIGHTS",
    "TrainedPrior",
    "assembled",
    "candidates",
    "card_of",
    "describe",
    "find",
    "folders",
    "leave_out",
    "light_ground",
    "load",
    "preferred",
    "published_folder",
    "read",
    "readable",
    "save",
    "user_folder",
]
