"""Small lessons on bars, of the kind that `restore train` plans for the images of a folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from restore import zoo
from restore.learning.lesson import Lesson, lesson_of
from restore.learning.options import TrainOptions
from restore.learning.run.outcome import Trained
from restore.learning.run.session import Session
from restore.learning.train import train_and_save

CPU = torch.device("cpu")


def bars(count: int = 40, seed: int = 0) -> np.ndarray:
    """Columns of 5x6 images, white or black; (N, 5, 6), uint8."""
    columns = np.random.default_rng(seed).random((count, 1, 6)) < 0.5
    return np.repeat(columns, 5, axis=1).astype(np.uint8) * np.uint8(255)


SHORT = ("--epochs", 2, "--quiet")
WORDS = ("train", "images", "--name", "parts", "--hidden", 5, "--epochs", 4, "--quiet")


def bits(folder: str | Path) -> dict[str, bytes]:
    machine = zoo.load(zoo.find(str(folder))).machine
    return {name: value.numpy().tobytes() for name, value in machine.parameters.items()}


def lesson(seed: int = 0, **asked: object):  # type: ignore[no-untyped-def]
    options = TrainOptions(**({"name": "x", "hidden": 5, "epochs": 3} | asked))  # type: ignore[arg-type]
    return lesson_of(list(bars(seed=seed)), options)


def learn(made: Lesson, session: Session) -> Trained:
    """Train a lesson, without a report."""
    return train_and_save(made, session, CPU, report=False)
