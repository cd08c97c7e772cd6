"""Runs of a second or less on images of 4x4 pixels, judged by damaged images, with a clock for tests of time limits."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from priors import seeded
from torch import Tensor

from restore.learning.recipe.recipe import Recipe, parse
from restore.learning.rules.contract import Step
from restore.learning.rules.tap_likelihood import TAPLikelihood
from restore.learning.run.outcome import Trained
from restore.learning.run.session import Clock, Session
from restore.learning.train import train

SHAPE = (4, 4)


def bars(count: int = 60) -> Tensor:
    """Columns of a 4x4 image that are white or black."""
    return torch.randint(0, 2, (count, 1, 4), generator=seeded(1)).expand(-1, 4, -1).flatten(1).float()


def recipe(**tables: dict[str, Any]) -> Recipe:
    together: dict[str, Any] = {
        "data": {"source": "bars", "validation": 20},
        "prior": {"hidden": 4, "weight_scale": 0.1},
        "learner": {"method": "tap", "starts": "redrawn"},
        "optimizer": {"rate": 0.2},
        "training": {"epochs": 6, "batch": 10, "watch": "flip:0.1"},
        "inference": {"modes": 0, "starts": 1},
    }
    together |= {key: together.get(key, {}) | table for key, table in tables.items()}
    return parse({"name": "x", "seed": 5} | together)


def log_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


@dataclass
class Hands:
    """The hands of a clock that go on only where they are moved."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass(frozen=True)
class Timed(TAPLikelihood):
    """A learner whose step takes as long as it is told."""

    hands: Hands = field(default_factory=Hands)
    pace: list[float] = field(default_factory=lambda: [1.0])

    def step(self, *arguments: Any) -> Step:
        self.hands.now += self.pace[0]
        return super().step(*arguments)


def timed(minutes: float, pace: float = 1.0, **tables: Any) -> tuple[Recipe, Timed]:
    """A recipe with a time limit, four steps an epoch, and its learner."""
    training = {"epochs": 0, "minutes": minutes} | tables.pop("training", {})
    learner = Timed(starts="redrawn", pace=[pace])
    return replace(recipe(training=training, **tables), learner=learner), learner


def in_time(
    settings: Recipe, learner: Timed, folder: Path, better: Any = lambda *kept: None, **session: Any
) -> Trained:
    own = Session(folder, "x", clock=Clock(now=learner.hands), **session)
    return train(settings, bars(), SHAPE, own, better=better)
