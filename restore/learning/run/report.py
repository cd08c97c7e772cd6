"""The report on a trained prior: its scores beside simple filters, a verdict, and a picture of what it has learnt."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from restore.errors import OutputError, RestoreError, shown
from restore.evaluation.baselines import Median, PixelwiseEstimate, PointwiseEstimate
from restore.evaluation.evaluate import Report, Restorer, evaluate, restorer_of, task_of
from restore.evaluation.scores import TASKS
from restore.files import write_atomically
from restore.inference.torch_engine import Engine, moved_to
from restore.learning.pipeline import split
from restore.learning.run.folder import epoch_records
from restore.learning.run.session import Clock
from restore.learning.train import Learnt, Lesson
from restore.zoo import TrainedPrior
from restore.zoo.description import Description

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PICTURE, RECORD = "report.png", "report.json"

# How many held-out images are scored, and how many are shown; the seed of their damage.
IMAGES, SHOWN, SEED = 100, 8, 0

# The share of the time that pictures during training may take; and of that after learning, when no task and no picture
# is begun any more.
DRAWING, SCORING = 0.02, 0.4

# A verdict by fewer held-out images is hardly one.
FEW = 10

# A prior lacks time if the best epoch is among the last of them; and images, if it leaves so much less wrong of those
# it has learnt from.
LATE, BY_HEART = 0.8, 0.8


@dataclass(frozen=True)
class Verdict:
    """The scores of a prior beside those of filters, and what follows.

    Attributes:
        scores: by task and restorer.
        said: in words; empty without scores.
        worth: the share of tasks in which the prior is ahead of all filters; None if too few images tell.
    """

    scores: Mapping[str, Mapping[str, Report]]
    said: str = ""
    worth: float | None = None


def tasks_for(about: Description) -> list[str]:
    """The tasks that a prior is tried on: the damage it has learnt, or damage that it is told."""
    if about.task:
        return [str(task_of(about))]
    return list(TASKS[about.kind.observation(about)][1:3])


def filters(prior: TrainedPrior) -> dict[str, Restorer]:
    """The simple restorers that a prior has to beat, and doing nothing."""
    shape, sides = prior.description.image_shape, {"median 3x3": 3, "median 5x5": 5}
    found: dict[str, Restorer] = {"nothing": lambda observed, channel: observed}
    if prior.description.grey:
        assert prior.grey_pixels is not None
        found["pixel by pixel"] = PixelwiseEstimate(moved_to(prior.grey_pixels, torch.device("cpu"))).restore
        return found | {name: Median(shape, side, grey=True).restore for name, side in sides.items()}
    found["pixel by pixel"] = PointwiseEstimate(torch.logit(prior.pixel_means.cpu())).restore
    return found | {name: Median(shape, side).restore for name, side in sides.items()}


def judged(learnt: Learnt, clock: Clock) -> Verdict:
    """Score a prior and filters on held-out images, as far as there is time, and say whether it is worth using."""
    lesson, prior, processor = learnt.lesson, learnt.trained.prior, torch.device("cpu")
    about, engine = prior.description, Engine.of(prior, learnt.device)
    training, held_out = split(lesson.recipe, lesson.pixels(processor), lesson.held_out_pixels(processor))
    scores: dict[str, dict[str, Report]] = {}
    if not len(held_out):
        return Verdict(scores)
    restorers = {about.name: restorer_of(engine)} | filters(prior)
    heart = False
    try:
        for text in tasks_for(about):
            if clock.later_than(SCORING):
                break
            scores[text] = {name: _score(each, held_out[:IMAGES], text, about) for name, each in restorers.items()}
        if scores and not clock.later_than(SCORING):
            text = next(iter(scores))
            known = _score(restorers[about.name], training[: len(held_out)][:IMAGES], text, about)
            heart = _loss(known) < BY_HEART * _loss(scores[text][about.name])
    except (RestoreError, RuntimeError) as fault:
        # The prior is safe by then, and training has not failed.
        warnings.warn(f"the prior was not scored: {fault}", stacklevel=2)
    return verdict(about.name, scores, _advice(learnt, heart)) if scores else Verdict(scores)


def verdict(name: str, scores: Mapping[str, Mapping[str, Report]], remedy: str) -> Verdict:
    """Whether a prior is ahead of all filters, in figures; and what would help where it is not."""
    said, ahead, count = [], 0, 0
    for task, reports in scores.items():
        rival = best_filter(name, reports)
        figures = [_figure(reports[each]) for each in (name, rival)]
        said.append(f"after {task} {figures[0]}, {rival} {figures[1]}")
        ahead += _loss(reports[name]) < _loss(reports[rival])
        count = reports[name].n
    worth = ahead / len(scores)
    words = {1.0: "worth using", 0.0: "not worth using yet"}.get(worth, "worth using in part")
    few = f", as far as {count} held-out image{'s' * (count > 1)} can tell" if count < FEW else ""
    helps = f"; what may help: {remedy}" if worth < 1 else ""
    return Verdict(scores, f"{words}{few}: {'; '.join(said)}{helps}", worth if count >= FEW else None)


def best_filter(name: str, reports: Mapping[str, Report]) -> str:
    """The filter that leaves least wrong, among restorers with the prior `name`."""
    return min((each for each in reports if each != name), key=lambda each: _loss(reports[each]))


def _score(restorer: Restorer, images: Tensor, text: str, about: Description) -> Report:
    task, generator = about.task_of(text), torch.Generator().manual_seed(SEED)
    return evaluate(restorer, images, task, about.image_shape, generator, grey=about.grey)


def _advice(learnt: Learnt, by_heart: bool) -> str:
    """What would make a prior better, in words."""
    late = learnt.trained.error is not None and learnt.trained.epoch >= LATE * len(learnt.curve) > 1
    reasons = ["more images"] * by_heart + ["more time"] * late
    return ", ".join(reasons) or "another method (--method)"


def _loss(report: Report) -> float:
    """The share of wrong pixels, or the mean squared error of grey ones."""
    return float(report.error_all.mean if report.psnr is None else 10 ** (-report.psnr.mean / 10))


def _figure(report: Report) -> str:
    return f"{report.error_all.mean:.2%} wrong" if report.psnr is None else f"{report.psnr.mean:.1f} dB"


def write_record(folder: Path, learnt: Learnt, found: Verdict) -> None:
    """Write the scores and the verdict as JSON; a warning says if that fails, as the prior is safe by then."""
    trained = learnt.trained
    record: dict[str, Any] = {"name": trained.prior.description.name, "verdict": found.said, "worth": found.worth}
    record |= {"epoch": trained.epoch, "error": trained.error, "end": trained.verdict, "seconds": learnt.seconds}
    record["scores"] = {}
    for task, by in found.scores.items():
        record["scores"][task] = {name: json.loads(one.as_json()) for name, one in by.items()}
    try:
        write_atomically(folder / RECORD, (json.dumps(record, indent=1) + "\n").encode())
    except OutputError as fault:
        warnings.warn(str(fault), stacklevel=2)


@dataclass
class Drawer:
    """Draws the picture of a run if matplotlib is installed: curve, features, and held-out images restored.

    Attributes:
        lesson: what is trained.
        folder: the run's folder.
        device: where to compute.
        clock: the time of the run.
        due: seconds used when another picture may be drawn.
        taken: seconds that the last picture took.
    """

    lesson: Lesson
    folder: Path
    device: torch.device
    clock: Clock
    due: float = 0.0
    taken: float = 0.0
    possible: bool = field(default_factory=lambda: find_spec("matplotlib") is not None)

    def draw(self, prior: TrainedPrior, rival: str = "", *, last: bool = False) -> None:
        """Draw a prior if pictures take little of the time so far, or it is the last one and there is time for it.

        Args:
            prior: what to draw.
            rival: the filter to show beside it; by default a median.
            last: whether no more follow.
        """
        began = self.clock.used
        late = self.clock.later_than(SCORING) or self.clock.left < self.taken if last else began < self.due
        if late or not self.possible:
            return
        try:
            self._write(prior, rival or "median 3x3")
        except (OutputError, RestoreError, RuntimeError, ValueError) as fault:
            warnings.warn(f"{shown(self.folder / PICTURE)}: was not drawn ({fault})", stacklevel=3)
        self.taken = self.clock.used - began
        self.due = self.clock.used + self.taken / DRAWING

    def _write(self, prior: TrainedPrior, rival: str) -> None:
        import io

        from matplotlib.figure import Figure

        figure = Figure(figsize=(10, 7), layout="constrained")
        parts = figure.add_gridspec(2, 2, height_ratios=(2, 3))
        log = self.folder / "log.jsonl"
        # There is none while hidden units grow.
        records = epoch_records(self.folder) if log.exists() and log.stat().st_size else []
        _curve(figure.add_subplot(parts[0, 0]), records)
        for place, (title, sheet) in zip((parts[0, 1], parts[1, :]), self._sheets(prior, rival), strict=True):
            axes = figure.add_subplot(place)
            colours = "gray" if "restored" in title else "RdBu_r"
            axes.imshow(sheet, cmap=colours, vmin=0, vmax=1, interpolation="nearest")
            axes.set_title(title, fontsize=9)
            axes.axis("off")
        stream = io.BytesIO()
        figure.savefig(stream, format="png", dpi=110)
        write_atomically(self.folder / PICTURE, stream.getvalue())

    @cached_property
    def _images(self) -> Tensor:
        """The images to restore, (N, D): held out if possible."""
        lesson, processor = self.lesson, torch.device("cpu")
        held_out = lesson.held_out_pixels(processor)
        training = lesson.pixels(processor) if held_out is None else torch.zeros(0)
        training, held_out = split(lesson.recipe, training, held_out)
        return (held_out if len(held_out) else training)[:SHOWN]

    def _sheets(self, prior: TrainedPrior, rival: str) -> Iterator[tuple[str, np.ndarray]]:
        """The titles and pictures of the features, and of images damaged and restored."""
        about = prior.description
        features = strongest(prior, 24)
        yield "strongest features" if len(features) else "no hidden units", _sheet(features, 8)
        images, text = self._images, tasks_for(about)[0]
        task = about.task_of(text)
        damaged = task.damage(images, about.image_shape, torch.Generator().manual_seed(SEED))
        with torch.inference_mode():
            restored = restorer_of(Engine.of(prior, self.device))(*damaged).cpu()
            rows = [images, damaged.observed, restored, filters(prior)[rival](*damaged)]
        whole = torch.cat([row.double() for row in rows]).reshape(-1, *about.image_shape).numpy()
        yield f"as they are, after {text}, restored, by {rival}", _sheet(whole, len(images))


def strongest(prior: TrainedPrior, count: int) -> np.ndarray:
    """The weights of the hidden units with the largest weights, as images (N, H, W) from 0 to 1, where 0.5 is none."""
    about = prior.description
    pictures = about.kind.pictures(prior.machine, about.image_shape)
    weights = pictures.flatten(1)
    chosen = weights[weights.norm(dim=1).argsort(descending=True)[:count]]
    scaled = chosen / chosen.abs().amax(dim=1, keepdim=True).clamp_min(1e-12)
    return (0.5 + scaled.cpu().double() / 2).reshape(-1, *pictures.shape[1:]).numpy()


def _sheet(images: np.ndarray, columns: int) -> np.ndarray:
    """Images (N, H, W) side by side in rows, with a frame around each."""
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1)), constant_values=0.5)
    missing = -len(padded) % columns or columns * (not len(padded))
    padded = np.concatenate([padded, np.full((missing, *padded.shape[1:]), 0.5)])
    return np.concatenate([np.concatenate(row, axis=1) for row in padded.reshape(-1, columns, *padded.shape[1:])])


def _curve(axes: Axes, records: Sequence[Mapping[str, Any]]) -> None:
    """The first number of these that epochs or rounds have: error of held-out images, likelihood, any other."""
    along = "round" if records and "round" in records[0] else "epoch"
    names = [name for record in records for name in record if name not in (along, "step", "rate", "seconds", "warning")]
    wanted = ("validation_error", "validation_gain", *names)
    name = next((name for name in wanted if name in names), "seconds")
    points = [(record[along], record[name]) for record in records if name in record]
    if points:
        axes.plot(*zip(*points, strict=True), marker="." if len(points) < 40 else None)
    axes.set_title(name.replace("_", " "), fontsize=9)
    axes.set_xlabel(along)
