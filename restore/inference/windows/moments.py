"""What a prior makes of an image of any size: in parts where places are alike to it, else in windows that overlap."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from restore.inference.damage import Damage
from restore.inference.explained import Observed
from restore.inference.pictures import PictureEngine
from restore.inference.windows.blocks import parts_of
from restore.inference.windows.exchange import solve_windows
from restore.inference.windows.tally import Tally
from restore.inference.windows.tiles import Cover
from restore.marginals import Marginals, voided


def expected(engine: PictureEngine) -> np.ndarray:
    """Probability of white of a window's pixels if nothing is seen, (h, w), where windows exchange messages."""
    about = engine.description
    messages = not (about.grey or about.conditional or about.convolutional)
    return engine.pixel_means() if messages else np.zeros(about.image_shape)


@dataclass(frozen=True, eq=False)
class Turned:
    """A prior, and whether images are inverted for it."""

    engine: PictureEngine
    invert: bool

    def moments(self, grey: np.ndarray, damage: Damage, tally: Tally) -> tuple[np.ndarray, np.ndarray]:
        """As `moments`, of the image as it is."""
        told = damage.inverted() if self.invert else damage
        seen = 1 - grey if self.invert else grey
        mean, variance = moments(self.engine, seen, told, expected(self.engine), tally)
        return (1 - mean if self.invert else mean), variance


def moments(
    engine: PictureEngine, grey: np.ndarray, damage: Damage, alone: np.ndarray, tally: Tally
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of every pixel of an image (H, W): of the mixture of what its windows say.

    Args:
        engine: the prior; a convolutional one takes the image in parts.
        grey: the image.
        damage: what is known of it: p as a number, as two, or (H, W); hidden pixels (H, W).
        alone: as `expected` says.
        tally: counts what became of the windows.
    """
    if engine.description.convolutional:
        return _in_parts(engine, grey, damage, tally)
    about = engine.description
    # A pixel at the border of a photograph lies in fewer windows: one at least.
    cover = Cover.of(grey.shape, about.image_shape, about.tiling.overlap, within=about.mixture)
    windows = cover.cut(about.as_known(grey), "edge" if about.conditional else 0.0)
    told = Damage()
    if not about.conditional:
        hidden = cover.cut(np.zeros(grey.shape, bool) if damage.hidden is None else np.asarray(damage.hidden), True)
        told = Damage(cover.cut(damage.p, 0.5) if isinstance(damage.p, np.ndarray) else damage.p, damage.sigma, hidden)
        tally.blind |= bool((cover.crop(cover.counts(np.asarray((~hidden).any((1, 2))))) == 0).any())

    def solve(seen: Observed) -> Marginals:
        found, _ = engine.marginals(seen.grey, seen.damage)
        return voided(replace(found, means=found.means[:1], variances=found.variances[:1]))

    found = solve_windows(solve, about, cover, Observed(windows, told), alone, about.tiling)
    tally.add(found.status[found.solved], found.iterations[found.solved], found.residual[found.solved])
    mean = cover.crop(cover.mean(found.means, found.sound))
    square = cover.crop(cover.mean(found.variances + found.means**2, found.sound))
    tally.lost |= bool(np.isnan(mean).any())
    return mean, square - mean**2


def _in_parts(engine: PictureEngine, grey: np.ndarray, damage: Damage, tally: Tally) -> tuple[np.ndarray, np.ndarray]:
    """As `moments`, by a prior to which all places are alike."""
    parts = parts_of((grey.shape[0], grey.shape[1]))

    def cut(image: np.ndarray) -> np.ndarray:
        return np.stack([image[part.around] for part in parts])

    seen = cut(grey)
    told = damage.mapped(cut).covering(None if damage.hidden is None else cut(np.asarray(damage.hidden)))
    found, _ = engine.of_size((seen.shape[1], seen.shape[2])).marginals(seen, told)
    found = voided(found)
    tally.add(found.status, found.iterations, found.residual)
    tally.blind |= told.hidden is not None and bool(np.asarray(told.hidden).all((1, 2)).any())
    mean, variance = np.empty(grey.shape, np.float32), np.empty(grey.shape, np.float32)
    for part, *values in zip(parts, found.means[0], found.variances[0], strict=True):
        mean[part.core], variance[part.core] = (each.reshape(seen.shape[1:])[part.inner] for each in values)
    tally.lost |= bool(np.isnan(mean).any())
    return mean, variance
