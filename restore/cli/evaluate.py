"""`restore evaluate`: damage images, restore them, compare with the truth, and write a card."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from restore.cli import options as given
from restore.cli.corrupt import TASK
from restore.console import say, tell

if TYPE_CHECKING:
    from torch import Tensor

    from restore.data.stock import Limits, Stock
    from restore.evaluation.evaluate import Report
    from restore.inference.engine import PictureEngine
    from restore.zoo.description import Description

EXAMPLE = "Example:  restore evaluate tap-mnist --data mnist --task flip:0.1 --n 1000 --json"

# The number of test images on a card: of the prior's size, and whole images, which are larger. Conditional priors
# restore all of their size.
CARD_IMAGES = 1000
CARD_WHOLES = 10


def evaluate(
    model: given.Model,
    data: Annotated[
        str,
        typer.Option(
            help="Data set by name, a folder or archive of images, an idx file or .npy; --card takes the prior's own."
        ),
    ] = "",
    task: Annotated[str | None, TASK] = None,
    card: Annotated[bool, typer.Option("--card", help="Write scores for standard damage to the prior's card.")] = False,
    n: Annotated[int | None, typer.Option("--n", min=1, help="Use the first N test images [all].")] = None,
    seed: given.Seed = 0,
    json: given.Json = False,
    quiet: given.Quiet = False,
    device: given.Device = "auto",
    max_bad: Annotated[int, typer.Option(help="Unreadable images of a folder to skip before giving up.")] = 0,
    max_pixels: given.MaxPixelsOfSets = given.DEFAULT_MAX_PIXELS,
) -> None:
    """Score a prior on damaged images (--task), or write its card (--card)."""
    from restore.data.stock import Limits
    from restore.errors import UsageError, require
    from restore.inference.open import require_torch
    from restore.zoo import describe, find

    require((task is None) == card, "give either --task or --card")
    require(not (card and json), "--card prints Markdown; leave --json out")
    require(bool(data) or card, "--data is missing; give the images to evaluate on")
    folder = find(model)
    header = describe(folder)
    if card and header.kind.pages:
        remedy = "leave --card out, and compare what it makes of pages with their truth"
        raise UsageError(f"{header.name} reads grey pages, which no task damages; {remedy}")
    require_torch(model)
    limits = Limits(max_bad=max_bad, max_pixels=max_pixels)
    source = Source(data or header.data, n, header, model, device, quiet, limits)
    if task is None:
        words = {"data": data or None, "n": n, "seed": seed}
        options = "".join(f" --{name} {value}" for name, value in words.items() if value is not None)
        tell(_card(source, folder, f"restore evaluate {header.name} --card{options}", seed))
    else:
        report = _report(source, task, seed)
        tell(report.as_json() if json else report.as_text())


@dataclass(frozen=True)
class Source:
    """The first `n` test images of a data set, all if `n` is None, and the prior that is judged by them.

    Without notes about the data and progress if `quiet`.
    """

    data: str
    n: int | None
    header: Description
    model: str
    device: str
    quiet: bool
    limits: Limits

    def stock(self) -> Stock:
        """Open the images, whatever their sizes."""
        from restore.data.loading import open_stock

        return open_stock(self.data, "test", self.limits)

    def whole(self, stock: Stock) -> bool:
        """True if images have another size than the prior's, so that it restores them whole."""
        # No images, and empty ones, are refused where images of one size are loaded.
        return bool(len(stock.sizes) and stock.sizes.all() and (stock.sizes != self.header.image_shape).any())

    def batches(self, stock: Stock) -> list[Tensor]:
        """Images (N, H, W) as the prior knows them: all of one size together, or whole images one by one."""
        import torch

        from restore.data.loading import as_dataset

        if self.whole(stock):
            notes = stock.notes
            groups = [image[None] for image in stock.images[: self.n or len(stock.names)]]
        else:
            dataset = as_dataset(stock, self.data, "test")
            notes = dataset.notes
            groups = [dataset.images[: self.n]]
        self.note(*notes)
        return [torch.from_numpy(self.header.as_known(group / 255)) for group in groups]

    def engine(self, stock: Stock) -> PictureEngine:
        """The prior in torch, or for whole images in the engine that `restore denoise` takes."""
        from restore.inference.open import open_engine

        return open_engine(self.model, "auto" if self.whole(stock) else "torch", self.device)

    def note(self, *sentences: str) -> None:
        for sentence in () if self.quiet else sentences:
            say(f"{self.data}: {sentence}")


def _report(source: Source, task: str, seed: int) -> Report:
    """The scores of a prior on images of its size or on whole images of any."""
    from restore.channels import parse_task
    from restore.evaluation.evaluate import compare, restorer_of

    header = source.header
    damage = header.task_of(task)
    if header.task:
        damage = damage.unmasked()
        if str(damage) != str(parse_task(header.task)):
            source.note(f"{source.model} was trained to undo {header.task}, not {damage}")
    stock = source.stock()
    batches, engine = source.batches(stock), source.engine(stock)
    report = compare(restorer_of(engine), batches, damage, seed, grey=header.grey, progress=not source.quiet)
    return replace(report, solver=header.inference.solver)


def _card(source: Source, folder: Any, command: str, seed: int) -> str:
    """Measure a prior on the tasks of all cards, write the scores to its card, and return them as Markdown."""
    from restore.evaluation.card import as_section, measure, whole_section
    from restore.files import write_atomically
    from restore.learning.run.card import with_scores
    from restore.zoo import CARD, card_of, with_facts

    stock = source.stock()
    header = source.header
    whole = source.whole(stock)
    source = replace(source, n=source.n or (CARD_WHOLES if whole else None if header.task else CARD_IMAGES))
    batches, engine = source.batches(stock), source.engine(stock)
    reports = measure(engine, batches, seed, whole=whole, progress=not source.quiet)
    scores = (whole_section if whole else as_section)(reports, command)
    path = folder / CARD
    write_atomically(path, with_facts(with_scores(card_of(folder), scores, str(path)), header).encode())
    return f"{header.name}\n{scores}"
