"""Evaluate a restorer: damage images, restore them, compare."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import torch
from torch import Tensor

from restore.channels import Channel, Damaged, Occlusion, Task, parse_task
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
        error_hidden: share of wrong pixels among those that a known mask hides, pooled over images; None if none does.
        mcc: Matthews correlation, mean over images.
        psnr: in decibels; None for binary images.
        ssim: mean structural similarity; None for binary images.
        seconds: wall-clock time of the restoration alone.
        solver: the prior's solver; None for other restorers.
        beside: the scores of other restorers of the same damaged images, by name.
    """

    task: Task
    n: int
    error_all: Score
    error_changed: Score
    error_unchanged: Score
    error_hidden: Score | None
    mcc: Score
    psnr: Score | None
    ssim: Score | None
    seconds: float
    solver: str | None = None
    beside: Mapping[str, Report] = field(default_factory=dict)

    @property
    def grey(self) -> bool:
        """Whether the report is about grey values instead of ink."""
        return self.psnr is not None

    def as_dict(self) -> dict[str, object]:
        """The report as JSON values: shares in [0, 1]; None for what is undefined or infinite."""
        facts = {"task": str(self.task), "mask": self.task.mask, "solver": self.solver, "n": self.n}
        others = {name: report._plain() for name, report in self.beside.items()}
        return {**facts, **self._plain(), "seconds": self.seconds, **({"beside": others} if others else {})}

    def as_json(self) -> str:
        """One line of JSON."""
        return json.dumps(self.as_dict(), allow_nan=False)

    def as_text(self) -> str:
        """A few lines for people; errors in per cent."""
        mask = f", mask {self.task.mask}" if self.task.mask else ""
        lines = [f"{self.task}{mask}: {self.n} images in {self.seconds:.2f} s"]
        lines += [_line(name, score) for name, score in self._scores().items()]
        for other, report in self.beside.items():
            scores = report._scores()
            lines += [_line(name, scores[name], f", {other}") for name in _MAIN if name in scores]
        return "\n".join(lines)

    def _scores(self) -> dict[str, Score]:
        scores = {name: getattr(self, name) for name in _SHOWN}
        return {name: score for name, score in scores.items() if score is not None}

    def _plain(self) -> dict[str, dict[str, float | int | None]]:
        return {name: _plain(score) for name, score in self._scores().items()}


_SHOWN = {
    "error_all": ("wrong pixels", 100, " %", 3),
    "error_changed": ("wrong among changed pixels", 100, " %", 2),
    "error_unchanged": ("wrong among unchanged pixels", 100, " %", 3),
    "error_hidden": ("wrong among hidden pixels", 100, " %", 2),
    "mcc": ("Matthews correlation", 1, "", 4),
    "psnr": ("PSNR", 1, " dB", 2),
    "ssim": ("SSIM", 1, "", 4),
}

# The scores of other restorers that are shown too.
_MAIN = ("error_all", "error_hidden", "psnr", "ssim")


def _line(name: str, score: Score, whose: str = "") -> str:
    label, factor, unit, digits = _SHOWN[name]
    value, error = score.mean * factor, score.standard_error * factor
    return f"  {label + whose:<30} {value:8.{digits}f} ± {error:.{digits}f}{unit}"


@dataclass(frozen=True, eq=False)
class Measured:
    """The scores of images of one size.

    Attributes:
        scores: the fields of `Report` that are scores, (N,) each; NaN for images without the score.
        pixels: how many each score is a share of, (N,); scores that are missing here count the same for every image.
    """

    scores: Mapping[str, Tensor]
    pixels: Mapping[str, Tensor]

    @classmethod
    def of(
        cls, truth: Tensor, damaged: Damaged, restored: Tensor, image_shape: tuple[int, int], *, grey: bool
    ) -> Measured:
        """Compare restored images (N, D) with the truth (N, D)."""
        observed = damaged.observed.cpu()
        if restored.shape != truth.shape:
            raise ModelError(f"the restorer returned shape {tuple(restored.shape)} for images of {tuple(truth.shape)}")
        if bool(restored.isnan().any()):
            lost = int(restored.isnan().any(dim=1).sum())
            raise ModelError(f"the restorer returned NaN for {lost} of {len(truth)} images")
        scores = {
            "error_all": metrics.error_all(truth, restored),
            "error_changed": metrics.error_changed(truth, restored, observed),
            "error_unchanged": metrics.error_unchanged(truth, restored, observed),
            "mcc": metrics.matthews(truth, restored),
        }
        pixels = {
            "error_all": torch.full((len(truth),), truth.shape[1], dtype=torch.float64),
            "error_changed": metrics.changed_pixels(truth, observed),
            "error_unchanged": (truth == observed).sum(dim=1).double(),
        }
        if isinstance(damaged.channel, Occlusion):
            hidden = torch.as_tensor(damaged.channel.hidden).cpu()
            scores["error_hidden"] = metrics.error_among(hidden, truth, restored)
            pixels["error_hidden"] = hidden.sum(dim=1).double()
        if grey:
            scores["psnr"] = metrics.psnr(truth, restored)
            scores["ssim"] = metrics.ssim(truth, restored, image_shape)
        return cls(scores, pixels)


def reported(task: Task, parts: Sequence[Measured], seconds: float) -> Report:
    """The scores of all images together; parts of them may be of different sizes."""

    def score(name: str) -> Score | None:
        if name not in parts[0].scores:
            return None
        values = torch.cat([part.scores[name] for part in parts])
        weights = [part.pixels[name] for part in parts if name in part.pixels]
        return summary(values, torch.cat(weights) if weights else None)

    n = sum(len(part.scores["error_all"]) for part in parts)
    return Report(task=task, n=n, seconds=seconds, **{name: score(name) for name in _SHOWN})  # type: ignore[arg-type]


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

    >>> blank = torch.zeros(20, 100)
    >>> task, generator = parse_task("flip:0.1"), torch.Generator().manual_seed(0)
    >>> report = evaluate(lambda observed, channel: observed, blank, task, (10, 10), generator)
    >>> round(report.error_all.mean, 1), report.error_changed.mean  # what does nothing leaves every flip
    (0.1, 1.0)
    """
    damaged = task.damage(truth, image_shape, generator)
    start = time.perf_counter()
    # Fetching the result waits for asynchronous devices, so that all work is timed.
    restored = restorer(*damaged).cpu()
    seconds = time.perf_counter() - start
    return reported(task, [Measured.of(truth.cpu(), damaged, restored, image_shape, grey=grey)], seconds)


def _plain(score: Score) -> dict[str, float | int | None]:
    values = {"mean": score.mean, "standard_error": score.standard_error}
    return {**{name: value if math.isfinite(value) else None for name, value in values.items()}, "n": score.n}
