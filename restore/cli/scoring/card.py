"""What `restore evaluate --card` does: write the scores of a prior to its card."""

from __future__ import annotations

from pathlib import Path

from restore.console import tell

# How many test images priors that are told the damage restore by default; conditional ones restore all.
TOLD = 1000


def evaluate_card(model: str, data: str | None, n: int | None, root: Path | None, seed: int, device: str) -> None:
    """Measure a prior on the tasks of all cards, by default on its own data, and write the scores to its card."""
    from restore.cli.scoring.source import Source
    from restore.evaluation.scores import as_section, measure
    from restore.files import write_atomically
    from restore.inference.torch_engine import Engine
    from restore.learning.run.card import with_scores
    from restore.zoo import CARD, find

    engine = Engine.load(model, device)
    about, path = engine.description, find(model) / CARD
    count = n or (None if about.conditional else TOLD)
    truth = Source(data or about.data, "test", count, None, root, quiet=False).fitting(about)
    given = "".join(f" --{name} {value}" for name, value in {"data": data, "n": n}.items() if value is not None)
    scored = as_section(measure(engine, truth, seed), f"restore evaluate {about.name} --card{given} --seed {seed}")
    write_atomically(path, with_scores(path.read_text() if path.exists() else "", scored, str(path)).encode())
    tell(f"{about.name}\n{scored}")
