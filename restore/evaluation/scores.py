"""The scores of a prior on its card: the tasks every published prior is measured on."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from restore.engine import Engine
from restore.evaluation.evaluate import Report, evaluate, restorer_of, task_of
from restore.evaluation.markdown import plus_minus, table
from restore.tasks import parse_task

# Tasks of priors that are told of the damage.
TASKS = ("flip:0.05", "flip:0.1", "flip:0.2", "flip:0.3", "flip:0.4", "patch:8", "patch:12")


def measure(engine: Engine, truth: Tensor, seed: int) -> list[Report]:
    """Reports of a prior on all tasks; of a conditional one on the task it has learnt.

    Args:
        engine: the prior.
        truth: binary test images (N, D).
        seed: of the damage.
    """
    about = engine.trained.description
    tasks = [task_of(about)] if about.conditional else [parse_task(task) for task in TASKS]
    return [
        evaluate(restorer_of(engine), truth, task, about.image_shape, torch.Generator().manual_seed(seed))
        for task in tasks
    ]


def as_section(reports: Sequence[Report], command: str) -> str:
    """Markdown for a card: the command and a row per task."""
    head = ["task", "images", "wrong pixels, % of all", "wrong, % of the changed", "wrong, % of the unchanged", "MCC"]
    rows = [
        [
            str(report.task),
            str(report.n),
            plus_minus(100 * report.error_all.mean, 100 * report.error_all.standard_error, 3),
            plus_minus(100 * report.error_changed.mean, 100 * report.error_changed.standard_error, 2),
            plus_minus(100 * report.error_unchanged.mean, 100 * report.error_unchanged.standard_error, 3),
            plus_minus(report.mcc.mean, report.mcc.standard_error, 4),
        ]
        for report in reports
    ]
    return f"Measured by `{command}` (± is the standard error):\n\n{table(head, rows)}"
