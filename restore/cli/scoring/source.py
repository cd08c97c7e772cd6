"""The images that a command evaluates a prior on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from restore.console import say
from restore.images import DEFAULT_MAX_PIXELS

if TYPE_CHECKING:
    from torch import Tensor

    from restore.data import Dataset, Split
    from restore.data.gathering.stock import Stock
    from restore.inference.pictures import PictureEngine
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

    def stock(self, split: Split | None = None) -> Stock:
        """Open a split, by default the one to evaluate, whatever the sizes of its images."""
        from restore.data.loading import open_stock

        return open_stock(self.data, split=split or self.split, root=self.root, max_pixels=self.max_pixels)

    def load(self, split: Split | None = None) -> Dataset:
        """Load a split, whose images have one size, and report its notes."""
        return self.loaded(self.stock(split), split)

    def loaded(self, stock: Stock, split: Split | None = None) -> Dataset:
        """Load a stock whose images have one size, and report its notes."""
        from restore.data.loading import as_dataset

        dataset = as_dataset(stock, self.data, split or self.split)
        self.note(*dataset.notes)
        return dataset

    def wholes(self, stock: Stock, default: int, *, grey: bool) -> list[Tensor]:
        """The first images of a stock, (H, W) each: grey levels in [0, 1], or black and white; see `binary`."""
        import torch

        from restore.data import as_pixels
        from restore.data.gathering.stock import first_of

        self.note(*stock.notes)
        manner: Literal["grey", "threshold"] = "grey" if grey else "threshold"
        return [
            torch.from_numpy(as_pixels(image[None], manner, self.threshold_or(default), 0)).reshape(image.shape)
            for image in first_of(stock, self.n or len(stock.names))
        ]

    def is_of_wholes(self, stock: Stock, about: Description) -> bool:
        """Whether images have another size than the prior's, so that it restores them in windows."""
        if not len(stock.sizes) or not stock.sizes.all():
            # Refused where images of one size are loaded.
            return False
        return bool((stock.sizes != about.image_shape).any())

    def opened(
        self, model: str, stock: Stock, device: str, memory: int | None = None, solver: str | None = None
    ) -> PictureEngine:
        """The engine that `restore denoise` would take for the first images of a stock."""
        from restore.inference.opening import open_engine

        return open_engine(model, "auto", device, memory, int(stock.sizes[: self.n].prod(axis=1).sum()), solver)

    @contextmanager
    def restoring(self, what: str) -> Iterator[Callable[[float], None]]:
        """Show which share of the work is done."""
        from restore.progress import progress

        shown = 0
        with progress(f"{what}: restored, in percent", 100, quiet=self.quiet) as meter:

            def watch(share: float) -> None:
                nonlocal shown
                if int(100 * share) > shown:
                    shown = int(100 * share)
                    meter(shown)

            yield watch

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
