"""What the page posts, restored by the path of the command."""

from __future__ import annotations

import base64
import binascii
import io
import json
import threading
from collections.abc import Callable, Collection
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np

from restore.errors import InputError, UsageError, reason
from restore.images import Picture, encode, read_mask, read_picture
from restore.inference.damage import Damage, Observed
from restore.inference.open import Engines
from restore.inference.options import Options
from restore.inference.restore import restore
from restore.inference.restored import Restored
from restore.marginals import Status

# The most pixels of a picture, and bytes of a request: a picture and a mask that cannot be compressed, as text.
PIXELS, BYTES = 2000 * 2000, 2**25

OPTIONS: dict[str, Any] = {"image": str, "mask": str, "model": str, "p": (float, int, str), "invert": bool}


class Answers:
    """Restores one picture after the other; each prior is opened once."""

    def __init__(self, names: Collection[str]) -> None:
        """Restore with the priors of these names, or with the best of all: "auto"."""
        self._names = {*names, "auto"}
        self._engines: dict[str, Engines] = {}
        self._turn = threading.Lock()

    def answer(self, content: bytes, *, complete: bool, watch: Callable[[float], None]) -> dict[str, Any]:
        """Restore a picture.

        Args:
            content: JSON: `image`, a PNG in base64; to complete it `mask`, another, white = to fill; and as for
                `restore denoise` the options `model`, `p` and `invert`.
            complete: fill what is masked.
            watch: is told which share is done.

        Returns:
            `image`, `means` and `deviations` (twice as large) as PNGs in base64, and what became of the picture; or
            `refused`, the sentence that says why it came back as it was.

        Raises:
            RestoreError: if the request, the picture or a prior cannot be used.
        """
        asked = _parsed(content)
        if ("mask" in asked) != complete or "image" not in asked:
            raise UsageError("to denoise takes an image, and to complete an image and its mask")
        options = Options(asked.get("model", "auto"), invert=asked.get("invert", False), max_pixels=PIXELS)
        if options.model not in self._names:
            raise UsageError("this page restores with the priors that it lists; choose one of them")
        picture = read_picture(_bytes(asked["image"]), name="the image", max_pixels=PIXELS)
        damage, notes = Damage.of(asked.get("p")), picture.notes
        if complete:
            mask = read_mask(_bytes(asked["mask"]), name="the mask", shape=picture.shape, max_pixels=PIXELS)
            damage, notes = replace(damage, hidden=mask.hidden), (*notes, *mask.notes)
        with self._turn:
            began = perf_counter()
            engines = self._engines.setdefault(options.model, Engines(options))
            (found,) = restore([Observed(picture, damage)], options, engines, watch)
        told = {"model": found.model, "notes": [*notes, *found.notes], "seconds": perf_counter() - began}
        if found.refused:
            return told | {"refused": Status(found.status).sentence}
        return told | _shown(found, picture)


def _shown(found: Restored, picture: Picture) -> dict[str, Any]:
    def png(values: np.ndarray, hidden: np.ndarray | None = None) -> str:
        return base64.b64encode(encode(picture, np.asarray(values), format="PNG", hidden=hidden)).decode()

    return {
        "image": png(found.estimate, found.replaced),
        "means": png(found.means, found.replaced),
        "deviations": png(2 * found.deviations),
        "status": Status(found.status).sentence,
        "iterations": int(found.iterations),
        "changed": found.changed,
    }


def _parsed(content: bytes) -> dict[str, Any]:
    try:
        asked = json.loads(content)
    except (ValueError, RecursionError) as fault:
        raise UsageError(f"the request is no JSON ({reason(fault)}); reload the page") from fault
    if not isinstance(asked, dict) or not all(isinstance(asked[name], OPTIONS.get(name, ())) for name in asked):
        raise UsageError(f"the request holds something else than {', '.join(OPTIONS)}; reload the page")
    return asked


def _bytes(text: str) -> io.BytesIO:
    try:
        return io.BytesIO(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError) as fault:
        raise InputError(f"the image is not in base64 ({reason(fault)}); reload the page") from fault
