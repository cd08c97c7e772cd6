"""A lesson: images and the recipe to learn them by, read from a file or planned for the images."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np
import torch
from torch import Tensor

from restore.data import Dataset, as_pixels, load, varied
from restore.data.gathering import USUAL, Wanted, gather
from restore.errors import shown
from restore.learning.recipe.plan import Facts, Wishes, plan, written
from restore.learning.recipe.recipe import Recipe, parse
from restore.learning.recipe.spec import PriorShape


@dataclass(frozen=True)
class Lesson:
    """What to train, by a recipe and its text as written, and on what.

    Held-out images judge; None if the recipe takes them from the others, or has none. The
    notes say what a user should know about the images and the plan.
    """

    recipe: Recipe
    text: str
    training: Dataset
    held_out: Dataset | None
    notes: tuple[str, ...]

    @property
    def image_shape(self) -> tuple[int, int]:
        return self.training.images.shape[1], self.training.images.shape[2]

    @property
    def fingerprint(self) -> str:
        """Identifies the images, so that a run is not resumed on others."""
        own = self.training.fingerprint
        return own if self.held_out is None else sha256(f"{own} {self.held_out.fingerprint}".encode()).hexdigest()

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
        manner = "grey" if recipe.prior.grey else recipe.data.binarisation
        return torch.from_numpy(as_pixels(images, manner, recipe.data.threshold, recipe.seed)).to(device)


class Limits(TypedDict, total=False):
    """What is read of a source: arguments of `restore.data.load`."""

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
    """Make the lesson of a written recipe, whose prior and data may be replaced.

    With hidden = "auto" a tenth of the images is held out, unless the recipe says how many.
    """
    name, prior = source or recipe.data.source, prior or recipe.prior
    table = replace(recipe.data, source=name)
    if table.gathered:
        wish = table.gathering
        shape = (wish.shape[0], wish.shape[1]) if wish.shape else None
        wanted = Wanted(shape, wish.patches, wish.levels or "auto", wish.held_out, recipe.seed)
        found = gather(name, wanted, **limits)
        recipe = replace(recipe, data=table, prior=prior)
        return Lesson(recipe, text, found.training, found.held_out, found.notes)
    loaded = load(name, split="train", **limits)
    training = loaded.first(table.count)
    if prior.grows and not table.holds_out:
        table = replace(table, validation=max(1, len(training.images) // 10))
    return Lesson(replace(recipe, data=table, prior=prior), text, training, None, loaded.notes)


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
    """Make a lesson of gathered images by a plan; see `restore.data.gather` and `restore.learning.recipe.plan`.

    `shown_as` are the images in words. Pixels above the threshold are white, by default Otsu's.
    """
    found = gather(source, wanted, **limits)
    images = found.training.images
    shape, black = (images.shape[1], images.shape[2]), float((images == 0).mean())
    facts = Facts(len(images), shape, found.levels, found.threshold if threshold is None else threshold, black)
    # The recipe states all of it, so that it does not change with the defaults.
    gathering: dict[str, Any] = {"levels": found.levels, "shape": list(shape)}
    gathering |= {"patches": found.patches, "held_out": wanted.held_out}
    tables = plan(name, shown(shown_as), facts, wishes, seed=wanted.seed, gathering=gathering)
    recipe = parse(tables)
    units = "as many hidden units as it takes" if recipe.prior.grows else recipe.prior.kind.count(recipe.prior)
    epochs = f", {recipe.training.epochs} epochs" if recipe.training.epochs else ""
    minutes = f", at most {recipe.training.minutes:g} min" if recipe.training.minutes else ""
    seen, copies = "grey" if found.levels == "grey" else "black and white", recipe.data.variations.copies
    varied = f", each in {copies} variations" if copies else ""
    note = (
        f"learning from {len(images)} {seen} images of {shape[1]}x{shape[0]} pixels{varied}, "
        f"{len(found.held_out.images)} held out: {recipe.method}, {units}{epochs}{minutes}"
    )
    return Lesson(recipe, written(tables), found.training, found.held_out, (*found.notes, note))
