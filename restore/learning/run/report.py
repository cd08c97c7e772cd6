"""The report on a trained prior: its scores beside simple filters, a verdict, and a picture of what it has learnt."""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from restore.channels import Damage
from restore.errors import OutputError, RestoreError, RestoreWarning, option, shown
from restore.evaluation.card import tasks_of
from restore.evaluation.evaluate import MEDIANS, Report, Restorer, by_median, evaluate, nothing, restorer_of
from restore.files import write_atomically
from restore.inference.torch_engine import Engine, moved_to
from restore.learning.run.folder import epoch_records
from restore.learning.run.outcome import Trained
from restore.learning.run.session import SCORING, Clock
from restore.zoo import TrainedPrior
from restore.zoo.description import Description

if TYPE_CHECKING:
    from matplotlib.axes import Axes

REPORT_PICTURE, REPORT_JSON = "report.png", "report.json"
# The number of held-out images that are scored, and that are shown.
SCORED_IMAGES = 100
SHOWN_IMAGES = 8
# The seed of their damage.
SEED = 0
# A verdict by fewer held-out images is hardly one.
FEW_IMAGES = 10

Scores = Mapping[str, Mapping[str, Report]]


def write_report(
    folder: Path, trained: Trained, images: tuple[Tensor, Tensor], device: torch.device, clock: Clock
) -> tuple[list[str], bool]:
    """Score a prior and write its report within the time; return a summary, and True unless filters beat it.

    It is scored by the second of the `images`, those that were held out, as far as there are any; (N, D) each, as it
    learnt from the first. A prior that reads pages has none: their damage is their own, and no filter reads them.
    """
    if trained.prior.description.kind.pages:
        return [], True
    header = trained.prior.description
    training = images[0][:SHOWN_IMAGES].cpu()
    held_out = images[1][:SCORED_IMAGES].cpu()
    restorers = {header.name: restorer_of(Engine.of(trained.prior, device))} | filters(trained.prior)
    lines = list[str]()
    worth = True
    try:
        scores = _scores(restorers, held_out, header, clock)
        words = verdict(header.name, scores)
        worth = not scores or any(ahead(header.name, reports) for reports in scores.values())
        lines += [f"{header.name}: {words}"] if words else []
        if find_spec("matplotlib") and not clock.later_than(SCORING):
            shown_images = held_out[:SHOWN_IMAGES] if len(held_out) else training
            rival = best_filter(header.name, next(iter(scores.values()))) if scores else "median 3x3"
            write_atomically(folder / REPORT_PICTURE, _picture(folder, trained.prior, shown_images, restorers, rival))
        write_atomically(folder / REPORT_JSON, _record(trained, words, clock.used, scores).encode())
        lines.append(f"{shown(folder / REPORT_JSON)}: the scores in full")
    except (OutputError, RestoreError, RuntimeError, ValueError) as fault:
        warnings.warn(f"{shown(folder)}: the report is not complete: {fault}", RestoreWarning, stacklevel=2)
    return lines, worth


def _scores(restorers: Mapping[str, Restorer], images: Tensor, header: Description, clock: Clock) -> Scores:
    """Scores by task and restorer, of tasks for which there is time; none without images."""
    scores: dict[str, Mapping[str, Report]] = {}
    for text in tasks_for(header) if len(images) else ():
        if not clock.later_than(SCORING):
            scores[text] = {name: _score(restorer, images, text, header) for name, restorer in restorers.items()}
    return scores


def _record(trained: Trained, words: str, seconds: float, scores: Scores) -> str:
    record = {
        "name": trained.prior.description.name,
        "verdict": words,
        "epoch": trained.epoch,
        "error": trained.error,
        "end": trained.verdict,
        "seconds": seconds,
        "scores": {
            task: {name: json.loads(report.as_json()) for name, report in reports.items()}
            for task, reports in scores.items()
        },
    }
    return json.dumps(record, indent=1) + "\n"


def tasks_for(header: Description) -> list[str]:
    """The tasks that score a prior: the damage it has learnt, or two usual ones."""
    tasks = list(map(str, tasks_of(header, whole=False)))
    return tasks if header.task else tasks[1:3]


def filters(prior: TrainedPrior) -> dict[str, Restorer]:
    """The simple restorers that a prior has to beat, and doing nothing."""
    header = prior.description
    pixels = moved_to(prior.pointwise, torch.device("cpu"))

    def alone(observed: Tensor, damage: Damage, image_shape: tuple[int, int]) -> Tensor:
        return pixels.moments(damage.channel(header.grey).evidence(observed))[0].clamp(0, 1)

    medians = {f"median {side}x{side}": by_median(side, grey=header.grey) for side in MEDIANS}
    return {"nothing": nothing, "pixel by pixel": alone, **medians}


