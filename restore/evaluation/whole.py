"""Evaluate restorers on whole images of any sizes, as `restore denoise` and `restore complete` restore them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from restore.channels import Channel, Task
from restore.evaluation.baselines import Median
from restore.evaluation.evaluate import Measured, Report, reported
from restore.inference.damage import Damage, Observed
from restore.inference.engine import PictureEngine
from restore.inference.tiles.blend import Prior, Watch
from restore.marginals import Status

# Sides of the median filter; the report has the one that leaves least wrong.
SIDES = (3, 5)


# Maps one observed image (1, H·W) of any size, its channel and its shape to what `Restorer` maps images to.
WholeRestorer = Callable[[Tensor, Channel, tuple[int, int], Watch], Tensor]


def by_prior(engine: PictureEngine) -> WholeRestorer:
    """A prior as a restorer of whole images of the polarity that it knows."""

    def restored(observed: Tensor, channel: Channel, image_shape: tuple[int, int], watch: Watch) -> Tensor:
        pixels = observed.double().reshape(image_shape).numpy()
        damage = Damage() if engine.description.task else Damage.after(channel, image_shape)
        found = Prior(engine).posterior(Observed(pixels, damage), watch)
        lost = found.status(0) is Status.DIVERGED
        means = np.where(lost, np.nan, found.means[0])
        if damage.hidden is not None and not damage.touched:
            means = np.where(damage.hidden, means, pixels)
        return torch.from_numpy(means).to(observed).reshape(1, -1)

    return restored


def by_median(side: int, *, grey: bool = False) -> WholeRestorer:
    """A median filter as a restorer of whole images."""
    return lambda observed, channel, image_shape, watch: Median(image_shape, side, grey).restore(observed, channel)


def evaluate_whole(
    restorer: WholeRestorer,
    truths: Sequence[Tensor],
    task: Task,
    generator: torch.Generator,
    *,
    grey: bool = False,
    watch: Watch = lambda share: None,
) -> Report:
    """Damage images one by one, restore them, and score the result beside the damaged images and the best median.

    Arguments as of `evaluate`, but `truths` are images (H, W), at least one; `watch` receives the share that is done.

    Raises:
        UsageError: if the task does not fit an image.
        ModelError: if a restoration diverged.
    """
    medians = {f"median of {side}x{side}": by_median(side, grey=grey) for side in SIDES}
    others: dict[str, WholeRestorer] = {"as it is": lambda observed, *_: observed, **medians}
    parts: dict[str, list[Measured]] = {name: [] for name in ("", *others)}
    seconds, done, total = 0.0, 0, sum(truth.numel() for truth in truths)
    for truth in truths:
        image_shape, row = (truth.shape[0], truth.shape[1]), truth.reshape(1, -1)
        damaged = task.damage(row, image_shape, generator)
        start = time.perf_counter()
        found = {"": restorer(*damaged, image_shape, part_of(watch, done / total, truth.numel() / total))}
        seconds += time.perf_counter() - start
        found |= {name: other(*damaged, image_shape, lambda share: None) for name, other in others.items()}
        for name, restored in found.items():
            parts[name].append(Measured.of(row, damaged, restored, image_shape, grey=grey))
        done += truth.numel()
        watch(done / total)
    reports = {name: reported(task, each, seconds) for name, each in parts.items()}
    best = max(medians, key=lambda name: _quality(reports[name], grey))
    return replace(reports[""], beside={name: reports[name] for name in ("as it is", best)})


def part_of(watch: Watch, begin: float, length: float) -> Watch:
    """Receives the share that is done of a part of the work."""
    return lambda share: watch(begin + share * length)


def _quality(report: Report, grey: bool) -> float:
    return report.psnr.mean if grey and report.psnr is not None else -report.error_all.mean
