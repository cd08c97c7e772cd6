"""Tiles: where they lie, how they are mixed, and the picture that comes of them."""

from __future__ import annotations

import itertools
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from enumerated import SHAPE, ExactEngine, Table, small_machine
from hypothesis import given, settings
from hypothesis import strategies as st
from test_blocks import alike, answer, noisy, tiled

from restore.channels.damage import Damage, Observed
from restore.couplings import Dense
from restore.fields import Fields
from restore.inference import torch_engine
from restore.inference.candidates import Prior
from restore.inference.engine import Posterior
from restore.inference.tiles import blend
from restore.inference.tiles.blocks import PAGE_BEYOND
from restore.inference.tiles.grid import Axis, Cover
from restore.priors import RBM, ConvolutionalDBM
from restore.registry import LEVELS
from restore.solvers import TAP
from restore.status import Status
from restore.zoo import describe, find
from restore.zoo.inference import Effort

MACHINE = small_machine()
TABLE = Table.of(MACHINE, SHAPE)


def pixels(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2, shape).astype(float)


# --- tiles ---


def test_tiles_side_by_side_are_restored_each_by_itself() -> None:
    picture = pixels(6, 8)
    posterior = answer(ExactEngine.of(MACHINE, SHAPE), Observed(picture, Damage(0.2)))
    for top, left in product((0, 3), (0, 4)):
        where = (slice(top, top + 3), slice(left, left + 4))
        wanted = TABLE.posterior(picture[where], np.zeros(SHAPE, bool), 0.2, 0.2)
        np.testing.assert_allclose(posterior.means[0][where], wanted, atol=1e-6)
        np.testing.assert_allclose(posterior.variances[0][where], wanted * (1 - wanted), atol=1e-6)
    assert posterior.tiles[0] == 4 and posterior.status[0] == Status.CONVERGED


def test_tiles_that_overlap_are_mixed() -> None:
    """Mean and variance are those of a mixture of what all tiles with a pixel say of it."""
    picture = pixels(3, 6)
    posterior = answer(ExactEngine.of(MACHINE, SHAPE, overlap=2), Observed(picture, Damage(0.2)))
    padded, hidden = (
        np.pad(picture, ((2, 2), (2, 2))),
        np.pad(np.zeros(picture.shape, bool), ((2, 2), (2, 2)), constant_values=True),
    )
    means = []
    # Three rows are one tile high, so that tiles begin with the picture there.
    for left in (0, 2, 4, 6):
        where = (slice(2, 5), slice(left, left + 4))
        padded_mean = np.full((3, 10), np.nan)
        if left + 4 <= 10:
            padded_mean[:, left : left + 4] = TABLE.posterior(padded[where], hidden[where], 0.2, 0.2)
            means.append(padded_mean[:, 2:8])
    mean = np.nanmean(means, 0)
    np.testing.assert_allclose(posterior.means[0], mean, atol=1e-6)
    np.testing.assert_allclose(posterior.variances[0], mean - mean**2, atol=1e-6)


def test_a_picture_smaller_than_a_tile_lies_in_the_middle_of_one_that_is_hidden_around_it() -> None:
    picture = pixels(1, 2)
    hidden, padded = np.ones(SHAPE, bool), np.zeros(SHAPE)
    hidden[1, 1:3], padded[1, 1:3] = False, picture
    wanted = TABLE.posterior(padded, hidden, 0.1, 0.1)[1:2, 1:3]
    posterior = answer(ExactEngine.of(MACHINE, SHAPE), Observed(picture, Damage(0.1)))
    np.testing.assert_allclose(posterior.means[0], wanted, atol=1e-6)


def test_several_pictures_are_restored_as_each_alone() -> None:
    engine, pictures = tiled(), pixels(3, 7, 9)
    damage = Damage(np.array([0.05, 0.1, 0.3])[:, None, None], hidden=pixels(3, 7, 9, seed=1) > 0)
    together = Prior(engine).solve(pictures, damage)
    for row in range(3):
        alone = Prior(engine).solve(pictures[row : row + 1], damage.mapped(lambda level, row=row: level[row : row + 1]))
        np.testing.assert_allclose(together.means[row], alone.means[0], atol=1e-6)
        assert together.tiles[row] == alone.tiles[0]


def test_a_hole_around_which_no_tile_sees_anything_is_told_of() -> None:
    hidden = np.zeros((20, 20), bool)
    hidden[4:16, 4:16] = True
    for engine in (tiled(), tiled(replace(tiled().header, overlap=2))):
        posterior = answer(engine, Observed(pixels(20, 20), Damage(0.1, hidden=hidden)))
        assert posterior.blind[0] and np.isfinite(posterior.means).all()
    hidden[6:] = False
    assert not answer(tiled(), Observed(pixels(20, 20), Damage(0.1, hidden=hidden))).blind[0]


