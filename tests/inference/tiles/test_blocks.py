"""Blocks of a large picture: they part it, and leave no trace."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from kernels import card
from machines import random_pyramid, random_rbm

from restore.channels.damage import Damage, Observed
from restore.families import Features, Spec
from restore.inference import torch_engine
from restore.inference.candidates import Prior
from restore.inference.engine import Posterior
from restore.inference.tiles import blocks
from restore.inference.tiles.blocks import PART_SIDE, blocks_of, parts_of
from restore.inference.torch_engine import Engine
from restore.priors import ConvolutionalDBM
from restore.zoo import TrainedPrior, describe, find
from restore.zoo.description import Description
from restore.zoo.inference import Inference

SETTINGS = Inference(max_iter=500, tol=1e-6, damping=0.3, modes=0, starts=1)
TILES = Description("small", (4, 4), 127, "", "", inference=SETTINGS, hidden=3)
ANY_SIZE = Spec(family="deep_convolutional", layers=(Features(2, 3, 1, "spin"),))
ALIKE = Description("alike", (6, 5), 127, "", "", inference=SETTINGS, **vars(ANY_SIZE))
NO_MODES = torch.zeros(0, 4, dtype=torch.uint8)


def tiled(header: Description = TILES) -> Engine:
    prior = TrainedPrior(header, random_rbm(16, 3, scale=1.0, bias=0.3, seed=1, dtype=torch.float32),
                         torch.linspace(0.3, 0.6, 16), NO_MODES)  # fmt: skip
    return Engine.of(prior, torch.device("cpu"))


def alike() -> Engine:
    shared = random_pyramid(1, 2, side=3, stride=1, scale=0.2, seed=3)
    shared = {name: value.float() for name, value in shared.items()}
    prior = TrainedPrior(ALIKE, ConvolutionalDBM.of(shared, (6, 5), [(1, "spin")]), torch.full((30,), 0.4), NO_MODES)
    return Engine.of(prior, torch.device("cpu"))


def noisy(*shape: int) -> Observed:
    draw = np.random.default_rng(1)
    damage = Damage(draw.uniform(0.05, 0.3, shape), hidden=draw.random(shape) < 0.2)
    return Observed(draw.integers(0, 2, shape).astype(float), damage)


def answer(engine: Engine, picture: Observed, invert: bool = False) -> Posterior:
    return Prior(engine, invert).posterior(picture, lambda share: None)


@pytest.mark.parametrize(
    ("overlap", "shape"),
    [(1, (50, 2)), (2, (3, 50)), *(pytest.param(each, (19, 23), marks=pytest.mark.thorough) for each in (1, 2, 3))],
    ids=str,
)
def test_blocks_of_tiles_leave_no_trace(overlap: int, shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    engine = tiled(replace(TILES, overlap=overlap))
    whole = answer(engine, noisy(*shape), invert=True)
    monkeypatch.setattr(blocks, "TILES", 4)
    assert len(blocks_of(shape, engine.header)) > 1
    parts = answer(engine, noisy(*shape), invert=True)
    # The same tiles in other batches, in single precision.
    np.testing.assert_allclose(parts.means, whole.means, atol=1e-4)
    np.testing.assert_allclose(parts.variances, whole.variances, atol=1e-4)
    assert parts.means.dtype == np.float32


def test_blocks_of_a_convolutional_prior_leave_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    picture, shares = noisy(150, 130), []
    whole = answer(alike(), picture)
    monkeypatch.setattr(blocks, "CORE_SIDE", 20)
    assert len(blocks_of(picture.shape, ALIKE)) == 20
    parts = Prior(alike()).posterior(picture, shares.append)
    # What a pixel hears of another falls by a factor for each place between them, and 32 lie in between.
    np.testing.assert_allclose(parts.means, whole.means, atol=1e-4)
    assert shares == sorted(shares) and shares[-1] == 1 and len(shares) == 20
    assert (parts.tiles[0], whole.tiles[0]) == (20, 1)


@pytest.mark.parametrize("shape", [(1, 1), (100, 100), (31, 2000), (1500, 1300)], ids=str)
@pytest.mark.parametrize("header", [TILES, replace(TILES, overlap=2), ALIKE], ids=["tiles", "overlap", "alike"])
def test_blocks_part_a_picture(header: Description, shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "TILES", 32)
    count = np.zeros(shape, int)
    for block in blocks_of(shape, header):
        count[block.core] += 1
        rows = np.arange(shape[0])
        # A pixel depends on the tiles that hold it; of a whole picture on what is near.
        side = header.image_shape[0]
        reach = blocks.CORE_MARGIN if header.whole else side - side // header.overlap
        assert block.around[0].start <= max(0, block.core[0].start - reach)
        assert block.around[0].stop >= min(shape[0], block.core[0].stop + reach)
        np.testing.assert_array_equal(rows[block.around[0]][block.inner[0]], rows[block.core[0]])
    assert (count == 1).all()


def layered(*strides: int, header: Description = ALIKE) -> Description:
    """The header of a prior whose layers have these strides."""
    return replace(header, layers=tuple(Features(1, stride, stride, "spin") for stride in strides))


@pytest.mark.parametrize(("strides", "margin"), [((1,), 16), ((1, 2, 2), 16), ((1, 2, 4), 32), ((2, 2, 2, 2), 64)])
@pytest.mark.parametrize("size", [1, 40, 159, 160, 161, 300, 1000])
def test_parts_are_equal_and_share_an_image(size: int, strides: tuple[int, ...], margin: int) -> None:
    parts = parts_of((size, 30), layered(*strides))
    counts = np.zeros((size, 30), int)
    for part in parts:
        counts[part.core] += 1
        assert counts[part.around].shape == counts[parts[0].around].shape
        core, around = part.core[0], part.around[0]
        assert around.start == 0 or core.start - around.start >= margin
        assert around.stop == size or around.stop - core.stop >= margin
        assert 0 <= around.start < around.stop <= size
        np.testing.assert_array_equal(np.arange(size)[around][part.inner[0]], np.arange(size)[core])
    assert (counts == 1).all()
    assert len(parts) == max(1, -(-(size - 2 * margin) // (PART_SIDE * strides[0])))


@pytest.mark.parametrize(("strides", "margin"), [((1, 2), 16), ((1, 2, 2, 2), 64), ((2, 2, 2), 64)])
@pytest.mark.parametrize("steps", [1, 5, 25, 88, 89, 250])
def test_parts_of_a_page_begin_no_step_that_they_do_not_end(steps: int, strides: tuple[int, ...], margin: int) -> None:
    header = layered(*strides, header=describe(find("conv-scan")))
    step = 2 * header.step  # it is read at half its size, too
    size = steps * step
    counts = np.zeros((size, 40), int)
    for part in parts_of((size, 40), header):
        counts[part.core] += 1
        assert part.around[0].start % step == part.around[0].stop % step == 0
        core, around = part.core[0], part.around[0]
        assert around.start == 0 or core.start - around.start >= margin
        assert around.stop == size or around.stop - core.stop >= margin
        assert 0 <= around.start < around.stop <= size
    assert (counts == 1).all()


def test_a_gpu_takes_larger_parts_and_keeps_hidden_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a prior of any size nobody asks for hidden layers, which are many times as much as the picture."""
    monkeypatch.setattr(torch_engine, "PART_SIDE", 20)
    monkeypatch.setattr(torch_engine, "PART_SIDE_ON_GPU", 40)
    engine = alike()
    with card():
        there = Engine.of(engine.trained, torch.device("cuda"))
        result = answer(there, noisy(90, 75))
    assert int(result.tiles[0]) == 4 and int(answer(engine, noisy(90, 75)).tiles[0]) == 9
    np.testing.assert_allclose(result.means, answer(engine, noisy(90, 75)).means, atol=1e-4)
    own = engine.header.image_shape
    assert not any(engine.solve(noisy(*shape).values()[None], Damage(0.1)).layers for shape in ((7, 9), own))


def test_parts_leave_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    picture = noisy(90, 75)
    whole = answer(alike(), picture)
    monkeypatch.setattr(torch_engine, "PART_SIDE", 20)
    parts = answer(alike(), picture)
    assert (int(whole.tiles[0]), int(parts.tiles[0]), bool(parts.blind[0])) == (1, 9, False)
    np.testing.assert_allclose(parts.means, whole.means, atol=1e-4)
    np.testing.assert_allclose(parts.variances, whole.variances, atol=1e-4)
