"""Restore images of the caller's own kind: denoise and complete."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Unpack, overload

from PIL import Image

from restore.api.given import Flips, No, Opening, Picture, Yes, listing, restored
from restore.api.restorer import Restorer
from restore.inference.engine import PictureEngine
from restore.inference.restored import Restored

Model = str | Path | Restorer


@overload
def denoise(
    image: Picture, model: Model = ..., p: Flips = ..., *, return_solution: No = ..., **how: Unpack[Opening]
) -> Picture: ...
@overload
def denoise(
    image: Picture, model: Model = ..., p: Flips = ..., *, return_solution: Yes, **how: Unpack[Opening]
) -> tuple[Picture, Restored]: ...
@overload
def denoise(
    image: str | Path, model: Model = ..., p: Flips = ..., *, return_solution: No = ..., **how: Unpack[Opening]
) -> Image.Image: ...
@overload
def denoise(
    image: Any, model: Model = ..., p: Flips = ..., *, return_solution: bool = ..., **how: Unpack[Opening]
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
            (N, H, W) or (N, 1, H, W), or a list of them. A pixel counts as white above the prior's threshold.
        model: name or path of a prior, a loaded `Restorer`, or "auto" for the prior that predicts each image best.
        p: probability that a pixel was inverted, in [0, 1]; one per pixel, with the image's shape; or a pair such as
            (0.1, 0.02): a white pixel of `image` turned black with the first probability, a black one white with the
            second. "auto", and leaving out p and sigma, finds it for each image. "scan" takes it from each pixel's grey
            level, and so does leaving both out where an image has grey levels all over. For priors of grey images p is
            the probability that a pixel shows black or white instead of its grey value. Conditional priors take neither
            p nor sigma: they have learnt what to undo (`Restorer.description.task`).
        sigma: for priors of grey images, the standard deviation of Gaussian noise, where black is 0 and white is 1, or
            "auto" to find it. Photographs may then be in colour, and floats up to 6 sigma outside [0, 1]. Only one of p
            and sigma may be "auto".
        channel_axis: axis of colour channels; without sigma, images are read by their luminance.
        return_solution: return (image, `Restored`): means, deviations, status, level found, prior and notes; of several
            images each has a first axis of N.
        {options}

    Returns:
        The same kind, type and shape as `image`. A path gives a PIL image; that of a TIFF or PDF of several pages gives
        a list of them. Of several images, those that are refused come back as they were, and one `RestoreWarning`
        counts them.

    Raises:
        Foreign: if a single image is refused: no prior recognises it, the result would do harm, or the solver diverged.
        RestoreError: the base of all errors; each message names the fault and the remedy.

    Source: TAP machine, sec. VII.D; CRBM-BP, sec. 6.
    """
    return restored(image, None, _prior(model), p, return_solution, how)


@overload
def complete(
    image: Picture, mask: Any, model: Model = ..., p: Flips = ..., *, return_solution: No = ..., **how: Unpack[Opening]
) -> Picture: ...
@overload
def complete(
    image: Picture, mask: Any, model: Model = ..., p: Flips = ..., *, return_solution: Yes, **how: Unpack[Opening]
) -> tuple[Picture, Restored]: ...
@overload
def complete(
    image: str | Path,
    mask: Any,
    model: Model = ...,
    p: Flips = ...,
    *,
    return_solution: No = ...,
    **how: Unpack[Opening],
) -> Image.Image: ...
@overload
def complete(
    image: Any, mask: Any, model: Model = ..., p: Flips = ..., *, return_solution: bool = ..., **how: Unpack[Opening]
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
        image, channel_axis, return_solution: as in `denoise`.
        mask: True or white = to fill. Any kind of image, of the image's size; one for each image or one for all.
        model: as in `denoise`, but not conditional: conditional priors see a damaged image and no mask.
        p, sigma: damage of the *visible* pixels, as in `denoise`. Without them visible pixels are returned bit for bit.
        {options}

    Returns:
        As `denoise`.

    Raises:
        RestoreError: as `denoise`.
    """
    return restored(image, mask, _prior(model), p, return_solution, how)


def _prior(model: Model) -> PictureEngine | str:
    return model.engine if isinstance(model, Restorer) else str(model)
