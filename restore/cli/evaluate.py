"""`restore evaluate`: damage images, restore them, compare with the truth, and write a card."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from restore.cli import options as given
from restore.cli.task import TASK
from restore.console import say, tell
from restore.inference.options import EngineName, Options

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

    from restore.channels import Task
    from restore.data import Dataset, Split
    from restore.data.stock import Stock
    from restore.evaluation.evaluate import Report
    from restore.zoo.description import Description

Mask = Literal["known", "unknown"] | None

EXAMPLE = "Example:  restore evaluate tap-mnist --data mnist --task flip:0.1 --n 1000 --json"

# How many test images a card is about: of the prior's size, and whole images, which are larger. Conditional priors
# restore all of their size.
CARD_IMAGES = 1000
CARD_WHOLES = 10


def evaluate(
    model: Annotated[str, typer.Argument(help="Name or folder of a prior, or a baseline: ope, nn, median.")],
    data: Annotated[
        str,
        typer.Option(
            help="Data set by name, a folder or archive of images, an idx file or .npy; --card takes the prior's own."
        ),
    ] = "",
    task: Annotated[str | None, TASK] = None,
    card: Annotated[bool, typer.Option("--card", help="Write scores for standard damage to the prior's card.")] = False,
    mask: Annotated[Mask, typer.Option(help="Patches: whether the prior is told the mask [known].")] = None,
    n: Annotated[int | None, typer.Option("--n", min=1, help="Use the first N images of the split [all].")] = None,
    split: Annotated[Literal["train", "test"], typer.Option(help="Part of the data to evaluate on.")] = "test",
    threshold: Annotated[
        int | None, typer.Option(help="Grey level above which a pixel is ink [the prior's; 127 for baselines].")
    ] = None,
    seed: given.Seed = 0,
    data_root: Annotated[Path | None, typer.Option(help="Where named data sets lie [RESTORE_DATA].")] = None,
    soft: Annotated[bool, typer.Option("--soft", help="Score probabilities as grey values: PSNR and SSIM.")] = False,
    json: given.Json = False,
    quiet: given.Quiet = False,
    device: given.Device = "auto",
    max_memory: given.MaxMemory = None,
    max_pixels: given.MaxPixelsOfSets = given.DEFAULT_MAX_PIXELS,
    solver: given.Solver = None,
) -> None:
    """Score a prior on damaged images (--task), or write its card (--card)."""
    from restore.errors import UsageError

    if (task is None) != card:
        raise UsageError("give one of --task and --card")
    if card and (mask or soft or json or threshold is not None or max_memory or solver or split == "train"):
        raise UsageError("--card takes only --data, --n, --seed and --device; leave the other options out")
    if not (data or card):
        raise UsageError("--data is missing; give the images to evaluate on")
    source = Source(data, split, n, threshold, data_root, quiet, max_pixels)
    options: Any = Options(model, device=device, max_memory=max_memory, solver=solver)
    if task is None:
        tell(_card(source, options, seed))
    else:
        report = _report(source, options, task, mask, soft, seed)
        tell(report.as_json() if json else report.as_text())


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
    max_pixels: int

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

    def wholes(self, stock: Stock, header: Description | None = None) -> list[Tensor]:
        """The first images of a stock, (H, W) each, as a prior knows them."""
        self.note(*stock.notes)
        images = stock.images[: self.n or len(stock.names)]
        return [self.pixels(image[None], header).reshape(image.shape) for image in images]

    def pixels(self, images: np.ndarray, header: Description | None = None) -> Tensor:
        """Images (N, H, W) as a prior knows them, (N, D): black and white, or grey levels in [0, 1]."""
        import torch

        from restore.data import as_pixels

        default, grey = (127, False) if header is None else (header.threshold, header.grey)
        threshold = default if self.threshold is None else self.threshold
        return torch.from_numpy(as_pixels(images, "grey" if grey else "threshold", threshold, 0))

    def note(self, *sentences: str) -> None:
        for sentence in () if self.quiet else sentences:
            say(f"{self.data}: {sentence}")

    @contextmanager
    def progress(self, what: str) -> Iterator[Callable[[float], None]]:
        """Show which share of the work is done."""
        from restore.progress import progress

        with progress(f"{what}: restored", 1.0, quiet=self.quiet) as meter:
            yield meter


def _opened(options: Options, engine: EngineName = "torch", stock: Stock | None = None, n: int | None = None) -> Any:
    """The prior that is judged, in an engine that suits the first `n` images of a stock."""
    from restore.inference.open import open_engine

    pixels = 1 if stock is None else int(stock.sizes[:n].prod(axis=1).sum())
    return open_engine(options.model, engine, options.device, options.max_memory, pixels, options.solver)


def _report(source: Source, options: Options, task: str, mask: Mask, soft: bool, seed: int) -> Report:
    """The scores of a prior, or of a baseline, on images of its size or on whole images of any."""
    import torch

    from restore.channels import parse_task
    from restore.errors import UsageError
    from restore.evaluation.baselines import BASELINES
    from restore.evaluation.evaluate import evaluate, restorer_of
    from restore.evaluation.whole import by_prior, evaluate_whole
    from restore.inference.open import require_torch
    from restore.zoo import describe, find

    if options.model in BASELINES:
        if options.solver is not None:
            raise UsageError("has no solver; leave --solver out", options.model)
        return _of_baseline(source, options.model, parse_task(task, mask), soft, seed)
    header = describe(find(options.model))
    damage = header.task_of(task, mask)
    require_torch(options.model)
    if header.task:
        if mask == "known":
            raise UsageError(f"{header.name} sees the damaged image alone; leave --mask known out")
        if str(damage) != str(parse_task(header.task).unmasked()):
            source.note(f"{options.model} was trained to undo {header.task}, not {damage}")
        damage = damage.unmasked()
    stock, generator = source.stock(), torch.Generator().manual_seed(seed)
    if _other_size(stock, header):
        engine = _opened(options, "auto", stock, source.n)
        with source.progress(str(damage)) as watch:
            truths, shades = source.wholes(stock, header), {"grey": header.grey, "soft": soft}
            report = evaluate_whole(by_prior(engine), truths, damage, generator, **shades, watch=watch)
    else:
        engine, dataset = _opened(options), source.loaded(stock)
        truth, grey = source.pixels(dataset.images[: source.n], header), soft or header.grey
        report = evaluate(restorer_of(engine), truth, damage, header.image_shape, generator, grey=grey)
    return replace(report, solver=engine.description.inference.solver)


def _other_size(stock: Stock, header: Description) -> bool:
    """True if images have another size than the prior's, so that it restores them whole."""
    # No images, and empty ones, are refused where images of one size are loaded.
    return bool(len(stock.sizes) and stock.sizes.all() and (stock.sizes != header.image_shape).any())


