"""Priors on disk: find, describe, load and save them."""

from restore.zoo.automatic import (
    PREFERRED,
    PREFERRED_BINARY,
    PREFERRED_GREY,
    candidates,
    leave_out,
)
from restore.zoo.search import find, folders, published_folder, user_folder
from restore.zoo.store import (
    CARD,
    GRAPH,
    WEIGHTS,
    TrainedPrior,
    assembled,
    describe,
    light_ground,
    load,
    read,
    save,
)

__all__ = [
    "CARD",
    "GRAPH",
    "PREFERRED",
    "PREFERRED_BINARY",
    "PREFERRED_GREY",
    "WEIGHTS",
    "TrainedPrior",
    "assembled",
    "candidates",
    "describe",
    "find",
    "folders",
    "leave_out",
    "light_ground",
    "load",
    "published_folder",
    "read",
    "save",
    "user_folder",
]
