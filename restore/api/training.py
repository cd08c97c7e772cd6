"""Training on images of the caller's own kind."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any, Literal

from restore.api.restorer import Restorer
from restore.errors import speaking_python
from restore.images import DEFAULT_MAX_PIXELS
from restore.images.kinds import unpack
from restore.images.outputs import IMAGE_SUFFIXES
from restore.inference.opening import require_torch


@speaking_python
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
    fit: Literal["error", "crop", "resize"] = "error",
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
    """Train a prior on images; what is not said follows from them.

    >>> import numpy as np
    >>> import restore
    >>> bars = np.zeros((60, 6, 6), bool)
    >>> bars[np.arange(60), np.arange(60) % 6] = True
    >>> prior = restore.train(bars, hidden=4, epochs=2)
    >>> prior.description.image_shape, prior.description.hidden
    ((6, 6), 4)

    Args:
        images: of any kind `denoise` takes, or the path of a folder, an archive or a data set.
        name: what to call the prior.
        method: "tap" (maximum likelihood; of binary images by default), "principal" (principal components in closed
            form; of grey ones), "fw", "pcd", "cd", "fvbm"; with a task "crbm-bp" (by default),
            "crbm-mssvm" and others.
        hidden: number of hidden units; "auto" grows as many as it takes (FW, Alg. 1), judged by the images held out,
            and goes on from there; where `minutes` end that growth, there are as many as can be trained.
        epochs: passes over the images.
        minutes: the time that all of it may take at most, instead; it ends with the best prior so far.
        task: for a conditional prior: the damage that it learns to undo, such as "flip:0.1" or
            "patch:8".
        shape: height and width to learn; by default the images' own.
        fit: how images of other sizes come to that: "crop", "resize", or "error" for not at all.
        patches: learn from so many random patches of larger images instead; 0 for whole ones.
        levels: "binary", "grey", or "auto" for what the images are.
        threshold: grey level, 0 to 254, above which a pixel is 1; None for Otsu's.
        held_out: share of the images that is not learnt from: what restores those best is returned.
        seed: of everything random.
        run: folder for checkpoints and log, the best prior so far (`load(run)`), a picture of it while it learns
            (`progress.png`), and a page on what it has learnt (`report.html`), which takes up to a minute to make. By
            default a temporary one, so that nothing can be resumed, without the last two.
        resume: go on from the newest checkpoint in `run`; `minutes` may be others than before.
        keep: keep the prior under its name, as `restore train` does, so that `load(name)` finds it; the best so far
            while training goes on, and when it is interrupted.
        overwrite: replace a prior that is kept under that name.
        device: "auto", "cpu" or "cuda[:N]".
        max_bad: how many images of a folder or an archive may be unusable, and are skipped.
        max_pixels: what an image may have at most, and all of a folder, an archive or a data set twenty times as many.
        tables: tables of a recipe (`prior`, `learner`, `growth`, `optimizer`, `training`, `inference`), as in
            training/recipes/*.toml; what they say goes before everything else.

    Returns:
        The prior, ready to restore.

    Raises:
        UsageError: for settings out of range, or if torch is not installed.
        TrainingError: if the images have different sizes, or training fails.
        OutputError: if the prior is to be kept under a name that is taken.

    Source: TAP machine, Alg. 2; CRBM-BP, sec. 4.
    """
    began = time.monotonic()
    require_torch("restore.train")
    from restore.devices import pick_device
    from restore.inference.torch_engine import Engine
    from restore.learning import train as training
    from restore.learning.recipes.wishes import Wishes
    from restore.learning.run import keeping
    from restore.learning.run.session import Session
    from restore.report.contents import WRITING, write_report
    from restore.report.passing import drawer

    where = pick_device(device)
    wishes = Wishes(method, hidden, epochs, minutes, task, tables)
    path = isinstance(images, str | os.PathLike) and Path(images).suffix.lower() not in IMAGE_SUFFIXES
    lesson = training.planned_lesson(
        str(images) if path else [item.pixels for item in unpack(images, max_pixels=max_pixels).items],
        name,
        wishes,
        shown_as=os.fspath(images) if path else name,
        shape=shape,
        fit=fit,
        patches=patches,
        levels="grey" if tables.get("prior", {}).get("visible", "bernoulli") != "bernoulli" else levels,
        threshold=threshold,
        held_out=held_out,
        seed=seed,
        max_bad=max_bad,
        max_pixels=max_pixels,
    )
    own = None if run is None else Path(run)
    if keep:
        place = keeping.reserve(name, None, overwrite=overwrite, run=own, resume=resume)
    else:
        place = keeping.Place(own, None)
    command = f"restore.train(name={name!r})"
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) if own is None else own
        watcher = (lambda passed: None) if own is None else drawer(lesson, folder, where)
        elsewhere = time.monotonic() - began + keeping.KEEPING * keep + WRITING * (own is not None)
        try:
            session = Session(folder, resume=resume, watch=watcher, usable=place.keeper(lesson, command, where))
            learnt = training.learn(lesson, session, device=where, elsewhere=elsewhere)
            if keep or own is not None:
                place.keep(learnt, command)
            if own is not None:
                write_report(learnt, folder, name if keep else None, command)
        except KeyboardInterrupt as stop:
            goes_on = "" if own is None else f"restore.train(..., run={str(own)!r}, resume=True) goes on"
            found = place.best_so_far()
            usable = "" if found is None else f"restore.load({str(found[0])!r}) is the best so far"
            for note in filter(None, (goes_on, usable)):
                stop.add_note(note)
            raise
    return Restorer(Engine.of(learnt.trained.prior, where))
