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
from restore.images import encode, read_mask, read_picture
from restore.inference.damage import Damage, Observed
from restore.inference.open import Engines
from restore.inference.options import Options
from restore.inference.restore import restore
from restore.marginals import Status

# The most pixels of a picture; and bytes of a request: a picture and a mask that cannot be compressed, and as text take
# a third more, with room for colours.
PIXELS = 2000 * 2000
BYTES = 8 * PIXELS

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
        request = _parsed(content)
        if ("mask" in request) != complete or "image" not in request:
            raise UsageError("to denoise takes an image, and to complete an image and its mask; reload the page")
        options = Options(request.get("model", "auto"), invert=request.get("invert", False), max_pixels=PIXELS)
        if options.model not in self._names:
            raise UsageError("this page restores with the priors that it lists; choose one of them")
        picture = read_picture(_bytes(request["image"]), name="the image", max_pixels=PIXELS)
        damage, notes = Damage.of(request.get("p")), picture.notes
        if complete:
            mask = read_mask(_bytes(request["mask"]), name="the mask", shape=picture.shape, max_pixels=PIXELS)
            damage, notes = replace(damage, hidden=mask.hidden), (*notes, *mask.notes)
        with self._turn:
            began = perf_counter()
            engines = self._engines.setdefault(options.model, Engines(options))
            (restored,) = restore([Observed(picture, damage)], options, engines, watch)
        facts = {"model": restored.model, "notes": [*notes, *restored.notes], "seconds": perf_counter() - began}
        if restored.refused:
            return facts | {"refused": Status(restored.status).sentence}

        def png(values: np.ndarray, hidden: np.ndarray | None = None) -> str:
            return base64.b64encode(encode(picture, np.asarray(values), format="PNG", hidden=hidden)).decode()

        return facts | {
            "image": png(restored.estimate, restored.replaced),
            "means": png(restored.means, restored.replaced),
            "deviations": png(2 * restored.deviations),
            "status": Status(restored.status).sentence,
            "iterations": int(restored.iterations),
            "changed": restored.changed,
        }


def _parsed(content: bytes) -> dict[str, Any]:
    try:
        request = json.loads(content)
    except (ValueError, RecursionError) as fault:
        raise UsageError(f"the request is no JSON ({reason(fault)}); reload the page") from fault
    if not isinstance(request, dict) or not all(isinstance(request[name], OPTIONS.get(name, ())) for name in request):
        raise UsageError(f"a request holds nothing but {', '.join(OPTIONS)}; reload the page")
    return request


def _bytes(text: str) -> io.BytesIO:
    try:
        return io.BytesIO(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError) as fault:
        raise InputError(f"the image is not in base64 ({reason(fault)}); reload the page") from fault
