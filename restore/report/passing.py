"""Draw a picture of a prior in training: receptive fields, and what images converge to."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from restore.channels import parse_task
from restore.errors import OutputError
from restore.files import write_atomically
from restore.learning.run.outcome import Machine
from restore.learning.train import Lesson
from restore.priors import ConditionalRBM, FullyVisible, GaussianMixture
from restore.progress import Passed
from restore.registry import SOLVERS, UNITS
from restore.report.images import Colours, receptive_fields, strongest
from restore.report.pictures import grey, magnification, png, signed, tiled
from restore.solvers import TAP, solver_of

PICTURE = "progress.png"

# Columns of the picture, and rows of receptive fields.
COLUMNS, FIELDS = 12, 3

# What images converge to shows long before a solver has converged.
SETTLING = TAP(max_iter=50, damping=0.5)

# The share of the time that drawing may take.
SHARE = 0.02


def drawer(
    lesson: Lesson, folder: Path, device: torch.device, clock: Callable[[], float] = time.monotonic
) -> Callable[[Passed], None]:
    """Keep the picture of a run as new as a small share of the time allows.

    Args:
        lesson: what is trained.
        folder: the run's folder.
        device: where to compute.
        clock: seconds since any moment.

    Returns:
        A watcher to call after every epoch or round. It skips epochs of single layers, whose pixels are not images.
    """
    recipe, shape = lesson.recipe, lesson.image_shape
    start = _start(lesson, device)
    # Without binary units there is at most one solution, and TAP need not find it.
    settling = any(UNITS[kind].bits for kind in (recipe.prior.visible, recipe.prior.hidden_type))
    due = clock()

    def settled(machine: Machine, epoch: int) -> Tensor:
        if not isinstance(machine, ConditionalRBM):
            assert not isinstance(machine, GaussianMixture)  # it has no binary units
            return SETTLING.solve(machine, start).means[0]
        settings = recipe.learner.inference(epoch)
        given = start if SOLVERS[settings.solver].starts else None
        return solver_of(settings).solve(machine.given(start), given).means[0]

    def draw(passed: Passed) -> None:
        nonlocal due
        began = clock()
        if began < due or passed.stage.startswith("layer"):
            return
        with torch.inference_mode():
            rows = [start, settled(passed.machine, passed.done - 1)] if settling else [start]
            content = picture(passed.machine, rows, shape)
        # If the picture cannot be written, training still goes on.
        with contextlib.suppress(OutputError):
            write_atomically(folder / PICTURE, content)
        now = clock()
        due = now + (now - began) / SHARE

    return draw


def _start(lesson: Lesson, device: torch.device) -> Tensor:
    """The images that the prior is shown, (N, H·W): held out if possible, and damaged for a conditional prior."""
    recipe, shape = lesson.recipe, lesson.image_shape
    of = lesson.training if lesson.held_out is None else lesson.held_out
    images = lesson.as_pixels(of.images[:COLUMNS], device)
    if not recipe.conditional:
        return images
    return parse_task(recipe.data.task).damage(images, shape, torch.Generator().manual_seed(recipe.seed))[0]


def picture(machine: Machine, rows: Sequence[Tensor], shape: tuple[int, int]) -> bytes:
    """A PNG file: the strongest receptive fields, and below them rows of images (N, H·W) of shape (H, W)."""

    def sheet(values: Tensor, colours: Colours) -> np.ndarray:
        return tiled(colours(values.float().cpu().numpy().reshape(-1, *shape)), COLUMNS)

    sheets = [sheet(values, grey) for values in rows]
    if not isinstance(machine, FullyVisible):
        sheets.insert(0, sheet(strongest(receptive_fields(machine, shape), FIELDS * COLUMNS), signed))
    return png(np.concatenate(sheets), magnification(*shape))
