"""Restoring an image of another size than the prior's, in windows that overlap.

The image is taken in blocks, each with as much around it as its answer may depend on, so that what it takes in memory
depends on the block alone, and blocks leave no trace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from restore.errors import ModelError, UsageError
from restore.inference.damage import Damage
from restore.inference.exchange import solve_windows
from restore.inference.explained import Observed
from restore.inference.pictures import PictureEngine, Restored, outcome, restore_pictures
from restore.inference.sampling import FEW, RANKS, Pixels, Sample, Stack, sample_of
from restore.inference.tiles import Cover, blocks
from restore.marginals import Marginals, NoiseLevel, Status, voided
from restore.zoo import leave_out
from restore.zoo.description import Description

# Windows of a block: enough to keep both engines busy, few enough for some hundred megabytes.
WINDOWS = 8192

# Arrays of the size of its windows that a block takes in single precision, and of their hidden units.
ARRAYS, HIDDEN = 14, 4

# An image is solved if all but so many of its windows are.
UNSOLVED = 0.01

# Levels of noise, flips or standard deviations, at which priors and polarities are compared if it is unknown.
COARSE = (0.05, 0.15, 0.3)

# Said of an image with pixels that no window sees anything around.
BLIND = "has masked areas around which nothing is visible: the prior alone fills them"

# Beyond so many pixels results are kept in half precision.
MANY = 2**24


@dataclass(frozen=True, eq=False)
class Choice:
    """What is to restore an image, as a sample of it says.

    Attributes:
        engine: the prior under which the sample is most probable.
        invert: whether the image is to be inverted for it.
        damage: of the image, none of its levels to be chosen.
        sample: what came of the sample, with the level that was chosen, and its shortfall.
        marginals: of the sample.
        others: names of the priors under which it is less probable.
    """

    engine: PictureEngine
    invert: bool
    damage: Damage
    sample: Restored
    marginals: Marginals
    others: tuple[str, ...]


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
    choice = choose(engines, pixels, damage, invert=invert)
    if choice.sample.shortfall and not force:
        return choice, _as_it_is(choice, pixels)
    return choice, _restored(choice, pixels, watch)


def marginals_of(large: Sequence[tuple[Choice, Restored]]) -> Marginals:
    """The marginals of images that were restored in windows: of their pixels, at their own size.

    Means and variances are (N, H·W), or where sizes differ N arrays. log Z is not known; evidence and levels are those
    of the samples.
    """
    choices, parts = [choice for choice, _ in large], [part for _, part in large]

    def pixels(arrays: list[np.ndarray]) -> np.ndarray:
        flat = [array.astype(np.float32).ravel() for array in arrays]
        if len({part.means.shape for part in parts}) == 1:
            return np.stack(flat)
        apart = np.empty(len(flat), object)
        apart[:] = flat
        return apart

    def each(values: list[np.ndarray | None]) -> np.ndarray | None:
        known = [value for value in values if value is not None]
        return np.concatenate(known) if len(known) == len(values) else None

    levels = [choice.marginals.noise for choice in choices]
    known = [level for level in levels if level is not None]
    noise = None
    if known:
        chosen, evidence, converged = (
            np.concatenate([getattr(level, name) for level in known]) for name in ("chosen", "evidence", "converged")
        )
        noise = NoiseLevel(chosen, known[0].tried, evidence, converged)
    return Marginals(
        (pixels([part.means for part in parts]),),
        (pixels([part.deviations**2 for part in parts]),),
        np.full(len(parts), np.nan),
        np.array([part.iterations for part in parts]),
        np.array([part.residual for part in parts]),
        np.array([int(part.status) for part in parts]),
        each([choice.marginals.evidence for choice in choices]),
        noise,
        ", ".join(dict.fromkeys(choice.engine.description.name for choice in choices)),
        np.array([part.shortfall for part in parts]),
    )


def choose(engines: Sequence[PictureEngine], pixels: Pixels, damage: Damage, *, invert: bool) -> Choice:
    """The prior, the polarity and the level under which a sample of an image is most probable.

    Priors and polarities are compared at a few levels if it is unknown, and the level is chosen for the best of them.
    """
    sample = sample_of(pixels, damage, RANKS if len(engines) == 1 else FEW)
    ways = [
        (engine, inverted)
        for engine in engines
        for inverted in ((invert,) if invert or engine.description.conditional else (False, True))
    ]
    levels = [damage] if damage.unknown is None else [damage.at(level) for level in COARSE]
    found: list[tuple[float, PictureEngine, bool]] = []
    faults: dict[str, ModelError] = {}
    for engine, inverted in ways if len(ways) > 1 else []:
        try:
            best = max(_evidence(*_tried(engine, sample, known, inverted)) for known in levels)
            found.append((best, engine, inverted))
        except ModelError as fault:
            faults[engine.description.name] = fault
    if faults and not found:
        raise next(iter(faults.values()))
    for each in faults.values():
        leave_out(str(each))
    engine, inverted = max(found, key=lambda one: one[0])[1:] if found else ways[0]
    _, verdict, marginals = _tried(engine, sample, damage, inverted)
    known = damage if marginals.noise is None else damage.at(float(marginals.noise.chosen[0]))
    others = dict.fromkeys(one.description.name for _, one, _ in found if one is not engine)
    return Choice(engine, inverted, known, verdict, marginals, tuple(others))


def _tried(engine: PictureEngine, sample: Sample, damage: Damage, invert: bool) -> tuple[Stack, Restored, Marginals]:
    stack, pixels, told = sample.stacked(engine, damage)
    (verdict,), marginals = restore_pictures(stack, [pixels], told, invert=invert)
    return stack, verdict, marginals


def _evidence(stack: Stack, verdict: Restored, marginals: Marginals) -> float:
    """log p(sample | prior), in nats; -inf if there is none."""
    assert marginals.evidence is not None  # conditional priors are not compared
    evidence = float(marginals.evidence[0] - stack.log_partition)
    return evidence if np.isfinite(evidence) else -np.inf


def _restored(choice: Choice, pixels: Pixels, watch: Callable[[float], None]) -> Restored:
    engine, about, damage = choice.engine, choice.engine.description, choice.damage
    damage = damage.inverted() if choice.invert else damage
    hidden = None if damage.hidden is None else damage.hidden[0]
    precision = np.float32 if pixels.shape[0] * pixels.shape[1] <= MANY else np.float16
    means, deviations = np.empty(pixels.shape, precision), np.empty(pixels.shape, precision)
    estimate = np.empty(pixels.shape, precision if about.grey else bool)
    alone = engine.pixel_means() if not (about.grey or about.conditional) else np.zeros(about.image_shape)
    tally = Tally()
    done = 0
    for core, around in _blocks(engine, pixels.shape):
        grey = pixels[around]
        tally.cut |= not about.grey and hidden is None and not np.isin(grey, (0, 1)).all()
        told = Damage(
            damage.p[around] if isinstance(damage.p, np.ndarray) else damage.p,
            damage.sigma,
            None if hidden is None else hidden[around],
        )
        mean, variance = _block(engine, 1 - grey if choice.invert else grey, told, alone, tally)
        inner = tuple(
            slice(one.start - all_.start, one.stop - all_.start) for one, all_ in zip(core, around, strict=True)
        )
        mean = 1 - mean[inner] if choice.invert else mean[inner]
        means[core], deviations[core] = mean, np.sqrt(variance[inner].clip(0))
        estimate[core] = mean if about.grey else mean > 0.5
        done += mean.size
        watch(done / (pixels.shape[0] * pixels.shape[1]))
    status = tally.status
    notes = [*_told(choice, about), *tally.notes(about)]
    replaced = None if hidden is None or damage.touched else hidden
    return replace(
        choice.sample,
        estimate=estimate,
        means=means,
        deviations=deviations,
        replaced=replaced,
        iterations=tally.iterations,
        residual=tally.residual,
        status=status,
        notes=tuple(notes),
    )


def _block(
    engine: PictureEngine, grey: np.ndarray, damage: Damage, alone: np.ndarray, tally: Tally
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of every pixel of a block: of the mixture of what its windows say."""
    about = engine.description
    cover = Cover.of(grey.shape, about.image_shape, about.tiling.overlap)
    windows = cover.cut(grey, "edge" if about.conditional else 0.0)
    told = Damage()
    if not about.conditional:
        hidden = np.zeros(grey.shape, bool) if damage.hidden is None else np.asarray(damage.hidden)
        p = cover.cut(damage.p, 0.5) if isinstance(damage.p, np.ndarray) else damage.p
        told = Damage(p, damage.sigma, cover.cut(hidden, True))
        blind = np.asarray(told.hidden).all((1, 2))
        tally.blind |= bool((cover.crop(cover.add(_spread(~blind, windows))) == 0).any())

    def solve(seen: Observed) -> Marginals:
        return voided(engine.marginals(seen.grey, seen.damage)[0])

    found = solve_windows(solve, about, cover, Observed(windows, told), alone, about.tiling)
    sound = found.status != Status.DIVERGED
    tally.add(found.status, found.iterations, found.residual)
    count = cover.crop(cover.add(_spread(sound, windows)))
    means = np.where(sound[:, None, None], found.means, np.float32(0))
    squares = np.where(sound[:, None, None], found.variances, np.float32(0)) + means**2
    with np.errstate(invalid="ignore", divide="ignore"):
        mean, square = (cover.crop(cover.add(part)) / count for part in (means, squares))
    tally.lost |= bool((count == 0).any())
    return mean, square - mean**2


