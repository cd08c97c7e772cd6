"""The scores on a prior's card: the tasks that every published prior is measured on."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from restore.channels import Task, parse_task
from restore.evaluation.evaluate import Report, evaluate, restorer_of, task_of
from restore.evaluation.markdown import plus_minus, table
from restore.evaluation.whole import Watch, by_prior, evaluate_whole
from restore.inference.pictures import PictureEngine
from restore.inference.torch_engine import Engine

# Tasks of priors that are told the damage.
TASKS = ("flip:0.05", "flip:0.1", "flip:0.2", "flip:0.3", "flip:0.4", "patch:8", "patch:12")
GREY_TASKS = ("noise:0.05", "noise:0.1", "noise:0.2", "noise:0.3", "salt:0.2", "patch:8")

# The same on whole images of other sizes than the prior's.
WHOLE_TASKS = ("flip:0.05", "flip:0.1", "flip:0.2", "flip:0.3", "holes:8:0.1")
WHOLE_GREY_TASKS = ("noise:0.1", "noise:0.2", "salt:0.2", "holes:8:0.1")
# Mixtures of Gaussians know no salt or pepper.
WHOLE_MIXTURE_TASKS = ("noise:0.05", "noise:0.1", "noise:0.2", "noise:0.3")


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


def measure_whole(engine: PictureEngine, truths: Sequence[Tensor], seed: int, watch: Watch) -> list[Report]:
    """Score a prior on whole images, beside the damaged images and the median filter.

    Args:
        engine: the prior.
        truths: test images, (H, W) each, binary or grey levels as the prior knows them.
        seed: seed of the damage.
        watch: is told which share of the work is done.
    """
    about = engine.description
    named = WHOLE_MIXTURE_TASKS if about.mixture else WHOLE_GREY_TASKS if about.grey else WHOLE_TASKS
    tasks = [task_of(about)] if about.conditional else [parse_task(task, grey=about.grey) for task in named]

    def report(number: int, task: Task) -> Report:
        generator = torch.Generator().manual_seed(seed)
        return evaluate_whole(
            by_prior(engine),
            truths,
            task,
            generator,
            grey=about.grey,
            watch=lambda share: watch((number + share) / len(tasks)),
        )

    return [report(number, task) for number, task in enumerate(tasks)]


def whole_section(reports: Sequence[Report], command: str) -> str:
    """As `as_section`, for whole images, with the scores of the others in columns of their own."""
    said = f"Measured by `{command}` on whole images, restored as `restore denoise` does it (± is the standard error)"
    measure = "PSNR in dB" if reports[0].grey else "wrong pixels in %, of holes in % of the hidden pixels"
    rows = []
    for report in reports:
        median = next(name for name in report.beside if name.startswith("median"))
        sides = median.removeprefix("median of ")
        cells = [_main(one) for one in (report, report.beside["as it is"], report.beside[median])]
        rows.append([str(report.task), str(report.n), *cells[:2], f"{cells[2]} ({sides})"])
    return f"{said}; {measure}:\n\n{table(['task', 'images', 'restored', 'as it is', 'best median'], rows)}"


def _main(report: Report) -> str:
    """The score of a report that says most."""
    if report.psnr is not None:
        return plus_minus(report.psnr.mean, report.psnr.standard_error, 2) if math.isfinite(report.psnr.mean) else "-"
    score = report.error_hidden or report.error_all
    return plus_minus(100 * score.mean, 100 * score.standard_error, 3)


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
