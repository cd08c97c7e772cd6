"""Restore an image of another size than the prior's, in windows that overlap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from restore.errors import UsageError
from restore.inference.damage import Damage
from restore.inference.explained import Observed
from restore.inference.pictures import PictureEngine, Restored, expected_by
from restore.inference.tones import Pixels
from restore.inference.windows.blocks import blocks_of
from restore.inference.windows.exchange import solve_windows
from restore.inference.windows.survey import Choice, choose
from restore.inference.windows.tally import Tally
from restore.inference.windows.tiles import Cover
from restore.marginals import Marginals, voided

# Beyond so many pixels results are kept in half precision.
MANY = 2**24


def restore_large(
    engines: Sequence[PictureEngine],
    pixels: Pixels,
    damage: Damage,
    *,
    invert: bool = False,
    force: bool = False,
    watch: Callable[[float], None] = lambda share: None,
) -> tuple[Choice, Restored]:
    """Restore an image of any size by the prior, and in the polarity, under which it is most probable.

    Args:
        engines: the priors to choose among, as in `restore.inference.choice.restore_with_each`.
        pixels: grey values (H, W), in [0, 1] except with Gaussian noise.
        damage: what is known of this one image: p as a number, as two, or (H, W); its one mask, if it has one.
        invert: dark strokes on light; otherwise the image is inverted if that is more probable.
        force: restore it also if the prior does not explain it; otherwise it then comes back as it is.
        watch: is told which share of the image is done.

    Raises:
        UsageError: if the damage does not fit the prior, or the memory allowed does not hold a window.
    """
    if isinstance(damage.p, np.ndarray) and damage.p.shape != tuple(pixels.shape):
        raise UsageError(
            f"p has shape {damage.p.shape}; give one number, or one per pixel of the image: {pixels.shape}"
        )
    choice = choose(engines, pixels, damage, invert=invert, force=force)
    if choice.sample.shortfall and not force:
        return choice, _as_it_is(choice, pixels)
    return choice, _restored(choice, pixels, watch)


def _as_it_is(choice: Choice, pixels: Pixels) -> Restored:
    """What stands for an image that is not restored, for its prior does not explain it."""
    whole = pixels[slice(None), slice(None)]
    return replace(choice.sample, estimate=whole, means=whole, deviations=np.zeros(whole.shape), replaced=None)


def _restored(choice: Choice, pixels: Pixels, watch: Callable[[float], None]) -> Restored:
    engine, about = choice.engine, choice.engine.description
    damage = choice.damage.inverted() if choice.invert else choice.damage
    hidden = None if damage.hidden is None else damage.hidden[0]
    precision = np.float32 if pixels.shape[0] * pixels.shape[1] <= MANY else np.float16
    means, deviations = np.empty(pixels.shape, precision), np.empty(pixels.shape, precision)
    estimate = np.empty(pixels.shape, precision if about.grey else bool)
    alone = engine.pixel_means() if not (about.grey or about.conditional) else np.zeros(about.image_shape)
    tally = Tally()
    done = 0
    for block in blocks_of(pixels.shape, about, engine.max_memory):
        grey = pixels[block.around]
        tally.cut |= not about.grey and hidden is None and not np.isin(grey, (0, 1)).all()
        told = Damage(
            damage.p[block.around] if isinstance(damage.p, np.ndarray) else damage.p,
            damage.sigma,
            None if hidden is None else hidden[block.around],
        )
        mean, variance = _moments(engine, 1 - grey if choice.invert else grey, told, alone, tally)
        mean, variance = mean[block.inner], variance[block.inner]
        mean = 1 - mean if choice.invert else mean
        means[block.core], deviations[block.core] = mean, np.sqrt(variance.clip(0))
        estimate[block.core] = mean if about.grey else mean > 0.5
        done += mean.size
        watch(done / (pixels.shape[0] * pixels.shape[1]))
    return replace(
        choice.sample,
        estimate=estimate,
        means=means,
        deviations=deviations,
        replaced=None if damage.touched else hidden,
        iterations=tally.iterations,
        residual=tally.residual,
        status=tally.status,
        notes=(*_notes(choice), *tally.notes(about)),
    )


def _moments(
    engine: PictureEngine, grey: np.ndarray, damage: Damage, alone: np.ndarray, tally: Tally
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of every pixel of a block: of the mixture of what its windows say."""
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


def _notes(choice: Choice) -> list[str]:
    """What the user should know of the choice."""
    about = choice.engine.description
    height, width = about.image_shape
    notes = [f"restored in windows of {width}x{height} pixels"]
    if choice.invert and not choice.sample.inverted:
        expected = expected_by(choice.engine)
        notes.append(f"{about.name} expects {expected}, so the image was inverted for it, and back")
    return [*notes, *choice.sample.notes]
