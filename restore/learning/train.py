"""Training from end to end: images and a recipe, or a plan that makes one, become a prior kept under a name.

The command and the Python interface are thin layers over this.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np
import torch
from torch import Tensor

from restore.data import Dataset, as_pixels, load, varied
from restore.data.dataset import Images
from restore.data.gathering.gather import USUAL, Gathered, Wanted, gather
from restore.errors import TrainingError, shown
from restore.evaluation.tilings import best_tiling
from restore.files import write_atomically
from restore.inference.torch_engine import Engine
from restore.learning import pipeline
from restore.learning.recipes.plan import plan
from restore.learning.recipes.recipe import Recipe, parse
from restore.learning.recipes.tables import PriorShape
from restore.learning.recipes.wishes import Facts, Wishes
from restore.learning.recipes.written import written
from restore.learning.run.checkpoint import facts
from restore.learning.run.folder import epoch_records
from restore.learning.run.outcome import Trained
from restore.learning.run.parallel import from_first
from restore.learning.run.session import Session
from restore.zoo import TrainedPrior

# The name of a run's recipe in its folder.
RECIPE = "recipe.toml"

# With more than this share of the time after learning used, how windows exchange messages is not chosen any more.
TILING = 0.4


@dataclass(frozen=True)
class Lesson:
    """What to train, and on what.

    Attributes:
        recipe: how to train.
        text: the recipe as written.
        training: images to learn from.
        held_out: images to be judged by; None if the recipe takes them from the others, or has none.
        notes: what a user should know about the images and the plan.
        wholes: held-out images, (H, W) each, of which it knows patches; none if it knows whole images.
    """

    recipe: Recipe
    text: str
    training: Dataset
    held_out: Dataset | None
    notes: tuple[str, ...]
    wholes: tuple[Images, ...] = ()

    @property
    def image_shape(self) -> tuple[int, int]:
        return self.training.images.shape[1], self.training.images.shape[2]

    def filled_up_to(self, units: int) -> Lesson:
        """The same lesson, in which growth is filled up to `units` hidden units if time ends it."""
        text = re.sub(r"(?m)^filled = \d+$", f"filled = {units}", self.text)
        return replace(self, recipe=replace(self.recipe, prior=replace(self.recipe.prior, filled=units)), text=text)

    @property
    def fingerprint(self) -> str:
        """Identifies the images, so that a run is not resumed on others."""
        if self.held_out is None:
            return self.training.fingerprint
        return hashlib.sha256(f"{self.training.fingerprint} {self.held_out.fingerprint}".encode()).hexdigest()

    def pixels(self, device: torch.device) -> Tensor:
        """The training images as the prior learns from them, including variations; (N, D)."""
        recipe = self.recipe
        return self.as_pixels(varied(self.training.images, **asdict(recipe.data.variations), seed=recipe.seed), device)

    def held_out_pixels(self, device: torch.device) -> Tensor | None:
        """The held-out images as the prior knows them, without variations; (M, D)."""
        return None if self.held_out is None else self.as_pixels(self.held_out.images, device)

    def as_pixels(self, images: np.ndarray, device: torch.device) -> Tensor:
        """Images (N, H, W) of the lesson as the prior knows them; (N, D)."""
        recipe = self.recipe
        return torch.from_numpy(as_pixels(images, recipe.manner, recipe.data.threshold, recipe.seed)).to(device)

    def whole_pixels(self) -> list[Tensor]:
        """The whole held-out images as the prior knows them, (H, W) each."""
        processor = torch.device("cpu")
        return [self.as_pixels(image[None], processor).reshape(image.shape) for image in self.wholes]


@dataclass(frozen=True)
class Learnt:
    """A trained prior, and what a report on it needs.

    Attributes:
        lesson: what was trained, and on what.
        trained: the prior, the epoch it is from, its validation error, and why training ended.
        curve: a record for every epoch or round, as in the log.
        seconds: time used for all of it, in all sittings.
        device: where it was trained.
    """

    lesson: Lesson
    trained: Trained
    curve: tuple[Mapping[str, Any], ...]
    seconds: float
    device: torch.device


class Limits(TypedDict, total=False):
    """What is read of a source: arguments of `restore.data.load`.

    Attributes:
        root: the folder to search first for named data sets.
        max_bad: how many images of a folder may be unreadable.
        max_pixels: the most pixels of one image; all of them together may have twenty times as many.
    """

    root: Path | None
    max_bad: int
    max_pixels: int


def read_lesson(
    recipe: Recipe,
    text: str,
    *,
    prior: PriorShape | None = None,
    source: str | None = None,
    **limits: Unpack[Limits],
) -> Lesson:
    """Make the lesson of a written recipe.

    Args:
        recipe: how to train.
        text: the recipe as written.
        prior: replaces the recipe's; with hidden = "auto" a tenth of the images is held out, unless the recipe says how
            many.
        source: replaces the recipe's data.
        limits: see `Limits`.

    Raises:
        RestoreError: as `restore.data.load` and `restore.data.gathering.gather.gather`.
    """
    name = source or recipe.data.source
    if recipe.data.gathered:
        asked = recipe.data.gathering
        shape = (asked.shape[0], asked.shape[1]) if asked.shape else None
        levels = asked.levels or "auto"
        wanted = Wanted(shape, asked.fit, asked.patches, levels, asked.held_out, recipe.seed)
        found = gather(name, wanted, **limits)
        training, held_out, notes, wholes = found.training, found.held_out, found.notes, found.wholes
    else:
        loaded = load(name, split="train", **limits)
        training, held_out, notes, wholes = loaded.first(recipe.data.count), None, loaded.notes, ()
    table = replace(recipe.data, source=name)
    prior = prior or recipe.prior
    if prior.hidden == "auto" and not table.holds_out:
        table = replace(table, validation=max(1, len(training.images) // 10))
    return Lesson(replace(recipe, data=table, prior=prior), text, training, held_out, notes, wholes)


def planned_lesson(
    source: Any,
    name: str,
    wishes: Wishes,
    *,
    shown_as: str,
    wanted: Wanted = USUAL,
    threshold: int | None = None,
    **limits: Unpack[Limits],
) -> Lesson:
    """Make a lesson of images by a plan; see `gather` and `restore.learning.recipes.plan`.

    Args:
        source: what is gathered.
        name: name of the prior.
        wishes: what the user asks for.
        shown_as: the source in words.
        wanted: how the images are gathered.
        threshold: grey level above which a pixel is white; None for Otsu's.
        limits: see `Limits`.
    """
    found: Gathered = gather(source, wanted, **limits)
    images = found.training.images
    facts = Facts(
        len(images),
        (images.shape[1], images.shape[2]),
        found.levels,
        found.threshold if threshold is None else threshold,
        float((images == 0).mean()),
    )
    # The recipe states all of it, so that it does not change with the defaults.
    gathering: dict[str, Any] = {"levels": found.levels, "shape": list(facts.image_shape)}
    gathering |= {"fit": wanted.fit, "patches": found.patches, "held_out": wanted.held_out}
    tables = plan(name, shown(shown_as), facts, wishes, seed=wanted.seed, gathering=gathering)
    recipe = parse(tables)
    notes = (*found.notes, _in_words(recipe, facts, len(found.held_out.images)))
    return Lesson(recipe, written(tables), found.training, found.held_out, notes, found.wholes)


def _in_words(recipe: Recipe, facts: Facts, held_out: int) -> str:
    height, width = facts.image_shape
    seen = "grey" if recipe.prior.grey else f"black and white (white above {recipe.data.threshold})"
    prior = recipe.prior
    size = "as many hidden units as it takes" if prior.grows else prior.kind.count(prior)
    length = f", {recipe.training.epochs} epochs" if recipe.training.epochs else ""
    length += f", at most {recipe.training.minutes:g} min" if recipe.training.minutes else ""
    copies = recipe.data.variations.copies
    varied = f", each in {copies} variations" if copies else ""
    return (
        f"learning from {facts.images} {seen} images of {width}x{height} pixels{varied}, {held_out} held out: "
        f"{recipe.method}, {size}{length}"
    )


def learn(lesson: Lesson, session: Session, *, device: torch.device, every: int = 0) -> Learnt:
    """Train a lesson within its time; see `restore.learning.pipeline.train`.

    The recipe of a plan is written to the run's folder, to be changed or repeated.

    Args:
        lesson: what to train, and on what.
        session: where, and who is told; its data is the lesson's.
        device: where to train.
        every: as in `restore.learning.pipeline.train`.
    """
    folder, clock = session.folder, session.clock
    if session.resume and lesson.recipe.prior.filled:
        # A plan derives this number from the time limit, which may have changed; units already trained stay.
        begun = from_first(lambda: facts(folder)).get("identity", lesson.recipe.as_dict())
        lesson = lesson.filled_up_to(begun.get("recipe", begun)["prior"]["filled"])
    trained = pipeline.train(
        lesson.recipe,
        lesson.pixels(device),
        lesson.image_shape,
        replace(session, data=lesson.fingerprint),
        held_out=lesson.held_out_pixels(device),
        every=every,
    )
    if lesson.wholes and trained.prior.description.exchanges and not from_first(lambda: clock.later_than(TILING)):
        session.note("choosing how windows exchange messages")
        trained = replace(trained, prior=_tiled(trained.prior, lesson, device))
    from_first(lambda: write_atomically(folder / RECIPE, lesson.text.encode(), TrainingError))
    return Learnt(lesson, trained, tuple(epoch_records(folder)), clock.used, device)


def _tiled(prior: TrainedPrior, lesson: Lesson, device: torch.device) -> TrainedPrior:
    """A prior with the best way to exchange messages between tiles."""
    engine = Engine.of(prior, device)
    return engine.with_tiling(from_first(lambda: best_tiling(engine, lesson.whole_pixels()))).trained
