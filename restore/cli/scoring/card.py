"""What `restore evaluate --card` does: write the scores of a prior to its card."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from restore.console import tell

if TYPE_CHECKING:
    from restore.cli.scoring.source import Source
    from restore.data.gathering.stock import Stock

# How many test images priors that are told the damage restore by default; conditional ones restore all.
TOLD = 1000

# The same of whole images, which are larger than the prior's.
WHOLE = 10


def evaluate_card(model: str, data: str | None, n: int | None, root: Path | None, seed: int, device: str) -> None:
    """Measure a prior on the tasks of all cards, by default on its own data, and write the scores to its card."""
    from restore.cli.scoring.source import Source
    from restore.files import write_atomically
    from restore.inference.opening import require_torch
    from restore.learning.run.card import with_scores
    from restore.zoo import CARD, describe, find

    require_torch(model)
    folder = find(model)
    about = describe(folder)
    source = Source(data or about.data, "test", n, None, root, quiet=False)
    stock = source.stock()
    given = "".join(f" --{name} {value}" for name, value in {"data": data, "n": n}.items() if value is not None)
    command = f"restore evaluate {about.name} --card{given} --seed {seed}"
    scored = (_of_wholes if source.is_of_wholes(stock, about) else _of_one_size)(
        model, source, stock, (command, seed, device)
    )
    path = folder / CARD
    write_atomically(path, with_scores(path.read_text() if path.exists() else "", scored, str(path)).encode())
    tell(f"{about.name}\n{scored}")


def _of_one_size(model: str, source: Source, stock: Stock, told: tuple[str, int, str]) -> str:
    """The section of a card on images of the prior's size."""
    from dataclasses import replace

    from restore.evaluation.scores import as_section, measure
    from restore.inference.torch_engine import Engine

    command, seed, device = told
    engine = Engine.load(model, device)
    about = engine.description
    source = replace(source, n=source.n or (None if about.conditional else TOLD))
    dataset = source.loaded(stock)
    source.check_size(dataset, about)
    return as_section(measure(engine, source.pixels(dataset, about), seed), command)


def _of_wholes(model: str, source: Source, stock: Stock, told: tuple[str, int, str]) -> str:
    """The section of a card on whole images."""
    from dataclasses import replace

    from restore.evaluation.scores import measure_whole, whole_section

    command, seed, device = told
    source = replace(source, n=source.n or WHOLE)
    engine = source.opened(model, stock, device)
    about = engine.description
    truths = source.wholes(stock, about.threshold, grey=about.grey)
    with source.restoring(about.name) as watch:
        reports = measure_whole(engine, truths, seed, watch)
    return whole_section(reports, command)
