"""What `restore evaluate` does: damage images, restore them, compare with the truth, and write a card."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from restore.console import say
from restore.images import DEFAULT_MAX_PIXELS

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

    from restore.channels import Task
    from restore.data import Dataset, Split
    from restore.data.stock import Stock
    from restore.evaluation.evaluate import Report
    from restore.inference.engine import PictureEngine
    from restore.inference.torch_engine import Engine
    from restore.zoo.description import Description

# How many test images a card is about: of the prior's size, and whole images, which are larger. Conditional priors
# restore all of their size.
CARD_IMAGES, CARD_WHOLES = 1000, 10


@dataclass(frozen=True)
class Source:
    """The first `n` images of a split of a data set; all if `n` is None.

    Attributes:
        threshold: grey level above which a pixel is ink; None for the prior's own.
        root: where named data sets are; None for RESTORE_DATA.
        quiet: print no notes about the data, and no progress.
        max_pixels: the most pixels of one image; all of them together may have twenty times as many.
    """

    data: str
    split: Split
    n: int | None
    threshold: int | None
    root: Path | None
    quiet: bool
    max_pixels: int = DEFAULT_MAX_PIXELS

    def stock(self, split: Split | None = None) -> Stock:
        """Open a split, by default the one to evaluate, whatever the sizes of its images."""
        from restore.data.loading import open_stock

        return open_stock(self.data, split=split or self.split, root=self.root, max_pixels=self.max_pixels)

    def loaded(self, stock: Stock, split: Split | None = None) -> Dataset:
        """Load a stock whose images have one size, and report its notes."""
        from restore.data.loading import as_dataset

        dataset = as_dataset(stock, self.data, split or self.split)
        self.note(*dataset.notes)
        return dataset

    def wholes(self, stock: Stock, about: Description | None = None) -> list[Tensor]:
        """The first images of a stock, (H, W) each, as a prior knows them."""

        self.note(*stock.notes)
        images = stock.images[: self.n or len(stock.names)]
        return [self.pixels(image[None], about).reshape(image.shape) for image in images]

    def pixels(self, images: np.ndarray, about: Description | None = None) -> Tensor:
        """Images (N, H, W) as a prior knows them, (N, D): black and white, or grey levels in [0, 1]."""
        import torch

        from restore.data import as_pixels

        default, grey = (127, False) if about is None else (about.threshold, about.grey)
        threshold = default if self.threshold is None else self.threshold
        return torch.from_numpy(as_pixels(images, "grey" if grey else "threshold", threshold, 0))

    def note(self, *sentences: str) -> None:
        for sentence in () if self.quiet else sentences:
            say(f"{self.data}: {sentence}")

    @contextmanager
    def restoring(self, what: str) -> Iterator[Callable[[float], None]]:
        """Show which share of the work is done."""
        from restore.progress import progress

        shown = 0
        with progress(f"{what}: restored, in percent", 100, quiet=self.quiet) as meter:

            def watch(share: float) -> None:
                nonlocal shown
                if int(100 * share) > shown:
                    shown = int(100 * share)
                    meter(shown)

            yield watch


@dataclass(frozen=True)
class Trial:
    """How images are damaged and scored: the options of `restore evaluate --task`."""

    task: str
    mask: Literal["known", "unknown"] | None = None
    soft: bool = False
    seed: int = 0


@dataclass(frozen=True)
class Opening:
    """How a prior is opened: the options --device, --max-memory and --solver."""

    device: str = "auto"
    memory: int | None = None
    solver: str | None = None

    def torch(self, model: str) -> Engine:
        from restore.inference.torch_engine import Engine

        engine = Engine.load(model, self.device, self.memory)
        return engine if self.solver is None else engine.with_solver(self.solver)

    def pictures(self, model: str, source: Source, stock: Stock) -> PictureEngine:
        """The engine that `restore denoise` would take for the first images of a stock."""
        from restore.inference.open import open_engine

        pixels = int(stock.sizes[: source.n].prod(axis=1).sum())
        return open_engine(model, "auto", self.device, self.memory, pixels, self.solver)


def evaluate_task(model: str, source: Source, trial: Trial, opening: Opening) -> Report:
    """The scores of a prior, or of a baseline, on images of its size or on whole images of any."""
    import torch

    from restore.channels import parse_task
    from restore.errors import UsageError
    from restore.evaluation.baselines import BASELINES
    from restore.evaluation.evaluate import evaluate, restorer_of
    from restore.evaluation.whole import by_prior, evaluate_whole
    from restore.inference.open import require_torch
    from restore.zoo import describe, find

    if model in BASELINES:
        if opening.solver is not None:
            raise UsageError(f"{model}: has no solver; leave --solver out")
        return _of_baseline(model, source, parse_task(trial.task, trial.mask), trial)
    about = describe(find(model))
    damage = about.task_of(trial.task, trial.mask)
    require_torch(model)
    if about.task:
        if trial.mask == "known":
            raise UsageError(f"{about.name} sees the damaged image alone; leave --mask known out")
        if str(damage) != str(parse_task(about.task).unmasked()):
            source.note(f"{model} was trained to undo {about.task}, not {damage}")
        damage = damage.unmasked()
    stock, generator = source.stock(), torch.Generator().manual_seed(trial.seed)
    if _other_size(stock, about):
        pictures = opening.pictures(model, source, stock)
        with source.restoring(str(damage)) as watch:
            truths, restorer = source.wholes(stock, about), by_prior(pictures)
            values = {"grey": about.grey, "soft": trial.soft}
            report = evaluate_whole(restorer, truths, damage, generator, **values, watch=watch)
        return replace(report, solver=pictures.description.inference.solver)
    engine, dataset = opening.torch(model), source.loaded(stock)
    truth, grey = source.pixels(dataset.images[: source.n], about), trial.soft or about.grey
    report = evaluate(restorer_of(engine), truth, damage, about.image_shape, generator, grey=grey)
    return replace(report, solver=engine.description.inference.solver)


def _other_size(stock: Stock, about: Description) -> bool:
    """Whether images have another size than the prior's, so that it restores them whole."""
    # No images, and empty ones, are refused where images of one size are loaded.
    return bool(len(stock.sizes) and stock.sizes.all() and (stock.sizes != about.image_shape).any())


