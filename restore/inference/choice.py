"""Choose among several priors: the one under which an image is most probable.

log p(image | prior) is the evidence of the image (see `restore.inference.noise.levels`) minus log Z of the prior. The
prior's own solver computes both log Z, so that the two share its errors. Log Z of the prior alone is that of an image
of which no pixel was seen. For the published priors it is 2 to 17 nats below annealed importance sampling's; digits and
silhouettes are tens of nats apart even with 30 % of their pixels inverted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from restore.errors import ModelError
from restore.inference.damage import Damage
from restore.inference.explained import Observed, unexplained
from restore.inference.pictures import PictureEngine, Restored, restore_pictures
from restore.marginals import Marginals
from restore.sizes import Fit, in_windows
from restore.zoo import leave_out
from restore.zoo.description import Description

if TYPE_CHECKING:
    from restore.inference.windows.choosing.survey import Choice


@dataclass(frozen=True, eq=False)
class Tried:
    """What a prior made of N pictures.

    Attributes:
        engine: the prior, loaded.
        restored, marginals: as `restore_pictures` returns them.
        evidence: log p(picture | prior) in nats, (N,); -inf where there is no answer; 0 if only one prior was tried.
    """

    engine: PictureEngine
    restored: list[Restored]
    marginals: Marginals
    evidence: np.ndarray

    @property
    def names(self) -> tuple[str, ...]:
        """Of the prior, as in `Choice`."""
        return (self.engine.description.name,)


def restore_with_each(
    engines: Sequence[PictureEngine], pixels: Sequence[np.ndarray], damage: Damage, *, invert: bool = False
) -> list[Tried]:
    """Restore pictures with each of several priors; the best has the highest evidence.

    Args:
        engines: at least one. Several must all know binary images or all grey ones, and none may be conditional.
        pixels, damage, invert: as in `restore_pictures`.

    Returns:
        The results, in the order of the engines. A prior that fails where another succeeds is left out with a warning.
    """
    found: list[Tried] = []
    faults: list[ModelError] = []
    for engine in engines:
        solver = engine.for_evidence() if len(engines) > 1 else engine
        try:
            restored, marginals = restore_pictures(solver, pixels, damage, invert=invert)
            if all(values.shape == engine.description.image_shape for values in pixels):
                restored, marginals = _held_against_field(engine, pixels, damage, invert, (restored, marginals))
        except ModelError as fault:
            faults.append(fault)
            continue
        evidence = np.zeros(len(pixels))
        if len(engines) > 1:
            assert marginals.evidence is not None
            known = marginals.evidence - solver.log_partition
            evidence = np.where(np.isfinite(known), known, -np.inf)
        found.append(Tried(engine, restored, marginals, evidence))
    if not found:
        raise faults[0]
    for each in faults:
        leave_out(str(each))
    return found


def windowed(shape: tuple[int, ...]) -> Callable[..., tuple[Choice, Restored]]:
    """What restores an image of this shape in windows: `restore_large`, or `restore_colour`."""
    # Most images need no windows.
    if len(shape) > 2:
        from restore.inference.windows.colour import restore_colour

        return restore_colour
    from restore.inference.windows.large import restore_large

    return restore_large


def _held_against_field(
    engine: PictureEngine,
    pixels: Sequence[np.ndarray],
    damage: Damage,
    invert: bool,
    found: tuple[list[Restored], Marginals],
) -> tuple[list[Restored], Marginals]:
    """The same results, with the shortfall where the Ising field explains a picture better."""
    restored, marginals = found
    if marginals.evidence is None:
        return found
    # Most commands restore larger images.
    from restore.inference.windows.choosing.field import COARSE, beaten

    noise = marginals.noise
    told = damage if noise is None else damage.chosen(noise)
    told = told.inverted() if invert else told
    hidden = None if told.hidden is None else np.stack(list(told.hidden))
    grey = np.stack([1 - values if invert else values for values in pixels])
    evidence = marginals.evidence - engine.log_partition
    told = told.covering(hidden)
    tried = [] if noise is None else [replace(told, p=level) for level in COARSE]
    lack = beaten(engine, Observed(grey, told), evidence, tried)
    return [_with(one, nats, engine.description) for one, nats in zip(restored, lack.tolist(), strict=True)], replace(
        marginals, shortfall=np.fmax(lack, 0.0 if marginals.shortfall is None else marginals.shortfall)
    )


def _with(restored: Restored, shortfall: float, about: Description) -> Restored:
    """The same picture, with a shortfall against the Ising field where it has none yet."""
    from restore.inference.windows.choosing.field import FIELD

    if not shortfall or restored.shortfall:
        return restored
    rival = f"`{FIELD}`"
    return replace(restored, shortfall=shortfall, rival=rival, notes=(*restored.notes, unexplained(about.name, rival)))


def restore_one(
    engines: Sequence[PictureEngine],
    pixels: np.ndarray,
    damage: Damage,
    *,
    fit: Fit = "tile",
    invert: bool = False,
    force: bool = False,
    watch: Callable[[float], None] = lambda share: None,
) -> tuple[Choice | Tried, Restored]:
    """Restore one image of any size by the prior under which it is most probable, in windows if that is needed.

    Args:
        engines, damage, invert: as in `restore_with_each`.
        pixels: (H, W), or in colour (H, W, 3).
        fit: how images of other sizes than the prior's are restored.
        force: restore an image in windows also if the prior does not explain it.
        watch: is told which share of the windows is done.
    """
    if in_windows(pixels.shape, engines[0].description.image_shape, fit):
        return windowed(pixels.shape)(engines, pixels, damage, invert=invert, force=force, watch=watch)
    tried = restore_with_each(engines, [pixels], damage, invert=invert)
    best = max(tried, key=lambda one: float(one.evidence[0]))
    return best, best.restored[0]
