"""How many images of a data set are also in another."""

from __future__ import annotations

from restore.data import Dataset


def overlap(first: Dataset, second: Dataset) -> int:
    known = {(image.shape, image.tobytes()) for image in first.images}
    return sum((image.shape, image.tobytes()) in known for image in second.images)
