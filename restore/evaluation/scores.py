"""The scores on a prior's card: the tasks that every published prior is measured on."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from restore.channels import Task, parse_task
from restore.evaluation.evaluate import Report, evaluate, restorer_of, task_of
from restore.evaluation.markdown import plus_minus, table
from restore.inference.torch_engine import Engine

# Tasks of priors that are told the damage.
TASKS = ("flip:0.05", "flip:0.1", "flip:0.2", "flip:0.3", "flip:0.4", "patch:8", "patch:12")
GREY_TASKS = ("noise:0.05", "noise:0.1", "noise:0.2", "noise:0.3", "salt:0.2", "patch:8")


def measure(engine: Engine, truth: Tensor, seed: int) -> list[Report]:
    """Score a prior on all tasks, a conditional one on the task it has learnt.

    Args:
        engine: the prior.
        truth: test images (N, D), binary or grey levels as the prior knows them.
        seed: seed of the damage.
    """
    about = engine.trained.description
    named = GREY_TASKS if about.grey else TASKS
    tasks = [task_of(about)] if about.conditional else [parse_task(task, grey=about.grey) for task in named]

    def report(task: Task) -> Report:
        generator = torch.Generator().manual_seed(seed)
        return evaluate(restorer_of(engine), truth, task, about.image_shape, generator, grey=about.grey)

    return [report(task) for task in tasks]


def as_section(reports: Sequence[Report], command: str) -> str:
    """Markdown for a card: the command, and one row per task."""
    if reports[0].grey:
        return f"Measured by `{command}` (± is the standard error):\n\n{_grey_table(reports)}"
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


def _grey_table(reports: Sequence[Report]) -> str:
    """One row per task; a hole filled exactly has no finite PSNR, and then there is no mean."""
    rows = []
    for report in reports:
        assert report.psnr is not None and report.ssim is not None
        psnr, ssim = report.psnr, report.ssim
        decibels = plus_minus(psnr.mean, psnr.standard_error, 2) if math.isfinite(psnr.mean) else "-"
        rows.append([str(report.task), str(report.n), decibels, plus_minus(ssim.mean, ssim.standard_error, 4)])
    return table(["task", "images", "PSNR, dB", "SSIM"], rows)
