"""Train on images of the caller's own kind."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

from restore import console
from restore.api.given import check_names, listing
from restore.api.kinds import unpack
from restore.api.restoring import Restorer
from restore.console import Display
from restore.images.outputs import IMAGE_SUFFIXES
from restore.inference.open import require_torch
from restore.learning.options import TrainOptions


class TrainManner(TypedDict, total=False):
    """How to train; see `restore.learning.options.TrainOptions`."""

    name: str | None
    method: str | None
    hidden: int | Literal["auto"] | None
    epochs: int | None
    minutes: float | None
    task: str | None
    shape: tuple[int, int] | None
    patches: int | None
    levels: Literal["auto", "binary", "grey"] | None
    threshold: int | None
    held_out: float | None
    seed: int | None
    run: str | Path | None
    resume: bool
    overwrite: bool
    device: str
    max_bad: int
    max_pixels: int
    progress: Display


class TrainTables(TrainManner, total=False):
    """The same, and the tables of a recipe."""

    data: Mapping[str, Any]
    prior: Mapping[str, Any]
    growth: Mapping[str, Any]
    learner: Mapping[str, Any]
    optimizer: Mapping[str, Any]
    training: Mapping[str, Any]
    inference: Mapping[str, Any]
    pretraining: Mapping[str, Any]


@listing(TrainManner, TrainOptions)
def train(images: Any, *, keep: bool = False, **how: Unpack[TrainTables]) -> Restorer:
    """Train a prior on images; settings that are not given are chosen to suit the images.

    >>> import numpy as np
    >>> import restore
    >>> bars = np.zeros((60, 6, 6), bool)
    >>> bars[np.arange(60), np.arange(60) % 6] = True
    >>> prior = restore.train(bars, hidden=4, epochs=2)
    >>> prior.description.image_shape, prior.description.hidden
    ((6, 6), 4)

    Methods: "convolutional" (features that are the same at every place, learnt by restoring; the default for binary
    images), "tap" (maximum likelihood, which knows whole objects; the default if `hidden` or tables are given),
    "principal" (principal components in closed form; the default for grey images), "fw", "pcd", "cd" or "fvbm"; with a
    task "crbm-bp" (the default), "crbm-mssvm" and others.

    Tables of a recipe (`prior`, `learner`, `growth`, `optimizer`, `training`, `inference`), as in
    training/recipes/*.toml, are further arguments, and override all others. Without a `name` the prior is "untitled";
    without a `run` there is no report, and nothing can be resumed.

    Args:
        images: any kind that `denoise` takes, or the path of a folder, an archive or a data set.
        keep: keep the prior under its name, as `restore train` does, so that `load(name)` finds it.
        progress: True to show epochs and scores, in a terminal or a notebook; or a callable(done, total, note), where
            `done` is a share of `total`, 1.0.
        {options}

    Returns:
        The prior, ready to restore.

    Raises:
        UsageError: for settings out of range, or if torch is not installed.
        TrainingError: if the images have different sizes, or training fails.
        OutputError: if the prior is to be kept under a name already taken.

    Source: TAP machine, Alg. 2; CRBM-BP, sec. 4.
    """
    began = time.monotonic()
    require_torch("restore.train")
    from restore.inference.devices import pick_device
    from restore.inference.torch_engine import Engine
    from restore.learning.lesson import lesson_of
    from restore.learning.run.place import reserve
    from restore.learning.run.session import Clock
    from restore.learning.train import session_of, train_and_save

    options = _options(how)
    run = options.run
    name = options.name or "untitled"
    device = pick_device(options.device)
    by_path = isinstance(images, str | os.PathLike) and Path(images).suffix.lower() not in IMAGE_SUFFIXES
    items = [] if by_path else unpack(images, max_pixels=options.max_pixels).items
    lesson = lesson_of(os.fspath(images) if by_path else [item.values() for item in items], options)
    target = reserve(name, None, options.overwrite, run, options.resume) if keep else None
    with tempfile.TemporaryDirectory() as temporary, console.progress(name, 1.0, how.get("progress", False)) as meter:
        session = session_of(
            options,
            run or Path(temporary),
            lesson,
            meter,
            target=target,
            lasting=run is not None,
            command=f"restore.train(name={name!r})",
            again=f"restore.train(..., run={str(run)!r}, resume=True)" if run else "",
            clock=Clock(began=began),
        )
        trained = train_and_save(lesson, session, device, report=run is not None)
    return Restorer(Engine.of(trained.prior, device))


def _options(how: Mapping[str, Any]) -> TrainOptions:
    """What a caller asks for; raises TypeError for an option that is not known."""
    check_names(how, TrainTables.__annotations__)
    manner = {"name": "untitled"} | {key: value for key, value in how.items() if key in TrainManner.__annotations__}
    manner.pop("progress", None)
    run = manner.get("run")
    tables = {key: value for key, value in how.items() if key not in TrainManner.__annotations__}
    return TrainOptions(**(manner | {"run": None if run is None else Path(run)}), tables=tables)
