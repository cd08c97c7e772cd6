"""Restoring pictures: from grey values of any size to a prior's binary images and back, in batches.

Shared by the Python interface and the command line, which differ only in how images come in and go out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

from restore.channels import BitFlip, Channel, Occlusion
from restore.description import Description
from restore.engine import Engine
from restore.errors import ModelError, UsageError
from restore.images import enlarge, shrink, to_binary
from restore.marginals import Status
from restore.solvers import Solution

Fit = Literal["error", "resize"]

# An image whose pixels are this much more likely after inversion (in nats per pixel) has its polarity wrong.
INVERTED = 0.05


@dataclass(frozen=True, eq=False)
class Restored:
    """One restored picture, at the size it came in.

    Attributes:
        estimate: the restored image, (H, W), 0 or 1.
        means: posterior probability of white, (H, W).
        deviations: posterior standard deviation, (H, W) in [0, 0.5].
        replaced: boolean (H, W): the pixels the estimate is for; None where it is for all of them.
        iterations, residual, status: see `restore.solvers.Solution`.
        notes: what the user should know, one sentence each.
    """

    estimate: np.ndarray
    means: np.ndarray
    deviations: np.ndarray
    replaced: np.ndarray | None
    iterations: int
    residual: float
    status: Status
    notes: tuple[str, ...]


def restore_pictures(
    engine: Engine,
    pixels: Sequence[np.ndarray],
    *,
    p: float | np.ndarray | None = None,
    hidden: Sequence[np.ndarray] | None = None,
    fit: Fit = "error",
    invert: bool = False,
) -> tuple[list[Restored], Solution]:
    """Restore pictures with a known flip probability, a known mask, or both; or with a prior that has learnt which.

    Args:
        engine: the prior.
        pixels: grey values in [0, 1], each (H, W).
        p: flip probability in [0, 1], for all pixels or per pixel (H, W); None if visible pixels are exact.
        hidden: per picture the pixels to fill, boolean (H, W); None if there are none.
        fit: what to do with pictures of another size than the prior's: refuse, or resize them and the result.
        invert: black on white pictures for a prior of white on black ones, or the other way round.

    Returns:
        The restored pictures, and the solution for all of them at the prior's size.

    Raises:
        UsageError: if p is no probability, or is given per pixel for another size than the prior's; if a conditional
            prior is given p or a mask, or another prior neither; if `fit` is neither of its values.
        ModelError: if a picture does not have the prior's size and `fit` is "error".
    """
    if fit not in get_args(Fit):
        raise UsageError(f"fit must be one of {', '.join(get_args(Fit))}, not {fit!r}")
    about = engine.trained.description
    about.check_told(p is not None or hidden is not None)
    shape = about.image_shape
    if hasattr(p, "__array__"):
        p = np.asarray(p, dtype=np.float64)
        p = p.item() if p.ndim == 0 else p
    if isinstance(p, np.ndarray) and p.shape != shape:
        raise UsageError(f"p has shape {p.shape}; give one number, or one per pixel of the prior: {shape}")
    small = []
    for index, values in enumerate(pixels):
        if values.shape != shape and fit == "error":
            raise ModelError(size_mismatch(values.shape, shape, about.name))
        mask = None if hidden is None else hidden[index]
        shrunk, covered = shrink(1 - values if invert else values, mask, shape)
        small.append((to_binary(shrunk, about.threshold / 255), covered))
    observed = torch.from_numpy(np.stack([ink for ink, _ in small])).flatten(1).float()
    masks = torch.from_numpy(np.stack([mask for _, mask in small])).flatten(1)
    channel = None if about.conditional else channel_of(p, masks if hidden is not None else None)
    solution = engine.restore(observed, channel)
    pixel_means = engine.trained.pixel_means.cpu()
    light_ground = bool(torch.logit(pixel_means).sum() > 0)
    upside_down = polarity_gain(observed, masks, pixel_means) > INVERTED
    restored = []
    for index, values in enumerate(pixels):
        means = solution.means[0][index].reshape(shape).cpu().double().numpy()
        deviations = solution.variances[0][index].clamp_min(0).sqrt().reshape(shape).cpu().double().numpy()
        if invert:
            means = 1 - means
        if values.shape != shape:
            # Cut to black and white after enlarging, so that contours are smooth.
            means, deviations = enlarge(means, values.shape), enlarge(deviations, values.shape)
        status = Status(int(solution.status[index]))
        notes: tuple[str, ...] = () if status is Status.CONVERGED else (outcome(status, about),)
        if hidden is None and not np.isin(values, (0, 1)).all():
            notes += (f"has grey levels, which were cut to black and white: white is above {about.threshold} of 255",)
        if upside_down[index]:
            expected = "dark on light" if light_ground else "light strokes on dark"
            remedy = "leave the inversion away" if invert else "try --invert"
            notes += (f"looks inverted: {about.name} expects {expected}; {remedy}",)
        replaced = hidden[index] if hidden is not None and p is None else None
        restored.append(
            Restored(
                (means > 0.5).astype(np.float64),
                means,
                deviations,
                replaced,
                int(solution.iterations[index]),
                float(solution.residual[index]),
                status,
                notes,
            )
        )
    return restored, solution


def outcome(status: Status, about: Description) -> str:
    """The sentence for how the solver of an image ended; a conditional prior is meant to stop where training did."""
    if about.conditional and status is Status.MAX_ITER:
        return f"stopped after the {about.inference.max_iter} iterations that {about.name} was trained with"
    return status.sentence


def size_mismatch(shape: tuple[int, ...], wanted: tuple[int, int], model: str) -> str:
    """The sentence for an image of another size than the prior's."""
    given = "x".join(str(length) for length in reversed(shape))
    return (
        f"the image has {given} pixels and {model} restores {wanted[1]}x{wanted[0]}; give --fit resize or another model"
    )


def channel_of(p: float | np.ndarray | None, hidden: Tensor | None) -> Channel:
    """The channel of binary images with flip probability p (None: exact) and hidden pixels (None: none)."""
    if isinstance(p, np.ndarray):
        noise = BitFlip(torch.from_numpy(np.ascontiguousarray(p, dtype=np.float64)).flatten())
    else:
        noise = BitFlip(0.0 if p is None else float(p))
    return noise if hidden is None else noise + Occlusion(hidden)


def polarity_gain(observed: Tensor, hidden: Tensor, pixel_means: Tensor) -> Tensor:
    """How much likelier each image is after inversion under independent pixels; nats per visible pixel, (batch,)."""
    log_odds = torch.logit(pixel_means)
    visible = ~hidden
    # log p(1 - y) - log p(y) is the sum of (1 - 2 y) logit(m) over visible pixels.
    gain = torch.where(visible, (1 - 2 * observed) * log_odds, torch.zeros(())).sum(-1)
    return gain / visible.sum(-1).clamp_min(1)
