"""The Python interface: denoise, complete, load, train and list_models."""

from __future__ import annotations

import os
import tempfile
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from restore import zoo
from restore.errors import ModelError, shown, speaking_python
from restore.images import DEFAULT_MAX_PIXELS
from restore.images.kinds import Collection, in_kind, unpack, unpack_masks
from restore.images.outputs import IMAGE_SUFFIXES
from restore.images.sizes import Fit, check_size, lost_detail, near
from restore.inference.choice import Tried, restore_with_each
from restore.inference.damage import Auto, Damage
from restore.inference.explained import objection, unexplained
from restore.inference.opening import Choice, open_each, open_engine, require_torch
from restore.inference.pictures import PictureEngine, whole
from restore.marginals import Marginals, Status
from restore.zoo.description import Description

# Standard deviations of noise by which a float of a noisy image may lie outside [0, 1].
FARTHEST = 6.0

# By more no float may lie outside, whatever the noise: squares have to fit into single precision.
FARTHEST_OF_ALL = 1e15


# What callers may say of flips; see `denoise`.
Told: TypeAlias = float | tuple[float, float] | np.ndarray | Auto | None


@dataclass(frozen=True)
class Restorer:
    """A loaded prior; `restore.load` makes it once, so that many calls need not load it again."""

    engine: PictureEngine

    @property
    def description(self) -> Description:
        """Name, image shape, number of hidden units, how it restores, and what damage it has learnt to undo."""
        return self.engine.description

    @speaking_python
    def denoise(
        self,
        image: Any,
        p: Told = None,
        *,
        sigma: float | Auto | None = None,
        fit: Fit = "error",
        force: bool = False,
        invert: bool = False,
        soft: bool = False,
        channel_axis: int | None = None,
        return_solution: bool = False,
        solver: str | None = None,
        max_pixels: int = DEFAULT_MAX_PIXELS,
    ) -> Any:
        """As `restore.denoise`, with this prior."""
        damage = Damage.of(p, sigma)
        collection = unpack(image, channel_axis, _beyond(damage), max_pixels)
        engines = (self._solved_by(solver).engine,)
        return _restored(engines, collection, damage, _Manner(fit, force, invert, soft, return_solution))

    @speaking_python
    def complete(
        self,
        image: Any,
        mask: Any,
        p: Told = None,
        *,
        sigma: float | Auto | None = None,
        fit: Fit = "error",
        force: bool = False,
        invert: bool = False,
        soft: bool = False,
        channel_axis: int | None = None,
        return_solution: bool = False,
        solver: str | None = None,
        max_pixels: int = DEFAULT_MAX_PIXELS,
    ) -> Any:
        """As `restore.complete`, with this prior."""
        damage = Damage.of(p, sigma)
        collection = unpack(image, channel_axis, _beyond(damage), max_pixels)
        engines = (self._solved_by(solver).engine,)
        damage = damage.covering(_masks(mask, collection, max_pixels))
        return _restored(engines, collection, damage, _Manner(fit, force, invert, soft, return_solution))

    @speaking_python
    def transform(self, images: Any, *, invert: bool = False, channel_axis: int | None = None) -> Any:
        """Features of images for other methods, such as a classifier: the expected hidden units given each image.

        Args:
            images: as in `restore.denoise`, of the prior's size.
            invert, channel_axis: as in `restore.denoise`.

        Returns:
            E[h | v], shape (N, hidden units), float32 in [0, 1], also for a single image: a tensor for tensors, else an
            array.

        Raises:
            ModelError: if an image has another size; if the prior is a conditional one, or a graph by itself.
        """
        grey = whole([item.pixels for item in unpack(images, channel_axis).items], self.description)
        return in_kind(self.engine.features(1 - grey if invert else grey), images)

    def _solved_by(self, solver: str | None) -> Restorer:
        return self if solver is None else Restorer(self.engine.with_solver(solver))


@speaking_python
def load(model: str | Path, device: str = "auto", max_memory: int | None = None, engine: Choice = "auto") -> Restorer:
    """Load a prior by its name or the path of its folder.

    Args:
        model: see `list_models` for the names; or a file of `restore export`.
        device: "auto", "cpu" or "cuda[:N]".
        max_memory: bytes that the messages of belief propagation, or the matrices of adaptive TAP, may take, by default
            2 GiB; larger batches are solved in parts.
        engine: "onnx", "torch", or "auto" for the one that is sooner done with a few images; for many at a time a
            conditional prior is faster in "torch". See `restore.inference.opening.open_engine`.

    Raises:
        ModelError: if there is no such model, or its file is damaged.
        UsageError: if there is no such device or engine, or it lacks a library.
    """
    return Restorer(open_engine(str(model), engine, device, max_memory))


def list_models() -> list[str]:
    """Names of the published priors and of those trained by this user."""
    return [folder.name for folder in zoo.folders()]


