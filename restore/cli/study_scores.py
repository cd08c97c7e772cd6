"""`restore study scores`: the scores on the card of a prior."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from restore.console import tell

if TYPE_CHECKING:
    from torch import Tensor

    from restore.engine import Engine


def study_scores(folder: Path, engine: Engine, truth: Tensor, n: int | None, seed: int) -> None:
    from restore.evaluation.scores import as_section, measure
    from restore.files import write_atomically
    from restore.learning.card import with_scores
    from restore.zoo import CARD

    some = f" --n {n}" if n is not None else ""
    command = f"restore study scores --model {folder.name}{some} --seed {seed}"
    scored = as_section(measure(engine, truth, seed), command)
    card = folder / CARD
    write_atomically(card, with_scores(card.read_text(), scored, str(card)).encode())
    tell(f"{folder.name}\n{scored}\n")
