"""Restore an image of another size than the prior's, in windows that overlap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from restore.errors import UsageError
from restore.inference.damage import Damage
from restore.inference.noise.patterned import NOTE, patterned, shares
from restore.inference.pictures import ChosenLevel, PictureEngine, Restored, expected_by
from restore.inference.tones import Pixels
from restore.inference.windows.blocks import blocks_of
from restore.inference.windows.choosing.levels import MANY
from restore.inference.windows.choosing.survey import Choice, choose
from restore.inference.windows.enlarged import Enlarged, drawn_large
from restore.inference.windows.regions import Both
from restore.inference.windows.tally import Tally
from restore.zoo.description import Description

# Rows whose grey levels are held in memory at once where only their colours are asked for.
STRIP = 512


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
    if len(engines) > 1 and (before := _before(engines[0].description, pixels, damage)) is not None:
        return _as_before(engines, before, damage, invert, watch)
    choice = choose(engines, pixels, damage, invert=invert, force=force)
    if choice.sample.shortfall and not force:
        return choice, _as_it_is(choice, pixels)
    return choice, _restored(choice, pixels, watch)


def _before(about: Description, pixels: Pixels, damage: Damage) -> Enlarged | None:
    """The picture as it was before it was drawn large, for priors of binary images; None if it was not."""
    height, width = pixels.shape
    if about.grey or height * width > MANY:
        return None
    strips = [(slice(top, top + STRIP), slice(None)) for top in range(0, height, STRIP)]
    return drawn_large(np.concatenate([about.as_known(pixels[strip]) > 0 for strip in strips]), damage)


def _as_before(
    engines: Sequence[PictureEngine], before: Enlarged, damage: Damage, invert: bool, watch: Callable[[float], None]
) -> tuple[Choice, Restored]:
    """A picture that was drawn large, restored as it was before; its squares explain it, if no prior does."""
    choice = choose(engines, before.pixels, before.damage, invert=invert, force=True)
    told = replace(choice.sample, notes=(before.note,), shortfall=0.0)
    found, drawn, noise = _restored(replace(choice, sample=told), before.pixels, watch), before.grid.drawn, before.noise
    return replace(choice, damage=before.flips, marginals=replace(choice.marginals, noise=noise)), replace(
        found,
        estimate=drawn(found.estimate),
        means=drawn(found.means),
        deviations=drawn(found.deviations),
        replaced=None if damage.touched or damage.hidden is None else damage.hidden[0],
        level=None if noise is None else ChosenLevel.of("p", noise, 0),
    )


def _as_it_is(choice: Choice, pixels: Pixels) -> Restored:
    """What stands for an image that is not restored, for its prior does not explain it."""
    whole = pixels[slice(None), slice(None)]
    return replace(choice.sample, estimate=whole, means=whole, deviations=np.zeros(whole.shape), replaced=None)


def _restored(choice: Choice, pixels: Pixels, watch: Callable[[float], None]) -> Restored:
    prior, damage = choice.prior, choice.damage
    engine = prior.engine
    about, hidden = engine.description, None if damage.hidden is None else damage.hidden[0]
    precision = np.float32 if pixels.shape[0] * pixels.shape[1] <= MANY else np.float16
    means, deviations = np.empty(pixels.shape, precision), np.empty(pixels.shape, precision)
    estimate = np.empty(pixels.shape, precision if about.grey else bool)
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
        mean, variance = (part[block.inner] for part in prior.moments(grey, told, tally))
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
        notes=(*_notes(choice), *tally.notes(about), *_doubts(choice, pixels, estimate)),
    )


def _doubts(choice: Choice, pixels: Pixels, estimate: np.ndarray) -> list[str]:
    """Whether flips, counted or told as numbers, can have been what was changed in a black and white image."""
    about, damage = choice.engine.description, choice.damage
    in_places = damage.p if isinstance(damage.p, np.ndarray) else None
    counted = in_places is None or choice.sample.level is not None
    if about.grey or damage.p is None or not counted or estimate.size > MANY:
        return []
    seen = np.ones(estimate.shape, bool) if damage.hidden is None else ~np.asarray(damage.hidden[0])
    changed = ((about.as_known(pixels[slice(None), slice(None)]) > 0) != estimate) & seen
    rates = shares(changed, estimate, seen) if in_places is None else in_places * seen
    return [NOTE] if patterned(changed, rates) else []


def _notes(choice: Choice) -> list[str]:
    """What the user should know of the choice."""
    about = choice.engine.description
    height, width = about.image_shape
    notes = [] if about.whole else [f"restored in windows of {width}x{height} pixels"]
    if choice.invert and not choice.sample.inverted:
        expected = expected_by(choice.engine)
        notes.append(f"{about.name} expects {expected}, so the image was inverted for it, and back")
    if isinstance(choice.prior, Both):
        notes.append(choice.prior.note)
    return [*notes, *choice.sample.notes]