@speaking_python
def denoise(
    image: Any,
    model: str | Restorer = "auto",
    p: Told = None,
    *,
    sigma: float | Auto | None = None,
    fit: Fit = "error",
    force: bool = False,
    invert: bool = False,
    soft: bool = False,
    channel_axis: int | None = None,
    return_solution: bool = False,
    device: str = "auto",
    engine: Choice = "auto",
    solver: str | None = None,
    max_pixels: int = DEFAULT_MAX_PIXELS,
) -> Any:
    """Remove flipped pixels from a binary image, noise from a grey one, or damage that a prior has learnt to undo.

    Args:
        image: a path, a PIL image, an (H, W) array or tensor (uint8, uint16, bool, or float in [0, 1]), an (N, H, W)
            batch, or a list of them. A pixel counts as white above the prior's threshold (half of white for MNIST).
        model: name or path of a prior, a loaded `Restorer`, or "auto" for the one, of your own and the published that
            know images of this size, under which these images are together most probable; never a conditional one.
        p: probability that a pixel was inverted, in [0, 1]; or one per pixel, with the prior's shape; or two, such as
            (0.1, 0.02): that a white pixel of `image` turned black, and that a black one turned white. All priors need
            it but conditional ones, which take none: they have learnt what to undo (`Restorer.description.task`). For
            priors of grey images it is the probability that a pixel shows black or white instead of itself. "auto"
            chooses for each image the one under which the prior finds it most probable, up to .48 (grey: .9).
        sigma: for priors of grey images, the standard deviation of Gaussian noise, where black is 0 and white is 1.
            Floats may then lie up to 6 sigma outside [0, 1]; noise that was cut off there is undone less well. "auto"
            chooses it likewise, from .01 to .5; of p and sigma one at most.
        fit: "resize" brings images of another size to the prior's and back, by a factor of 2 at most; "error" refuses
            them.
        force: resize by more than that too, and restore images that the prior explains less well than independent
            pixels do (`restore.inference.explained`), with a warning; both are errors without. Conditional priors
            explain none.
        invert: dark strokes on a light ground.
        soft: return posterior probabilities as grey values instead of black and white.
        channel_axis: axis of colour channels, which must be equal.
        return_solution: return (image, `Marginals`): marginals, iterations and more, at the prior's size; its `status`
            tells of each image whether the solver converged, its `noise` has the levels chosen for p or sigma "auto",
            with their evidence, its `model` the name of the prior. An image for which the solver diverged, with
            marginals that are NaN, or that has a `shortfall`, then comes back as it was; without this it is an error.
        device, engine: as in `load`; for a model given by name.
        solver: what to solve the prior with in place of its own: "tap", "mean_field", "relaxed_bp", "adaptive_tap",
            "sum_product", "max_product" or "mixed_product". Another than its own takes torch; conditional priors keep
            theirs.
        max_pixels: refuse larger images that have yet to be decoded.

    Returns:
        What came in: the same kind, type and shape. A path gives a PIL image.

    Raises:
        ModelError: among others, if the solver diverged for an image, or the prior does not explain it; it is named.
        RestoreError: see `restore.errors`; all messages name the fault and the remedy.

    Source: TAP machine, sec. VII.D; CRBM-BP, sec. 6.
    """
    damage = Damage.of(p, sigma)
    collection = unpack(image, channel_axis, _beyond(damage), max_pixels)
    engines = _engines(model, collection, device, engine, damage.sigma is not None, solver)
    return _restored(engines, collection, damage, _Manner(fit, force, invert, soft, return_solution))


@speaking_python
def complete(
    image: Any,
    mask: Any,
    model: str | Restorer = "auto",
    p: Told = None,
    *,
    sigma: float | Auto | None = None,
    fit: Fit = "error",
    force: bool = False,
    invert: bool = False,
    soft: bool = False,
    channel_axis: int | None = None,
    return_solution: bool = False,
    device: str = "auto",
    engine: Choice = "auto",
    solver: str | None = None,
    max_pixels: int = DEFAULT_MAX_PIXELS,
) -> Any:
    """Fill the pixels under a mask.

    Args:
        image: as in `denoise`.
        mask: True or white = to fill; of the image's size, one for each image or one for all, of any kind of image.
        model: as in `denoise`, but no conditional prior: those see a damaged image and nothing else.
        p, sigma: damage of the *visible* pixels, as in `denoise`. Without them these are returned bit for bit.
        fit, force, invert, soft, channel_axis, return_solution, device, engine, solver, max_pixels: as in `denoise`.

    Returns:
        What came in: the same kind, type and shape. A path gives a PIL image.

    Raises:
        RestoreError: see `restore.errors`.
    """
    damage = Damage.of(p, sigma)
    collection = unpack(image, channel_axis, _beyond(damage), max_pixels)
    engines = _engines(model, collection, device, engine, damage.sigma is not None, solver)
    damage = damage.covering(_masks(mask, collection, max_pixels))
    return _restored(engines, collection, damage, _Manner(fit, force, invert, soft, return_solution))


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
        task: for a conditional prior, which is not told of the damage: what it learns to undo, such as "flip:0.1" or
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
    from restore.learning.recipes.plan import Wishes
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


