"""Pictures and what is said of them as HTML, for notebooks."""

from __future__ import annotations

import base64
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape

import numpy as np
from PIL import Image

# The longer side of a picture on the screen, in pixels; smaller ones are enlarged by a whole number.
SHOWN = 320

# The first of several pictures, which are shown.
SHOWN_OF_MANY = 3

# The colour of pixels to fill.
TO_FILL = np.array([1.0, 0.6, 0.2])


def html_of(panels: Mapping[str, np.ndarray], sentence: str, notes: Sequence[str], side: int = SHOWN) -> str:
    """Pictures side by side, each with its name, and below them a sentence and notes."""
    figures = "".join(
        f'<figure style="margin:0"><img src="{_png(values, side)}" '
        f'style="image-rendering:pixelated;border:1px solid #888" alt="{name}"><figcaption>{name}</figcaption></figure>'
        for name, values in panels.items()
    )
    items = "".join(f"<li>{escape(note)}</li>" for note in notes)
    row = f'<div style="display:flex;gap:8px;flex-wrap:wrap">{figures}</div>'
    return f"{row}<p>{escape(sentence)}</p><ul>{items}</ul>"


def html_of_several(ends: Sequence[str], first: Sequence[str]) -> str:
    """How many pictures ended how, and the first of them, in HTML."""
    counts = "".join(f"<li>{count} of {len(ends)}: {escape(end)}</li>" for end, count in Counter(ends).most_common())
    return f"<ul>{counts}</ul>" + "".join(first)


def with_holes(values: np.ndarray, hidden: np.ndarray | None) -> np.ndarray:
    """A picture in which pixels to fill are coloured."""
    if hidden is None:
        return values
    return np.where(hidden[..., None], TO_FILL, values if values.ndim == 3 else values[..., None])


def _png(values: np.ndarray, side: int) -> str:
    """Values in [0, 1], (H, W) or (H, W, 3), as the address of a picture of about `side` pixels."""
    picture = Image.fromarray(np.rint(255 * np.clip(np.asarray(values, np.float64), 0, 1)).astype(np.uint8))
    picture.thumbnail((side, side))
    factor = max(1, side // max(picture.size))
    picture = picture.resize((factor * picture.width, factor * picture.height), Image.Resampling.NEAREST)
    file = io.BytesIO()
    picture.save(file, "PNG")
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
