"""Damage and restore a whole held-out image with a prior that knows patches of such images."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from restore.channels import Channel
from restore.evaluation.evaluate import Report
from restore.evaluation.whole import Watch, by_prior, evaluate_whole
from restore.inference.torch_engine import Engine
from restore.report.images import strip
from restore.report.page import Part, Rows, Section, Sentence, Strips
from restore.report.trials import SEED, tasks_for

TITLE = "A whole image before and after"

# Of larger images the middle is shown: a side of at most so many pixels.
SIDE = 700

# How long the section takes at most, in seconds: for 700x700 pixels and a prior of 500 hidden units.
RESTORING = 20.0


def whole_section(engine: Engine, image: Tensor) -> Section:
    """An image (H, W) as the prior knows it: as it is, damaged, and restored in windows, with the scores."""
    about = engine.description
    truth = middle(image.cpu())
    shape = (truth.shape[0], truth.shape[1])
    task, restore = tasks_for(about)[0], by_prior(engine)
    shown = {"as it is": truth.reshape(1, -1)}

    def watched(observed: Tensor, channel: Channel, image_shape: tuple[int, int], watch: Watch) -> Tensor:
        found = restore(observed, channel, image_shape, watch)
        # As `restore denoise` writes it.
        shown[str(task)], shown["restored"] = observed, found if about.grey else (found > 0.5).float()
        return found

    generator = torch.Generator().manual_seed(SEED)
    report = evaluate_whole(watched, [truth], task, generator, grey=about.grey)
    height, width = about.image_shape
    manner = "as a whole" if about.whole else f"in windows of {width}x{height} pixels that overlap"
    said = f"None of this image was learnt from. It is restored {manner}."
    if truth.shape != image.shape:
        said += f" Shown is the middle, {shape[1]}x{shape[0]} of {image.shape[1]}x{image.shape[0]} pixels."
    reports = {"damaged": report.beside["as it is"], "restored": report}
    reports |= {name: one for name, one in report.beside.items() if name != "as it is"}
    measure = "PSNR, dB" if about.grey else "wrong pixels, %"
    parts: list[Part] = [Sentence(said), Rows(["", measure], [[name, _score(one)] for name, one in reports.items()])]
    parts.append(Strips([strip(values, shape, label) for label, values in shown.items()]))
    return Section(TITLE, parts)


def middle(image: Tensor) -> Tensor:
    """The middle of an image (H, W), at most `SIDE` long along either axis."""
    top, left = (max(0, (length - SIDE) // 2) for length in image.shape)
    return image[top : top + SIDE, left : left + SIDE]


def _score(report: Report) -> str:
    if report.psnr is None:
        return f"{100 * report.error_all.mean:.2f}"
    return f"{report.psnr.mean:.2f}" if math.isfinite(report.psnr.mean) else "-"
