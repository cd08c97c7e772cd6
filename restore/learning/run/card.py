"""The card of a trained prior: what it is, how it was made, and how well it restores."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from pathlib import Path

import torch

from restore.errors import ModelError
from restore.learning.recipes.recipe import Recipe
from restore.learning.run.outcome import Trained
from restore.registry import FAMILIES, SOLVERS, UNITS
from restore.zoo.description import Description

SCORES = "## Scores"


def machine_facts() -> str:
    """The computer in words: processor, threads, torch."""
    processor = platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        models = {
            line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")
        }
        processor = ", ".join(sorted(models)) or processor
    return f"{processor}, {torch.get_num_threads()} thread(s), torch {torch.__version__}"


def write_card(
    trained: Trained,
    recipe: Recipe,
    recipe_text: str,
    command: str,
    images: int,
    seconds: Sequence[float],
    where: str,
) -> str:
    """The card as Markdown.

    Args:
        trained: the outcome of training.
        recipe: how it was trained.
        recipe_text: the recipe as written.
        command: what was typed.
        images: number of training images, including variations.
        seconds: training time at the end of each epoch.
        where: the device it was trained on.
    """
    about = trained.prior.description
    height, width = about.image_shape
    family = FAMILIES[about.family].words
    learnt_from = images - recipe.data.validation
    above = "".join(f", {size} above them" for size in about.deeper)
    what = "variations of images" if recipe.data.variations.copies else "images"
    lines = [
        *_unfinished(about),
        f"A {_units(about)} {family} with {about.pixels} visible units ({height} x {width} pixels) and",
        f"{_count(about)}{above}, trained on {learnt_from} {what} of `{about.data}`",
        f"({_seen(about)}).",
        *_use(about, trained),
        *_watched(recipe, trained),
        f"Licence: {about.licence}.",
    ]
    about_lines = "\n".join(lines)
    # Training that ends by itself says why.
    end = f"\n- {'growth' if recipe.prior.grows else 'end'}: {trained.verdict}" if trained.verdict else ""
    speed = "" if about.unfinished else f", {_speed(recipe, learnt_from, seconds)}"
    return f"""# {about.name}

{about_lines}

## Training

    {command}

- time: {seconds[-1] / 60:.1f} minutes{speed}{end}
- machine: {where}, {machine_facts()}
- seed: {recipe.seed}
- recipe (SHA-256 {about.recipe[:16]}):

```toml
{recipe_text.strip()}
```

{SCORES}

Not measured yet.
"""


def _unfinished(about: Description) -> list[str]:
    """A note that training is not finished."""
    if not about.unfinished:
        return []
    return [
        f"**Unfinished**: this is {about.unfinished}. The command below goes on, with `--resume`, from the run in",
        f"`{about.run}`; what it ends with takes this place.",
        "",
    ]


def _seen(about: Description) -> str:
    """What the pixels of its images are."""
    return "grey levels" if about.grey else f"ink = grey level above {about.threshold}"


def _count(about: Description) -> str:
    if about.convolutional:
        return f"{about.hidden} features of {about.kernel}x{about.kernel} pixels, the same at every place"
    return (
        f"{about.components} times {about.hidden} hidden units"
        if about.mixture
        else f"{about.hidden or 'no'} hidden units"
    )


def _units(about: Description) -> str:
    """The kinds of units: "binary", or the kinds of visible and of hidden units."""
    if all(UNITS[kind].bits for kind in about.unit_kinds):
        return "binary"
    return f"{about.visible}/{about.hidden_type}"


# Training speeds are compared at this iteration limit.
REFERENCE = 10


def _speed(recipe: Recipe, images: int, seconds: Sequence[float]) -> str:
    """Images per second: overall, and in the epoch with the reference limit if the iteration limit grows.

    Rounds go over all images many times, or over a part, so their number is given instead.
    """
    if recipe.in_rounds:
        return f"{len(seconds)} rounds"
    speed = f"{len(seconds) * images / seconds[-1]:.0f} images per second"
    limits = [recipe.learner.inference(epoch).max_iter if recipe.conditional else 0 for epoch in range(len(seconds))]
    if limits.count(REFERENCE) != 1:
        return speed
    epoch = limits.index(REFERENCE)
    taken = seconds[epoch] - (seconds[epoch - 1] if epoch else 0.0)
    return f"{speed}; {images / taken:.0f} in the epoch with at most {REFERENCE} iterations"


def _use(about: Description, trained: Trained) -> list[str]:
    """How the prior restores, in words."""
    settings = about.inference
    if not about.conditional:
        starts = "from one start" if settings.starts == 1 else f"from {settings.starts} starts"
        way = starts if SOLVERS[settings.solver].starts else "in one step"
        return [f"It restores with the `{settings.solver}` solver {way} per image."]
    lines = [
        f"It undoes {about.task} from the damaged image alone, with the inference that it was trained with:",
        f"`{settings.solver}`, at most {settings.max_iter} iterations, tolerance {settings.tol:g}.",
    ]
    if trained.error is not None:
        lines.append(
            f"Its parameters are those after epoch {trained.epoch}, which had the lowest validation error: "
            f"{100 * trained.error:.3f} % of all pixels."
        )
    return lines


def _watched(recipe: Recipe, trained: Trained) -> list[str]:
    """How an unconditional prior was chosen among all epochs, in words."""
    if not recipe.training.watch or trained.error is None:
        return []
    left = (
        f"a root mean squared error of {trained.error**0.5:.4f}" if recipe.prior.grey else f"{trained.error:.3%} wrong"
    )
    best = "better than any before" if trained.prior.description.unfinished else "best of all"
    return [
        f"Its parameters are those after epoch {trained.epoch}, which restored images held out {best}: after",
        f"{recipe.training.watch} it left {left}.",
    ]


def with_scores(card: str, scores: str, where: str) -> str:
    """Replace the scores on a card.

    Raises:
        ModelError: if the card has no such section; `where` names it.
    """
    head, mark, _ = card.partition(SCORES)
    if not mark:
        raise ModelError(f"{where}: has no section {SCORES!r}; train the model again")
    return f"{head}{SCORES}\n\n{scores.strip()}\n"
