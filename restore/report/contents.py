"""The contents of the page at the end of training, gathered within a minute or so."""

from __future__ import annotations

import json
import shlex
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from restore.errors import OutputError, RestoreError
from restore.files import write_atomically
from restore.inference.torch_engine import Engine
from restore.learning.pipeline import split
from restore.learning.train import Learnt, Lesson
from restore.report.chart import Chart
from restore.report.images import fitting, strip
from restore.report.landscape import field_section
from restore.report.page import Charts, Command, Part, Rows, Section, Sentence, Strips, page
from restore.report.trials import SCORES, before_and_after, compared, score_section
from restore.report.verdict import advice, by_heart, verdict
from restore.report.whole import RESTORING, TITLE, whole_section
from restore.zoo.description import Description

REPORT = "report.html"

# How long a page takes, in seconds: 2 to 6 on one core for shapes and silhouettes, more for priors of more units.
WRITING = 6.0

# How many held-out images restorers are scored on.
IMAGES = 100

# How many rows of images show the data.
DATA = 2

# Numbers of an epoch without a curve, and those drawn first, under other names.
POSITIONS = ("epoch", "round", "step", "rate", "seconds", "threads")
ERROR, CONVERGED, GAIN = "validation_error", "validation_converged", "validation_gain"

# The most curves; the log has all.
CURVES = 6

# What must not stop other sections: lack of memory and missing libraries, too.
FAULTS = (RestoreError, RuntimeError, ImportError)

UNSEEN = Sentence("Left out: no images were held out of training, and others would prove nothing.")


def seconds_to_write(lesson: Lesson) -> float:
    """About how long the page of a lesson takes."""
    return WRITING + RESTORING * bool(lesson.wholes)


@dataclass(frozen=True)
class Written:
    """A page.

    Attributes:
        path: where it is.
        verdict: whether the prior is worth using, in words; empty if no images were held out.
    """

    path: Path
    verdict: str


def write_report(learnt: Learnt, folder: Path, model: str | None, command: str) -> Written | None:
    """Write the page to the folder of a run.

    If it cannot be written, a warning says so: the prior is safe by then, and training has not failed.

    Args:
        learnt: the outcome of training.
        folder: the run's folder.
        model: the name or folder that the prior is found by; None if it is not kept.
        command: what was typed.
    """
    path = folder / REPORT
    content, said = report(learnt, model, command)
    try:
        write_atomically(path, content.encode())
    except OutputError as fault:
        warnings.warn(f"without a report: {fault}", stacklevel=2)
        return None
    return Written(path, said)


def report(learnt: Learnt, model: str | None, command: str) -> tuple[str, str]:
    """The page in HTML, and its verdict; see `write_report`. A section that fails is left out, and the page says so."""
    about, lesson = learnt.trained.prior.description, learnt.lesson
    processor = torch.device("cpu")
    training, held_out = split(lesson.recipe, lesson.pixels(processor), lesson.held_out_pixels(processor))
    held_out = held_out[:IMAGES]
    engine = Engine.of(learnt.trained.prior, learnt.device)
    height, width = about.image_shape
    lead = f"A prior of images of {width}x{height} pixels, trained by {lesson.recipe.method} in "
    lead += f"{_time(learnt.seconds[-1])} on {learnt.device}."
    scores, said = _scored(learnt, engine, training, held_out)
    makers: dict[str, Callable[[], Section]] = {
        "The images": lambda: data_section(learnt, len(training), command),
        "How it learnt": lambda: curve_section(learnt),
        "What the hidden units look at": lambda: field_section(engine),
        "Before and after": lambda: before_and_after(engine, held_out),
        SCORES: lambda: scores,
        "How to use it": lambda: use_section(about, model, any_size=bool(lesson.wholes)),
    }
    if lesson.wholes:
        makers[TITLE] = lambda: whole_section(engine, lesson.whole_pixels()[0])
        makers["How to use it"] = makers.pop("How to use it")
    if not len(held_out):
        makers["Before and after"] = lambda: Section("Before and after", [UNSEEN])
    sections = [_attempted(title, make) for title, make in makers.items()]
    return page(about.name, f"{lead} It is {said}." if said else lead, sections), said


def _attempted(title: str, make: Callable[[], Section]) -> Section:
    """A section, or why it is missing: a page with a gap is better than no page."""
    try:
        return make()
    except FAULTS as fault:
        return _without(title, fault)


def _without(title: str, fault: Exception) -> Section:
    return Section(title, [Sentence(f"Left out: {fault}")])


def _scored(learnt: Learnt, engine: Engine, training: Tensor, held_out: Tensor) -> tuple[Section, str]:
    """The scores beside simple restorers, and the verdict, which is empty if there are none."""
    if not len(held_out):
        return Section(SCORES, [UNSEEN]), ""
    try:
        scores = compared(engine, training, held_out)
        remedy = advice(learnt, by_heart(engine, training, scores[0]))
    except FAULTS as fault:
        return _without(SCORES, fault), ""
    about = engine.description
    return score_section(about, scores), verdict(about.name, scores, remedy)


