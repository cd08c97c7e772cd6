"""An answer as HTML, for notebooks."""

from __future__ import annotations

import base64
import io
from html import escape
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

if TYPE_CHECKING:
    from restore.inference.restored import Restored

# The longer side of a picture on the screen, in pixels; smaller ones are enlarged by a whole number.
SHOWN = 320


def html_of(answer: Restored) -> str:
    """The picture before, after, and twice its standard deviations (white: a guess), side by side; facts and notes."""
    after = answer.picture(soft=answer.lightened is not None)
    panels = {"after": after, "uncertainty": 2 * answer.deviations}
    if answer.observed is not None:
        panels = {"before": answer.observed.values(), **panels}
    figures = "".join(
        f'<figure style="margin:0"><img src="{_png(values)}" style="image-rendering:pixelated" alt="{name}">'
        f"<figcaption>{name}</figcaption></figure>"
        for name, values in panels.items()
    )
    level = answer.level
    facts = [
        answer.model and f"restored with {answer.model}",
        "" if level is None or np.ndim(level.value) else f"{level.name} = {level.value:.3g}",
        "" if answer.changed is None else f"{answer.changed:.2%} of the pixels changed",
        answer.status.sentence,
    ]
    notes = "".join(f"<li>{escape(note)}</li>" for note in answer.notes)
    shown = escape(", ".join(filter(None, facts)))
    return f'<div style="display:flex;gap:8px;flex-wrap:wrap">{figures}</div><p>{shown}</p><ul>{notes}</ul>'


def _png(values: np.ndarray) -> str:
    """Values in [0, 1], (H, W) or (H, W, 3), as the address of a picture of about `SHOWN` pixels."""
    picture = Image.fromarray(np.rint(255 * np.clip(np.asarray(values, np.float64), 0, 1)).astype(np.uint8))
    picture.thumbnail((SHOWN, SHOWN))
    factor = max(1, SHOWN // max(picture.size))
    picture = picture.resize((factor * picture.width, factor * picture.height), Image.Resampling.NEAREST)
    file = io.BytesIO()
    picture.save(file, "PNG")
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
