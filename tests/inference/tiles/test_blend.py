"""The posterior of pictures of any size: tiles, and pictures as a whole."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from enumerated import SHAPE, ExactEngine, Table, small_machine
from test_blocks import alike, answer, noisy, tiled

from restore.channels.damage import Damage, Observed
from restore.couplings import Dense
from restore.fields import Fields
from restore.inference import torch_engine
from restore.inference.candidates import Prior
from restore.inference.engine import Posterior
from restore.marginals import Status
from restore.priors import RBM, ConvolutionalRBM
from restore.solvers import TAP
from restore.zoo.inference import Effort

MACHINE = small_machine()
TABLE = Table.of(MACHINE, SHAPE)


def pixels(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2, shape).astype(float)


# --- tiles ---


def test_tiles_side_by_side_are_restored_each_by_itself() -> None:
    seen = pixels(6, 8)
    found = answer(ExactEngine.of(MACHINE, SHAPE), Observed(seen, Damage(0.2)))
    for top, left in product((0, 3), (0, 4)):
        where = (slice(top, top + 3), slice(left, left + 4))
        wanted = TABLE.posterior(seen[where], np.zeros(SHAPE, bool), 0.2, 0.2)
        np.testing.assert_allclose(found.means[0][where], wanted, atol=1e-6)
        np.testing.assert_allclose(found.variances[0][where], wanted * (1 - wanted), atol=1e-6)
    assert found.tiles[0] == 4 and found.status[0] == Status.CONVERGED


def test_tiles_that_overlap_are_mixed() -> None:
    """Mean and variance are those of a mixture of what all tiles with a pixel say of it."""
    seen = pixels(3, 6)
    found = answer(ExactEngine.of(MACHINE, SHAPE, overlap=2), Observed(seen, Damage(0.2)))
    padded, hidden = (
        np.pad(seen, ((2, 2), (2, 2))),
        np.pad(np.zeros(seen.shape, bool), ((2, 2), (2, 2)), constant_values=True),
    )
    means = []
    # Three rows are one tile high, so that tiles begin with the picture there.
    for left in (0, 2, 4, 6):
        where = (slice(2, 5), slice(left, left + 4))
        each = np.full((3, 10), np.nan)
        if left + 4 <= 10:
            each[:, left : left + 4] = TABLE.posterior(padded[where], hidden[where], 0.2, 0.2)
            means.append(each[:, 2:8])
    mean = np.nanmean(means, 0)
    np.testing.assert_allclose(found.means[0], mean, atol=1e-6)
    np.testing.assert_allclose(found.variances[0], mean - mean**2, atol=1e-6)


def test_a_picture_smaller_than_a_tile_lies_in_the_middle_of_one_that_is_hidden_around_it() -> None:
    seen = pixels(1, 2)
    hidden, padded = np.ones(SHAPE, bool), np.zeros(SHAPE)
    hidden[1, 1:3], padded[1, 1:3] = False, seen
    wanted = TABLE.posterior(padded, hidden, 0.1, 0.1)[1:2, 1:3]
    found = answer(ExactEngine.of(MACHINE, SHAPE), Observed(seen, Damage(0.1)))
    np.testing.assert_allclose(found.means[0], wanted, atol=1e-6)


def test_several_pictures_are_restored_as_each_alone() -> None:
    engine, seen = tiled(), pixels(3, 7, 9)
    damage = Damage(np.array([0.05, 0.1, 0.3])[:, None, None], hidden=pixels(3, 7, 9, seed=1) > 0)
    together = Prior(engine).solve(seen, damage)
    for row in range(3):
        alone = Prior(engine).solve(seen[row : row + 1], damage.mapped(lambda level, row=row: level[row : row + 1]))
        np.testing.assert_allclose(together.means[row], alone.means[0], atol=1e-6)
        assert together.tiles[row] == alone.tiles[0]


def test_a_hole_around_which_no_tile_sees_anything_is_told_of() -> None:
    hidden = np.zeros((20, 20), bool)
    hidden[4:16, 4:16] = True
    for engine in (tiled(), tiled(replace(tiled().header, overlap=2))):
        found = answer(engine, Observed(pixels(20, 20), Damage(0.1, hidden=hidden)))
        assert found.blind[0] and np.isfinite(found.means).all()
    hidden[6:] = False
    assert not answer(tiled(), Observed(pixels(20, 20), Damage(0.1, hidden=hidden))).blind[0]


def test_tiles_that_are_the_same_are_solved_once() -> None:
    """Two pairs of tiles look alike, and of one of them other pixels are hidden."""
    seen, hidden = np.tile(pixels(3, 4), (1, 4)), np.zeros((3, 16), bool)
    seen[:, 8:] = 1 - seen[:, 8:]
    hidden[0, 12] = True
    engine = ExactEngine.of(MACHINE, SHAPE)
    found = answer(engine, Observed(seen, Damage(0.2, hidden=hidden)))
    assert [len(tiles) for tiles, _ in engine.calls] == [3] and found.tiles[0] == 4
    for left in range(0, 16, 4):
        where = np.s_[:, left : left + 4]
        wanted = TABLE.posterior(seen[where], hidden[where], 0.2, 0.2)
        np.testing.assert_allclose(found.means[0][where], wanted, atol=1e-6)


def test_a_tile_without_an_answer_does_not_count_where_others_have_one() -> None:
    """Of four tiles that half overlap the second one diverges."""
    picture = Observed(pixels(3, 6), Damage(0.2))

    class Breaking(ExactEngine):
        def solve(self, pictures: np.ndarray, damage: Damage, effort: Effort = "full") -> Posterior:
            found, broken = super().solve(pictures, damage, effort), np.arange(len(pictures)) == 1
            means = np.where(broken[:, None, None], np.nan, found.means)
            return replace(found, means=means, unsettled=broken.astype(int))

    whole = answer(ExactEngine.of(MACHINE, SHAPE, overlap=2), picture)
    found = answer(Breaking.of(MACHINE, SHAPE, overlap=2), picture)
    assert whole.unsettled[0] == 0 and found.unsettled[0] == 1
    assert np.isfinite(found.means).all() and not np.allclose(found.means, whole.means)


def test_a_picture_converges_if_nearly_all_of_its_tiles_do() -> None:
    engine = ExactEngine.of(MACHINE, SHAPE)
    assert answer(replace(engine, status=Status.MAX_ITER), noisy(6, 8)).status[0] == Status.MAX_ITER
    assert answer(replace(engine, status=Status.DIVERGED), noisy(6, 8)).status[0] == Status.DIVERGED
    found = answer(engine, noisy(6, 8))
    many = replace(found, tiles=np.array([1000]))
    assert replace(many, unsettled=np.array([10])).status[0] == Status.CONVERGED
    assert replace(many, unsettled=np.array([11])).status[0] == Status.MAX_ITER


# --- a picture as a whole ---


@pytest.mark.parametrize("shape", [(1, 1), (3, 4), (9, 7)], ids=str)
def test_a_convolutional_prior_is_the_machine_of_the_pictures_size(shape: tuple[int, int]) -> None:
    seen, p = pixels(*shape), 0.2
    shared = alike().trained.machine
    assert isinstance(shared, ConvolutionalRBM)
    machine = alike().trained.of_size(shape).machine.to(torch.float64)
    # The same machine with a matrix, which knows of no places.
    dense = RBM(machine.layers, (Dense(machine.couplings[0].matrix),))
    evidence = torch.from_numpy((2 * seen - 1) * np.log((1 - p) / p)).reshape(1, -1)
    wanted = TAP(max_iter=500, tol=1e-6, damping=0.3).solve(
        dense.tilt(Fields(evidence)), torch.full((1, seen.size), 0.4, dtype=torch.float64)
    )
    found = answer(alike(), Observed(seen, Damage(p)))
    np.testing.assert_allclose(found.means[0], wanted.means[0].reshape(shape), atol=1e-4)
    np.testing.assert_allclose(found.variances[0], wanted.variances[0].reshape(shape), atol=1e-4)


def test_a_part_without_anything_visible_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_engine, "PART", 20)
    hidden = np.zeros((90, 20), bool)
    for first, blind in ((60, False), (30, True)):
        hidden[first:] = True
        assert answer(alike(), Observed(pixels(90, 20), Damage(0.1, hidden=hidden))).blind[0] == blind
