"""The posterior of pictures of any size: from one tile, from tiles that overlap, or from a picture as a whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from restore.channels.damage import Damage, Observed
from restore.inference import threads
from restore.inference.engine import PictureEngine
from restore.inference.tiles.blocks import blocks_of, parts_of
from restore.inference.tiles.grid import Cover
from restore.marginals import Marginals, Status

# A picture has converged if all but this share of its tiles have.
UNSETTLED = 0.01

# Larger pictures keep their answers in half precision: of 10,000x10,000 pixels restoring takes less than 1 GB
# (`benchmarks/sizes.py --scans 10000`).
MANY = 2**24

Watch = Callable[[float], None]


# The share of a picture that is taken to be in doubt where only holes are filled: by the average change of all pixels,
# nearly all of which are known, solvers would stop at once.
HOLES = 0.01


@dataclass(frozen=True, eq=False)
class Posterior:
    """What a prior makes of N damaged pictures of one shape.

    Attributes:
        means, variances: of every pixel, (N, H, W).
        iterations, residual: the most of any tile, (N,).
        tiles, unsettled: how many tiles there are, and how many did not converge, (N,).
        blind: True where a tile has nothing visible, (N,).
        inversion: by how many nats per pixel a picture is likelier after inversion, (N,); 0 if unknown.
        layers: means of hidden layers, (N, units) each; empty if there are several tiles.
    """

    means: np.ndarray
    variances: np.ndarray
    iterations: np.ndarray
    residual: np.ndarray
    tiles: np.ndarray
    unsettled: np.ndarray
    blind: np.ndarray
    inversion: np.ndarray
    layers: tuple[np.ndarray, ...] = ()

    @classmethod
    def of(cls, found: Marginals, shape: tuple[int, ...], groups: int, hidden: np.ndarray | None) -> Posterior:
        """The answers of tiles (`groups` pictures of equally many) without their pixels, which are laid out later."""
        iterations, residual = (
            np.where(np.isfinite(values), values, 0).reshape(groups, -1).max(1)
            for values in (found.iterations, found.residual)
        )
        status = found.status.reshape(groups, -1)
        blind = np.zeros(status.shape, bool) if hidden is None else hidden.all((1, 2)).reshape(groups, -1)
        return cls(
            found.means[0].reshape(shape),
            found.variances[0].reshape(shape),
            iterations,
            residual,
            np.full(groups, status.shape[1]),
            (status != Status.CONVERGED).sum(1),
            np.asarray(blind.any(1)),
            np.zeros(groups),
        )

    def status(self, index: int) -> Status:
        """How the solver ended for a picture."""
        if not np.isfinite(self.means[index]).all():
            return Status.DIVERGED
        many = self.unsettled[index] > UNSETTLED * self.tiles[index]
        return Status.MAX_ITER if many else Status.CONVERGED


_PER_PICTURE = [field.name for field in fields(Posterior) if field.name != "layers"]


@dataclass(frozen=True, eq=False)
class Prior:
    """A trained prior in one polarity: a `restore.inference.score.Candidate`.

    Attributes:
        engine: the prior with its solver.
        invert: invert pictures for the prior, and the answers back.
    """

    engine: PictureEngine
    invert: bool = False

    @property
    def names(self) -> tuple[str, str]:
        return self.engine.description.name, self.engine.name

    def quickly(self) -> Prior:
        return replace(self, engine=self.engine.quickly())

    def precisely(self) -> Prior:
        return replace(self, engine=self.engine.precisely())

    def solve(self, seen: np.ndarray, damage: Damage, corners: Sequence[tuple[int, int]] = ()) -> Posterior:
        """As in `Candidate`."""
        if self.invert:
            found = Prior(self.engine).solve(1 - seen, damage)
            return replace(found, means=1 - found.means)
        header = self.engine.description
        if seen.shape[1:] == header.image_shape:
            marginals, gain = self.engine.marginals(seen, damage)
            one = Posterior.of(marginals, seen.shape, len(seen), damage.hidden)
            return replace(one, inversion=gain, layers=marginals.means[1:])
        if header.kind.any_size:
            return _in_parts(self.engine, seen, damage)

        def one_of(index: int) -> Posterior:
            def of_picture(level: np.ndarray) -> Any:
                own = level[index if len(level) > 1 else 0]
                return own.item() if own.shape == (1, 1) and own.dtype != bool else own

            return _in_tiles(self.engine, seen[index], damage.mapped(of_picture))

        each = threads.each(one_of, range(len(seen)))
        whole = {name: np.concatenate([getattr(one, name) for one in each]) for name in _PER_PICTURE}
        return replace(each[0], **whole)  # type: ignore[arg-type]

    def posterior(self, picture: Observed, watch: Watch) -> Posterior:
        """The posterior of one picture of any size, block by block where it is large."""
        header, (height, width) = self.engine.description, picture.shape
        blocks = [] if picture.shape == header.image_shape else blocks_of(picture.shape, header)
        if len(blocks) < 2:
            return self.solve(picture.values()[None], picture.damage.mapped(lambda values: values[None]))
        precision = np.float32 if height * width <= MANY else np.float16
        means, variances = np.empty((2, 1, height, width), precision)
        parts, done = [], 0
        for block in blocks:
            around = picture.part(*block.around)
            told = around.damage.mapped(lambda values: values[None])
            part = self.solve(around.values()[None], told)
            for whole, values in ((means, part.means), (variances, part.variances)):
                whole[0][block.core] = values[0][block.inner]
            parts.append(replace(part, means=part.means[:, :0], variances=part.variances[:, :0]))
            done += means[0][block.core].size
            watch(done / (height * width))

        def over(name: str, together: Callable[[np.ndarray], np.ndarray] = np.max) -> np.ndarray:
            return np.atleast_1d(together(np.concatenate([getattr(part, name) for part in parts])))

        counts = over("tiles", np.sum), over("unsettled", np.sum)
        return Posterior(means, variances, over("iterations"), over("residual"), *counts, over("blind"), np.zeros(1))


def _in_tiles(engine: PictureEngine, seen: np.ndarray, damage: Damage) -> Posterior:
    """The posterior of one picture (H, W) as the mixture of what its tiles say."""
    header = engine.description
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
    solve = _marginals if header.kind.photographs else _distinct
    found = solve(engine, tiles, known)
    means, variances = (part[0].reshape(tiles.shape) for part in (found.means, found.variances))
    sound = found.status != Status.DIVERGED
    mean = cover.crop(cover.mean(means, sound))
    square = cover.crop(cover.mean(variances + means**2, sound))
    return Posterior(
        mean[None],
        (square - mean**2)[None],
        found.iterations.max(keepdims=True),
        np.max(found.residual, initial=0, where=np.isfinite(found.residual), keepdims=True),
        np.array([cover.count]),
        np.array([(found.status != Status.CONVERGED).sum()]),
        np.array([blind]),
        np.zeros(1),
    )


def _marginals(engine: PictureEngine, tiles: np.ndarray, damage: Damage) -> Marginals:
    """The marginals of the pixels of tiles (N, h, w)."""
    found, _ = engine.marginals(tiles, damage)
    return replace(found, means=found.means[:1], variances=found.variances[:1])


def _distinct(engine: PictureEngine, tiles: np.ndarray, damage: Damage) -> Marginals:
    """The same, but tiles that are all the same are solved once."""
    parts = [part for part in (tiles, damage.hidden, damage.p) if isinstance(part, np.ndarray) and part.ndim == 3]
    keys: dict[bytes, int] = {}
    same = np.array([keys.setdefault(b"".join(map(bytes, each)), len(keys)) for each in zip(*parts, strict=True)])
    if len(keys) == len(same):
        return _marginals(engine, tiles, damage)
    _, first = np.unique(same, return_index=True)
    few = damage.mapped(lambda values: values[first] if len(values) > 1 else values)
    return _marginals(engine, tiles[first], few).rows(same)


def _in_parts(engine: PictureEngine, seen: np.ndarray, damage: Damage) -> Posterior:
    """The posterior under a prior to which all places are alike: of overlapping parts that suit the engine."""
    count, height, width = seen.shape
    parts = parts_of((height, width), engine.part)

    def cut(values: np.ndarray) -> np.ndarray:
        if values.shape[1:] == (1, 1):
            return np.repeat(values, len(parts), 0) if len(values) > 1 else values
        return np.stack([image[part.around] for image in values for part in parts])

    small, told = cut(seen), damage.mapped(cut)
    # One number for all, so that a picture gets the same answer alone and in a batch.
    doubtful = 1.0 if damage.touched else HOLES
    found, _ = engine.of_size((small.shape[1], small.shape[2]), doubtful).marginals(small, told)
    means, variances = np.empty(seen.shape, np.float32), np.empty(seen.shape, np.float32)
    for whole, values in ((means, found.means[0]), (variances, found.variances[0])):
        for index, image in enumerate(values.reshape(count, len(parts), *small.shape[1:])):
            for part, answer in zip(parts, image, strict=True):
                whole[index][part.core] = answer[part.inner]
    one = Posterior.of(found, small.shape, count, told.hidden)
    return replace(one, means=means, variances=variances)
