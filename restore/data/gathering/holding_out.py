"""Choose held-out images by their names, so that an image keeps its side when others are added or removed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def held_out_of(names: Sequence[str], share: float, seed: int) -> NDArray[np.bool_]:
    """Choose the images to judge a prior by and never to learn from.

    An image is held out if the first 64 bits of the SHA-256 of seed and name, as a fraction, are below the share. If
    none is, the lowest is held out; the two highest never are.

    Args:
        names: names of the images, at least three.
        share: share of them to hold out, between 0 and 1.
        seed: another seed holds out others.

    Returns:
        Shape (N,), True where the image is held out.
    """
    digests = (hashlib.sha256(f"{seed} {name}".encode("utf-8", "surrogatepass")).digest() for name in names)
    values = np.frombuffer(b"".join(digest[:8] for digest in digests), dtype=">u8")
    order = np.argsort(values, kind="stable")
    held = values < np.uint64(share * 2.0**64)
    held[order[0]] = True
    held[order[-2:]] = False
    return held
