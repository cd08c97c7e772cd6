"""The images that a command evaluates a prior on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from restore.console import say
from restore.images import DEFAULT_MAX_PIXELS

if TYPE_CHECKING:
    from torch import Tensor

    from restore.data import Dataset, Split
    from restore.zoo.description import Description


@dataclass(frozen=True)
class Source:
    """The first `n` images of a split of a data set; all if `n` is None.

    Attributes:
        threshold: grey level above which a pixel is ink; None for the prior's own.
        root: where named data sets are; None for RESTORE_DATA.
        quiet: do not print notes about the data.
        max_pixels: the most pixels of one image; all of them together may have twenty times as many.
    """

    data: str
    split: Split
    n: int | None
    threshold: int | None
    root: Path | None
    quiet: bool
    max_pixels: int = DEFAULT_MAX_PIXELS

    def load(self, split: Split | None = None) -> Dataset:
        """Load a split, by default the one to evaluate, and report its notes."""
        from restore.data import load

        dataset = load(self.data, split=split or self.split, root=self.root, max_pixels=self.max_pixels)
        self.note(*dataset.notes)
        return dataset

    def note(self, *sentences: str) -> None:
        for sentence in () if self.quiet else sentences:
            say(f"{self.data}: {sentence}")

    def binary(self, dataset: Dataset, default: int) -> Tensor:
        """The first images of a data set, black and white, (N, D); `default` is the threshold if none was given."""
        import torch

        from restore.data import binarise

        return torch.from_numpy(binarise(dataset.images[: self.n], self.threshold_or(default)))

    def pixels(self, dataset: Dataset, about: Description) -> Tensor:
        """The first images of a data set as a prior knows them: black and white, or grey levels in [0, 1]; (N, D)."""
        import torch

        from restore.data import as_pixels

        threshold = self.threshold_or(about.threshold)
        manner: Literal["grey", "threshold"] = "grey" if about.grey else "threshold"
        return torch.from_numpy(as_pixels(dataset.images[: self.n], manner, threshold, 0))

    def threshold_or(self, default: int) -> int:
        return default if self.threshold is None else self.threshold

    def fitting(self, about: Description, split: Split | None = None) -> Tensor:
        """The images as a prior knows them, (N, D).

        Raises:
            ModelError: if their size is not the prior's.
        """
        dataset = self.load(split)
        self.check_size(dataset, about)
        return self.pixels(dataset, about)

    def check_size(self, dataset: Dataset, about: Description) -> None:
        from restore.errors import ModelError

        shape = dataset.images.shape[1:]
        if about.image_shape != shape:
            raise ModelError(
                f"{self.data}: images of shape {shape} do not fit {about.name}, which knows {about.image_shape}"
            )
