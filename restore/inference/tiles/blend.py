"""The posterior of pictures of any size: from one tile, from tiles that overlap, or from a picture as a whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from restore.inference import threads
from restore.inference.damage import Damage, Observed
from restore.inference.engine import PictureEngine, Posterior
from restore.inference.tiles.blocks import Block, parts_of
from restore.inference.tiles.grid import Cover
from restore.zoo.inference import Effort

# Larger pictures keep their answers in half precision: of 10,000x10,000 pixels restoring takes less than 1 GB
# (`benchmarks/sizes.py --scans 10000`).
MANY = 2**24

# Receives the share that is done of a picture restored in blocks.
Watch = Callable[[float], None]


def solved(engine: PictureEngine, pictures: np.ndarray, damage: Damage, effort: Effort) -> Posterior:
    """The posterior of pictures (N, H, W) of any size under a prior, all in memory."""
    header = engine.header
    if pictures.shape[1:] == header.image_shape:
        return engine.solve(pictures, damage, effort)
    if header.whole:
        return _in_parts(engine, pictures, damage, effort)

    def one_of(index: int) -> Posterior:
        def of_picture(level: np.ndarray) -> Any:
            own = level[index if len(level) > 1 else 0]
            return own.item() if own.shape == (1, 1) and own.dtype != bool else own

        return _in_tiles(engine, pictures[index], damage.mapped(of_picture), effort)

    return Posterior.concatenated(threads.each(one_of, range(len(pictures))))


def in_blocks(
    solve: Callable[[Observed], Posterior], picture: Observed, blocks: Sequence[Block], watch: Watch
) -> Posterior:
    """The posterior of a large picture, block by block."""
    height, width = picture.shape
    precision = np.float32 if height * width <= MANY else np.float16
    means, variances = np.empty((2, 1, height, width), precision)
    parts, done = list[Posterior](), 0
    for block in blocks:
        part = solve(picture.part(*block.around))
        for whole, values in ((means, part.means), (variances, part.variances)):
            whole[0][block.core] = values[0][block.inner]
        parts.append(replace(part, means=part.means[:, :0, :0], variances=part.variances[:, :0, :0]))
        done += means[0][block.core].size
        watch(done / (height * width))
    return Posterior.concatenated(parts).joined(means, variances)


def _in_tiles(engine: PictureEngine, seen: np.ndarray, damage: Damage, effort: Effort) -> Posterior:
    """The posterior of one picture (H, W) as the mixture of what its tiles say."""
    header = engine.header
    # A pixel at the border of a photograph lies in fewer tiles: one at least.
    cover = Cover.of(seen.shape, header.image_shape, header.overlap, within=header.kind.photographs)
    tiles = cover.cut(seen, "edge" if header.task else 0.0)
    known, blind = Damage(), False
    if not header.task:
        hidden = cover.cut(np.zeros(seen.shape, bool) if damage.hidden is None else damage.hidden, True)
        # Outside the picture nothing is known: a flip with probability one half.
        inside = replace(damage, hidden=None).mapped(lambda level: cover.cut(level, 0.5))
        known = replace(inside, hidden=hidden)
        blind = bool((cover.crop(cover.counts(np.asarray((~hidden).any((1, 2))))) == 0).any())
    # No two patches of a noisy photograph are the same.
    found = engine.solve(tiles, known, effort) if header.kind.photographs else _distinct(engine, tiles, known, effort)
    sound = np.isfinite(found.means).all((1, 2))
    mean = cover.crop(cover.mean(found.means, sound))
    square = cover.crop(cover.mean(found.variances + found.means**2, sound))
    return replace(found.joined(mean[None], (square - mean**2)[None]), blind=np.array([blind]))


def _distinct(engine: PictureEngine, tiles: np.ndarray, damage: Damage, effort: Effort) -> Posterior:
    """The posterior of tiles (N, h, w), of which those that are all the same are solved once."""
    parts = [part for part in (tiles, damage.hidden, damage.p) if isinstance(part, np.ndarray) and part.ndim == 3]
    keys: dict[bytes, int] = {}
    same = np.array([keys.setdefault(b"".join(map(bytes, each)), len(keys)) for each in zip(*parts, strict=True)])
    if len(keys) == len(same):
        return engine.solve(tiles, damage, effort)
    _, first = np.unique(same, return_index=True)
    few = damage.mapped(lambda values: values[first] if len(values) > 1 else values)
    return engine.solve(tiles[first], few, effort).rows(same)


def _in_parts(engine: PictureEngine, seen: np.ndarray, damage: Damage, effort: Effort) -> Posterior:
    """The posterior under a prior to which all places are alike: of overlapping parts that suit the engine."""
    count, height, width = seen.shape
    parts = parts_of((height, width), engine.part)

    def cut(values: np.ndarray) -> np.ndarray:
        if values.shape[1:] == (1, 1):
            return np.repeat(values, len(parts), 0) if len(values) > 1 else values
        return np.stack([image[part.around] for image in values for part in parts])

    small = cut(seen)
    found = engine.solve(small, damage.mapped(cut), effort)
    means, variances = np.empty(seen.shape, np.float32), np.empty(seen.shape, np.float32)
    for whole, values in ((means, found.means), (variances, found.variances)):
        for index, image in enumerate(values.reshape(count, len(parts), *small.shape[1:])):
            for part, answer in zip(parts, image, strict=True):
                whole[index][part.core] = answer[part.inner]
    return found.joined(means, variances)
