"""An answer as HTML, for notebooks."""

from __future__ import annotations

import base64
import io
from collections import Counter
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

if TYPE_CHECKING:
    from restore.inference.restored import Restored

# The longer side of a picture on the screen, in pixels; smaller ones are enlarged by a whole number.
SHOWN = 320

# The first of several pictures, which are shown.
SHOWN_OF_MANY = 3

# The colour of pixels to fill.
TO_FILL = np.array([1.0, 0.6, 0.2])


def html_of(answer: Restored, side: int = SHOWN) -> str:
    """The picture before, after, and twice its standard deviations (white: a guess), side by side; facts and notes."""
    after = answer.picture(soft=answer.lightened is not None)
    panels = {"after": after, "uncertainty": 2 * answer.deviations}
    if answer.observed is not None:
        before = answer.observed.values()
        hidden = answer.observed.damage.hidden
        if hidden is not None:
            before = np.where(hidden[..., None], TO_FILL, before if before.ndim == 3 else before[..., None])
        panels = {"before": before, **panels}
    figures = "".join(
        f'<figure style="margin:0"><img src="{_png(values, side)}" '
        f'style="image-rendering:pixelated;border:1px solid #888" alt="{name}"><figcaption>{name}</figcaption></figure>'
        for name, values in panels.items()
    )
    level = answer.level
    facts = [
        answer.model and f"restored with {answer.model}",
        "" if level is None or np.ndim(level.value) else f"{level.name} = {level.value:.3g}",
        "" if answer.changed is None else f"{answer.changed:.2%} of the pixels changed",
        answer.status.sentence,
    ]
    facts = [f"as it came, {answer.outcome}: {answer.objection}"] if answer.unchanged else facts
    known = {answer.status.sentence, level.sentence if level is not None and level.estimated else ""}
    notes = "".join(f"<li>{escape(note)}</li>" for note in answer.notes if note not in known)
    shown = escape(", ".join(filter(None, facts)))
    return f'<div style="display:flex;gap:8px;flex-wrap:wrap">{figures}</div><p>{shown}</p><ul>{notes}</ul>'


def html_of_several(answers: Sequence[Restored]) -> str:
    """How many pictures ended how, and the first of them."""
    ends = Counter(answer.status.sentence for answer in answers)
    counts = "".join(f"<li>{count} of {len(answers)}: {escape(end)}</li>" for end, count in ends.most_common())
    return f"<ul>{counts}</ul>" + "".join(html_of(answer, SHOWN // 2) for answer in answers[:SHOWN_OF_MANY])


def _png(values: np.ndarray, side: int) -> str:
    """Values in [0, 1], (H, W) or (H, W, 3), as the address of a picture of about `side` pixels."""
    picture = Image.fromarray(np.rint(255 * np.clip(np.asarray(values, np.float64), 0, 1)).astype(np.uint8))
    picture.thumbnail((side, side))
    factor = max(1, side // max(picture.size))
    picture = picture.resize((factor * picture.width, factor * picture.height), Image.Resampling.NEAREST)
    file = io.BytesIO()
    picture.save(file, "PNG")
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
