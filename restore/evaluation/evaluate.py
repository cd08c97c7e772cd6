"""Evaluate a restorer: damage images, restore them, compare."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from restore import console
from restore.channels import Damage, Damaged, Observed, Task, parse_task
from restore.console import Display
from restore.errors import ModelError
from restore.evaluation import metrics
from restore.evaluation.baselines import Median
from restore.evaluation.metrics import Score, summary
from restore.inference.engine import PictureEngine
from restore.inference.open import Engines
from restore.inference.options import Options
from restore.inference.restore import restore
from restore.zoo.description import Description

# Maps observed images (N, H·W), their damage and their shape (H, W) to the probability of ink, or the grey value, of
# each pixel.
Restorer: TypeAlias = Callable[[Tensor, Damage, tuple[int, int]], Tensor]

# Sides of the median filters of the baseline.
MEDIANS = (3, 5)

# The scores of a report: label, factor, unit and digits for people.
SCORE_FORMATS = {
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


def restorer_of(engine: PictureEngine) -> Restorer:
    """A prior as a restorer of images of any size, as `restore denoise` and `restore complete` restore them.

    It is given the damage unless it has learnt it. An image that diverges is NaN.
    """
    options = Options(engine.header.name, force=True)
    engines = Engines(options, only=engine)

    def restorer(observed: Tensor, damage: Damage, image_shape: tuple[int, int]) -> Tensor:
        pixels = observed.double().reshape(-1, *image_shape).numpy()
        whole = damage.mapped(lambda values: np.broadcast_to(np.asarray(values), pixels.shape).copy())
        known = [Damage() if engine.header.task else whole.mapped(itemgetter(row)) for row in range(len(pixels))]
        answers = restore(list(map(Observed, pixels, known)), options, engines)
        means = [np.full(image_shape, np.nan) if answer.not_sure else answer.means for answer in answers]
        replaced = [True if answer.replaced is None else answer.replaced for answer in answers]
        kept = [np.where(*parts) for parts in zip(replaced, means, pixels, strict=True)]
        return torch.from_numpy(np.stack(kept)).flatten(1).to(observed.dtype)

    return restorer


def by_median(side: int, *, grey: bool = False) -> Restorer:
    """A median filter as a restorer."""
    return lambda observed, damage, image_shape: Median(image_shape, side, grey).restore(observed, damage)


def nothing(observed: Tensor, damage: Damage, image_shape: tuple[int, int]) -> Tensor:
    """Leave images as they are."""
    return observed


@dataclass(frozen=True)
class Report:
    """The scores of a restorer on a task.

    Attributes:
        task: the task.
        n: number of images.
        error_all: share of wrong pixels among all.
        error_changed: share of wrong pixels among changed ones, pooled over images.
        error_unchanged: share of wrong pixels among unchanged ones, pooled over images.
        mcc: Matthews correlation, mean over images.
        seconds: wall-clock time of the restoration alone.
        error_hidden: share of wrong pixels among those hidden by a mask, pooled over images; None without a mask.
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
        """True if the report is about grey values instead of ink."""
        return self.psnr is not None

    @property
    def loss(self) -> float:
        """The share of wrong pixels, or the mean squared error of grey ones."""
        return self.error_all.mean if self.psnr is None else 10 ** (-self.psnr.mean / 10)

    @property
    def scores(self) -> dict[str, Score]:
        """The available scores, by the names of `SCORE_FORMATS`."""
        every = {name: getattr(self, name) for name in SCORE_FORMATS}
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
        # There is no such line where no pixel changed, or none kept its value.
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
    label, factor, unit, digits = SCORE_FORMATS[name]
    value, error = score.mean * factor, score.standard_error * factor
    return f"  {label + whose:<30} {value:8.{digits}f} ± {error:.{digits}f}{unit}"


@dataclass(frozen=True, eq=False)
class Measured:
    """The scores of images of one size.

    Attributes:
        scores: by the names of `SCORE_FORMATS`, (N,) each; NaN for images without the score.
        pixels: the denominators of scores that are shares, (N,); other scores weigh all images the same.
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
        if damaged.damage.hidden is not None:
            among["error_hidden"] = torch.as_tensor(damaged.damage.hidden).cpu().flatten(1)
        scores = {name: metrics.error_among(chosen, truth, restored) for name, chosen in among.items()}
        scores["mcc"] = metrics.matthews(truth, restored)
        if grey:
            scores["psnr"] = metrics.psnr(truth, restored)
            scores["ssim"] = metrics.ssim(truth, restored, image_shape)
        return cls(scores, {name: chosen.sum(dim=1).double() for name, chosen in among.items()})


def evaluate(
    restorer: Restorer,
    batches: Sequence[Tensor],
    task: Task,
    generator: torch.Generator,
    *,
    grey: bool = False,
    progress: Display = False,
) -> Report:
    """Damage images, restore them, and score the result.

    Args:
        restorer: see `Restorer`; its values lie in [0, 1].
        batches: images (N, H, W), N >= 1, binary, or values in [0, 1] if `grey`. Those of a batch are damaged and
            restored together; there is at least one batch.
        task: see `parse_task`.
        generator: the only source of randomness; its seed fixes the damage.
        grey: True if the restorer returns grey values; then PSNR and SSIM are reported too.
        progress: True to show it, or a callable(done, total, note) that receives it: `done` is a share of `total`, 1.0.

    Raises:
        UsageError: if the task does not fit the images.
        ModelError: if the restorer returns another shape, or NaN.

    >>> blank = torch.zeros(20, 10, 10)
    >>> task, generator = parse_task("flip:0.1"), torch.Generator().manual_seed(0)
    >>> report = evaluate(nothing, [blank], task, generator)
    >>> round(report.error_all.mean, 1), report.error_changed.mean  # what does nothing leaves every flip
    (0.1, 1.0)
    """
    parts: list[Measured] = []
    seconds = 0.0
    done = 0
    total = sum(batch.numel() for batch in batches)
    with console.progress(f"{task}: restored", 1.0, progress) as meter:
        for batch in batches:
            truth = batch.flatten(1).cpu()
            image_shape = (batch.shape[1], batch.shape[2])
            damaged = task.damage(truth, image_shape, generator)
            start = time.perf_counter()
            # Fetching the result waits for asynchronous devices, so that all work is timed.
            restored = restorer(*damaged, image_shape).cpu()
            seconds += time.perf_counter() - start
            parts.append(Measured.of(truth, damaged, restored, image_shape, grey=grey))
            done += batch.numel()
            meter(done / total)

    def score(name: str) -> Score:
        weights = [part.pixels[name] for part in parts if name in part.pixels]
        return summary(torch.cat([part.scores[name] for part in parts]), torch.cat(weights) if weights else None)

    scores = {name: score(name) for name in parts[0].scores}
    return Report(task=task, n=sum(map(len, batches)), seconds=seconds, **scores)  # type: ignore[arg-type]


def compare(
    restorer: Restorer,
    batches: Sequence[Tensor],
    task: Task,
    seed: int,
    *,
    grey: bool = False,
    progress: Display = False,
) -> Report:
    """Score a restorer, the damaged images and the best median filter; arguments as of `evaluate`."""

    def score(other: Restorer, progress: Display = False) -> Report:
        return evaluate(other, batches, task, torch.Generator().manual_seed(seed), grey=grey, progress=progress)

    medians = {f"median of {side}x{side}": score(by_median(side, grey=grey)) for side in MEDIANS}
    best = min(medians, key=lambda name: medians[name].loss)
    return replace(score(restorer, progress), beside={"as it is": score(nothing), best: medians[best]})
