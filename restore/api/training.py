"""Train on images of the caller's own kind."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any, Literal

from restore.api.restoring import Restorer
from restore.images import DEFAULT_MAX_PIXELS
from restore.images.kinds import unpack
from restore.images.outputs import IMAGE_SUFFIXES
from restore.inference.open import require_torch


def train(
    images: Any,
    *,
    name: str = "untitled",
    method: str = "auto",
    hidden: int | Literal["auto"] | None = None,
    epochs: int | None = None,
    minutes: float | None = None,
    task: str = "",
    shape: tuple[int, int] | None = None,
    patches: int = 0,
    levels: Literal["auto", "binary", "grey"] = "auto",
    threshold: int | None = None,
    held_out: float = 0.1,
    seed: int = 0,
    run: str | Path | None = None,
    resume: bool = False,
    keep: bool = False,
    overwrite: bool = False,
    device: str = "auto",
    max_bad: int = 0,
    max_pixels: int = DEFAULT_MAX_PIXELS,
    **tables: dict[str, Any],
) -> Restorer:
    """Train a prior on images; settings that are not given are chosen by the images.

    >>> import numpy as np
    >>> import restore
    >>> bars = np.zeros((60, 6, 6), bool)
    >>> bars[np.arange(60), np.arange(60) % 6] = True
    >>> prior = restore.train(bars, hidden=4, epochs=2)
    >>> prior.description.image_shape, prior.description.hidden
    ((6, 6), 4)

    Args:
        images: any kind that `denoise` takes, or the path of a folder, an archive or a data set.
        name: what to call the prior.
        method: "convolutional" (features that are the same at every place, learnt by restoring; the default for binary
            images), "tap" (maximum likelihood, which knows whole objects; the default if `hidden` or tables are given),
            "principal" (principal components in closed form; the default for grey images), "fw", "pcd", "cd" or "fvbm";
            with a task "crbm-bp" (the default), "crbm-mssvm" and others.
        hidden: number of hidden units, or of features; "auto" adds units (FW, Alg. 1) until the held-out images are
            explained no better, then trains on from there. If `minutes` end the growth, it stops at as many as can be
            trained.
        epochs: passes over the images.
        minutes: the most time that all of it may take, instead of `epochs`; the best prior so far is returned.
        task: for a conditional prior: the damage to undo, such as "flip:0.1" or "patch:8".
        shape: height and width to learn, to which other images are resized; by default the images' own, or the most
            common, and windows of those larger than 40 pixels.
        patches: learn from so many random patches of larger images instead; 0 for whole ones.
        levels: "binary", "grey", or "auto" for what the images are.
        threshold: grey level, 0 to 254, above which a pixel is 1; None for Otsu's.
        held_out: share of the images kept out of training; the prior that restores these best is returned.
        seed: seed of all randomness.
        run: folder for checkpoints, the log, the best prior so far (`load(run)`), and the report (`report.png`,
            `report.json`). By default a temporary folder without a report; nothing can be resumed then.
        resume: continue from the checkpoint in `run`; `minutes` may differ from before.
        keep: keep the prior under its name, as `restore train` does, so that `load(name)` finds it.
        overwrite: replace the run in that folder, and a prior that is kept under that name.
        device: "auto", "cpu" or "cuda[:N]".
        max_bad: how many unusable images of a folder or an archive are skipped before giving up.
        max_pixels: the most pixels of one image; a folder, an archive or a data set may have twenty times as many.
        tables: tables of a recipe (`prior`, `learner`, `growth`, `optimizer`, `training`, `inference`), as in
            training/recipes/*.toml; they override everything else.

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
    from restore.data import Wanted
    from restore.devices import pick_device
    from restore.inference.torch_engine import Engine
    from restore.learning.lesson import planned_lesson
    from restore.learning.recipe.plan import Wishes
    from restore.learning.run.place import Place, reserve
    from restore.learning.run.session import Clock, Session
    from restore.learning.train import carry_out

    where = pick_device(device)
    wishes = Wishes(method, hidden, epochs, minutes, task, tables)
    if tables.get("prior", {}).get("visible", "bernoulli") != "bernoulli":
        levels = "grey"
    path = isinstance(images, str | os.PathLike) and Path(images).suffix.lower() not in IMAGE_SUFFIXES
    lesson = planned_lesson(
        str(images) if path else [item.pixels for item in unpack(images, max_pixels=max_pixels).items],
        name,
        wishes,
        shown_as=os.fspath(images) if path else name,
        wanted=Wanted(shape, patches, levels, held_out, seed),
        threshold=threshold,
        max_bad=max_bad,
        max_pixels=max_pixels,
    )
    own = None if run is None else Path(run)
    command = f"restore.train(name={name!r})"
    again = f"restore.train(..., run={str(own)!r}, resume=True)" if own else ""
    place = Place(own, None, command=command, again=again)
    if keep:
        place = reserve(name, None, overwrite=overwrite, run=own, resume=resume, command=command, again=again)
    with tempfile.TemporaryDirectory() as temporary:
        session = Session(own or Path(temporary), resume=resume, overwrite=overwrite, clock=Clock(began=began))
        found = carry_out(lesson, place, session, where, report=own is not None)
    return Restorer(Engine.of(found.trained.prior, where))