def test_tiles_that_are_the_same_are_solved_once() -> None:
    """Two pairs of tiles look alike, and of one of them other pixels are hidden."""
    picture, hidden = np.tile(pixels(3, 4), (1, 4)), np.zeros((3, 16), bool)
    picture[:, 8:] = 1 - picture[:, 8:]
    hidden[0, 12] = True
    engine = ExactEngine.of(MACHINE, SHAPE)
    posterior = answer(engine, Observed(picture, Damage(0.2, hidden=hidden)))
    assert [len(tiles) for tiles, _ in engine.calls] == [3] and posterior.tiles[0] == 4
    for left in range(0, 16, 4):
        where = np.s_[:, left : left + 4]
        wanted = TABLE.posterior(picture[where], hidden[where], 0.2, 0.2)
        np.testing.assert_allclose(posterior.means[0][where], wanted, atol=1e-6)


def test_a_tile_without_an_answer_does_not_count_where_others_have_one() -> None:
    """Of four tiles that half overlap the second one diverges."""
    picture = Observed(pixels(3, 6), Damage(0.2))

    class Breaking(ExactEngine):
        def solve(self, pictures: np.ndarray, damage: Damage, effort: Effort = "full") -> Posterior:
            posterior, broken = super().solve(pictures, damage, effort), np.arange(len(pictures)) == 1
            means = np.where(broken[:, None, None], np.nan, posterior.means)
            return replace(posterior, means=means, unsettled=broken.astype(int))

    whole = answer(ExactEngine.of(MACHINE, SHAPE, overlap=2), picture)
    posterior = answer(Breaking.of(MACHINE, SHAPE, overlap=2), picture)
    assert whole.unsettled[0] == 0 and posterior.unsettled[0] == 1
    assert np.isfinite(posterior.means).all() and not np.allclose(posterior.means, whole.means)


def test_a_picture_converges_if_nearly_all_of_its_tiles_do() -> None:
    engine = ExactEngine.of(MACHINE, SHAPE)
    assert answer(replace(engine, status=Status.MAX_ITER), noisy(6, 8)).status[0] == Status.MAX_ITER
    assert answer(replace(engine, status=Status.DIVERGED), noisy(6, 8)).status[0] == Status.DIVERGED
    posterior = answer(engine, noisy(6, 8))
    many = replace(posterior, tiles=np.array([1000]))
    assert replace(many, unsettled=np.array([10])).status[0] == Status.CONVERGED
    assert replace(many, unsettled=np.array([11])).status[0] == Status.MAX_ITER


# --- a picture as a whole ---


@pytest.mark.parametrize("shape", [(1, 1), (3, 4), (9, 7)], ids=str)
def test_a_convolutional_prior_is_the_machine_of_the_pictures_size(shape: tuple[int, int]) -> None:
    picture, p = pixels(*shape), 0.2
    shared = alike().trained.machine
    assert isinstance(shared, ConvolutionalDBM)
    machine = alike().trained.of_size(shape).machine.to(torch.float64)
    # The same machine with a matrix, which knows of no places.
    dense = RBM(machine.layers, (Dense(machine.couplings[0].matrix),))
    evidence = torch.from_numpy((2 * picture - 1) * np.log((1 - p) / p)).reshape(1, -1)
    wanted = TAP(max_iter=500, tol=1e-6, damping=0.3).solve(
        dense.tilt(Fields(evidence)), torch.full((1, picture.size), 0.4, dtype=torch.float64)
    )
    posterior = answer(alike(), Observed(picture, Damage(p)))
    np.testing.assert_allclose(posterior.means[0], wanted.means[0].reshape(shape), atol=1e-4)
    np.testing.assert_allclose(posterior.variances[0], wanted.variances[0].reshape(shape), atol=1e-4)


def test_a_part_without_anything_visible_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_engine, "PART_SIDE", 20)
    hidden = np.zeros((90, 20), bool)
    for first, blind in ((60, False), (30, True)):
        hidden[first:] = True
        assert answer(alike(), Observed(pixels(90, 20), Damage(0.1, hidden=hidden))).blind[0] == blind


class MeanOf:
    """An engine that answers with all that it is given, and counts the tiles."""

    def __init__(self) -> None:
        self.counts: list[int] = []

    def solve(self, pictures: np.ndarray, damage: Damage, effort: Effort = "full") -> Posterior:
        self.counts.append(len(pictures))
        means = pictures + sum(np.asarray(damage.known(name)) for name in LEVELS)
        return Posterior.of_pixels(means if damage.hidden is None else means - damage.hidden, 0 * means)


