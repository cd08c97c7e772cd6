"""The card of a trained prior: what it is, how it was made, and how well it restores."""

from __future__ import annotations

import platform
from pathlib import Path

import torch

from restore.errors import ModelError
from restore.learning.recipe import Recipe
from restore.zoo import TrainedPrior

SCORES = "## Scores"


def machine_facts() -> str:
    """The machine in words: processor, threads, accelerator, torch."""
    processor = platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        models = {
            line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")
        }
        processor = ", ".join(sorted(models)) or processor
    return f"{processor}, {torch.get_num_threads()} thread(s), torch {torch.__version__}"


def write_card(
    prior: TrainedPrior, recipe: Recipe, recipe_text: str, command: str, images: int, seconds: float, where: str
) -> str:
    """The card as Markdown.

    Args:
        prior: what was trained.
        recipe: how.
        recipe_text: the recipe as its author wrote it.
        command: what was typed.
        images: number of training images.
        seconds: training time.
        where: the device trained on.
    """
    about = prior.description
    height, width = about.image_shape
    return f"""# {about.name}

A binary restricted Boltzmann machine with {about.pixels} visible units ({height} x {width} pixels) and
{about.hidden} hidden units, trained on {images} images of `{about.data}` (ink = grey level above {about.threshold}).
It restores with the `{about.inference.solver}` solver from {about.inference.starts} starts per image.
Licence: {about.licence}.

## Training

    {command}

- time: {seconds / 60:.1f} minutes
- machine: {where}, {machine_facts()}
- seed: {recipe.seed}
- recipe (SHA-256 {about.recipe[:16]}):

```toml
{recipe_text.strip()}
```

{SCORES}

Not measured yet.
"""


def with_scores(card: str, scores: str, where: str) -> str:
    """The card with its section of scores replaced.

    Raises:
        ModelError: if the card has no such section; `where` names it.
    """
    head, mark, _ = card.partition(SCORES)
    if not mark:
        raise ModelError(f"{where}: has no section {SCORES!r}; train the model again")
    return f"{head}{SCORES}\n\n{scores.strip()}\n"
