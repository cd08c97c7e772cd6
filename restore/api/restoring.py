"""Restore images of the caller's own kind, by a prior that is named or one that is loaded once and used often."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack, overload

from restore import zoo
from restore.api.batch import RestoredBatch
from restore.api.given import Flips, Manner, No, Opening, Paths, Yes, listing, restored
from restore.errors import UsageError, require
from restore.inference.engine import PictureEngine
from restore.inference.open import open_engine
from restore.inference.options import EngineName
from restore.inference.restored import Restored
from restore.zoo.description import Description

if TYPE_CHECKING:
    from restore.api.given import Input, T

Model: TypeAlias = "str | Path | Restorer"

# About one image, or several.
Answer: TypeAlias = Restored | RestoredBatch


@overload
def denoise(
    image: Input[T], model: Model = ..., p: Flips = ..., *, return_solution: No = ..., **how: Unpack[Opening]
) -> T: ...
@overload
def denoise(
    image: Input[T], model: Model = ..., p: Flips = ..., *, return_solution: Yes, **how: Unpack[Opening]
) -> tuple[T, Answer]: ...
@overload
def denoise(
    image: Paths, model: Model = ..., p: Flips = ..., *, return_solution: bool = ..., **how: Unpack[Opening]
) -> Any: ...
@listing(Opening)
def denoise(image: Any, model: Model = "auto", p: Flips = None, *, return_solution: bool = False, **how: Any) -> Any:
    """Remove flipped pixels from a binary image, noise from a grey one, or the damage a prior has learnt to undo.

    A scan with grey levels all over becomes black and white (see `p`).

    >>> import numpy as np
    >>> import restore
    >>> stroke = np.zeros((28, 28), bool)
    >>> stroke[5:23, 13:15] = True
    >>> noisy = stroke.copy()
    >>> noisy[8, 20] = noisy[20, 4] = True
    >>> clean = restore.denoise(noisy, "tap-mnist", p=0.02)
    >>> bool(clean[8, 20]), bool(clean[20, 4]), bool(clean[12, 13])
    (False, False, True)

    Args:
        image: a path, a PIL image, an (H, W) array or tensor (uint8, uint16, bool, or float in [0, 1]), a batch
            (N, H, W) or (N, 1, H, W), or a sequence of them. A pixel counts as white above the prior's threshold. With
            sigma, photographs may be in colour, and floats up to 6 sigma outside [0, 1].
        model: name or path of a prior, a loaded `Restorer`, or "auto" for the prior that predicts each image best.
        p: probability that a pixel was inverted, in [0, 1]; or one per pixel, with the image's shape. With "auto", or
            without p and sigma, it is found for each image. With "scan" it follows from each pixel's grey level; this
            is the default for an image with grey levels all over. For priors of grey images p is the probability that
            a pixel shows black or white instead of its grey value. Conditional priors take neither p nor sigma: they
            have learnt what to undo (`Restorer.description.task`).
        channel_axis: axis of colour channels; without sigma, images are read by their luminance.
        progress: True to show how many images are done, in a terminal or a notebook; or a callable(done, total, note).
            `done` counts parts of images, too; of a single image it is the share that is done.
        return_solution: return (image, `Restored`): means, deviations, status, noise level, prior and notes; for N
            images each of these has a first axis of length N.
        {options}

    Returns:
        The same kind, type and shape as `image`. A path gives a PIL image, or a list of them for a TIFF or PDF of
        several pages. An image that is clean, or of which no restoration can be trusted, comes back as it came; of the
        latter one `RestoreWarning` tells. The solution's `outcome` is "restored", "clean" or "not sure".

    Raises:
        NotRestored: with strict, if no restoration of an image can be trusted.
        RestoreError: the base of all errors; each message names the fault and the remedy.

    Source: TAP machine, sec. VII.D; CRBM-BP, sec. 6.
    """
    return restored(image, None, _opened(model), p, return_solution, how)


@overload
def complete(
    image: Input[T], mask: Any, model: Model = ..., p: Flips = ..., *, return_solution: No = ..., **how: Unpack[Opening]
) -> T: ...
@overload
def complete(
    image: Input[T], mask: Any, model: Model = ..., p: Flips = ..., *, return_solution: Yes, **how: Unpack[Opening]
) -> tuple[T, Answer]: ...
@overload
def complete(
    image: Paths, mask: Any, model: Model = ..., p: Flips = ..., *, return_solution: bool = ..., **how: Unpack[Opening]
) -> Any: ...
@listing(Opening)
def complete(
    image: Any, mask: Any, model: Model = "auto", p: Flips = None, *, return_solution: bool = False, **how: Any
) -> Any:
    """Fill the pixels under a mask.

    >>> import numpy as np
    >>> import restore
    >>> stroke = np.zeros((28, 28), bool)
    >>> stroke[5:23, 13:15] = True
    >>> hole = np.zeros((28, 28), bool)
    >>> hole[12:16, 10:18] = True
    >>> whole = restore.complete(stroke & ~hole, hole, "tap-mnist")
    >>> bool((whole[~hole] == stroke[~hole]).all()), bool(whole[13, 13])
    (True, True)

    Args:
        image: as in `denoise`.
        mask: True, white, or 1 of 0 and 1 = to fill. Any kind of image, of its size; one for each, or one for all.
        model: as in `denoise`, but not conditional: conditional priors see a damaged image and no mask.
        p: as in `denoise`, for the *visible* pixels. Without p and sigma these are returned bit for bit.
        channel_axis: as in `denoise`.
        progress: as in `denoise`.
        return_solution: as in `denoise`.
        {options}

    Returns:
        As `denoise`.

    Raises:
        RestoreError: as `denoise`.
    """
    return restored(image, _required(mask), _opened(model), p, return_solution, how)


def _required(mask: Any) -> Any:
    require(mask is not None, "the mask is None; give the pixels to fill, or use denoise, which needs no mask")
    return mask


def _opened(model: Model) -> PictureEngine | str:
    return model.engine if isinstance(model, Restorer) else str(model)


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
        return self.engine.header

    @overload
    def denoise(self, image: Input[T], p: Flips = ..., *, return_solution: No = ..., **how: Unpack[Manner]) -> T: ...
    @overload
    def denoise(
        self, image: Input[T], p: Flips = ..., *, return_solution: Yes, **how: Unpack[Manner]
    ) -> tuple[T, Answer]: ...
    @overload
    def denoise(self, image: Paths, p: Flips = ..., *, return_solution: bool = ..., **how: Unpack[Manner]) -> Any: ...
    @listing(Manner)
    def denoise(self, image: Any, p: Flips = None, *, return_solution: bool = False, **how: Any) -> Any:
        """As `restore.denoise`, with this prior."""
        return restored(image, None, self.engine, p, return_solution, how)

    @overload
    def complete(
        self, image: Input[T], mask: Any, p: Flips = ..., *, return_solution: No = ..., **how: Unpack[Manner]
    ) -> T: ...
    @overload
    def complete(
        self, image: Input[T], mask: Any, p: Flips = ..., *, return_solution: Yes, **how: Unpack[Manner]
    ) -> tuple[T, Answer]: ...
    @overload
    def complete(
        self, image: Paths, mask: Any, p: Flips = ..., *, return_solution: bool = ..., **how: Unpack[Manner]
    ) -> Any: ...
    @listing(Manner)
    def complete(self, image: Any, mask: Any, p: Flips = None, *, return_solution: bool = False, **how: Any) -> Any:
        """As `restore.complete`, with this prior."""
        return restored(image, _required(mask), self.engine, p, return_solution, how)

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
        device: as in `denoise`.
        max_memory: as in `denoise`.
        engine: as in `denoise`. For many images a conditional prior is faster in "torch".

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