def test_tiles_are_equal_only_if_all_that_is_known_of_them_is() -> None:
    tiles, level = np.ones((3, *SHAPE)), np.array([0.05, 0.5, 0.05]).reshape(3, 1, 1)
    alone = np.zeros((3, *SHAPE), bool)
    alone[1, 0, 0] = True
    for damage in (Damage(p=level), Damage(sigma=level), Damage(p=0.1, hidden=alone)):
        engine = MeanOf()
        posterior = blend._distinct(engine, tiles, damage, "full")
        assert np.array_equal(posterior.means, engine.solve(tiles, damage).means)
        assert engine.counts == [2, 3]


# --- pages ---


class Corners:
    """An engine that answers every page with itself, and keeps the shapes it saw."""

    part = 64

    def __init__(self) -> None:
        self.header = describe(find("conv-scan"))
        self.seen: list[tuple[int, ...]] = []

    def solve(self, pictures: np.ndarray, damage: Damage, effort: Effort = "full") -> Posterior:
        self.seen.append(pictures.shape[1:])
        layers = [[pictures.reshape(len(pictures), -1)] for _ in range(2)]
        zeros = np.zeros(len(pictures))
        return Posterior.solved(pictures, damage, layers, [zeros + Status.CONVERGED, zeros, zeros], zeros)


@pytest.mark.parametrize("shape", [(1, 1), (7, 9), (128, 128), (200, 333), (350, 51)])
def test_a_page_is_read_in_whole_steps_and_mirrored_beyond_its_borders(shape: tuple[int, int]) -> None:
    engine, page = Corners(), np.random.default_rng(0).random((1, *shape))
    result = blend.solved(engine, page, Damage(), "full")
    np.testing.assert_allclose(result.means, page, atol=1e-6)
    step = engine.header.step
    assert step == 8 and all(side % step == 0 and side >= 2 * PAGE_BEYOND for seen in engine.seen for side in seen)


sides = st.integers(1, 40)
axes = st.tuples(sides, st.integers(1, 12), st.integers(1, 12)).map(lambda one: Axis(one[0], one[1], min(one[1:])))


@given(axes)
def test_windows_reach_from_before_the_image_to_behind_it_and_none_lies_outside(axis: Axis) -> None:
    starts = np.arange(axis.count) * axis.stride - axis.before
    assert starts[0] <= 0 and starts[-1] + axis.window >= axis.size
    assert (starts + axis.window > 0).all() and (starts < axis.size).all()
    assert axis.before >= 0 and axis.after >= 0


@given(sides, st.integers(1, 4), st.integers(1, 4))
def test_every_pixel_lies_in_equally_many_windows_where_the_stride_divides_them(
    size: int, stride: int, overlap: int
) -> None:
    window = stride * overlap
    cover = Cover.of((size, 1), (window, 1), overlap)
    count = cover.crop(cover.add(np.ones((cover.count, window, 1))))
    assert (count == (1 if size <= window else overlap)).all()


@settings(deadline=None)
@given(sides, sides, st.integers(1, 9), st.integers(1, 9), st.integers(1, 4), st.integers(0, 99))
def test_the_mean_of_windows_is_the_image_they_were_cut_out_of(
    height: int, width: int, tall: int, wide: int, overlap: int, seed: int
) -> None:
    image = np.random.default_rng(seed).integers(0, 100, (height, width)).astype(float)
    cover = Cover.of(image.shape, (tall, wide), overlap)
    windows = cover.cut(image, 0.0)
    assert windows.shape == (cover.count, tall, wide)
    count = cover.add(np.ones(windows.shape))
    assert np.array_equal(cover.crop(cover.add(windows)), image * cover.crop(count))
    # Cutting and adding are adjoint: <cut(x), y> = <x, add(y)>.
    other = np.random.default_rng(seed + 1).integers(0, 100, windows.shape).astype(float)
    padded = np.pad(image, ((cover.down.before, cover.down.after), (cover.across.before, cover.across.after)))
    assert (windows * other).sum() == (padded * cover.add(other)).sum()


def test_outside_is_what_was_asked_for() -> None:
    cover = Cover.of((2, 2), (4, 4), 2)
    image = np.arange(4.0).reshape(2, 2)
    assert cover.cut(image, -1.0)[0].tolist() == [[-1, -1, -1, -1], [-1, 0, 1, -1], [-1, 2, 3, -1], [-1, -1, -1, -1]]
    assert cover.cut(image, "edge")[0].tolist() == [[0, 0, 1, 1], [0, 0, 1, 1], [2, 2, 3, 3], [2, 2, 3, 3]]


def test_windows_within_an_image_begin_with_it_and_end_less_than_a_stride_behind() -> None:
    for size, window, stride in itertools.product(range(1, 30), (4, 7), (1, 2, 3)):
        axis = Axis(size, window, stride, within=True)
        if size > window:
            assert axis.before == 0 and 0 <= axis.after < stride