def _engines(
    model: str | Restorer, collection: Collection, device: str, engine: Choice, grey: bool, solver: str | None
) -> tuple[PictureEngine, ...]:
    """The prior to restore with, or those to choose among."""
    if isinstance(model, Restorer):
        return (model._solved_by(solver).engine,)
    names = zoo.candidates(collection.items[0].pixels.shape, grey) if model == "auto" else (str(model),)
    count = len(collection.items)
    opened = open_each(names, lambda name: open_engine(name, engine, device, images=count, solver=solver))
    return tuple(opened.values())


@dataclass(frozen=True)
class _Manner:
    """What `denoise` and `complete` have in common, as there."""

    fit: Fit
    force: bool
    invert: bool
    soft: bool
    return_solution: bool


def _restored(
    engines: Sequence[PictureEngine],
    collection: Collection,
    damage: Damage,
    manner: _Manner,
) -> Any:
    pixels, paths = [item.pixels for item in collection.items], [item.path for item in collection.items]
    _check_sizes(engines[0].description, pixels, paths, manner)
    tried = restore_with_each(engines, pixels, damage, invert=manner.invert)
    best = max(tried, key=lambda one: one.evidence.sum())
    lost = [index for index, part in enumerate(best.restored) if part.status is Status.DIVERGED]
    strange = [index for index, part in enumerate(best.restored) if part.shortfall]
    if lost and not manner.return_solution:
        raise ModelError(_loss(paths, lost, Status.DIVERGED.sentence))
    if strange and manner.force:
        told = unexplained(best.engine.description.name, best.restored[strange[0]].shortfall)
        warnings.warn(_loss(paths, strange, told, advice=""), stacklevel=3)
    elif strange and not manner.return_solution:
        raise ModelError(_loss(paths, strange, _objection(best, strange[0], manner, damage.unknown is not None)))
    kept = lost if manner.force else [*lost, *strange]
    found = [
        item.unchanged() if index in kept else item.back(part.means if manner.soft else part.estimate, part.replaced)
        for index, (item, part) in enumerate(zip(collection.items, best.restored, strict=True))
    ]
    together = collection.together(found)
    return (together, best.marginals) if manner.return_solution else together


def _check_sizes(about: Description, pixels: Sequence[np.ndarray], paths: Sequence[str], manner: _Manner) -> None:
    """Refuse images of which one has a size that is neither the prior's nor to be brought to it."""
    for index, values in enumerate(pixels):
        if manner.force and not near(values.shape, about.image_shape):
            warnings.warn(f"{_named(paths, index)}: {lost_detail(about.image_shape)}", stacklevel=4)
        try:
            check_size(values.shape, about.image_shape, about.name, fit=manner.fit, force=manner.force)
        except ModelError as fault:
            raise ModelError(f"{_named(paths, index)}: {fault}" if paths[index] or len(paths) > 1 else fault) from None


def _objection(best: Tried, index: int, manner: _Manner, chosen: bool) -> str:
    part = best.restored[index]
    return objection(
        best.engine.description,
        part.shortfall,
        inverted=part.inverted,
        invert=manner.invert,
        chosen=chosen,
    )


REST = "; return_solution=True restores the others, and tells of each"


def _loss(paths: Sequence[str], lost: Sequence[int], reason: str, advice: str = REST) -> str:
    """The sentence for images, by their paths (empty for none), of which some came to nothing, by their numbers."""
    more = f"; so it did for {len(lost) - 1} more of them" if len(lost) > 1 else ""
    return f"{_named(paths, lost[0])}: {reason}{more}{advice if len(lost) < len(paths) else ''}"


def _named(paths: Sequence[str], index: int) -> str:
    return shown(paths[index]) or ("the image" if len(paths) == 1 else f"image {index} of {len(paths)}, from 0")


def _beyond(damage: Damage) -> float:
    """How far Gaussian noise may carry floats out of [0, 1]."""
    return min(FARTHEST * damage.largest_sigma, FARTHEST_OF_ALL)


def _masks(masks: Any, collection: Collection, max_pixels: int) -> list[np.ndarray]:
    shapes = [(item.pixels.shape[0], item.pixels.shape[1]) for item in collection.items]
    return unpack_masks(masks, shapes, max_pixels)


__all__ = ["Marginals", "Restorer", "complete", "denoise", "list_models", "load", "train"]
