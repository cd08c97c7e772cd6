"""What a prior makes of an image of any size: as a whole where places are alike to it, else in windows that overlap."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from restore.inference.damage import Damage
from restore.inference.explained import Observed
from restore.inference.pictures import PictureEngine
from restore.inference.windows.blocks import parts_of
from restore.inference.windows.exchange import log_odds, solve_windows
from restore.inference.windows.tally import Tally
from restore.inference.windows.tiles import Cover
from restore.marginals import Marginals, Status, voided
from restore.zoo.description import Description

# A mean field stops once no pixel changes by more than this, or after so many steps: further ones would only swallow
# thin lines. Each keeps this share of the means before it. It is solved if the last one changes pixels by less than
# `SOLVED` on average.
STILL, STEPS, KEPT, SOLVED = 1e-6, 60, 0.5, 1e-3


def expected(engine: PictureEngine) -> np.ndarray:
    """Probability of white of a window's pixels if nothing is seen, (h, w), where windows exchange messages."""
    about = engine.description
    messages = not (about.grey or about.conditional or about.whole)
    return engine.pixel_means() if messages else np.zeros(about.image_shape)


@dataclass(frozen=True, eq=False)
class Turned:
    """A prior, and whether images are inverted for it."""

    engine: PictureEngine
    invert: bool

    @property
    def name(self) -> str:
        return self.engine.description.name

    @property
    def engines(self) -> tuple[PictureEngine, ...]:
        """All that restore an image."""
        return (self.engine,)

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
    about = engine.description
    if about.convolutional:
        return _in_parts(engine, grey, damage, tally)
    if about.tiling.neighbours:
        return _by_neighbours(about, grey, damage, tally)
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


def _by_neighbours(about: Description, grey: np.ndarray, damage: Damage, tally: Tally) -> tuple[np.ndarray, np.ndarray]:
    """As `moments`, by a prior that only knows how alike neighbours are."""
    told = damage.mapped(lambda level: level[None])
    told = told.covering(None if damage.hidden is None else np.asarray(damage.hidden)[None])
    means, steps, change = mean_field(log_odds(about, Observed(grey[None], told)), about.tiling.neighbours)
    status = Status.CONVERGED if change < SOLVED else Status.MAX_ITER
    tally.add(np.array([status]), np.array([steps]), np.array([change]))
    tally.blind |= told.hidden is not None and bool(np.asarray(told.hidden).all())
    white = (1 + means[0]) / 2
    return white, white * (1 - white)


def mean_field(evidence: np.ndarray, coupling: float) -> tuple[np.ndarray, int, float]:
    """Means of an Ising model with four neighbours: m = tanh(coupling · sum of those beside it + evidence / 2).

    The naive mean field (MacKay, 2003, section 33.2), from what the evidence says alone.

    Args:
        evidence: log-odds of white of every pixel, (..., H, W).
        coupling: how strongly neighbours agree.

    Returns:
        The means, from -1 for black to 1 for white, float32; the number of steps; and by how much they changed in the
        last one, on average over the pixels of the image where they changed most.

    >>> speck = np.full((5, 5), -2.0)
    >>> speck[2, 2] = 2
    >>> bool(mean_field(speck, 0.6)[0].max() < 0)
    True
    """
    field = np.asarray(evidence, np.float32) / 2
    means, steps, moved = np.tanh(field), 0, np.ones_like(field)
    while steps < STEPS and moved.max() > STILL:
        drawn = field.copy()
        pull = np.float32(coupling) * means
        drawn[..., 1:, :] += pull[..., :-1, :]
        drawn[..., :-1, :] += pull[..., 1:, :]
        drawn[..., 1:] += pull[..., :-1]
        drawn[..., :-1] += pull[..., 1:]
        step = np.float32(1 - KEPT) * (np.tanh(drawn) - means)
        means += step
        steps, moved = steps + 1, np.abs(step)
    return means, steps, float(moved.mean((-2, -1)).max())


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
