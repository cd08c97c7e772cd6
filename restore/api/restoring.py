"""Restore images of the caller's own kind: denoise and complete."""

from __future__ import annotations

from typing import Any

from restore import zoo
from restore.api.restorer import Flips, Restorer
from restore.errors import speaking_python
from restore.images import DEFAULT_MAX_PIXELS
from restore.images.kinds import Collection
from restore.inference.callers import Manner, collected, masked, photographs, restored
from restore.inference.damage import Auto, Damage
from restore.inference.open import Choice, open_each, open_engine
from restore.inference.engine import PictureEngine
from restore.sizes import Fit


@speaking_python
def denoise(
    image: Any,
    model: str | Restorer = "auto",
    p: Flips = None,
    *,
    sigma: float | Auto | None = None,
    fit: Fit = "tile",
    force: bool = False,
    invert: bool = False,
    soft: bool = False,
    channel_axis: int | None = None,
    return_solution: bool = False,
    device: str = "auto",
    engine: Choice = "auto",
    solver: str | None = None,
    max_pixels: int = DEFAULT_MAX_PIXELS,
) -> Any:
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
        image: a path, a PIL image, an (H, W) array or tensor (uint8, uint16, bool, or float in [0, 1]), an (N, H, W)
            batch, or a list of them. A pixel counts as white above the prior's threshold (half of white for MNIST).
        model: name or path of a prior, a loaded `Restorer`, or "auto". "auto" compares the published priors and your
            own that fit the images' size, conditional ones excepted, and takes the one under which the images are
            together most probable.
        p: probability that a pixel was inverted, in [0, 1]; one per pixel, with the image's shape; or a pair such as
            (0.1, 0.02): a white pixel of `image` turned black with the first probability, a black one white with the
            second. "auto" chooses p for each image: the value under which the prior finds the image most probable, up
            to .48, or two values where the colours of a large image clearly flip at different rates; so does leaving
            out p and sigma. "scan" takes it from each pixel's grey level, under levels of ink and paper found in the
            image, and so does leaving both out where an image has grey levels all over; the result is black and white
            (`restore.inference.scans`). Conditional priors take neither: they have learnt
            what to undo (`Restorer.description.task`). For priors of grey images p is the probability that a pixel
            shows black or white instead of its grey value ("auto": up to .9).
        sigma: for priors of grey images, the standard deviation of Gaussian noise, where black is 0 and white is 1.
            Photographs may then be in colour, and floats up to 6 sigma outside [0, 1]; noise clipped to [0, 1] is
            undone less well. "auto" chooses sigma as it does p, from .01 to .5. Only one of p and sigma may be "auto".
        fit: what becomes of images of another size than the prior's: "tile" restores them in windows that overlap,
            and "resize" brings them to that size and back, by a factor of 2 at most.
        force: warn, instead of raising an error, where an image must be resized by more than a factor of 2, or where
            the prior explains it no better than others that know nothing of its kind (`restore.inference.explained`).
            Conditional priors have no such check.
        invert: dark strokes on a light ground.
        soft: return posterior probabilities as grey values instead of black and white.
        channel_axis: axis of colour channels, which must be equal unless sigma is given.
        return_solution: return (image, `Marginals`), at the prior's size: marginals, iterations, whether the solver
            converged for each image (`status`), the levels chosen for "auto" with their evidence (`noise`), and the
            name of the prior (`model`). An image that could not be restored, because the solver diverged or the prior
            does not explain it (`shortfall`), is then returned as it was; without this it raises an error.
        device, engine: as in `load`; for a model given by name.
        solver: solve the prior with this instead of its own solver: "tap", "mean_field", "relaxed_bp", "adaptive_tap",
            "sum_product", "max_product" or "mixed_product". This needs torch; conditional priors keep their own.
        max_pixels: refuse larger images before decoding them.

    Returns:
        The same kind, type and shape as `image`. A path gives a PIL image; that of a TIFF or PDF of several pages gives
        a list of them.

    Raises:
        ModelError: for example if the solver diverged for an image, or the prior does not explain it; names the image.
        RestoreError: the base of all errors; each message names the fault and the remedy.

    Source: TAP machine, sec. VII.D; CRBM-BP, sec. 6.
    """
    damage = Damage.of(p, sigma)
    collection = collected(image, channel_axis, damage, max_pixels)
    engines = _engines(model, collection, damage, fit, (engine, device, solver))
    return restored(engines, collection, damage, Manner(fit, force, invert, soft, return_solution))


@speaking_python
def complete(
    image: Any,
    mask: Any,
    model: str | Restorer = "auto",
    p: Flips = None,
    *,
    sigma: float | Auto | None = None,
    fit: Fit = "tile",
    force: bool = False,
    invert: bool = False,
    soft: bool = False,
    channel_axis: int | None = None,
    return_solution: bool = False,
    device: str = "auto",
    engine: Choice = "auto",
    solver: str | None = None,
    max_pixels: int = DEFAULT_MAX_PIXELS,
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
        mask: True or white = to fill. Any kind of image, of the image's size; one for each image or one for all.
        model: as in `denoise`, but not conditional: conditional priors see a damaged image and no mask.
        p, sigma: damage of the *visible* pixels, as in `denoise`. Without them visible pixels are returned bit for bit.
        fit, force, invert, soft, channel_axis, return_solution, device, engine, solver, max_pixels: as in `denoise`.

    Returns:
        The same kind, type and shape as `image`. A path gives a PIL image; that of a TIFF or PDF of several pages gives
        a list of them.

    Raises:
        RestoreError: see `restore.errors`.
    """
    collection, damage = masked(image, mask, channel_axis, Damage.of(p, sigma), max_pixels)
    engines = _engines(model, collection, damage, fit, (engine, device, solver))
    return restored(engines, collection, damage, Manner(fit, force, invert, soft, return_solution))


def _engines(
    model: str | Restorer, collection: Collection, damage: Damage, fit: Fit, chosen: tuple[Choice, str, str | None]
) -> tuple[PictureEngine, ...]:
    """The prior to restore with, or those to choose among, for an engine, a device and a solver."""
    engine, device, solver = chosen
    if isinstance(model, Restorer):
        return (model.solved_by(solver).engine,)
    items = collection.items
    shape = items[0].pixels.shape[:2]
    grey = damage.sigma is not None or (model == "auto" and photographs(items, damage))
    names = zoo.candidates(shape, grey, fit) if model == "auto" else (str(model),)
    pixels = sum(item.pixels.size for item in items)
    opened = open_each(names, lambda name: open_engine(name, engine, device, pixels=pixels, solver=solver))
    return tuple(opened.values())
