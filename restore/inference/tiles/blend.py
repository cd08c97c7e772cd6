"""The posterior of pictures of any size: from one tile, from tiles that overlap, or from a picture as a whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from restore.channels.damage import Damage, Observed
from restore.inference.engine import PictureEngine, Posterior
from restore.inference.tiles.blocks import PAGE_BEYOND, Block, coarsest, parts_of
from restore.inference.tiles.grid import Cover, Outside
from restore.inference.tiles.holes import filled, reach_of
from restore.zoo.inference import Effort

# Larger pictures keep their answers in half precision: of 10,000x10,000 pixels restoring takes less than 1 GB
# (`benchmarks/choices/sizes.py --scans 10000`).
HALF_PRECISION_PIXELS = 2**24

# Receives the share that is done of a picture restored in blocks.
Watch = Callable[[float], None]


def solved(engine: PictureEngine, pictures: np.ndarray, damage: Damage, effort: Effort) -> Posterior:
    """The posterior of pictures (N, H, W) of any size under a prior, all in memory."""
    header = engine.header
    if pictures.shape[1:] == header.image_shape:
        return engine.solve(pictures, damage, effort)
    if header.kind.pages:
        return _continued(engine, pictures, damage, effort)
    if damage.hidden is not None and (reach := reach_of(header, damage)):
        known, hidden = header.as_known(pictures), np.broadcast_to(damage.hidden, pictures.shape)
        parts = parts_of(pictures.shape[1:], header, engine.part)
        every = partial(_distinct, engine, effort=effort)
        return filled(every, known, hidden, parts, reach, header.step)
    return (_in_parts if header.whole else _in_tiles)(engine, pictures, damage, effort)


def batch(picture: Observed) -> tuple[np.ndarray, Damage]:
    """A picture as one of several, (1, H, W), and its damage."""
    return picture.values()[None], picture.damage.mapped(lambda values: values[None])


def in_blocks(
    solve: Callable[[np.ndarray, Damage], Posterior], picture: Observed, blocks: Sequence[Block], watch: Watch
) -> Posterior:
    """The posterior of a large picture, block by block."""
    height, width = picture.shape
    precision = np.float32 if height * width <= HALF_PRECISION_PIXELS else np.float16
    means, variances = np.empty((2, 1, height, width), precision)
    parts = list[Posterior]()
    done = 0
    for block in blocks:
        part = solve(*batch(picture.part(*block.around)))
        for whole, values in ((means, part.means), (variances, part.variances)):
            whole[0][block.core] = values[0][block.inner]
        parts.append(replace(part, means=part.means[:, :0, :0], variances=part.variances[:, :0, :0]))
        done += means[0][block.core].size
        watch(done / (height * width))
    return Posterior.concatenated(parts).joined(means, variances)


def _in_tiles(engine: PictureEngine, pictures: np.ndarray, damage: Damage, effort: Effort) -> Posterior:
    """The posterior of pictures (N, H, W) as the mixture of what their tiles say."""
    header = engine.header
    count = len(pictures)
    # A pixel at the border of a photograph lies in fewer tiles: one at least.
    cover = Cover.of(pictures.shape[1:], header.image_shape, header.overlap, within=header.kind.photographs)

    def cut(values: np.ndarray, outside: Outside) -> np.ndarray:
        if values.shape[1:] == (1, 1) != pictures.shape[1:]:  # one level for all pixels
            return np.repeat(values, cover.count, 0) if len(values) > 1 else values
        return np.concatenate([cover.cut(image, outside) for image in np.broadcast_to(values, pictures.shape)])

    tiles = cut(pictures, "edge" if header.task else 0.0)
    known = Damage()
    hidden = np.zeros(tiles.shape, bool)
    if not header.task:
        hidden = cut(np.zeros(pictures.shape, bool) if damage.hidden is None else damage.hidden, True)
        # Outside the picture nothing is known: a flip with probability one half.
        inside = replace(damage, hidden=None).mapped(lambda level: cut(level, 0.5))
        known = replace(inside, hidden=hidden)
    # No two patches of a noisy photograph are the same.
    posterior = (engine.solve if header.kind.photographs else partial(_distinct, engine))(tiles, known, effort)
    sound = np.isfinite(posterior.means).all((1, 2)).reshape(count, -1)
    shown = ~hidden.all((1, 2)).reshape(count, -1)

    def mixed(values: np.ndarray) -> np.ndarray:
        parts = values.reshape(count, -1, *header.image_shape)
        return np.stack([cover.crop(cover.mean(tiles, which)) for tiles, which in zip(parts, sound, strict=True)])

    mean = mixed(posterior.means)
    square = mixed(posterior.variances + posterior.means**2)
    blind = np.array([(cover.crop(cover.counts(which)) == 0).any() for which in shown])
    return replace(posterior.joined(mean, square - mean**2), blind=blind)


def _distinct(engine: PictureEngine, tiles: np.ndarray, damage: Damage, effort: Effort) -> Posterior:
    """The posterior of tiles (N, h, w); equal tiles are solved once."""
    every = (tiles, *vars(damage).values())
    parts = [part for part in every if isinstance(part, np.ndarray) and len(part) == len(tiles)]
    keys: dict[bytes, int] = {}
    same = np.array([keys.setdefault(b"".join(map(bytes, tile)), len(keys)) for tile in zip(*parts, strict=True)])
    if len(keys) == len(same):
        return engine.solve(tiles, damage, effort)
    _, first = np.unique(same, return_index=True)
    few = damage.mapped(lambda values: values[first] if len(values) > 1 else values)
    return engine.solve(tiles[first], few, effort).rows(same)


def _continued(engine: PictureEngine, pages: np.ndarray, damage: Damage, effort: Effort) -> Posterior:
    """The posterior of pages, from pages that are mirrored at their borders, up to whole steps.

    At a border of its own a machine sees less around a pixel, and takes more grain for ink.
    """
    (height, width), step = pages.shape[1:], coarsest(engine.header)
    beyond = ((0, 0), *((PAGE_BEYOND, PAGE_BEYOND + -(2 * PAGE_BEYOND + size) % step) for size in (height, width)))

    def mirrored(values: np.ndarray) -> np.ndarray:
        # One level for all pixels stays one.
        return np.pad(values, beyond, "reflect") if values.shape[1:] == (height, width) else values

    whole = _in_parts(engine, mirrored(pages), damage.mapped(mirrored), effort)
    inner = slice(PAGE_BEYOND, PAGE_BEYOND + height), slice(PAGE_BEYOND, PAGE_BEYOND + width)
    return whole.joined(*(values[:, *inner] for values in (whole.means, whole.variances)))


def _in_parts(engine: PictureEngine, pictures: np.ndarray, damage: Damage, effort: Effort) -> Posterior:
    """The posterior under a convolutional prior, from overlapping parts that suit the engine."""
    count, height, width = pictures.shape
    parts = parts_of((height, width), engine.header, engine.part)

    def cut(values: np.ndarray) -> np.ndarray:
        if values.shape[1:] == (1, 1):
            return np.repeat(values, len(parts), 0) if len(values) > 1 else values
        return np.stack([image[part.around] for image in values for part in parts])

    small = cut(pictures)
    posterior = _distinct(engine, small, damage.mapped(cut), effort)  # blank paper once
    means, variances = np.empty(pictures.shape, np.float32), np.empty(pictures.shape, np.float32)
    for whole, values in ((means, posterior.means), (variances, posterior.variances)):
        for index, image in enumerate(values.reshape(count, len(parts), *small.shape[1:])):
            for part, answer in zip(parts, image, strict=True):
                whole[index][part.core] = answer[part.inner]
    return posterior.joined(means, variances)
