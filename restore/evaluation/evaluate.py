"""Evaluate a restorer: damage images, restore them, compare."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

from restore.channels import Channel, Task, parse_task
from restore.errors import ModelError
from restore.evaluation import metrics
from restore.evaluation.metrics import Score, summary
from restore.inference.torch_engine import Engine
from restore.zoo.description import Description

# Maps observed images (N, D) and their channel to the probability of ink, or the grey value, of each pixel.
Restorer: TypeAlias = Callable[[Tensor, Channel], Tensor]


def task_of(about: Description) -> Task:
    """The task that a conditional prior has learnt, without a mask."""
    return parse_task(about.task).unmasked()


def restorer_of(engine: Engine) -> Restorer:
    """A prior as a restorer; it is told the channel unless it has learnt the damage."""
    conditional = engine.trained.description.conditional
    return lambda observed, channel: engine.restore(observed, None if conditional else channel).means[0]


@dataclass(frozen=True)
class Report:
    """The scores of a restorer on a task.

    Attributes:
        task: the task.
        n: number of images.
        error_all: share of wrong pixels among all.
        error_changed: share of wrong pixels among those that the damage changed, pooled over images.
        error_unchanged: share of wrong pixels among the others, pooled over images.
        mcc: Matthews correlation, mean over images.
        psnr: in decibels; None for binary images.
        ssim: mean structural similarity; None for binary images.
        seconds: wall-clock time of the restoration alone.
        solver: the prior's solver; None for other restorers.
    """

    task: Task
    n: int
    error_all: Score
    error_changed: Score
    error_unchanged: Score
    mcc: Score
    psnr: Score | None
    ssim: Score | None
    seconds: float
    solver: str | None = None

    @property
    def grey(self) -> bool:
        """Whether the report is about grey values instead of ink."""
        return self.psnr is not None

    def as_dict(self) -> dict[str, object]:
        """The report as JSON values: shares in [0, 1]; None for what is undefined or infinite."""
        scores = {name: _plain(score) for name, score in self._scores().items()}
        return {
            "task": str(self.task),
            "mask": self.task.mask,
            "solver": self.solver,
            "n": self.n,
            **scores,
            "seconds": self.seconds,
        }

    def as_json(self) -> str:
        """One line of JSON."""
        return json.dumps(self.as_dict(), allow_nan=False)

    def as_text(self) -> str:
        """A few lines for people; errors in per cent."""
        mask = f", mask {self.task.mask}" if self.task.mask else ""
        lines = [f"{self.task}{mask}: {self.n} images in {self.seconds:.2f} s"]
        for name, score in self._scores().items():
            label, factor, unit, digits = _SHOWN[name]
            value, error = score.mean * factor, score.standard_error * factor
            lines.append(f"  {label:<30} {value:8.{digits}f} ± {error:.{digits}f}{unit}")
        return "\n".join(lines)

    def _scores(self) -> dict[str, Score]:
        scores = {name: getattr(self, name) for name in _SHOWN}
        return {name: score for name, score in scores.items() if score is not None}


_SHOWN = {
    "error_all": ("wrong pixels", 100, " %", 3),
    "error_changed": ("wrong among changed pixels", 100, " %", 2),
    "error_unchanged": ("wrong among unchanged pixels", 100, " %", 3),
    "mcc": ("Matthews correlation", 1, "", 4),
    "psnr": ("PSNR", 1, " dB", 2),
    "ssim": ("SSIM", 1, "", 4),
}


def evaluate(
    restorer: Restorer,
    truth: Tensor,
    task: Task,
    image_shape: tuple[int, int],
    generator: torch.Generator,
    *,
    grey: bool = False,
) -> Report:
    """Damage images, restore them, and score the result.

    Args:
        restorer: maps observed images (N, D) and a channel to the restored ones (N, D), in [0, 1].
        truth: shape (N, D), binary, or values in [0, 1] if `grey`; N >= 1.
        task: see `parse_task`.
        image_shape: (H, W), with D = H·W.
        generator: the only source of randomness; its seed fixes the damage.
        grey: whether the restorer returns grey values; then PSNR and SSIM are reported too.

    Raises:
        UsageError: if the task does not fit the images.
        ModelError: if the restorer returns another shape, or NaN.
    """
    observed, channel = task.damage(truth, image_shape, generator)
    start = time.perf_counter()
    # Fetching the result waits for asynchronous devices, so that all work is timed.
    restored = restorer(observed, channel).cpu()
    seconds = time.perf_counter() - start
    truth, observed = truth.cpu(), observed.cpu()
    if restored.shape != truth.shape:
        raise ModelError(f"the restorer returned shape {tuple(restored.shape)} for images of {tuple(truth.shape)}")
    if bool(restored.isnan().any()):
        raise ModelError(
            f"the restorer returned NaN for {int(restored.isnan().any(dim=1).sum())} of {len(truth)} images"
        )
    return Report(
        task=task,
        n=len(truth),
        error_all=summary(metrics.error_all(truth, restored)),
        error_changed=summary(
            metrics.error_changed(truth, restored, observed), metrics.changed_pixels(truth, observed)
        ),
        error_unchanged=summary(
            metrics.error_unchanged(truth, restored, observed), (truth == observed).sum(dim=1).double()
        ),
        mcc=summary(metrics.matthews(truth, restored)),
        psnr=summary(metrics.psnr(truth, restored)) if grey else None,
        ssim=summary(metrics.ssim(truth, restored, image_shape)) if grey else None,
        seconds=seconds,
    )


def _plain(score: Score) -> dict[str, float | int | None]:
    values = {"mean": score.mean, "standard_error": score.standard_error}
    return {**{name: value if math.isfinite(value) else None for name, value in values.items()}, "n": score.n}
