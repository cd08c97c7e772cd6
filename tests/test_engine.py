"""The engine and the restoration of pictures: limits that are known, and batches against single images."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from machines import random_rbm, seeded, two_patterns
from torch import Tensor

from restore import engine as engine_module
from restore.channels import BitFlip, Channel, Occlusion
from restore.description import Description, Inference
from restore.engine import Engine, polarity_gain, starts
from restore.errors import InputError, ModelError, UsageError
from restore.fields import Fields
from restore.marginals import Marginals, Status
from restore.priors import ConditionalRBM
from restore.priors.bits import pack, unpack
from restore.priors.exact import exact_moments
from restore.restoration import Restored, restore_pictures
from restore.solvers import TAP, BeliefPropagation, MeanField, SeveralStarts, Solution
from restore.zoo import TrainedPrior, save

SHAPE = (3, 4)
PIXELS = 12


def trained(scale: float = 0.3, **settings: object) -> TrainedPrior:
    machine = random_rbm(PIXELS, 6, scale=scale, dtype=torch.float32)
    inference = Inference(**{"modes": 5, "starts": 4, "max_iter": 500, "tol": 1e-6} | settings)  # type: ignore[arg-type]
    return TrainedPrior(
        Description("tiny", SHAPE, 6, 127, "made up", "tap", inference=inference),
        machine,
        exact_moments(machine).visible,
        pack(torch.bernoulli(torch.full((5, PIXELS), 0.5), generator=seeded(2))),
    )


def engine_of(**settings: object) -> Engine:
    return Engine.of(trained(**settings), torch.device("cpu"))


def unstarted(**settings: object) -> Engine:
    """An engine whose solver starts by itself."""
    prior = trained(modes=0, starts=0, **settings)
    return Engine.of(replace(prior, modes=prior.modes[:0]), torch.device("cpu"))


def conditional(**settings: object) -> Engine:
    """An engine of a conditional prior."""
    prior = unstarted(**settings).trained
    draw = 0.3 * torch.randn(PIXELS + 6, PIXELS, generator=seeded(5))
    machine = ConditionalRBM(prior.machine, draw[:PIXELS], draw[PIXELS:])
    about = replace(prior.description, family="crbm", task="flip:0.1")
    return Engine.of(replace(prior, description=about, machine=machine), torch.device("cpu"))


def some_images(count: int, seed: int = 1) -> Tensor:
    return torch.bernoulli(torch.full((count, PIXELS), 0.5), generator=seeded(seed))


MASK = torch.zeros(PIXELS, dtype=torch.bool).index_fill(0, torch.tensor([1, 5, 6, 10]), True)

CHANNELS: dict[str, Channel] = {
    "flips": BitFlip(0.15),
    "flips-per-pixel": BitFlip(torch.linspace(0, 1, PIXELS)),
    "mask": Occlusion(MASK),
    "mask-and-flips": BitFlip(0.1) + Occlusion(MASK),
    "mask-per-image": Occlusion(some_images(9, seed=4).bool()),
}


def rows_of(channel: Channel, row: int) -> Channel:
    if isinstance(channel, Occlusion) and channel.hidden.dim() == 2:
        return replace(channel, hidden=channel.hidden[row : row + 1])
    return channel


# --- limits ---


def test_what_is_certain_stays() -> None:
    images = some_images(9)
    engine = engine_of()
    exact, inverted = engine.restore(images, BitFlip(0.0)), engine.restore(images, BitFlip(1.0))
    torch.testing.assert_close(exact.means[0], images, rtol=0, atol=1e-5)
    torch.testing.assert_close(inverted.means[0], 1 - images, rtol=0, atol=1e-5)
    assert torch.equal((exact.means[0] > 0.5).float(), images)
    assert torch.equal((inverted.means[0] > 0.5).float(), 1 - images)
    for solution in (exact, inverted):
        assert float(solution.variances[0].max()) < 1e-5
        assert bool((solution.status == Status.CONVERGED).all())


def test_noise_that_tells_nothing_leaves_the_prior() -> None:
    solution = engine_of().restore(some_images(9), BitFlip(0.5))
    torch.testing.assert_close(solution.means[0], solution.means[0][:1].expand(9, -1))
    wanted = exact_moments(trained().machine).visible
    torch.testing.assert_close(solution.means[0][0], wanted, rtol=0, atol=0.01)


@pytest.mark.parametrize("channel", CHANNELS.values(), ids=CHANNELS)
@pytest.mark.parametrize("solver", ["tap", "mean_field"])
def test_posterior_is_close_to_the_exact_one_at_weak_coupling(channel: Channel, solver: str) -> None:
    images = some_images(9)
    got = engine_of(scale=0.1, solver=solver).restore(images, channel)
    exact = exact_moments(trained(scale=0.1).machine.to(torch.float64).tilt(channel.evidence(images.double())))
    torch.testing.assert_close(got.means[0].double(), exact.visible, rtol=0, atol=2e-3 if solver == "tap" else 5e-3)
    torch.testing.assert_close(got.means[1].double(), exact.hidden, rtol=0, atol=2e-3 if solver == "tap" else 5e-3)
    assert got.means[0].shape == (9, PIXELS)
    assert got.log_partition.shape == (9,)


def test_pixels_seen_exactly_or_not_at_all_are_a_mask() -> None:
    images = some_images(9)
    masked = engine_of().restore(images, Occlusion(MASK))
    flipped = engine_of().restore(images, BitFlip(torch.where(MASK, 0.5, 0.0)))
    torch.testing.assert_close(masked.means[0], flipped.means[0], rtol=0, atol=1e-5)


def test_what_lies_under_the_mask_does_not_matter() -> None:
    images = some_images(9)
    other = torch.where(MASK, 1 - images, images)
    first, second = (engine_of().restore(y, BitFlip(0.1) + Occlusion(MASK)) for y in (images, other))
    assert torch.equal(first.means[0], second.means[0])


# --- batches ---


@pytest.mark.parametrize("channel", CHANNELS.values(), ids=CHANNELS)
def test_a_batch_gives_what_each_image_alone_gives(channel: Channel, monkeypatch: pytest.MonkeyPatch) -> None:
    images = some_images(9)
    engine = engine_of(scale=0.8)
    solve, sizes = engine_module.solve, []

    def watched(trained: TrainedPrior, solver: TAP, evidence: Fields) -> Solution:
        sizes.append(len(evidence.linear))
        return solve(trained, solver, evidence)

    monkeypatch.setattr(engine_module, "solve", watched)
    whole = engine.restore(images, channel)
    # Two images with four starts each go side by side.
    monkeypatch.setitem(engine_module.ROWS, "cpu", 8)
    together = engine.restore(images, channel)
    assert sizes == [9, 2, 2, 2, 2, 1]
    monkeypatch.undo()
    for row in range(9):
        alone = engine.restore(images[row : row + 1], rows_of(channel, row))
        for batch in (together, whole):
            for got, wanted in zip((*batch.means, *batch.variances), (*alone.means, *alone.variances), strict=True):
                torch.testing.assert_close(got[row : row + 1], wanted, rtol=0, atol=1e-5)
            assert int(batch.status[row]) == int(alone.status)
            torch.testing.assert_close(batch.log_partition[row], alone.log_partition[0], rtol=1e-7, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64, torch.float64, torch.float16])
def test_images_of_any_number_type(dtype: torch.dtype) -> None:
    images = some_images(5)
    wanted = engine_of().restore(images, BitFlip(0.1)).means[0]
    got = engine_of().restore(images.to(dtype), BitFlip(0.1)).means[0]
    assert got.dtype == torch.float32
    torch.testing.assert_close(got, wanted, rtol=0, atol=1e-3 if dtype is torch.float16 else 1e-6)


def test_row63_memory_that_is_too_small_takes_smaller_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, images = engine_of(), some_images(9)
    wanted = engine.restore(images, BitFlip(0.1))
    solve, sizes = engine_module.solve, []

    def small(trained: TrainedPrior, solver: TAP, evidence: Fields) -> Solution:
        sizes.append(len(evidence.linear))
        if sizes[-1] > limit:
            raise torch.cuda.OutOfMemoryError("made up")
        return solve(trained, solver, evidence)

    monkeypatch.setattr(engine_module, "solve", small)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    monkeypatch.setitem(engine_module.ROWS, "cpu", 16)
    limit = 1
    got = engine.restore(images, BitFlip(0.1))
    assert sizes == [4, 2, *[1] * 9]
    torch.testing.assert_close(got.means[0], wanted.means[0], rtol=0, atol=1e-5)
    limit = 0
    with pytest.raises(InputError, match="out of memory with a single image"):
        engine.restore(images, BitFlip(0.1))


@pytest.mark.parametrize("shape", [(PIXELS,), (2, PIXELS + 1), (0, PIXELS), (1, *SHAPE)], ids=str)
def test_images_that_do_not_fit(shape: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match="do not fit"):
        engine_of().restore(torch.zeros(shape), BitFlip(0.1))


# --- solver and starts ---


@pytest.mark.parametrize(("name", "kind"), [("tap", TAP), ("mean_field", MeanField)])
def test_the_solver_is_the_one_described(name: str, kind: type) -> None:
    engine = engine_of(solver=name, max_iter=17, tol=1e-3, damping=0.25)
    assert engine.solver == kind(max_iter=17, tol=1e-3, damping=0.25)
    assert engine.several_starts == SeveralStarts(engine.solver)


@pytest.mark.parametrize("kind", ["sum", "max", "mixed"])
def test_belief_propagation_is_the_one_described_and_starts_by_itself(kind: str) -> None:
    engine = unstarted(solver=f"{kind}_product", max_iter=17, tol=1e-3, damping=0.25)
    assert engine.solver == BeliefPropagation(kind, max_iter=17, tol=1e-3, damping=0.25)  # type: ignore[arg-type]
    limited = replace(engine, max_memory=12345)
    assert limited.solver == replace(engine.solver, max_memory=12345)
    with pytest.raises(UsageError, match="tiny: belief propagation has one start only"):
        _ = engine.several_starts


@pytest.mark.parametrize(("solver", "limit"), [("tap", 2e-3), ("mean_field", 5e-3), ("sum_product", 1e-4)])
def test_solvers_that_start_by_themselves(solver: str, limit: float) -> None:
    images, channel = some_images(5), BitFlip(0.2)
    engine = unstarted(scale=0.1, solver=solver)
    got = engine.restore(images, channel)
    exact = exact_moments(trained(scale=0.1).machine.to(torch.float64).tilt(channel.evidence(images.double())))
    torch.testing.assert_close(got.means[0].double(), exact.visible, rtol=0, atol=limit)
    assert bool((got.status == Status.CONVERGED).all())


def test_starts_are_the_pointwise_estimate_and_the_likeliest_modes() -> None:
    engine = engine_of()
    images, channel = some_images(5), BitFlip(0.2)
    found = starts(engine.trained, channel.evidence(images))
    assert found.shape == (5, 4, PIXELS)
    means = engine.trained.pixel_means
    odds = means / (1 - means) * torch.where(images == 1, 0.8 / 0.2, 0.2 / 0.8)
    torch.testing.assert_close(found[:, 0], odds / (1 + odds))
    distance = (unpack(engine.trained.modes, PIXELS)[None] != images[:, None]).sum(-1)
    for row in range(5):
        picked = (found[row, 1:] != images[row]).sum(-1)
        assert picked.tolist() == distance[row].sort().values[:3].tolist()


@pytest.mark.parametrize("settings", [{"starts": 1}, {"starts": 4, "modes": 0}, {"starts": 50}], ids=str)
def test_any_number_of_starts(settings: dict[str, int]) -> None:
    prior = trained(**settings)
    if settings.get("modes") == 0:
        prior = replace(prior, modes=prior.modes[:0])
    engine = Engine.of(prior, torch.device("cpu"))
    wanted = engine_of().restore(some_images(3), BitFlip(0.1))
    # A machine with one fixed point does not care.
    torch.testing.assert_close(
        engine.restore(some_images(3), BitFlip(0.1)).means[0], wanted.means[0], rtol=0, atol=1e-4
    )


def test_modes_carried_along_rescue_an_image_that_the_pointwise_estimate_loses() -> None:
    machine, patterns = two_patterns()
    # On a machine of two patterns log Z is accurate enough to be trusted in full.
    inference = Inference(modes=2, starts=3, max_iter=2000, tol=1e-7, trust=1e-3)
    prior = TrainedPrior(
        Description("two", (3, 4), 12, 127, "made up", "tap", inference=inference),
        machine.to(torch.float32),
        torch.full((12,), 0.5),
        pack(patterns),
    )
    y = patterns[0].clone()
    y[:5] = 1 - y[:5]
    exact = exact_moments(machine.tilt(BitFlip(0.3).evidence(y[None])))
    cpu = torch.device("cpu")
    several = Engine.of(prior, cpu).restore(y[None], BitFlip(0.3))
    alone_prior = replace(prior, description=replace(prior.description, inference=replace(inference, starts=1)))
    alone = Engine.of(alone_prior, cpu).restore(y[None], BitFlip(0.3))
    torch.testing.assert_close(several.means[0].double(), exact.visible, rtol=0, atol=0.01)
    assert float((alone.means[0].double() - exact.visible).abs().max()) > 0.5


def test_an_engine_is_loaded_by_path(tmp_path: Path) -> None:
    save(tmp_path / "tiny", trained(), "")
    engine = Engine.load(str(tmp_path / "tiny"), "cpu")
    assert engine.device == torch.device("cpu")
    torch.testing.assert_close(
        engine.restore(some_images(3), BitFlip(0.1)).means[0],
        engine_of().restore(some_images(3), BitFlip(0.1)).means[0],
    )
    with pytest.raises(UsageError, match="there is no such device here; choose one of auto, cpu"):
        Engine.load(str(tmp_path / "tiny"), "cuda:9")


# --- pictures ---


def picture(seed: int = 1, shape: tuple[int, int] = SHAPE) -> np.ndarray:
    """Grey values on both sides of the threshold."""
    return np.random.default_rng(seed).integers(0, 256, shape) / 255


def black_and_white(values: np.ndarray) -> np.ndarray:
    return (np.rint(values * 255) > 127).astype(float)


def only(found: tuple[list[Restored], Marginals]) -> Restored:
    (restored,), _ = found
    return restored


def test_boundary_probabilities_of_pictures() -> None:
    values = picture()
    engine = engine_of()
    np.testing.assert_array_equal(only(restore_pictures(engine, [values], p=0.0)).estimate, black_and_white(values))
    with pytest.raises(UsageError, match="p is missing"):
        restore_pictures(engine, [values])
    np.testing.assert_array_equal(only(restore_pictures(engine, [values], p=1.0)).estimate, 1 - black_and_white(values))
    ignored = [only(restore_pictures(engine, [picture(seed)], p=0.5)).means for seed in (1, 2)]
    np.testing.assert_allclose(ignored[0], ignored[1], atol=1e-6)


def test_levels_at_the_threshold_are_told_apart() -> None:
    engine = Engine.of(
        replace(trained(), description=replace(trained().description, threshold=100)), torch.device("cpu")
    )
    values = np.resize([100 / 255, 101 / 255], SHAPE)
    estimate = only(restore_pictures(engine, [values], p=0.0)).estimate
    np.testing.assert_array_equal(estimate, np.resize([0.0, 1.0], SHAPE))


def test_completion_leaves_visible_pixels_untouched() -> None:
    mask = MASK.reshape(SHAPE).numpy()
    values = picture()
    restored = only(restore_pictures(engine_of(scale=1.0), [values], hidden=[mask]))
    np.testing.assert_array_equal(restored.estimate[~mask], black_and_white(values)[~mask])
    np.testing.assert_array_equal(restored.replaced, mask)
    assert restored.deviations[~mask].max() < 0.01
    assert restored.deviations[mask].min() > 0.01
    assert set(np.unique(restored.estimate)) <= {0.0, 1.0}
    other = np.where(mask, 1 - values, values)
    again = only(restore_pictures(engine_of(scale=1.0), [other], hidden=[mask]))
    np.testing.assert_array_equal(again.means, restored.means)


def test_with_noise_visible_pixels_are_estimated_too() -> None:
    mask = MASK.reshape(SHAPE).numpy()
    assert only(restore_pictures(engine_of(), [picture()], p=0.1, hidden=[mask])).replaced is None
    assert only(restore_pictures(engine_of(), [picture()], p=0.1)).replaced is None


def test_a_probability_per_pixel() -> None:
    values, p = picture(), np.linspace(0, 1, PIXELS).reshape(SHAPE)
    wanted = engine_of().restore(
        torch.from_numpy(black_and_white(values)).flatten()[None], BitFlip(torch.from_numpy(p).flatten())
    )
    for form in (p, np.asfortranarray(p), p[::-1][::-1], p.astype(">f8")):
        got = only(restore_pictures(engine_of(), [values], p=form))
        np.testing.assert_allclose(got.means.ravel(), wanted.means[0][0].numpy(), atol=1e-6)
    turned = only(restore_pictures(engine_of(), [values], p=p[::-1]))
    assert np.abs(turned.means - got.means).max() > 0.1


@pytest.mark.parametrize(
    "p",
    [-0.1, 1.1, math.nan, np.full(SHAPE, 1.5), np.full(SHAPE, np.nan), np.full(SHAPE[::-1], 0.1), np.full(PIXELS, 0.1)],
    ids=["35-negative", "35-large", "35-nan", "35-map-large", "35-map-nan", "35-map-turned", "35-map-flat"],
)
def test_impossible_probabilities(p: float | np.ndarray) -> None:
    with pytest.raises(UsageError) as caught:
        restore_pictures(engine_of(), [picture()], p=p)
    assert "\n" not in str(caught.value)


def test_another_size_is_refused_with_the_remedy() -> None:
    with pytest.raises(ModelError, match=r"the image has 7x5 pixels and tiny restores 4x3; give --fit resize"):
        restore_pictures(engine_of(), [picture(), picture(shape=(5, 7))], p=0.1)


def test_another_size_is_resized_and_back() -> None:
    large = np.kron(black_and_white(picture()), np.ones((4, 5)))
    restored = only(restore_pictures(engine_of(), [large], p=0.0, fit="resize"))
    assert restored.estimate.shape == restored.means.shape == restored.deviations.shape == (12, 20)
    centres = restored.estimate[2::4, 2::5]
    np.testing.assert_array_equal(centres > 0.5, black_and_white(picture()) > 0.5)


def test_pictures_of_a_batch_are_kept_apart() -> None:
    pictures = [picture(seed) for seed in range(5)]
    masks = [some_images(5, seed=3)[index].bool().reshape(SHAPE).numpy() for index in range(5)]
    together, solution = restore_pictures(engine_of(), pictures, p=0.1, hidden=masks)
    assert len(solution.means[0]) == 5
    for index, restored in enumerate(together):
        alone = only(restore_pictures(engine_of(), [pictures[index]], p=0.1, hidden=[masks[index]]))
        np.testing.assert_allclose(restored.means, alone.means, atol=1e-5)
        assert restored.status is alone.status is Status.CONVERGED


def test_inversion_restores_dark_on_light() -> None:
    values = picture()
    plain = only(restore_pictures(engine_of(), [values], p=0.1))
    inverted = only(restore_pictures(engine_of(), [1 - values], p=0.1, invert=True))
    np.testing.assert_allclose(inverted.means, 1 - plain.means, atol=1e-6)
    np.testing.assert_array_equal(inverted.estimate, 1 - plain.estimate)


def test_29_polarity_is_judged_by_visible_pixels() -> None:
    means = torch.tensor([0.1, 0.2, 0.5, 0.9])
    clean = torch.tensor([[0.0, 0.0, 0.0, 1.0]])
    nothing = torch.zeros(1, 4, dtype=torch.bool)
    gain = float(polarity_gain(1 - clean, nothing, means))
    assert gain == pytest.approx((2 * math.log(9) + math.log(4)) / 4, rel=1e-5)
    assert float(polarity_gain(clean, nothing, means)) == pytest.approx(-gain)
    assert float(polarity_gain(1 - clean, ~nothing, means)) == 0
    first = torch.tensor([[False, True, True, True]])
    assert float(polarity_gain(1 - clean, first, means)) == pytest.approx(math.log(9), rel=1e-5)
    prior = replace(trained(), pixel_means=torch.full((PIXELS,), 0.1))
    engine = Engine.of(prior, torch.device("cpu"))
    for values, says in ((np.ones(SHAPE), True), (np.zeros(SHAPE), False)):
        notes = only(restore_pictures(engine, [values], p=0.1)).notes
        assert any("--invert" in note for note in notes) == says
    for share, values, expected in (
        (0.1, np.ones(SHAPE), "light strokes on dark"),
        (0.9, np.zeros(SHAPE), "dark on light"),
    ):
        prior = replace(trained(), pixel_means=torch.full((PIXELS,), share))
        notes = only(restore_pictures(Engine.of(prior, torch.device("cpu")), [values], p=0.1)).notes
        assert f"looks inverted: tiny expects {expected}; try --invert" in notes


def test_62_an_image_that_did_not_converge_says_so() -> None:
    restored = only(restore_pictures(engine_of(scale=1.0, max_iter=2, tol=0.0), [picture()], p=0.3))
    assert restored.status is Status.MAX_ITER
    assert restored.iterations == 2
    assert Status.MAX_ITER.sentence in restored.notes
    assert restored.residual > 0


def test_log_z_decides_in_proportion_to_the_evidence() -> None:
    machine, patterns = two_patterns()
    y = patterns[0].float()[None]
    distance = []
    for trust in (1e-3, 1.0, 1e6):
        inference = Inference(modes=2, starts=3, max_iter=2000, tol=1e-7, trust=trust)
        description = Description("two", (3, 4), 12, 127, "made up", "tap", inference=inference)
        prior = TrainedPrior(description, machine.to(torch.float32), torch.full((12,), 0.5), pack(patterns))
        means = Engine.of(prior, torch.device("cpu")).restore(y, BitFlip(0.4)).means[0]
        distance.append(float((means - y).abs().mean()))
    # The better solution has all the weight it deserves, some of it, or no more than the other.
    assert distance[0] < distance[1] < distance[2]


# --- conditional priors ---


@pytest.mark.parametrize("solver", ["sum_product", "mean_field"])
def test_a_conditional_prior_restores_from_the_image_alone(solver: str) -> None:
    images = some_images(9)
    engine = conditional(scale=0.1, solver=solver)
    got = engine.restore(images)
    machine = engine.trained.machine
    assert isinstance(machine, ConditionalRBM)
    exact = exact_moments(machine.to(torch.float64).given(images.double()))
    torch.testing.assert_close(got.means[0].double(), exact.visible, rtol=0, atol=5e-3)
    for form in (images.bool(), images.to(torch.uint8), images.double()):
        torch.testing.assert_close(engine.restore(form).means[0], got.means[0], rtol=0, atol=1e-6)
    alone = engine.restore(images[3:4])
    torch.testing.assert_close(alone.means[0], got.means[0][3:4], rtol=0, atol=1e-5)
    pictures = [image.reshape(SHAPE).double().numpy() for image in images]
    restored, _ = restore_pictures(engine, pictures)
    for row, picture in enumerate(restored):
        np.testing.assert_allclose(picture.means.ravel(), got.means[0][row].numpy(), atol=1e-5)


def test_who_is_told_of_the_damage() -> None:
    learnt, told = conditional(), engine_of()
    mask = MASK.reshape(SHAPE).numpy()
    for options in ({"p": 0.1}, {"hidden": [mask]}, {"p": 0.1, "hidden": [mask]}):
        with pytest.raises(UsageError, match=r"tiny has learnt to undo flip:0\.1 from the damaged image"):
            restore_pictures(learnt, [picture()], **options)  # type: ignore[arg-type]
        restore_pictures(told, [picture()], **options)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"has learnt to undo flip:0\.1"):
        learnt.restore(some_images(1), BitFlip(0.1))
    with pytest.raises(UsageError, match="p is missing"):
        told.restore(some_images(1))
