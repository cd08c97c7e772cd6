"""Images of another size than the prior's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from machines import random_rbm
from PIL import Image
from restore.inference.pictures import Restored
from restore.inference.windows import blocks, large
from restore.inference.windows.choosing.survey import choose
from restore.inference.windows.large import restore_large

import restore
from restore import zoo
from restore.errors import ModelError, UsageError
from restore.inference.damage import Damage
from restore.inference.onnx.engine import OnnxEngine
from restore.inference.tiles.blend import Turned
from restore.inference.tiles.blocks import blocks_of
from restore.inference.torch_engine import Engine
from restore.zoo.description import Description
from restore.zoo.inference import Inference
from restore.zoo.tiling import OF_WINDOWS, Tiling

ABOUT = Description("small", (4, 4), 3, 127, "nothing", "none", inference=Inference(modes=0, starts=1))


def engine(about: Description = ABOUT, memory: int | None = None) -> Engine:
    machine = random_rbm(16, 3, scale=0.4, bias=0.3, seed=1)
    machine = machine.with_parameters({name: value.float() for name, value in machine.parameters.items()})
    means = torch.linspace(0.3, 0.6, 16)
    prior = zoo.TrainedPrior(about, machine, means, torch.zeros(0, 2, dtype=torch.uint8))
    return Engine.of(prior, torch.device("cpu"), memory)


def noisy(shape: tuple[int, int], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2, shape).astype(float)


def answer(image: np.ndarray, damage: Damage, about: Description = ABOUT, invert: bool = True) -> Restored:
    # Random couplings explain nothing better than independent pixels do, and know no polarity.
    return restore_large([engine(about)], image, damage, force=True, invert=invert)[1]


@pytest.mark.thorough
@pytest.mark.parametrize("tiling", [OF_WINDOWS, Tiling(), Tiling(overlap=3, rounds=2, worth=0.5, least=0.0)])
@pytest.mark.parametrize("shape", [pytest.param((19, 23), marks=pytest.mark.thorough), (3, 50), (50, 2)], ids=str)
def test_blocks_leave_no_trace(tiling: Tiling, shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    about = replace(ABOUT, tiling=tiling, inference=Inference(modes=0, starts=1, tol=1e-6))
    rng = np.random.default_rng(1)
    damage = Damage(rng.uniform(0.05, 0.3, shape), hidden=[rng.random(shape) < 0.2])
    whole = answer(noisy(shape), damage, about)
    monkeypatch.setattr(blocks, "WINDOWS", 16)
    parts = answer(noisy(shape), damage, about)
    assert len(list(blocks_of(shape, about, None))) > 1
    # The same windows in other batches, in single precision.
    np.testing.assert_allclose(parts.means, whole.means, atol=1e-4)
    np.testing.assert_allclose(parts.deviations, whole.deviations, atol=1e-4)


def test_an_image_smaller_than_a_window_lies_in_the_middle_of_one_that_is_hidden_around_it() -> None:
    image = noisy((2, 3))
    hidden = np.ones((4, 4), bool)
    hidden[1:3, :3] = False
    padded = np.zeros((4, 4))
    padded[1:3, :3] = image
    found, _ = engine().marginals(1 - padded[None], Damage(0.1, hidden=hidden[None]))
    wanted = 1 - found.means[0].reshape(4, 4)[1:3, :3]
    np.testing.assert_allclose(answer(image, Damage(0.1)).means, wanted, atol=1e-6)


def test_an_image_is_inverted_if_that_is_more_probable() -> None:
    about = replace(ABOUT, inference=Inference("mean_field", modes=0, starts=1))
    dark = engine(about)
    machine = dark.trained.machine.with_parameters(  # type: ignore[union-attr]
        {name: value * 0 - 2 * ("units.0" in name) for name, value in dark.trained.machine.parameters.items()}  # type: ignore[union-attr]
    )
    mostly_black = replace(dark, trained=replace(dark.trained, machine=machine))  # type: ignore[arg-type]
    image = (np.random.default_rng(0).random((20, 20)) < 0.1).astype(float)
    for given, inverted in ((image, False), (1 - image, True)):
        choice, found = restore_large([mostly_black], given, Damage(0.05))
        assert choice.invert is inverted
        assert any("inverted for it" in note for note in found.notes) is inverted


def test_rates_of_white_and_black_follow_the_polarity() -> None:
    image = noisy((9, 9))
    one = answer(image, Damage.of((0.2, 0.05)))
    other = restore_large([engine()], 1 - image, Damage.of((0.05, 0.2)), force=True)
    turned = replace(other[0], prior=Turned(other[0].engine, False))
    direct = large._restored(turned, 1 - image, lambda share: None)
    np.testing.assert_allclose(one.means, 1 - direct.means, atol=1e-6)


def test_row73_p_of_another_shape_is_refused() -> None:
    with pytest.raises(UsageError, match=r"shape \(4, 4\).*\(9, 9\)"):
        answer(noisy((9, 9)), Damage(np.full((4, 4), 0.1)))


def test_row12_memory_for_less_than_a_window_is_refused() -> None:
    with pytest.raises(UsageError, match=r"a window of small takes \d+ bytes; raise --max-memory"):
        restore_large([engine(memory=100)], noisy((9, 9)), Damage(0.1), force=True, invert=True)
    small = restore_large([engine(memory=20_000)], noisy((9, 9)), Damage(0.1), force=True, invert=True)[1]
    np.testing.assert_allclose(small.means, answer(noisy((9, 9)), Damage(0.1)).means, atol=1e-4)


def test_row73_a_hole_with_nothing_visible_around_is_filled_and_said_so() -> None:
    hidden = np.zeros((20, 20), bool)
    hidden[4:16, 4:16] = True
    found = answer(noisy((20, 20)), Damage(hidden=[hidden]))
    assert np.isfinite(found.means).all()
    assert any("nothing is visible" in note for note in found.notes)
    assert np.array_equal(found.estimate[~hidden], noisy((20, 20))[~hidden])
    hidden[:] = False
    hidden[4:6, 4:16] = True
    assert not any("nothing is visible" in note for note in answer(noisy((20, 20)), Damage(hidden=[hidden])).notes)


@pytest.mark.thorough
def test_results_come_at_the_size_of_each_image() -> None:
    prior = restore.load("tap-mnist", engine="torch")
    stroke = np.zeros((40, 30), bool)
    stroke[5:33, 13:16] = True
    images = [stroke, stroke[:28, :28], stroke[:, :20]]
    found, solution = prior.denoise(images, p=0.02, return_solution=True, force=True)
    assert [one.shape for one in found] == [one.shape for one in images]
    assert [len(means) for means in solution.means[0]] == [one.size for one in images]
    # An image of the prior's own size is restored as it is alone.
    _, alone = prior.denoise(images[1], p=0.02, return_solution=True, force=True)
    np.testing.assert_allclose(solution.means[0][1], alone.means[0][0], rtol=0, atol=1e-6)
    assert solution.status.shape == (3,) and solution.model == "tap-mnist"


@pytest.mark.thorough
def test_level_polarity_and_prior_of_a_page_are_found_by_evidence() -> None:
    """The page is dark on light, and exactly known: 10 % of its pixels were inverted."""
    page = Path(__file__).parents[3] / "assets" / "page-noisy.png"
    _, solution = restore.denoise(page, "tap-text", p="auto", return_solution=True)
    # On the crops the share of inverted pixels has a standard deviation of .003.
    assert solution.noise.chosen[0] == pytest.approx(0.1, abs=0.03) and solution.shortfall[0] == 0
    both = [restore.load(name).engine for name in ("pcd-mnist", "tap-text")]
    pixels = np.asarray(Image.open(page).convert("L")) / 255
    choice = choose(both, pixels[:112, :112], Damage(0.1), invert=False)
    assert choice.engine.description.name == "tap-text" and choice.invert and choice.others == ("pcd-mnist",)


@pytest.mark.thorough
@pytest.mark.parametrize("which", ["onnx", "torch"])
def test_row73_two_digits_side_by_side(which: str) -> None:
    one = np.zeros((28, 28), bool)
    one[5:23, 13:15] = True
    both = np.concatenate([one, np.roll(one, 3, 1)], axis=1)
    noise = np.random.default_rng(0).random(both.shape) < 0.05
    prior = restore.load("tap-mnist", engine=which)  # type: ignore[arg-type]
    found = prior.denoise(both ^ noise, p=0.05)
    assert found.shape == both.shape and (found != both).sum() < noise.sum() / 2


def test_a_conditional_prior_restores_larger_images_in_windows() -> None:
    name = "crbm-bp-mnist-flip10"
    one = np.zeros((28, 40), bool)
    one[5:23, 13:15] = True
    noise = np.random.default_rng(0).random(one.shape) < 0.1
    found = restore.denoise(one ^ noise, name)
    assert found.shape == one.shape and (found != one).sum() < noise.sum()


@pytest.mark.thorough
def test_row72_noise_is_refused_before_it_is_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large, "_restored", lambda *arguments: pytest.fail("restored"))
    with pytest.raises(ModelError, match="explains it no better than"):
        restore.denoise(noisy((60, 60)) > 0, "tap-mnist", p=0.05)


@pytest.mark.thorough
def test_both_engines_know_the_means_of_pixels() -> None:
    own = restore.load("pcd-mnist", engine="torch").engine.pixel_means()
    beside = OnnxEngine.load(zoo.find("pcd-mnist"))
    assert np.array_equal(beside.pixel_means(), own)
    alone = replace(beside, weights=None)
    np.testing.assert_allclose(alone.pixel_means(), own, rtol=1e-4)


def test_batches_on_several_threads_come_back_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = OnnxEngine.load(zoo.find("tap-text"))
    few = replace(loaded, facts=replace(loaded.facts, at_once=2))
    grey = np.random.default_rng(0).integers(0, 2, (11, 16, 16)).astype(float)
    whole, _ = loaded.marginals(grey, Damage(0.1))
    for threads in ("1", "3"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        parts, _ = few.marginals(grey, Damage(0.1))
        np.testing.assert_allclose(parts.means[0], whole.means[0], atol=1e-4)


@pytest.mark.parametrize(
    ("threads", "images", "sizes"),
    [("1", 300, [256, 44]), ("2", 300, [150, 150]), ("2", 700, [256, 256, 188]), ("8", 60, [43, 17]), ("2", 5, [5])],
)
def test_threads_share_what_is_worth_it(
    threads: str, images: int, sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded, run, batches = OnnxEngine.load(zoo.find("tap-text")), OnnxEngine.run, []

    def counted(engine: OnnxEngine, observed: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        batches.append(len(observed["image"]))
        return run(engine, observed)

    monkeypatch.setattr(OnnxEngine, "run", counted)
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    loaded.marginals(np.zeros((images, 16, 16)), Damage(0.1))
    assert sorted(batches, reverse=True) == sizes


def test_large_images_are_restored_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = OnnxEngine.load(zoo.find("conv-shapes"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert [loaded.of_size((side, side))._at_once(9) for side in (32, 64, 256)] == [9, 3, 1]


def test_a_header_keeps_how_images_are_tiled(tmp_path: Path) -> None:
    about = replace(ABOUT, tiling=Tiling(4, 2, 0.5, 1.0))
    assert Description.from_header(about.to_header(), "it") == about
    assert "tiling" not in ABOUT.to_header()
    for wrong in ({"overlap": 0}, {"rounds": 17}, {"worth": 2.0}, {"overlap": 2.5}, {"least": -1.0}, {"other": 1}):
        header = about.to_header() | {"tiling": __import__("json").dumps(wrong)}
        with pytest.raises(ModelError, match="its description is damaged"):
            Description.from_header(header, "it")