def verdict(name: str, scores: Scores) -> str:
    """Say in figures whether a prior is ahead of all filters; nothing without scores."""
    figures = []
    count = 0
    for task, reports in scores.items():
        rival = best_filter(name, reports)
        figures.append(f"after {task} {_figure(reports[name])}, {rival} {_figure(reports[rival])}")
        count = reports[name].n
    if not scores:
        return ""
    won = sum(ahead(name, reports) for reports in scores.values())
    none = f"not worth using yet, and left out by {option('model', 'auto')}"
    words = "worth using" if won == len(scores) else "worth using in part" if won else none
    few = f", judged by only {count} held-out image{'s' * (count > 1)}" if count < FEW_IMAGES else ""
    return f"{words}{few}: {'; '.join(figures)}"


def ahead(name: str, reports: Mapping[str, Report]) -> bool:
    """True if a prior leaves less wrong than every filter."""
    return reports[name].loss < reports[best_filter(name, reports)].loss


def best_filter(name: str, reports: Mapping[str, Report]) -> str:
    """The filter that leaves least wrong, among restorers with the prior `name`."""
    return min((rival for rival in reports if rival != name), key=lambda rival: reports[rival].loss)


def _score(restorer: Restorer, images: Tensor, text: str, header: Description) -> Report:
    task = header.task_of(text)
    generator = torch.Generator().manual_seed(SEED)
    batch = images.reshape(-1, *header.image_shape)
    return evaluate(restorer, [batch], task, generator, grey=header.grey)


def _figure(report: Report) -> str:
    return f"{report.error_all.mean:.2%} wrong" if report.psnr is None else f"{report.psnr.mean:.1f} dB"


def _picture(folder: Path, prior: TrainedPrior, images: Tensor, restorers: Mapping[str, Restorer], rival: str) -> bytes:
    """The curve of a run, the prior's features, and images restored by it and by a filter, as PNG."""
    from matplotlib.figure import Figure

    header = prior.description
    features = strongest(prior, 24)
    text = tasks_for(header)[0]
    whole = _rows(header, images, text, [restorers[name] for name in (header.name, rival)])
    figure = Figure(figsize=(10, 7), layout="constrained")
    parts = figure.add_gridspec(2, 2, height_ratios=(2, 3))
    _curve(figure.add_subplot(parts[0, 0]), epoch_records(folder))
    for cell, title, sheet, colours in (
        (parts[0, 1], "strongest features" if len(features) else "no hidden units", _sheet(features, 8), "RdBu_r"),
        (parts[1, :], f"as they are, after {text}, restored, by {rival}", _sheet(whole, len(images)), "gray"),
    ):
        axes = figure.add_subplot(cell)
        axes.imshow(sheet, cmap=colours, vmin=0, vmax=1, interpolation="nearest")
        axes.set_title(title, fontsize=9)
        axes.axis("off")
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=110)
    return stream.getvalue()


def _rows(header: Description, images: Tensor, text: str, restorers: Sequence[Restorer]) -> np.ndarray:
    """Images as they are, damaged, and by each restorer, (N, H, W)."""
    damaged = header.task_of(text).damage(images, header.image_shape, torch.Generator().manual_seed(SEED))
    with torch.inference_mode():
        restored = [restorer(*damaged, header.image_shape).cpu() for restorer in restorers]
    rows = [images, damaged.observed, *restored]
    return torch.cat([row.double() for row in rows]).reshape(-1, *header.image_shape).numpy()


def strongest(prior: TrainedPrior, count: int) -> np.ndarray:
    """The weights of the hidden units with the largest weights, as images (N, H, W) from 0 to 1, where 0.5 is none."""
    header = prior.description
    pictures = header.kind.pictures(prior.machine, header.image_shape)
    weights = pictures.flatten(1)
    chosen = weights[weights.norm(dim=1).argsort(descending=True)[:count]]
    scaled = chosen / chosen.abs().amax(dim=1, keepdim=True).clamp_min(1e-12)
    return (0.5 + scaled.cpu().double() / 2).reshape(-1, *pictures.shape[1:]).numpy()


def _sheet(images: np.ndarray, columns: int) -> np.ndarray:
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1)), constant_values=0.5)
    missing = -len(padded) % columns or columns * (not len(padded))
    padded = np.concatenate([padded, np.full((missing, *padded.shape[1:]), 0.5)])
    return np.concatenate([np.concatenate(row, axis=1) for row in padded.reshape(-1, columns, *padded.shape[1:])])


def _curve(axes: Axes, records: Sequence[Mapping[str, Any]]) -> None:
    """The first number of these that epochs or rounds have: error of held-out images, likelihood, any other."""
    along = "round" if "round" in records[0] else "epoch"
    names = [name for record in records for name in record if name not in (along, "step", "rate", "seconds", "warning")]
    name = next((name for name in ("validation_error", "validation_gain", *names) if name in names), "seconds")
    points = [(record[along], record[name]) for record in records if name in record]
    axes.plot(*zip(*points, strict=True), marker="." if len(points) < 40 else None)
    axes.set_title(name.replace("_", " "), fontsize=9)
    axes.set_xlabel(along)