def _spread(each: Any, windows: np.ndarray) -> np.ndarray:
    return np.broadcast_to(np.asarray(each, np.float32)[:, None, None], windows.shape)


def _blocks(engine: PictureEngine, shape: tuple[int, ...]) -> Iterator[tuple[tuple[slice, slice], tuple[slice, slice]]]:
    """The blocks of an image, and each with what its answer depends on."""
    about = engine.description
    strides = [-(-side // about.tiling.overlap) for side in about.image_shape]
    allowed = WINDOWS
    if engine.max_memory is not None:
        window = 4 * (ARRAYS * about.pixels + HIDDEN * sum(about.sizes[1:]))
        allowed = min(WINDOWS, engine.max_memory // window)
        if allowed < 1:
            raise UsageError(f"a window of {about.name} takes {window} bytes; raise --max-memory to that at least")
    margins = [
        -(-(about.tiling.rounds + 1) * (side - 1) // stride) * stride
        for side, stride in zip(about.image_shape, strides, strict=True)
    ]
    # Where little memory is allowed, it is the margins that take it.
    longest = [
        max(stride, int(allowed**0.5) * stride - 2 * margin) for stride, margin in zip(strides, margins, strict=True)
    ]
    rows, columns = (blocks(*each) for each in zip(shape, longest, strides, strict=True))
    for top, bottom in rows:
        for left, right in columns:
            core = (slice(top, bottom), slice(left, right))
            around = tuple(
                slice(max(0, one.start - margin), min(size, one.stop + margin))
                for one, margin, size in zip(core, margins, shape, strict=True)
            )
            yield core, around  # type: ignore[misc]


@dataclass
class Tally:
    """How the windows of an image fared."""

    windows: int = 0
    stopped: int = 0
    diverged: int = 0
    iterations: int = 0
    residual: float = 0.0
    lost: bool = False
    blind: bool = False
    cut: bool = False

    def add(self, status: np.ndarray, iterations: np.ndarray, residual: np.ndarray) -> None:
        self.windows += len(status)
        self.stopped += int((status == Status.MAX_ITER).sum())
        self.diverged += int((status == Status.DIVERGED).sum())
        self.iterations = max(self.iterations, int(iterations.max()))
        self.residual = max(self.residual, float(np.max(residual, initial=0, where=np.isfinite(residual))))

    @property
    def status(self) -> Status:
        """Of the whole: diverged if a pixel has no answer, at its limit if more than a few windows are."""
        if self.lost:
            return Status.DIVERGED
        return Status.MAX_ITER if self.stopped + self.diverged > UNSOLVED * self.windows else Status.CONVERGED

    def notes(self, about: Description) -> list[str]:
        """What the user should know of them."""
        notes = []
        if self.lost or (about.conditional and self.stopped):
            notes.append(outcome(self.status, about))
        elif self.stopped + self.diverged:
            notes.append(f"the solver did not converge in {self.stopped + self.diverged} of {self.windows} windows")
        if self.blind:
            notes.append(BLIND)
        if self.cut:
            notes.append(f"has grey levels, which were cut to black and white: white is above {about.threshold} of 255")
        return notes


def _told(choice: Choice, about: Description) -> list[str]:
    """What the user should know about the choice."""
    height, width = about.image_shape
    notes = [f"restored in windows of {width}x{height} pixels"]
    if choice.invert and not choice.sample.inverted:
        notes.append(f"{about.name} expects the opposite of dark on light, so the image was inverted for it, and back")
    return [*notes, *choice.sample.notes]


def _as_it_is(choice: Choice, pixels: Pixels) -> Restored:
    """What stands for an image that is not restored, for its prior does not explain it."""
    whole = pixels[slice(None), slice(None)]
    return replace(choice.sample, estimate=whole, means=whole, deviations=np.zeros(whole.shape), replaced=None)
