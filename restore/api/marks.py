"""Find marks on images of the caller's own kind, and leave them there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from restore.api.kinds import unpack
from restore.channels.damage import Damage, Observed
from restore.errors import require
from restore.inference.open import Engines
from restore.inference.options import Options
from restore.inference.restore import marks_in
from restore.registry import MARKS

if TYPE_CHECKING:
    from restore.api.given import Input, T


def find_marks(
    image: Input[T], kinds: str = "all", *, specks: int | None = None, model: str = "auto"
) -> dict[str, np.ndarray]:
    """Find marks on a picture: what lies on it and is none of it, such as dirt, dots, rules and black borders.

    Nothing is changed. The masks are those of `complete`, which fills what they cover; `denoise` with `remove`
    does both.

    >>> import numpy as np
    >>> import restore
    >>> page = np.ones((200, 300), bool)
    >>> page[100:102, 20:280] = False
    >>> masks = restore.find_marks(page, "lines")
    >>> bool((masks["lines"] == ~page).all())
    True

    Args:
        image: one image in black and white, or a grey one that is read so; a path, or as in `denoise`.
        kinds: some of "specks", "dots", "lines" and "border", with commas between them, or "all".
        specks: pixels of the largest speck; None to find it.
        model: name or path of the prior that tells specks from content; "auto" for the one that predicts it best.

    Returns:
        For every kind asked for a mask in the image's shape, boolean (H, W): True where there are such marks. A grey
        image may have soft edges around them.

    Raises:
        UsageError: if a kind is unknown, or there is more than one image, or one in colours.
        RestoreError: the base of all errors; each message names the fault and the remedy.

    Source: fixed points of CRBM-BP, sec. 6, fill what is judged; for patterns, lines and borders see the modules in
    `restore.inference.marks`.
    """
    options = Options(model, remove=kinds, specks=specks)
    items = unpack(image).items
    require(len(items) == 1, f"there are {len(items)} images; give one at a time")
    picture = Observed(items[0].pixels, Damage(), items[0].pixels.colours)
    masks = {mark.kind: mark.mask for mark in marks_in(picture, options, Engines(options))}
    none = np.zeros(picture.shape[:2], bool)
    return {kind: masks.get(kind, none.copy()) for kind in MARKS if kind in options.marks}
