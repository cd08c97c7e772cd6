"""Evaluate restorers on whole images of any sizes, as `restore denoise` and `restore complete` restore them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from restore.channels import Channel, Task
from restore.evaluation.baselines import Median
from restore.evaluation.evaluate import Measured, Report, reported
from restore.evaluation.grey_baselines import GreyMedian
from restore.inference.choice import restore_one
from restore.inference.damage import Damage
from restore.inference.pictures import PictureEngine
from restore.marginals import Status

# Sides of the median filter, of which the one that leaves least wrong is told.
SIDES = (3, 5)

# Is told which share of the work is done.
Watch = Callable[[float], None]


class WholeRestorer(Protocol):
    """Restores one image of any size."""

    def __call__(self, observed: Tensor, channel: Channel, image_shape: tuple[int, int], watch: Watch) -> Tensor:
        """The probability of white, or the grey value, of every pixel; observed and result have shape (1, H·W)."""


def by_prior(engine: PictureEngine, strange: Callable[[float], None] = lambda nats: None) -> WholeRestorer:
    """A prior as a restorer of whole images; `strange` is told by how many nats it fails to explain one."""
    about = engine.description

    def restore(observed: Tensor, channel: Channel, image_shape: tuple[int, int], watch: Watch) -> Tensor:
        pixels = observed.double().reshape(image_shape).numpy()
        damage = Damage() if about.conditional else Damage.told(channel, image_shape)
        _, found = restore_one([engine], pixels, damage, force=True, watch=watch)
        if found.shortfall:
            strange(found.shortfall)
        means = found.means if found.replaced is None else np.where(found.replaced, found.means, pixels)
        lost = found.status is Status.DIVERGED
        return torch.from_numpy(np.where(lost, np.nan, means)).to(observed).reshape(1, -1)

    return restore


def by_median(side: int, *, grey: bool) -> WholeRestorer:
    """A median filter as a restorer of whole images."""

    def restore(observed: Tensor, channel: Channel, image_shape: tuple[int, int], watch: Watch) -> Tensor:
        return (GreyMedian if grey else Median)(image_shape, side).restore(observed, channel)

    return restore


def nothing_done(observed: Tensor, channel: Channel, image_shape: tuple[int, int], watch: Watch) -> Tensor:
    """The damaged image as it is."""
    return observed


def evaluate_whole(
    restorer: WholeRestorer,
    truths: Sequence[Tensor],
    task: Task,
    generator: torch.Generator,
    *,
    grey: bool = False,
    soft: bool = False,
    watch: Watch = lambda share: None,
) -> Report:
    """Damage images one by one, restore them, and score the result beside the damaged images and the best median.

    Args:
        restorer: what to judge.
        truths: the images, (H, W) each, binary, or values in [0, 1] if `grey`; at least one.
        task: the damage.
        generator: the only source of randomness; its seed fixes the damage.
        grey: whether the images are grey.
        soft: whether the restored values are scored as grey ones; those of grey images always are.
        watch: is told which share of the pixels is restored.

    Raises:
        UsageError: if the task does not fit an image.
        ModelError: if a restoration diverged.
    """
    medians = {f"median of {side}x{side}": by_median(side, grey=grey) for side in SIDES}
    restorers: Mapping[str, WholeRestorer] = {"": restorer, "as it is": nothing_done, **medians}
    parts: dict[str, list[Measured]] = {name: [] for name in restorers}
    seconds = dict.fromkeys(restorers, 0.0)
    total, before = sum(truth.numel() for truth in truths), 0
    for truth in truths:
        image_shape, row = (truth.shape[0], truth.shape[1]), truth.reshape(1, -1)
        damaged = task.damage(row, image_shape, generator)
        for name, each in restorers.items():
            seen = _watched(watch, before / total, truth.numel() / total) if each is restorer else _deaf
            start = time.perf_counter()
            restored = each(*damaged, image_shape, seen)
            seconds[name] += time.perf_counter() - start
            parts[name].append(Measured.of(row, damaged, restored, image_shape, grey=grey or soft))
        before += truth.numel()
        watch(before / total)
    own, idle, *filtered = (reported(task, parts[name], seconds[name]) for name in restorers)
    best = max(range(len(medians)), key=lambda one: _quality(filtered[one], grey))
    return replace(own, beside={"as it is": idle, list(medians)[best]: filtered[best]})


def _quality(report: Report, grey: bool) -> float:
    assert not grey or report.psnr is not None
    return report.psnr.mean if grey and report.psnr is not None else -report.error_all.mean


def _watched(watch: Watch, begin: float, length: float) -> Watch:
    return lambda share: watch(begin + share * length)


def _deaf(share: float) -> None:
    """Show nothing."""
