"""Small lessons on bars, as `restore train` plans them; runs with a clock; a good recipe, and refusals of bad ones."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from priors import seeded
from torch import Tensor

from restore import zoo
from restore.errors import UsageError
from restore.learning.lesson import Lesson, lesson_of
from restore.learning.options import TrainOptions
from restore.learning.recipe.recipe import Recipe, parse, read_recipe
from restore.learning.run.outcome import Trained
from restore.learning.run.session import Session
from restore.learning.train import train_and_save

CPU = torch.device("cpu")


def bars(count: int = 40, seed: int = 0) -> np.ndarray:
    """Columns of 5x6 images, white or black; (N, 5, 6), uint8."""
    columns = np.random.default_rng(seed).random((count, 1, 6)) < 0.5
    return np.repeat(columns, 5, axis=1).astype(np.uint8) * np.uint8(255)


SHORT = ("--epochs", 2, "--quiet")


def bits(folder: str | Path) -> dict[str, bytes]:
    machine = zoo.load(zoo.find(str(folder))).machine
    return {name: value.numpy().tobytes() for name, value in machine.parameters.items()}


def lesson(seed: int = 0, **asked: object):  # type: ignore[no-untyped-def]
    options = TrainOptions(**({"name": "x", "hidden": 5, "epochs": 3} | asked))  # type: ignore[arg-type]
    return lesson_of(list(bars(seed=seed)), options)


def learn(made: Lesson, session: Session) -> Trained:
    """Train a lesson, without a report."""
    return train_and_save(made, session, CPU, report=False)


# --- runs on images of 4x4 pixels, judged by damaged images, with a clock for tests of time limits ---


SHAPE = (4, 4)


def columns(count: int = 60) -> Tensor:
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


def timed_log_of(folder: Path) -> list[dict[str, Any]]:
    """The records of a run with their seconds, which `fits.log_of` leaves out."""
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


@dataclass
class Hands:
    """The hands of a clock that go on only where they are moved."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


# --- a good recipe as text, and what is said of bad ones ---


GOOD = """
name = "digits"

[data]
source = "mnist"

[prior]
hidden = 5

[learner]
method = "tap"

[training]
epochs = 2
"""


def write(folder: Path, text: str | bytes, name: str = "recipe.toml") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def assert_refused(path: Path, *subjects: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_recipe(path)
    text = str(caught.value)
    assert text.startswith(f"{path}: ")
    assert all(subject in text for subject in subjects)
    assert "\n" not in text and len(text) < len(str(path)) + 500
    assert caught.value.exit_code == 2
