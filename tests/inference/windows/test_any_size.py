"""Convolutional priors at the size of the image: in both engines, in blocks, and chosen by what they predict."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from machines import random_features, random_rbm
from restore.inference.explained import Observed
from restore.inference.noise.held_out import FOLDS, LEAST, SURER, folds, foretold, predicted
from restore.inference.windows import blocks
from restore.inference.windows.choosing.sampling import FEW, Crop, sample_of
from restore.inference.windows.choosing.survey import choose
from restore.inference.windows.choosing.ways import Way
from restore.inference.windows.large import restore_large
from restore.inference.windows.regions import CLEAR, LEAD, WIDE, Both
from restore.inference.windows.tally import Tally

from restore.couplings import Dense
from restore.errors import UsageError
from restore.export.packing import beside_weights, standalone
from restore.fields import Fields
from restore.inference.damage import Damage
from restore.inference.onnx.engine import OnnxEngine
from restore.inference.tiles.blend import expected, moments
from restore.inference.tiles.blocks import AROUND, PART, blocks_of, parts_of
from restore.inference.torch_engine import Engine
from restore.marginals import Status
from restore.priors import RBM, ConvolutionalRBM
from restore.priors.convolutional import Shared
from restore.solvers import TAP
from restore.zoo import GRAPH, TrainedPrior, save
from restore.zoo.description import Description
from restore.zoo.inference import Inference
from restore.zoo.tiling import OF_WINDOWS

WINDOW = (6, 5)
SETTINGS = Inference(max_iter=500, tol=1e-6, damping=0.3, modes=0, starts=1)
ABOUT = Description("alike", WINDOW, 2, 127, "nothing", "none", inference=SETTINGS, family="convolutional", kernel=2)


def prior(shared: Shared | None = None, about: Description = ABOUT) -> TrainedPrior:
    shared = random_features(2, 2, scale=0.4, bias=0.3, seed=3) if shared is None else shared
    machine = ConvolutionalRBM.of(shared.to(torch.float32), WINDOW)
    return TrainedPrior(about, machine, torch.full((30,), 0.4), torch.zeros(0, 4, dtype=torch.uint8))


def engine(shared: Shared | None = None, memory: int | None = None, **about: object) -> Engine:
    return Engine.of(prior(shared, replace(ABOUT, **about)), torch.device("cpu"), memory)


def noisy(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2, shape).astype(float)


@pytest.mark.parametrize("shape", [(1, 1), (3, 4), (9, 7)], ids=str)
def test_an_image_is_restored_by_the_machine_of_its_size(shape: tuple[int, int]) -> None:
    image, p = noisy(*shape), 0.2
    machine = ConvolutionalRBM.of(random_features(2, 2, scale=0.4, bias=0.3, seed=3), shape)
    # The same machine with a matrix, which knows of no places.
    dense = RBM(machine.layers, (Dense(machine.couplings[0].matrix),))
    evidence = torch.from_numpy((2 * image - 1) * np.log((1 - p) / p)).reshape(1, -1)
    found = TAP(max_iter=500, tol=1e-6, damping=0.3).solve(
        dense.tilt(Fields(evidence)), torch.full((1, image.size), 0.4, dtype=torch.float64)
    )
    means, variances = moments(engine(), image, Damage(p), expected(engine()), Tally())
    np.testing.assert_allclose(means, found.means[0].reshape(shape), atol=1e-4)
    np.testing.assert_allclose(variances, found.variances[0].reshape(shape), atol=1e-4)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("alike")
    save(folder, prior(), "# alike")
    (folder / GRAPH).write_bytes(beside_weights(folder))
    return folder


@pytest.mark.thorough
@pytest.mark.parametrize("shape", [(1, 1), (2, 9), WINDOW, (13, 8)], ids=str)
def test_one_graph_takes_images_of_any_size(exported: Path, shape: tuple[int, int]) -> None:
    images, draw = noisy(3, *shape), np.random.default_rng(2)
    damage = Damage(draw.uniform(0.05, 0.3, (3, *shape)), hidden=draw.random((3, *shape)) < 0.2)
    ours, gain = engine().of_size(shape).marginals(images, damage)
    theirs, their_gain = OnnxEngine.load(exported).of_size(shape).marginals(images, damage)
    for layer in (0, 1):
        np.testing.assert_allclose(theirs.means[layer], ours.means[layer], atol=1e-4)
        np.testing.assert_allclose(theirs.variances[layer], ours.variances[layer], atol=1e-4)
    np.testing.assert_allclose(theirs.log_partition, ours.log_partition, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(their_gain, gain, atol=1e-5)
    # Once more under the size it was trained at.
    assert OnnxEngine.load(exported).description.image_shape == WINDOW


@pytest.mark.thorough
def test_a_graph_by_itself_tells_the_share_of_white(exported: Path, tmp_path: Path) -> None:
    (tmp_path / "alone.onnx").write_bytes(standalone(exported))
    alone = OnnxEngine.load(tmp_path / "alone.onnx")
    np.testing.assert_allclose(alone.pixel_means(), np.full(WINDOW, 0.4), atol=1e-5)


def unsettled() -> TrainedPrior:
    """A prior that has not converged when its iterations are over."""
    return prior(about=replace(ABOUT, inference=replace(SETTINGS, max_iter=3, tol=1e-9)))


def test_what_has_not_converged_is_left_as_the_last_iteration_has_it() -> None:
    image = noisy(2, *WINDOW)
    trained = unsettled()
    found, _ = Engine.of(trained, torch.device("cpu")).marginals(image, Damage(0.2))
    assert found.iterations.tolist() == [3, 3]
    assert found.status.tolist() == [int(Status.MAX_ITER)] * 2
    evidence = torch.from_numpy((2 * image - 1) * np.log(0.8 / 0.2)).reshape(2, -1).float()
    solver, machine = TAP(max_iter=3, tol=0.0, damping=0.3), trained.machine.tilt(Fields(evidence))
    start = torch.sigmoid(torch.logit(torch.full((30,), 0.4)) + evidence)
    wanted = solver.stepped(machine, solver.init(machine, start), 3)[0]
    np.testing.assert_allclose(found.means[0], wanted, atol=1e-6)


@pytest.mark.thorough
def test_no_graph_of_it_is_run_twice(tmp_path: Path) -> None:
    save(tmp_path, unsettled(), "# unsettled")
    (tmp_path / GRAPH).write_bytes(beside_weights(tmp_path))
    image, damage = noisy(2, *WINDOW), Damage(0.2)
    theirs, _ = OnnxEngine.load(tmp_path).marginals(image, damage)
    ours, _ = Engine.of(unsettled(), torch.device("cpu")).marginals(image, damage)
    assert theirs.iterations.tolist() == [3, 3]
    np.testing.assert_allclose(theirs.means[0], ours.means[0], atol=1e-5)


def test_blocks_leave_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    image, rng = noisy(90, 75), np.random.default_rng(1)
    damage = Damage(rng.uniform(0.05, 0.3, image.shape), hidden=[rng.random(image.shape) < 0.1])
    _, whole = restore_large([engine()], image, damage)
    monkeypatch.setattr(blocks, "SIDE", 20)
    assert len(list(blocks_of(image.shape, ABOUT, None))) == 20
    _, parts = restore_large([engine()], image, damage)
    # What a pixel hears of another falls by a factor for each place between them, and 32 lie in between.
    np.testing.assert_allclose(parts.means, whole.means, atol=1e-4)
    assert not any("windows" in note for note in whole.notes)


@pytest.mark.parametrize("size", [1, 40, 159, 160, 161, 300, 1000])
def test_parts_are_equal_and_share_an_image(size: int) -> None:
    parts = parts_of((size, 30))
    counts = np.zeros((size, 30), int)
    for part in parts:
        counts[part.core] += 1
        assert np.zeros((size, 30))[part.around].shape == np.zeros((size, 30))[parts[0].around].shape
        core, around = part.core[0], part.around[0]
        assert around.start == 0 or core.start - around.start >= AROUND
        assert around.stop == size or around.stop - core.stop >= AROUND
        assert 0 <= around.start < around.stop <= size
        np.testing.assert_array_equal(np.arange(size)[around][part.inner[0]], np.arange(size)[core])
    assert (counts == 1).all()
    assert len(parts) == max(1, -(-(size - 2 * AROUND) // PART))


def test_parts_leave_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    image, rng = noisy(90, 75), np.random.default_rng(1)
    damage = Damage(rng.uniform(0.05, 0.3, image.shape), hidden=rng.random(image.shape) < 0.1)
    whole, parts = Tally(), Tally()
    means, variances = moments(engine(), image, damage, expected(engine()), whole)
    monkeypatch.setattr(blocks, "PART", 20)
    again, spread = moments(engine(), image, damage, expected(engine()), parts)
    assert (whole.windows, parts.windows, parts.blind) == (1, 9, False)
    np.testing.assert_allclose(again, means, atol=1e-4)
    np.testing.assert_allclose(spread, variances, atol=1e-4)


def test_a_part_without_anything_visible_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "PART", 20)
    hidden = np.zeros((90, 20), bool)
    for first, blind in ((60, False), (30, True)):
        hidden[first:] = True
        tally = Tally()
        moments(engine(), noisy(90, 20), Damage(0.1, hidden=hidden), expected(engine()), tally)
        assert tally.blind == blind


def test_little_memory_makes_blocks_small_and_too_little_is_refused() -> None:
    image = noisy(40, 50)
    _, found = restore_large([engine(memory=10**6)], image, Damage(0.1), invert=False)
    _, whole = restore_large([engine()], image, Damage(0.1), invert=False)
    np.testing.assert_allclose(found.means, whole.means, atol=1e-4)
    with pytest.raises(UsageError, match=r"takes alike \d+ bytes; raise --max-memory"):
        restore_large([engine(memory=1000)], image, Damage(0.1), invert=False)


# --- predictions of what is held out ---


def test_every_pixel_is_held_out_once_and_predicted_without_itself() -> None:
    images = noisy(2, *WINDOW)
    seen = Observed(images, Damage(0.1))
    odds = predicted(engine(), seen)
    out = folds(WINDOW).ravel()
    assert set(out.tolist()) == set(range(FOLDS))
    for pixel in (0, 7, 29):
        # Whatever is seen there, or beside it at other pixels that are held out with it.
        other = images.reshape(2, -1).copy()
        other[:, out == out[pixel]] = 1 - other[:, out == out[pixel]]
        again = predicted(engine(), Observed(other.reshape(images.shape), Damage(0.1)))
        np.testing.assert_allclose(again[:, pixel], odds[:, pixel], atol=1e-5)


def test_what_was_seen_is_foretold_by_the_definition() -> None:
    draw = np.random.default_rng(4)
    odds, white = draw.normal(0, 3, 20), draw.random(20) < 0.5
    of_white, of_black = draw.uniform(0.01, 0.4, (2, 20))
    totals = []
    for surer in SURER:
        total = 0.0
        for z, seen, lost, gained in zip(odds, white, of_white, of_black, strict=True):
            ink = 1 / (1 + np.exp(-z / surer))
            shown = ink * (1 - lost) + (1 - ink) * gained
            total += np.log(max(LEAST, shown if seen else 1 - shown))
        totals.append(total)
    assert foretold(odds, white, (of_white, of_black)) == pytest.approx(max(totals))


ALIKE = Shared(torch.full((1, 4), 0.6), torch.tensor([-0.3]), torch.zeros(1))
STRANGER = Description("stranger", (4, 4), 3, 127, "", "", inference=SETTINGS, tiling=OF_WINDOWS)


def stranger() -> Engine:
    """A prior of windows that knows nothing of what an image looks like."""
    machine = random_rbm(16, 3, scale=0.4, bias=0.3, seed=1)
    machine = machine.with_parameters({name: value.float() for name, value in machine.parameters.items()})
    none = torch.zeros(0, 2, dtype=torch.uint8)
    return Engine.of(TrainedPrior(STRANGER, machine, torch.full((16,), 0.5), none), torch.device("cpu"))


@pytest.mark.parametrize("light", [False, True])
def test_a_convolutional_prior_is_chosen_where_it_predicts_better(light: bool) -> None:
    rows, columns = np.mgrid[:64, :64]
    # Mostly black, as the prior expects it, or the opposite.
    disc = ((rows - 30) ** 2 + (columns - 33) ** 2 < 150) ^ light
    image = disc ^ (np.random.default_rng(5).random(disc.shape) < 0.1)
    knowing = engine(ALIKE, hidden=1)
    choice = choose([stranger(), knowing], image.astype(float), Damage(0.1), invert=False)
    assert choice.engine is knowing and choice.invert == light and choice.others == ("stranger",)


@pytest.mark.parametrize(
    ("leads", "chosen", "favoured"),
    [
        ([1, 1, 1, 1, 1, -4.9], "stranger", None),
        ([1, 1, 1, 1, 1, -5.1], "alike", None),
        ([CLEAR - 0.1, 0, 0, 0, 0, -CLEAR - 0.1], "alike", None),
        ([CLEAR + 0.1, 0, 0, 0, 0, -CLEAR - 0.2], "alike", "alike"),
        ([0, CLEAR + 0.2, 0, 0, -CLEAR - 0.1, 0], "stranger", "stranger"),
    ],
)
def test_crops_all_over_an_image_choose_its_prior_or_both(
    leads: list[float], chosen: str, favoured: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = np.random.default_rng(7)
    # Crops side by side, more and more of each: they are known by their richness.
    image = np.concatenate([draw.random((56, 56)) < share for share in np.linspace(0, 0.5, 6)], 1).astype(float)
    crops = sample_of(image, Damage(0.1), WIDE).crops
    assert len(crops) == 6

    def predicted(way: Way, crop: Crop, damage: Damage, folds: Iterable[int]) -> float:
        if way.name == "alike":
            return -100.0
        (place,) = (index for index, each in enumerate(crops) if np.array_equal(each.grey, crop.grey))
        # What one fold leaves open is asked again, and stays open.
        (fold,) = folds
        return -100.0 + leads[place] * (fold == 0) + LEAD * crop.grey.size / FOLDS

    monkeypatch.setattr(Way, "predicted", predicted)
    choice = choose([stranger(), engine(ALIKE, hidden=1)], image, Damage(0.1), invert=False)
    assert choice.engine.description.name == chosen
    assert (choice.prior.favoured.name if isinstance(choice.prior, Both) else None) == favoured


@pytest.mark.thorough
def test_it_is_not_chosen_for_what_others_predict_better() -> None:
    """Under a prior that neighbours differ, a drawing is better predicted by one that knows nothing."""
    rows, columns = np.mgrid[:64, :64]
    disc = (rows - 30) ** 2 + (columns - 33) ** 2 < 400
    image = (disc ^ (np.random.default_rng(5).random(disc.shape) < 0.05)).astype(float)
    unlike = Shared(0.8 * torch.tensor([[1.0, -1.0, -1.0, 1.0]]), torch.zeros(1), torch.zeros(1))
    other = stranger()
    choice = choose([other, engine(unlike, hidden=1)], image, Damage(0.05), invert=False)
    assert choice.engine is other and choice.others == ("alike",)


def test_a_strip_thinner_than_a_cell_has_a_sample(recwarn: pytest.WarningsRecorder) -> None:
    strip = np.zeros((3, 600))
    strip[:, 300:360] = noisy(3, 60)
    crops = sample_of(strip, Damage(0.1), FEW, 56).crops
    # The richest is among them.
    assert max(crop.grey.std() for crop in crops) > 0.3 and not recwarn.list
