"""A lesson: images and the recipe to learn them by, read from a file or planned for the images."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from restore.data import Dataset, as_pixels, varied
from restore.data.gathering import Source, gather
from restore.data.loading import as_dataset, open_stock
from restore.data.sets import NAMED_SETS
from restore.data.sets.named import folders
from restore.errors import InputError, shown
from restore.learning.options import TrainOptions
from restore.learning.recipe.plan import Facts, plan, written
from restore.learning.recipe.recipe import Recipe, parse
from restore.sizes import size_text


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
        recipe, images = self.recipe, self.training.images
        pairs = recipe.prior.kind.pages
        return self.as_pixels(varied(images, **asdict(recipe.data.variations), seed=recipe.seed, pairs=pairs), device)

    def held_out_pixels(self, device: torch.device) -> Tensor | None:
        """The held-out images as the prior knows them, without variations; (M, D)."""
        return None if self.held_out is None else self.as_pixels(self.held_out.images, device)

    def as_pixels(self, images: np.ndarray, device: torch.device) -> Tensor:
        """Images (N, H, W) of the lesson as the prior knows them; (N, D)."""
        recipe = self.recipe
        manner = "grey" if recipe.prior.grey or recipe.prior.kind.pages else recipe.data.binarisation
        return torch.from_numpy(as_pixels(images, manner, recipe.data.threshold, recipe.seed)).to(device)


def lesson_of(source: Source | Recipe, options: TrainOptions = TrainOptions(), text: str = "") -> Lesson:  # noqa: B008
    """Read images and make the lesson of them: as a recipe says, or a plan that suits the images and the options.

    Args:
        source: the images, as in `restore.data.gather`, or a recipe, which names them.
        options: with a recipe `hidden`, `epochs`, `minutes` and the `name` override it; the folder `data` holds the
            recipe's named set, or other images.
        text: the recipe as written, for the run and the card of its prior.

    Raises:
        UsageError: if the options do not suit the images, or are settled by the recipe.
        InputError: if there are no such images, or a folder of data sets lacks the recipe's.
    """
    if isinstance(source, Recipe):
        return _by_recipe(source, options, text)
    options.check_length()
    by_path = isinstance(source, str | Path)
    name = options.name or (Path(source).absolute().stem if isinstance(source, str | Path) else "untitled")
    gathered = gather(source, options.gathering, seed=options.seed or 0, limits=options.limits)
    images, cut = gathered.training.images, options.threshold
    shape, black = (images.shape[1], images.shape[2]), float((images == 0).mean())
    threshold = gathered.threshold if cut is None else cut
    facts = Facts(len(images), shape, gathered.levels, threshold, black, gathered.patches)
    tables = plan(name, shown(str(source) if by_path else name), facts, options)
    recipe = parse(tables)
    units = "as many hidden units as it takes" if recipe.prior.grows else recipe.prior.kind.count(recipe.prior)
    epochs = f", {recipe.training.epochs} epochs" if recipe.training.epochs else ""
    minutes = f", at most {recipe.training.minutes:g} min" if recipe.training.minutes else ""
    pixels, copies = "grey" if facts.grey else "black and white", recipe.data.variations.copies
    varied = f", each in {copies} variations" if copies else ""
    note = (
        f"learning from {len(images)} {pixels} images of {size_text(shape)} pixels{varied}, "
        f"{len(gathered.held_out.images)} held out: {recipe.method}, {units}{epochs}{minutes}"
    )
    return Lesson(recipe, written(tables), gathered.training, gathered.held_out, (*gathered.notes, note))


def _by_recipe(recipe: Recipe, options: TrainOptions, text: str) -> Lesson:
    """The lesson of a recipe; where hidden units grow, a tenth of the images is held out, unless it says how many."""
    options.check_recipe(recipe.name)
    prior, limits, data = recipe.prior, options.limits, recipe.data
    if options.hidden is not None:
        prior = replace(prior, hidden=options.hidden, filled=prior.filled if options.hidden == "auto" else 0)
    length: dict[str, Any] = {name: options.given[name] for name in ("epochs", "minutes") if name in options.given}
    # A time limit of another run does not apply to this one.
    length |= {"last": 0} if length else {}
    if options.data is not None and not folders(options.data, data.source):
        others = [name for name in NAMED_SETS if folders(options.data, name)]
        if others:
            # Not to learn from whatever pictures lie among them.
            raise InputError(f"holds data sets ({', '.join(others)}) without {data.source}; put it there", options.data)
        data, limits = replace(data, source=str(options.data)), replace(limits, root=None)
    if data.gathered:
        gathered = gather(data.source, data.gathering, seed=recipe.seed, limits=limits)
        training, held_out, notes = gathered.training, gathered.held_out, gathered.notes
    else:
        loaded = as_dataset(open_stock(data.source, limits=limits), data.source, "train")
        training, held_out, notes = loaded.first(data.count), None, loaded.notes
        if prior.grows and not data.holds_out:
            data = replace(data, validation=max(1, len(training.images) // 10))
    name, plan = options.name or recipe.name, replace(recipe.training, **length)
    return Lesson(replace(recipe, name=name, training=plan, data=data, prior=prior), text, training, held_out, notes)
