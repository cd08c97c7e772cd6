"""Restoring images of the caller's own kind: denoise and complete."""

from __future__ import annotations

from typing import Any

from restore import zoo
from restore.api.restorer import Restorer, Told
from restore.errors import speaking_python
from restore.images import DEFAULT_MAX_PIXELS
from restore.images.kinds import Collection, unpack
from restore.inference.callers import Manner, beyond, masks, restored
from restore.inference.damage import Auto, Damage
from restore.inference.opening import Choice, open_each, open_engine
from restore.inference.pictures import PictureEngine
from restore.sizes import Fit


@speaking_python
def denoise(
    image: Any,
    model: str | Restorer = "auto",
    p: Told = None,
    *,
    sigma: float | Auto | None = None,
    fit: Fit = "error",
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
    """Remove flipped pixels from a binary image, noise from a grey one, or damage that a prior has learnt to undo.

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
        model: name or path of a prior, a loaded `Restorer`, or "auto" for the one, of your own and the published that
            know images of this size, under which these images are together most probable; never a conditional one.
        p: probability that a pixel was inverted, in [0, 1]; or one per pixel, with the prior's shape; or two, such as
            (0.1, 0.02): that a white pixel of `image` turned black, and that a black one turned white. All priors need
            it but conditional ones, which take none: they have learnt what to undo (`Restorer.description.task`). For
            priors of grey images it is the probability that a pixel shows black or white instead of itself. "auto"
            chooses for each image the one under which the prior finds it most probable, up to .48 (grey: .9).
        sigma: for priors of grey images, the standard deviation of Gaussian noise, where black is 0 and white is 1.
            Floats may then lie up to 6 sigma outside [0, 1]; noise that was cut off there is undone less well. "auto"
            chooses it in the same way, from .01 to .5; only one of p and sigma may be "auto".
        fit: "resize" brings images of another size to the prior's and back, by a factor of 2 at most; "error" refuses
            them.
        force: resize by more than that too, and restore images that the prior explains less well than independent
            pixels do (`restore.inference.explained`), with a warning; both are errors without. Conditional priors
            explain none.
        invert: dark strokes on a light ground.
        soft: return posterior probabilities as grey values instead of black and white.
        channel_axis: axis of colour channels, which must be equal.
        return_solution: return (image, `Marginals`): marginals, iterations and more, at the prior's size; its `status`
            tells of each image whether the solver converged, its `noise` has the levels chosen for p or sigma "auto",
            with their evidence, its `model` the name of the prior. An image for which the solver diverged, with
            marginals that are NaN, or that has a `shortfall`, then comes back as it was; without this it is an error.
        device, engine: as in `load`; for a model given by name.
        solver: what to solve the prior with in place of its own: "tap", "mean_field", "relaxed_bp", "adaptive_tap",
            "sum_product", "max_product" or "mixed_product". Another than its own takes torch; conditional priors keep
            theirs.
        max_pixels: refuse larger images that have yet to be decoded.

    Returns:
        What came in: the same kind, type and shape. A path gives a PIL image.

    Raises:
        ModelError: among others, if the solver diverged for an image, or the prior does not explain it; it is named.
        RestoreError: see `restore.errors`; all messages name the fault and the remedy.

    Source: TAP machine, sec. VII.D; CRBM-BP, sec. 6.
    """
    damage = Damage.of(p, sigma)
    collection = unpack(image, channel_axis, beyond(damage), max_pixels)
    engines = _engines(model, collection, device, engine, damage.sigma is not None, solver)
    return restored(engines, collection, damage, Manner(fit, force, invert, soft, return_solution))


@speaking_python
def complete(
    image: Any,
    mask: Any,
    model: str | Restorer = "auto",
    p: Told = None,
    *,
    sigma: float | Auto | None = None,
    fit: Fit = "error",
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
        mask: True or white = to fill; of the image's size, one for each image or one for all, of any kind of image.
        model: as in `denoise`, but no conditional prior: those see a damaged image and nothing else.
        p, sigma: damage of the *visible* pixels, as in `denoise`. Without them these are returned bit for bit.
        fit, force, invert, soft, channel_axis, return_solution, device, engine, solver, max_pixels: as in `denoise`.

    Returns:
        What came in: the same kind, type and shape. A path gives a PIL image.

    Raises:
        RestoreError: see `restore.errors`.
    """
    damage = Damage.of(p, sigma)
    collection = unpack(image, channel_axis, beyond(damage), max_pixels)
    engines = _engines(model, collection, device, engine, damage.sigma is not None, solver)
    damage = damage.covering(masks(mask, collection, max_pixels))
    return restored(engines, collection, damage, Manner(fit, force, invert, soft, return_solution))


def _engines(
    model: str | Restorer, collection: Collection, device: str, engine: Choice, grey: bool, solver: str | None
) -> tuple[PictureEngine, ...]:
    """The prior to restore with, or those to choose among."""
    if isinstance(model, Restorer):
        return (model.solved_by(solver).engine,)
    names = zoo.candidates(collection.items[0].pixels.shape, grey) if model == "auto" else (str(model),)
    count = len(collection.items)
    opened = open_each(names, lambda name: open_engine(name, engine, device, images=count, solver=solver))
    return tuple(opened.values())