def data_section(learnt: Learnt, learnt_from: int, command: str) -> Section:
    """The images that were learnt from."""
    lesson, recipe = learnt.lesson, learnt.lesson.recipe
    images = lesson.training.images
    height, width = lesson.image_shape
    held_out = len(lesson.held_out.images) if lesson.held_out is not None else recipe.data.validation
    facts = [
        ("data", recipe.data.source),
        ("learnt from", f"{learnt_from:,} images" + (", variations counted" if recipe.data.variations.copies else "")),
        ("held out", f"{held_out:,} images"),
        ("size", f"{width}x{height} pixels"),
    ]
    if recipe.prior.grey:
        facts.append(("pixels", f"grey levels, {images.mean() / 255:.2f} on average, where white is 1"))
    else:
        share = (images > recipe.data.threshold).mean()
        facts.append(("pixels", f"black and white: white above level {recipe.data.threshold}, {share:.1%} of them"))
    chosen = np.random.default_rng(0).permutation(len(images))[: fitting(lesson.image_shape, DATA)]
    shown = torch.from_numpy(images[np.sort(chosen)]).flatten(1) / 255
    parts: list[Part] = [Rows([], facts), Strips([strip(shown, lesson.image_shape)]), *map(Sentence, lesson.notes)]
    return Section("The images", [*parts, Sentence("The command was:"), Command(command)])


def curve_section(learnt: Learnt) -> Section:
    """The numbers of all epochs or rounds as curves, after the growth of hidden units."""
    trained, recipe = learnt.trained, learnt.lesson.recipe
    along = "round" if recipe.in_rounds else "epoch"
    names = [*dict.fromkeys(name for record in learnt.curve for name in record if name not in POSITIONS)]
    first = [name for name in (ERROR, CONVERGED, GAIN) if name in names]
    kept = None if trained.error is None else float(trained.epoch)
    ending = f"{len(learnt.curve)} {along}{'s' * (len(learnt.curve) > 1)} in {_time(learnt.seconds[-1])}"
    ending += f"; {trained.verdict}." if trained.verdict else "."
    parts: list[Part] = [Sentence(ending)]
    if trained.error is not None:
        damage = recipe.training.watch or recipe.data.task
        left = f"mean squared error {trained.error:.5f}" if recipe.prior.grey else f"{trained.error:.2%} wrong pixels"
        said = f"Kept is the prior after {along} {trained.epoch}, which restored held-out images best: after {damage} "
        parts.append(Sentence(f"{said}it left {left}."))
    # A unit may have replaced one that was removed.
    gained = {float(record["units"]): record[GAIN] for record in learnt.grown if GAIN in record}
    growth = [Chart(_titled(GAIN, False)[1], [*gained.items()], "hidden units")] if len(gained) > 1 else []
    charts = []
    for name in [*first, *(name for name in names if name not in first)]:
        factor, title = _titled(name, recipe.prior.grey)
        points = [
            (float(record[along]), factor * record[name])
            for record in learnt.curve
            if isinstance(record.get(name), int | float) and np.isfinite(record[name])
        ]
        if len({value for _, value in points}) > 1:
            charts.append(Chart(title, points, along, kept))
        elif points:
            every = " throughout" if len(points) > 1 else ""
            parts.append(Sentence(f"{title.capitalize()}: {points[0][1]:.4g}{every}."))
    return Section("How it learnt", [*parts, Charts([*growth, *charts[:CURVES]])])


def _time(seconds: float) -> str:
    """A duration in words."""
    return f"{seconds:.0f} seconds" if seconds < 100 else f"{seconds / 60:.1f} minutes"


def _titled(name: str, grey: bool) -> tuple[float, str]:
    """The factor for a number of an epoch, and its title."""
    if name == ERROR:
        return (1.0, "mean squared error, held out") if grey else (100.0, "wrong pixels, held out, %")
    if name == CONVERGED:
        return 100.0, "restorations that converged, %"
    if name == GAIN:
        return 1.0, "log-likelihood gained, held out, nats"
    if name == "converged":
        return 100.0, "solutions that converged, %"
    return 1.0, name.replace("_", " ")


def use_section(about: Description, model: str | None, *, any_size: bool = False) -> Section:
    """How to use the prior, on the command line and in Python."""
    if model is None:
        said = "It is not kept under a name: train with keep=True, and resume=True to continue from here."
        return Section("How to use it", [Sentence(said)])
    level, argument, said = _levels(about)
    if about.whole:
        said += " Images of any size are restored."
    elif any_size:
        said += " Images of any size are restored in windows of what it has learnt."
    lines = [f"restore denoise scan.png --model {shlex.quote(model)}{level}"]
    if not about.conditional:
        lines.append(f"restore complete scan.png --mask hole.png --model {shlex.quote(model)}")
    lines.append(f"restore info {shlex.quote(model)}")
    code = f'import restore\n\nclean = restore.denoise("scan.png", model={json.dumps(model)}{argument})'
    return Section("How to use it", [Command("\n".join(lines)), Sentence(said), Command(code)])


def usage(about: Description, model: str, *, any_size: bool) -> str:
    """The command that restores an image with a prior, and what it is for, on one line."""
    level = "" if about.conditional else f" --{'sigma' if about.grey else 'p'} auto"
    height, width = about.image_shape
    size = f" of {width}x{height} pixels"
    windows = f"images of any size, in windows{size}" if any_size else f"images{size}"
    which = "images of any size" if about.whole else windows
    return f"`restore denoise scan.png --model {shlex.quote(model)}{level}` restores {which}"


def _levels(about: Description) -> tuple[str, str, str]:
    """How the damage is told: an option, an argument, and a sentence."""
    if about.conditional:
        return "", "", f"It undoes {about.task}, and need not be told how strong the damage is."
    if about.grey:
        said = "--sigma is the standard deviation of the noise, where white is 1; auto finds it for each image."
        return " --sigma 0.1", ", sigma=0.1", said
    said = "--p is the share of pixels that are wrong; auto finds it for each image."
    return " --p 0.1", ", p=0.1", said