def _of_baseline(source: Source, name: str, damage: Task, soft: bool, seed: int) -> Report:
    """The scores of a baseline on images of one size; a median takes any."""
    import torch

    from restore.data import overlap
    from restore.evaluation.baselines import baseline
    from restore.evaluation.evaluate import evaluate
    from restore.evaluation.whole import by_median, evaluate_whole

    stock, generator = source.stock(), torch.Generator().manual_seed(seed)
    if name == "median" and len(set(map(tuple, stock.sizes.tolist()))) > 1:
        with source.progress(str(damage)) as watch:
            wholes = source.wholes(stock)
            return evaluate_whole(by_median(3, grey=False), wholes, damage, generator, soft=soft, watch=watch)
    dataset, known = source.loaded(stock), source.loaded(source.stock("train"), "train")
    shared = overlap(known, dataset)
    if shared:
        source.note(f"{name} was fitted to {shared} of the images it restores")
    shape = (dataset.images.shape[1], dataset.images.shape[2])
    restorer = baseline(name, source.pixels(known.images), shape).restore
    truth = source.pixels(dataset.images[: source.n])
    return evaluate(restorer, truth, damage, shape, generator, grey=soft)


def _card(source: Source, options: Options, seed: int) -> str:
    """Measure a prior on the tasks of all cards, write the scores to its card, and return them as Markdown."""
    from restore.evaluation.scores import as_section, measure, measure_whole, whole_section
    from restore.files import write_atomically
    from restore.inference.open import require_torch
    from restore.learning.run.card import with_scores
    from restore.zoo import CARD, card_of, describe, find

    require_torch(options.model)
    folder = find(options.model)
    header = describe(folder)
    words = {"data": source.data or None, "n": source.n, "seed": seed}
    options_given = "".join(f" --{name} {value}" for name, value in words.items() if value is not None)
    command = f"restore evaluate {header.name} --card{options_given}"
    source = replace(source, data=source.data or header.data)
    stock = source.stock()
    if _other_size(stock, header):
        source = replace(source, n=source.n or CARD_WHOLES)
        engine, truths = _opened(options, "auto", stock, source.n), source.wholes(stock, header)
        with source.progress(header.name) as watch:
            scores = whole_section(measure_whole(engine, truths, seed, watch), command)
    else:
        n = source.n or (None if header.task else CARD_IMAGES)
        truth = source.pixels(source.loaded(stock).images[:n], header)
        scores = as_section(measure(_opened(options), truth, seed), command)
    path = folder / CARD
    write_atomically(path, with_scores(card_of(folder), scores, str(path)).encode())
    return f"{header.name}\n{scores}"