def _of_baseline(model: str, source: Source, damage: Task, trial: Trial) -> Report:
    """The scores of a baseline on images of one size; a median takes any."""
    import torch

    from restore.data import overlap
    from restore.evaluation.baselines import baseline
    from restore.evaluation.evaluate import evaluate
    from restore.evaluation.whole import by_median, evaluate_whole

    stock, generator = source.stock(), torch.Generator().manual_seed(trial.seed)
    if model == "median" and len(set(map(tuple, stock.sizes.tolist()))) > 1:
        with source.restoring(str(damage)) as watch:
            wholes = source.wholes(stock)
            return evaluate_whole(by_median(3, grey=False), wholes, damage, generator, soft=trial.soft, watch=watch)
    dataset, known = source.loaded(stock), source.loaded(source.stock("train"), "train")
    shared = overlap(known, dataset)
    if shared:
        source.note(f"{model} was fitted to {shared} of the images it restores")
    shape = (dataset.images.shape[1], dataset.images.shape[2])
    restorer = baseline(model, source.pixels(known.images), shape).restore
    truth = source.pixels(dataset.images[: source.n])
    return evaluate(restorer, truth, damage, shape, generator, grey=trial.soft)


def evaluate_card(model: str, source: Source, seed: int, device: str) -> str:
    """Measure a prior on the tasks of all cards, and write the scores to its card.

    Args:
        model: its name or folder.
        source: the test images; without a name, those of the prior's own data set.
        seed: seed of the damage.
        device: as of all commands.

    Returns:
        The scores as Markdown.
    """
    from restore.evaluation.scores import as_section, measure, measure_whole, whole_section
    from restore.files import write_atomically
    from restore.inference.open import require_torch
    from restore.learning.run.card import with_scores
    from restore.zoo import CARD, card_of, describe, find

    require_torch(model)
    folder = find(model)
    about = describe(folder)
    words = {"data": source.data or None, "n": source.n, "seed": seed}
    given = "".join(f" --{name} {value}" for name, value in words.items() if value is not None)
    command = f"restore evaluate {about.name} --card{given}"
    source = replace(source, data=source.data or about.data)
    stock = source.stock()
    if _other_size(stock, about):
        source = replace(source, n=source.n or CARD_WHOLES)
        pictures, truths = Opening(device).pictures(model, source, stock), source.wholes(stock, about)
        with source.restoring(about.name) as watch:
            scores = whole_section(measure_whole(pictures, truths, seed, watch), command)
    else:
        n = source.n or (None if about.task else CARD_IMAGES)
        truth = source.pixels(source.loaded(stock).images[:n], about)
        scores = as_section(measure(Opening(device).torch(model), truth, seed), command)
    path = folder / CARD
    write_atomically(path, with_scores(card_of(folder), scores, str(path)).encode())
    return f"{about.name}\n{scores}"
