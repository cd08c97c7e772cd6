"""The card of a trained prior: what it is, how it was made, and how well it restores."""

from __future__ import annotations

import platform
import re
from pathlib import Path

import torch

from restore.errors import ModelError
from restore.learning.lesson import Lesson
from restore.learning.run.outcome import Trained, scored
from restore.zoo.description import Description

SCORES_HEADING = "## Scores"


def machine_facts() -> str:
    """The computer in words: processor, threads, torch."""
    info = Path("/proc/cpuinfo")
    models = re.findall(r"(?m)^model name\s*:\s*(.*)$", info.read_text(encoding="utf-8")) if info.exists() else []
    processor = ", ".join(sorted(set(models))) or platform.machine()
    return f"{processor}, {torch.get_num_threads()} thread(s), torch {torch.__version__}"


def write_card(trained: Trained, lesson: Lesson, command: str, used: float) -> str:
    """The card of a lesson's prior as Markdown; it says what was typed, and the seconds used for all of it."""
    header = trained.prior.description
    height, width = header.image_shape
    hidden = "/".join(dict.fromkeys(layer.units for layer in header.layers)) or header.hidden_type
    units = "binary" if header.binary else f"{header.visible}/{hidden}"
    end = f"\n- end: {trained.verdict}" if trained.verdict else ""
    unfinished = f"**Unfinished**: {header.unfinished}. The run is in `{header.run}`.\n\n" if header.unfinished else ""
    return f"""# {header.name}

{unfinished}A {units} {header.kind.words} with {header.pixels} visible units ({height} x {width} pixels) and
{header.kind.count(header)}, trained on {_images(header, lesson)}.
{_use(header)}{_choice(trained, lesson)}
Licence: {header.licence}.

## Training

    {command}

- time: {used / 60:.1f} minutes{end}
- machine: {machine_facts()}
- seed: {lesson.recipe.seed}
- recipe (SHA-256 {header.recipe[:16]}):

```toml
{lesson.text.strip()}
```

{SCORES_HEADING}

Not measured yet.
"""


def _images(header: Description, lesson: Lesson) -> str:
    """What a prior was trained on."""
    copies = lesson.recipe.data.variations.copies
    images = max(1, copies) * len(lesson.training.images) - lesson.recipe.data.validation
    pixels = "grey levels" if header.grey else f"ink = grey level above {header.threshold}"
    return f"{images} {'variations of images' if copies else 'images'} of `{header.data}` ({pixels})"


def _use(header: Description) -> str:
    """How a prior restores."""
    settings = header.inference
    use = f"It restores with the `{settings.solver}` solver."
    if header.task:
        use = f"It undoes {header.task} from the damaged image alone, with the inference that it was trained with:\n"
        use += f"`{settings.solver}`, at most {settings.max_iter} iterations, tolerance {settings.tol:g}."
    if header.temperature != 1:
        fitted = f"divided by {header.temperature}, the temperature that fits held-out images"
        use += f"\nThe log-odds of its pixels are {fitted}."
    return use


def _choice(trained: Trained, lesson: Lesson) -> str:
    """Which parameters of a run these are, if held-out images chose."""
    if trained.error is None:
        return ""
    chosen = f"\nIts parameters are those after epoch {trained.epoch}, which restored held-out images best: "
    return f"{chosen}they left {scored(lesson.recipe, trained.error)}."


def with_scores(card: str, scores: str, where: str) -> str:
    """Replace the scores on a card; `where` names it in a ModelError if it has no such section."""
    head, mark, _ = card.partition(SCORES_HEADING)
    if not mark:
        raise ModelError(f"has no section {SCORES_HEADING!r}; train the model again", where)
    return f"{head}{SCORES_HEADING}\n\n{scores.strip()}\n"
