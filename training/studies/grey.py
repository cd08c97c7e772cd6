"""The study of grey images: PSNR and SSIM of priors and of all baselines under Gaussian noise, and with a hole.

Noise is not cut off at black and white, and every method is told how strong it is. Results are, also the noisy image's
own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from baselines import PixelwiseEstimate
from harness import Asked, finish, main, panels, publish, write
from torch import Tensor

from benchmarks.filters.denoisers import DENOISERS, tuned
from restore.channels import Damage, parse_task
from restore.console import say
from restore.data import load
from restore.errors import UsageError
from restore.evaluation import metrics
from restore.evaluation.card import table
from restore.evaluation.metrics import Score
from restore.inference.torch_engine import Engine
from restore.learning.gradients.independent import independent_units
from restore.units import Spiked, TruncatedGaussian

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Maps observed images (N, D) and their damage to the grey value of each pixel.
Restorer: TypeAlias = Callable[[Tensor, Damage], Tensor]

# The data sets, and how many of their test images by default.
SETS = ("mnist", "cbcl")
IMAGES = 200

SIGMAS = (0.1, 0.2, 0.3)
HOLE = "patch:8"
TASKS = (*(f"noise:{sigma}" for sigma in SIGMAS), HOLE)

# Share of pixels that are exactly black from which units have an atom there.
BLACK = 0.01

# Training images that the baselines are tuned on, and the last of their set.
VALIDATION = 100


@dataclass(frozen=True)
class Entry:
    """What a method achieved on a task.

    Attributes:
        data: the data set.
        task: as `parse_task` reads it.
        method: its name.
        psnr: in decibels: mean over images; for a hole that of the mean squared error of all hidden pixels, since a
            hole of black pixels that is filled with black has none of its own.
        ssim: of whole images, mean over them.
        parameters: what a baseline was tuned to.
    """

    data: str
    task: str
    method: str
    psnr: Score
    ssim: Score
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Biharmonic:
    """Fill holes with the smoothest surface through their surroundings (scikit-image's biharmonic inpainting).

    Attributes:
        image_shape: (H, W).
    """

    image_shape: tuple[int, int]

    def restore(self, observed: Tensor, damage: Damage) -> Tensor:
        """Values in [0, 1]; raises UsageError if no pixels are hidden."""
        from skimage.restoration import inpaint_biharmonic

        if damage.hidden is None:
            raise UsageError("biharmonic inpainting only fills known pixels; this damage hides none")
        images = observed.double().reshape(-1, *self.image_shape).numpy()
        hidden = np.broadcast_to(np.asarray(damage.hidden), images.shape).copy()
        found = [inpaint_biharmonic(*pair) for pair in zip(images, hidden, strict=True)]
        return torch.from_numpy(np.stack(found)).reshape(observed.shape).to(observed).clamp(0, 1)


def measured(
    priors: Mapping[str, Restorer],
    data: str,
    training: Tensor,
    truth: Tensor,
    image_shape: tuple[int, int],
    seed: int,
) -> list[Entry]:
    """Entries of all methods on all tasks.

    Args:
        priors: restorers by name, with values in [0, 1].
        data: name of the data set.
        training: images (N, D), of which the last are what baselines are tuned on, and the others what the pixelwise
            estimate is fitted to.
        truth: test images (n, D), in [0, 1].
        image_shape: (H, W).
        seed: of the damage, which is the same for every method.
    """
    split = -min(VALIDATION, len(training) // 2)
    pixelwise, validation = pixelwise_estimate(training[:split]), training[split:]
    entries = []
    for text in TASKS:
        task = parse_task(text, grey=True)
        observed, damage = task.damage(truth, image_shape, torch.Generator().manual_seed(seed))
        methods: dict[str, Restorer] = {"as observed": _as_observed, "pixelwise": pixelwise.restore}
        parameters: dict[str, Mapping[str, Any]] = {}
        if damage.hidden is None:
            for name in DENOISERS:
                denoiser = tuned(name, validation, float(damage.known("sigma")), image_shape, seed + 1)
                methods[name], parameters[name] = denoiser.restore, denoiser.parameters
        else:
            methods["biharmonic"] = Biharmonic(image_shape).restore
        for name, restorer in (methods | dict(priors)).items():
            restored = restorer(observed, damage).cpu().clamp(0, 1)
            quality = (
                metrics.summary(metrics.psnr(truth, restored))
                if damage.hidden is None
                else hole_psnr(truth, restored, torch.as_tensor(damage.hidden).flatten(1))
            )
            similarity = metrics.summary(metrics.ssim(truth, restored, image_shape))
            entries.append(Entry(data, text, name, quality, similarity, parameters.get(name, {})))
            say(f"{data}, {text}, {name}: {quality.mean:.2f} dB, SSIM {similarity.mean:.3f}")
    return entries


def pixelwise_estimate(images: Tensor) -> PixelwiseEstimate:
    """The pixelwise estimate of grey images (N, D); its units have an atom at black if the images do."""
    nothing = torch.zeros(images.shape[1])
    slab = TruncatedGaussian(nothing, nothing)
    black = float((images == 0).float().mean()) > BLACK
    return PixelwiseEstimate(
        independent_units(Spiked(nothing, slab), images) if black else independent_units(slab, images)
    )


def hole_psnr(truth: Tensor, restored: Tensor, hidden: Tensor) -> Score:
    """Decibels of the mean squared error of all hidden pixels, and the standard error of that to first order.

    Args:
        truth: images (N, D), in [0, 1].
        restored: images (N, D).
        hidden: boolean (N, D), of as many pixels in every image.
    """
    squares = (truth.double() - restored.double()).square()
    error = metrics.summary((squares * hidden).sum(1) / hidden.sum(1))
    decibels = -10 * torch.tensor(error.mean).log10()
    return Score(float(decibels), 10 / torch.tensor(10.0).log().item() * error.standard_error / error.mean, error.n)


def _as_observed(observed: Tensor, damage: Damage) -> Tensor:
    return observed.clamp(0, 1)


def as_table(entries: Sequence[Entry], data: str) -> str:
    """Markdown: a row per method; PSNR and SSIM per task, the best PSNR of each in bold."""
    found = {(entry.method, entry.task): entry for entry in entries if entry.data == data}
    best = {task: max(entry.psnr.mean for (_, other), entry in found.items() if other == task) for task in TASKS}

    def cell(method: str, task: str) -> str:
        entry = found.get((method, task))
        if entry is None:
            return "-"
        mean = f"{entry.psnr.mean:.2f}"
        return f"{f'**{mean}**' if entry.psnr.mean == best[task] else mean} / {entry.ssim.mean:.3f}"

    methods = dict.fromkeys(method for method, _ in found)
    heads = [*(f"sigma {sigma:g}" for sigma in SIGMAS), "8x8 hole"]
    return table([f"{data}, PSNR / SSIM", *heads], [[name, *(cell(name, task) for task in TASKS)] for name in methods])


def figure_of(entries: Sequence[Entry]) -> Figure:
    """PSNR over sigma, a panel per data set: baselines black and grey, priors in colour."""
    sets = list(dict.fromkeys(entry.data for entry in entries))
    figure, (row,) = panels(1, len(sets), (5, 4.5))
    simple = {
        "as observed": ":",
        "pixelwise": "-.",
        **dict(zip(DENOISERS, ("-", "--", (0, (5, 1, 1, 1, 1, 1))), strict=True)),
    }
    for axes, data in zip(row, sets, strict=True):
        noisy = [entry for entry in entries if entry.data == data and entry.task != HOLE]
        for method in dict.fromkeys(entry.method for entry in noisy):
            curve = [entry.psnr for entry in noisy if entry.method == method]
            style = {"color": "black", "linestyle": simple[method]} if method in simple else {"linewidth": 2.0}
            means, errors = [score.mean for score in curve], [score.standard_error for score in curve]
            axes.errorbar(SIGMAS, means, errors, label=method, **style)
        axes.set(title=data, xlabel="sigma", ylabel="PSNR in dB", xticks=SIGMAS)
        finish(axes)
    return figure


def _by_prior(engine: Engine) -> Restorer:
    return lambda observed, damage: engine.restore(observed, damage.channel(grey=True)).means[0]


def study(asked: Asked) -> None:
    """Measure grey priors and other denoisers, and write grey.json, grey.png and a table for each data set."""
    priors: dict[str, dict[str, Restorer]] = {data: {} for data in SETS}
    for name, engine in asked.engines().items():
        if engine.header.data in priors and engine.header.grey:
            priors[engine.header.data][name] = _by_prior(engine)
    n, entries = asked.n or IMAGES, []
    for data in SETS:
        training, truth = asked.images(data, "train", grey=True), asked.images(data, "test", n, grey=True)
        shape = load(data, split="test", root=asked.data).images.shape
        entries += measured(priors[data], data, training, truth, (shape[1], shape[2]), asked.seed)
    write(asked.records / "grey.json", {"n": n, "seed": asked.seed, "entries": entries})
    tables = {f"grey-{data}": as_table(entries, data) for data in SETS}
    publish(asked, tables, {"grey.png": figure_of(entries)})


if __name__ == "__main__":
    main(study)
