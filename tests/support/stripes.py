"""Grey stripes to learn from, and a recipe that learns them in a second."""

from __future__ import annotations

from typing import Any

import torch
from machines import seeded
from torch import Tensor

from restore.learning.recipe.recipe import Recipe, parse

SHAPE = (4, 4)


def stripes(count: int, seed: int = 0) -> Tensor:
    """Images of 4x4 pixels that have one or two light rows on black, (N, 16)."""
    draw = seeded(seed)
    rows = torch.rand(count, 4, 1, generator=draw) < 0.4
    levels = 0.6 + 0.3 * torch.rand(count, 4, 4, generator=draw)
    return torch.where(rows, levels, 0.0).flatten(1)


def recipe(epochs: int = 3, **tables: Any) -> Recipe:
    made: dict[str, Any] = {
        "name": "stripes",
        "seed": 1,
        "storage": "float32",
        "data": {"source": "stripes"},
        "prior": {"hidden": 3, "visible": "truncated-gauss-bernoulli"},
        "learner": {"method": "tap", "starts": "redrawn", "grey_unit": 0.3, "solutions": 50, "iterations": 5},
        "training": {"epochs": epochs, "batch": 25},
        "optimizer": {"rate": 0.02, "weight_decay": 0.0},
        "inference": {"max_iter": 200, "tol": 1e-3},
    }
    return parse({key: made.get(key, {}) | tables[key] if isinstance(tables.get(key), dict) else tables.get(key, value)
                  for key, value in (made | tables).items()})  # fmt: skip
