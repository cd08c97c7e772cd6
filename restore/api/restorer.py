"""Load a prior once and restore with it often."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Unpack, overload

import numpy as np
from PIL import Image

from restore import zoo
from restore.api.given import Flips, Manner, No, Picture, Yes, listing, restored
from restore.errors import ModelError, UsageError
from restore.images.kinds import in_kind, unpack
from restore.inference.engine import PictureEngine
from restore.inference.open import open_engine
from restore.inference.options import EngineName
from restore.inference.restored import Restored
from restore.sizes import said
from restore.zoo.description import Description


@dataclass(frozen=True)
class Restorer:
    """A loaded prior, made by `restore.load`. Many calls can share it; pickles hold its name, and load it anew.

    >>> import numpy as np
    >>> import restore
    >>> prior = restore.load("tap-mnist")
    >>> prior.description.image_shape, prior.description.hidden
    ((28, 28), 500)
    >>> blank = np.zeros((3, 28, 28), bool)
    >>> clean, solution = prior.denoise(blank, p=0.1, return_solution=True)
    >>> clean.shape, solution.means.shape
    ((3, 28, 28), (3, 28, 28))
    """

    engine: PictureEngine
    _loaded: tuple[Any, ...] | None = field(default=None, repr=False, compare=False)

    @property
    def description(self) -> Description:
        """Name, image shape, number of hidden units, how it restores, and what damage it has learnt to undo."""
        return self.engine.description

    @overload
    def denoise(
        self, image: Picture, p: Flips = ..., *, return_solution: No = ..., **how: Unpack[Manner]
    ) -> Picture: ...
    @overload
    def denoise(
        self, image: Picture, p: Flips = ..., *, return_solution: Yes, **how: Unpack[Manner]
    ) -> tuple[Picture, Restored]: ...
    @overload
    def denoise(
        self, image: str | Path, p: Flips = ..., *, return_solution: No = ..., **how: Unpack[Manner]
    ) -> Image.Image: ...
    @overload
    def denoise(self, image: Any, p: Flips = ..., *, return_solution: bool = ..., **how: Unpack[Manner]) -> Any: ...
    @listing(Manner)
    def denoise(self, image: Any, p: Flips = None, *, return_solution: bool = False, **how: Any) -> Any:
        """As `restore.denoise`, with this prior."""
        return restored(image, None, self.engine, p, return_solution, how)

    @overload
    def complete(
        self, image: Picture, mask: Any, p: Flips = ..., *, return_solution: No = ..., **how: Unpack[Manner]
    ) -> Picture: ...
    @overload
    def complete(
        self, image: Picture, mask: Any, p: Flips = ..., *, return_solution: Yes, **how: Unpack[Manner]
    ) -> tuple[Picture, Restored]: ...
    @overload
    def complete(
        self, image: str | Path, mask: Any, p: Flips = ..., *, return_solution: No = ..., **how: Unpack[Manner]
    ) -> Image.Image: ...
    @overload
    def complete(
        self, image: Any, mask: Any, p: Flips = ..., *, return_solution: bool = ..., **how: Unpack[Manner]
    ) -> Any: ...
    @listing(Manner)
    def complete(self, image: Any, mask: Any, p: Flips = None, *, return_solution: bool = False, **how: Any) -> Any:
        """As `restore.complete`, with this prior."""
        return restored(image, mask, self.engine, p, return_solution, how)

    def transform(self, images: Any, *, invert: bool = False, channel_axis: int | None = None) -> Any:
        """Features for other methods, such as a classifier: the expected hidden units given each image.

        Args:
            images: as in `restore.denoise`, of the prior's size.
            invert: dark strokes on a light ground.
            channel_axis: axis of colour channels.

        Returns:
            E[h | v], shape (N, hidden units), float32 in [0, 1], N = 1 for a single image; a tensor for tensors, else
            an array.

        Raises:
            ModelError: if an image has another size; if the prior is conditional, or a graph without its prior.
        """
        known, pixels = self.description, [item.pixels for item in unpack(images, channel_axis).items]
        for values in pixels:
            if values.shape != known.image_shape:
                sizes = f"the image has {said(values.shape)} pixels and {known.name} knows {said(known.image_shape)}"
                raise ModelError(f"{sizes}; resize it, or cut such parts out of it")
        grey = np.stack(pixels)
        return in_kind(self.engine.features(1 - grey if invert else grey), images)

    def __reduce__(self) -> tuple[Any, ...]:
        if self._loaded is None:
            raise UsageError("a prior that was trained here has no name to be pickled by; train with keep, and load it")
        return load, self._loaded

    def __deepcopy__(self, memo: dict[int, Any]) -> Restorer:
        return self


def load(
    model: str | Path, device: str = "auto", max_memory: int | None = None, engine: EngineName = "auto"
) -> Restorer:
    """Load a prior by its name or the path of its folder.

    Args:
        model: a name (see `list_models`), the path of a prior's folder, or a file made by `restore export`.
        device: "auto", "cpu" or "cuda[:N]".
        max_memory: bytes that the messages of belief propagation, or the matrices of adaptive TAP, may take; by default
            2 GiB. Larger batches are solved in parts.
        engine: "onnx", "torch", or "auto" for the one that finishes a few images sooner. For many images a conditional
            prior is faster in "torch". See `restore.inference.open.open_engine`.

    Raises:
        ModelError: if there is no such model, or its file is damaged.
        UsageError: if there is no such device or engine, or a library it needs is missing.
    """
    loaded = open_engine(str(model), engine, device, max_memory)
    return Restorer(loaded, (str(model), device, max_memory, engine))


def list_models() -> list[str]:
    """Names of the published priors and of those trained by this user.

    >>> import restore
    >>> "tap-mnist" in restore.list_models()
    True
    """
    return [folder.name for folder in zoo.folders()]
