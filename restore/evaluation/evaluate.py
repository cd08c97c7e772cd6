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

# The scores of a report: label, factor, unit and digits for people.
SCORES = {
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


def task_of(header: Description) -> Task:
    """The task that a conditional prior has learnt, without a mask."""
    return parse_task(header.task).unmasked()


def restorer_of(engine: Engine) -> Restorer:
    """A prior as a restorer; it is told the channel unless it has learnt the damage."""
    learnt = engine.trained.description.task
    return lambda observed, channel: engine.restore(observed, None if learnt else channel).means[0]


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
        seconds: wall-clock time of the restoration alone.
        error_hidden: share of wrong pixels among those that a known mask hides, pooled over images; None if none does.
        psnr: in decibels; None for binary images.
        ssim: mean structural similarity; None for binary images.
        solver: the prior's solver; None for other restorers.
        beside: the scores of other restorers of the same damaged images, by name.
    """

    task: Task
    n: int
    error_all: Score
    error_changed: Score
    error_unchanged: Score
    mcc: Score
    seconds: float
    error_hidden: Score | None = None
    psnr: Score | None = None
    ssim: Score | None = None
    solver: str | None = None
    beside: Mapping[str, Report] = field(default_factory=dict)

    @property
    def grey(self) -> bool:
        """Whether the report is about grey values instead of ink."""
        return self.psnr is not None

    @property
    def scores(self) -> dict[str, Score]:
        """The scores there are, by the names of `SCORES`."""
        every = {name: getattr(self, name) for name in SCORES}
        return {name: score for name, score in every.items() if score is not None}

    def as_json(self) -> str:
        """One line of JSON: shares in [0, 1]; null for what is undefined or infinite."""
        facts = {"task": str(self.task), "mask": self.task.mask, "solver": self.solver, "n": self.n}
        others = {name: report._plain() for name, report in self.beside.items()}
        beside = {"beside": others} if others else {}
        return json.dumps({**facts, **self._plain(), "seconds": self.seconds, **beside}, allow_nan=False)

    def as_text(self) -> str:
        """A few lines for people; errors in per cent."""
        mask = f", mask {self.task.mask}" if self.task.mask else ""
        lines = [f"{self.task}{mask}: {self.n} images in {self.seconds:.2f} s"]
        # Where no pixel changed, or none kept its value, there is nothing to say of such.
        lines += [_line(name, score) for name, score in self.scores.items() if not math.isnan(score.mean)]
        for other, report in self.beside.items():
            lines += [_line(name, score, f", {other}") for name, score in report.scores.items() if name in _MAIN]
        return "\n".join(lines)

    def _plain(self) -> dict[str, dict[str, float | int | None]]:
        def number(value: float) -> float | None:
            return value if math.isfinite(value) else None

        return {
            name: {"mean": number(score.mean), "standard_error": number(score.standard_error), "n": score.n}
            for name, score in self.scores.items()
        }


def _line(name: str, score: Score, whose: str = "") -> str:
    label, factor, unit, digits = SCORES[name]
    value, error = score.mean * factor, score.standard_error * factor
    return f"  {label + whose:<30} {value:8.{digits}f} ± {error:.{digits}f}{unit}"


@dataclass(frozen=True, eq=False)
class Measured:
    """The scores of images of one size.

    Attributes:
        scores: by the names of `SCORES`, (N,) each; NaN for images without the score.
        pixels: how many each score is a share of, (N,); scores that are missing here count the same for every image.
    """

    scores: Mapping[str, Tensor]
    pixels: Mapping[str, Tensor]

    @classmethod
    def of(
        cls, truth: Tensor, damaged: Damaged, restored: Tensor, image_shape: tuple[int, int], *, grey: bool
    ) -> Measured:
        """Compare restored images (N, D) with the truth (N, D)."""
        if restored.shape != truth.shape:
            raise ModelError(f"the restorer returned shape {tuple(restored.shape)} for images of {tuple(truth.shape)}")
        if bool(restored.isnan().any()):
            lost = int(restored.isnan().any(dim=1).sum())
            raise ModelError(f"the restorer returned NaN for {lost} of {len(truth)} images")
        changed = truth != damaged.observed.cpu()
        among = {"error_all": torch.ones_like(changed), "error_changed": changed, "error_unchanged": ~changed}
        if isinstance(damaged.channel, Occlusion):
            among["error_hidden"] = torch.as_tensor(damaged.channel.hidden).cpu().expand(truth.shape)
        scores = {name: metrics.error_among(chosen, truth, restored) for name, chosen in among.items()}
        scores["mcc"] = metrics.matthews(truth, restored)
        if grey:
            scores["psnr"] = metrics.psnr(truth, restored)
            scores["ssim"] = metrics.ssim(truth, restored, image_shape)
        return cls(scores, {name: chosen.sum(dim=1).double() for name, chosen in among.items()})


def reported(task: Task, parts: Sequence[Measured], seconds: float) -> Report:
    """The scores of all images together; parts of them may be of different sizes."""

    def score(name: str) -> Score:
        weights = [part.pixels[name] for part in parts if name in part.pixels]
        return summary(torch.cat([part.scores[name] for part in parts]), torch.cat(weights) if weights else None)

    n = sum(len(part.scores["error_all"]) for part in parts)
    scores = {name: score(name) for name in parts[0].scores}
    return Report(task=task, n=n, seconds=seconds, **scores)  # type: ignore[arg-type]


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
