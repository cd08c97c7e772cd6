"""Learning from grey levels, whole runs: the exact likelihood rises, kinds of units, stopping, the command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from machines import seeded
from torch import Tensor

from restore.learning.recipe.recipe import Recipe, parse
from restore.learning.run.session import Session
from restore.learning.train import train
from restore.registry import UNITS
from restore.units.layers import blank

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


@pytest.mark.parametrize("hidden", sorted(UNITS))
@pytest.mark.parametrize("deeper", [[], [2]], ids=["rbm", "deep"])
def test_every_kind_of_hidden_unit_can_be_trained_and_kept(hidden: str, deeper: list[int], tmp_path: Path) -> None:
    family = {"family": "deep", "deeper": deeper} if deeper else {}
    settings = recipe(2, prior={"hidden_type": hidden, "weight_scale": 0.1} | family)
    prior = train(settings, stripes(50), SHAPE, Session(tmp_path, "x")).prior
    header = prior.description
    assert header.kind.unit_kinds(header, header.image_shape) == (
        "truncated-gauss-bernoulli",
        *[hidden] * (1 + len(deeper)),
    )
    named = prior.machine.parameters
    assert all(bool(torch.isfinite(value).all()) for value in named.values())
    # Every parameter has learnt something of its own.
    assert len({value.data_ptr() for value in named.values()}) == len(named)
    start = blank(hidden, 3, named["weights.0"]).parameters
    assert not any(torch.equal(named[f"units.1.{name}"], value) for name, value in start.items())
