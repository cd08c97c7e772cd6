"""Load a prior once and restore with it often."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from restore import zoo
from restore.errors import speaking_python
from restore.images import DEFAULT_MAX_PIXELS
from restore.images.kinds import in_kind, unpack
from restore.inference.callers import Manner, collected, masked, restored
from restore.inference.damage import Auto, Damage, Scanned
from restore.inference.open import Choice, open_engine
from restore.inference.pictures import PictureEngine, whole
from restore.sizes import Fit
from restore.zoo.description import Description

# How callers describe flips; see `denoise`.
Flips: TypeAlias = float | tuple[float, float] | np.ndarray | Auto | Scanned | None


@dataclass(frozen=True)
class Restorer:
    """A loaded prior, made by `restore.load`. Many calls can share it.

    >>> import numpy as np
    >>> import restore
    >>> prior = restore.load("tap-mnist")
    >>> prior.description.image_shape, prior.description.hidden
    ((28, 28), 500)
    >>> blank = np.zeros((3, 28, 28), bool)
    >>> clean, solution = prior.denoise(blank, p=0.1, return_solution=True)
    >>> clean.shape, solution.means[0].shape
    ((3, 28, 28), (3, 784))
    """

    engine: PictureEngine

    @property
    def description(self) -> Description:
        """Name, image shape, number of hidden units, how it restores, and what damage it has learnt to undo."""
        return self.engine.description

    @speaking_python
    def denoise(
        self,
        image: Any,
        p: Flips = None,
        *,
        sigma: float | Auto | None = None,
        fit: Fit = "tile",
        force: bool = False,
        invert: bool = False,
        soft: bool = False,
        channel_axis: int | None = None,
        return_solution: bool = False,
        solver: str | None = None,
        max_pixels: int = DEFAULT_MAX_PIXELS,
    ) -> Any:
        """As `restore.denoise`, with this prior."""
        damage = Damage.of(p, sigma)
        collection = collected(image, channel_axis, damage, max_pixels)
        engines = (self.solved_by(solver).engine,)
        return restored(engines, collection, damage, Manner(fit, force, invert, soft, return_solution))

    @speaking_python
    def complete(
        self,
        image: Any,
        mask: Any,
        p: Flips = None,
        *,
        sigma: float | Auto | None = None,
        fit: Fit = "tile",
        force: bool = False,
        invert: bool = False,
        soft: bool = False,
        channel_axis: int | None = None,
        return_solution: bool = False,
        solver: str | None = None,
        max_pixels: int = DEFAULT_MAX_PIXELS,
    ) -> Any:
        """As `restore.complete`, with this prior."""
        collection, damage = masked(image, mask, channel_axis, Damage.of(p, sigma), max_pixels)
        engines = (self.solved_by(solver).engine,)
        return restored(engines, collection, damage, Manner(fit, force, invert, soft, return_solution))

    @speaking_python
    def transform(self, images: Any, *, invert: bool = False, channel_axis: int | None = None) -> Any:
        """Features for other methods, such as a classifier: the expected hidden units given each image.

        Args:
            images: as in `restore.denoise`, of the prior's size.
            invert, channel_axis: as in `restore.denoise`.

        Returns:
            E[h | v], shape (N, hidden units), float32 in [0, 1], N = 1 for a single image; a tensor for tensors, else
            an array.

        Raises:
            ModelError: if an image has another size; if the prior is conditional, or a graph without its prior.
        """
        grey = whole([item.pixels for item in unpack(images, channel_axis).items], self.description)
        return in_kind(self.engine.features(1 - grey if invert else grey), images)

    def solved_by(self, solver: str | None) -> Restorer:
        """The same prior, solved by another solver; None for its own."""
        return self if solver is None else Restorer(self.engine.with_solver(solver))


@speaking_python
def load(model: str | Path, device: str = "auto", max_memory: int | None = None, engine: Choice = "auto") -> Restorer:
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
    return Restorer(open_engine(str(model), engine, device, max_memory))


def list_models() -> list[str]:
    """Names of the published priors and of those trained by this user.

    >>> import restore
    >>> "tap-mnist" in restore.list_models()
    True
    """
    return [folder.name for folder in zoo.folders()]
