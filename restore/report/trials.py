"""Damage and restore held-out images, with a prior and with its baselines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from restore.channels import Task, parse_task
from restore.evaluation.baselines import BASELINES, Median, PixelwiseEstimate, baseline
from restore.evaluation.evaluate import Report, Restorer, evaluate, restorer_of, task_of
from restore.evaluation.markdown import plus_minus
from restore.inference.torch_engine import Engine, moved_to
from restore.report.images import fitting, strip
from restore.report.page import Part, Rows, Section, Sentence, Strips
from restore.zoo.description import Description

SCORES = "Scores beside simple restorers"

# The seed of the damage.
SEED = 0

# The side of the wider median.
WIDE = 5

# The side of a patch as a share of the image's.
PATCH = 1 / 3


@dataclass(frozen=True)
class Scores:
    """The scores of restorers on a task.

    Attributes:
        task: how the images were damaged.
        reports: by the name of the restorer.
    """

    task: Task
    reports: Mapping[str, Report]

    @property
    def best(self) -> str:
        """The restorer with the best score."""
        return min(self.reports, key=self.order)

    def order(self, name: str) -> float:
        """What is less for a better restorer."""
        report = self.reports[name]
        return report.error_all.mean if report.psnr is None else -report.psnr.mean


def tasks_for(about: Description) -> list[Task]:
    """The tasks that a prior is tried on: the damage it has learnt, or damage that it is told."""
    if about.conditional:
        return [task_of(about)]
    if about.grey:
        return [parse_task(text, grey=True) for text in ("noise:0.1", "noise:0.2")]
    patch = max(1, round(PATCH * min(about.image_shape)))
    return [parse_task(text) for text in ("flip:0.1", "flip:0.2", f"patch:{patch}")]


def rivals(engine: Engine, training: Tensor, task: Task) -> dict[str, Restorer]:
    """The baselines to compare a prior with on a task; they may use the training images (N, D)."""
    about = engine.trained.description
    if engine.trained.grey_pixels is None:
        simple: dict[str, Restorer] = {name: baseline(name, training, about.image_shape).restore for name in BASELINES}
        simple["wide median"] = Median(about.image_shape, WIDE).restore
        return simple
    pixels = moved_to(engine.trained.grey_pixels, torch.device("cpu"))
    return {"ope": PixelwiseEstimate(pixels).restore, "median": Median(about.image_shape, grey=True).restore}


def compared(engine: Engine, training: Tensor, held_out: Tensor) -> list[Scores]:
    """Score a prior, its baselines, and doing nothing, on every task.

    Args:
        engine: the prior.
        training: images (N, D) as the prior knows them, on the CPU.
        held_out: images (M, D) to damage, M at least 1.
    """
    about = engine.trained.description

    def scores(task: Task) -> Scores:
        restorers = {about.name: restorer_of(engine)} | rivals(engine, training, task)
        restorers["nothing done"] = lambda observed, channel: observed
        return Scores(
            task,
            {
                name: evaluate(restorer, held_out, task, about.image_shape, _generator(), grey=about.grey)
                for name, restorer in restorers.items()
            },
        )

    return [scores(task) for task in tasks_for(about)]


def score_section(about: Description, scores: Sequence[Scores]) -> Section:
    """The scores in a table."""
    first = next(iter(scores[0].reports.values()))
    what = "PSNR in decibels, more is better" if first.grey else "Wrong pixels in per cent, less is better"
    names = list(scores[0].reports)
    best = frozenset((names.index(entry.best), column) for column, entry in enumerate(scores, 1))
    rows = [[name, *(_cell(entry.reports[name]) for entry in scores)] for name in names]
    told = " The baselines are told how the images were damaged, the prior is not." if about.conditional else ""
    return Section(
        SCORES,
        [
            Rows(["", *(str(entry.task) for entry in scores)], rows, best),
            Sentence(f"{what}; {first.n} images held out, ± is the standard error.{told} {_RIVALS[first.grey]}"),
        ],
    )


_RIVALS = {
    False: "ope: each pixel by itself; nn: the training image nearest to what was seen; median: of 3x3 pixels, wide "
    "median: of 5x5.",
    True: "ope: each pixel by itself; median: of 3x3 pixels.",
}


def _cell(report: Report) -> str:
    score, factor = (report.error_all, 100) if report.psnr is None else (report.psnr, 1)
    if not math.isfinite(score.mean):
        return "-"
    return plus_minus(factor * score.mean, factor * score.standard_error, 2)


def before_and_after(engine: Engine, held_out: Tensor) -> Section:
    """Some of the images as they are, damaged, and restored."""
    about = engine.trained.description
    shape = about.image_shape
    shown = held_out[: fitting(shape, 1, label=True)]
    parts: list[Part] = [Sentence("None of these images was learnt from. Grey pixels of a restored image are unsure.")]
    if about.grey:
        parts = [Sentence("None of these images was learnt from.")]
    for task in tasks_for(about):
        observed, channel = task.damage(shown, shape, _generator())
        restored = restorer_of(engine)(observed, channel)
        rows = {"as they are": shown, str(task): observed, "restored": restored}
        parts.append(Strips([strip(images, shape, label) for label, images in rows.items()]))
    return Section("Before and after", parts)


def _generator() -> torch.Generator:
    return torch.Generator().manual_seed(SEED)
