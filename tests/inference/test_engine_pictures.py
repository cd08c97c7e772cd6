"""The engine on pictures, and with conditional priors."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from machines import seeded, two_patterns
from restore.inference.pictures import Restored, restore_pictures
from small_engines import MASK, PIXELS, SHAPE, engine_of, some_images, trained, unstarted

from restore.channels import BitFlip
from restore.errors import UsageError
from restore.inference.damage import Damage
from restore.inference.torch_engine import Engine, polarity_gain
from restore.marginals import Marginals, Status
from restore.priors import ConditionalRBM
from restore.priors.bits import pack
from restore.priors.exact import exact_moments
from restore.zoo import TrainedPrior
from restore.zoo.description import Description
from restore.zoo.inference import Inference


def conditional(**settings: object) -> Engine:
    """An engine of a conditional prior."""
    prior = unstarted(**settings).trained
    draw = 0.3 * torch.randn(PIXELS + 6, PIXELS, generator=seeded(5))
    machine = ConditionalRBM(prior.machine, draw[:PIXELS], draw[PIXELS:])
    about = replace(prior.description, family="crbm", task="flip:0.1")
    return Engine.of(replace(prior, description=about, machine=machine), torch.device("cpu"))


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
    np.testing.assert_array_equal(
        only(restore_pictures(engine, [values], Damage.of(0.0))).estimate, black_and_white(values)
    )
    with pytest.raises(UsageError, match="p is missing"):
        restore_pictures(engine, [values], Damage.of())
    np.testing.assert_array_equal(
        only(restore_pictures(engine, [values], Damage.of(1.0))).estimate, 1 - black_and_white(values)
    )
    ignored = [only(restore_pictures(engine, [picture(seed)], Damage.of(0.5))).means for seed in (1, 2)]
    np.testing.assert_allclose(ignored[0], ignored[1], atol=1e-6)


def test_levels_at_the_threshold_are_told_apart() -> None:
    engine = Engine.of(
        replace(trained(), description=replace(trained().description, threshold=100)), torch.device("cpu")
    )
    values = np.resize([100 / 255, 101 / 255], SHAPE)
    estimate = only(restore_pictures(engine, [values], Damage.of(0.0))).estimate
    np.testing.assert_array_equal(estimate, np.resize([0.0, 1.0], SHAPE))


def test_completion_leaves_visible_pixels_untouched() -> None:
    mask = MASK.reshape(SHAPE).numpy()
    values = picture()
    restored = only(restore_pictures(engine_of(scale=1.0), [values], Damage.of(hidden=[mask])))
    np.testing.assert_array_equal(restored.estimate[~mask], black_and_white(values)[~mask])
    np.testing.assert_array_equal(restored.replaced, mask)
    assert restored.deviations[~mask].max() < 0.01
    assert restored.deviations[mask].min() > 0.01
    assert set(np.unique(restored.estimate)) <= {0.0, 1.0}
    other = np.where(mask, 1 - values, values)
    again = only(restore_pictures(engine_of(scale=1.0), [other], Damage.of(hidden=[mask])))
    np.testing.assert_array_equal(again.means, restored.means)


def test_with_noise_visible_pixels_are_estimated_too() -> None:
    mask = MASK.reshape(SHAPE).numpy()
    assert only(restore_pictures(engine_of(), [picture()], Damage.of(0.1, hidden=[mask]))).replaced is None
    assert only(restore_pictures(engine_of(), [picture()], Damage.of(0.1))).replaced is None


def test_a_probability_per_pixel() -> None:
    values, p = picture(), np.linspace(0, 1, PIXELS).reshape(SHAPE)
    wanted = engine_of().restore(
        torch.from_numpy(black_and_white(values)).flatten()[None], BitFlip(torch.from_numpy(p).flatten())
    )
    for form in (p, np.asfortranarray(p), p[::-1][::-1], p.astype(">f8")):
        got = only(restore_pictures(engine_of(), [values], Damage.of(form)))
        np.testing.assert_allclose(got.means.ravel(), wanted.means[0][0].numpy(), atol=1e-6)
    turned = only(restore_pictures(engine_of(), [values], Damage.of(p[::-1])))
    assert np.abs(turned.means - got.means).max() > 0.1


@pytest.mark.parametrize(
    "p",
    [-0.1, 1.1, math.nan, np.full(SHAPE, 1.5), np.full(SHAPE, np.nan), np.full(SHAPE[::-1], 0.1), np.full(PIXELS, 0.1)],
    ids=["35-negative", "35-large", "35-nan", "35-map-large", "35-map-nan", "35-map-turned", "35-map-flat"],
)
def test_impossible_probabilities(p: float | np.ndarray) -> None:
    with pytest.raises(UsageError) as caught:
        restore_pictures(engine_of(), [picture()], Damage.of(p))
    assert "\n" not in str(caught.value)


def test_another_size_is_resized_and_back() -> None:
    large = np.kron(black_and_white(picture()), np.ones((4, 5)))
    restored = only(restore_pictures(engine_of(), [large], Damage.of(0.0)))
    assert restored.estimate.shape == restored.means.shape == restored.deviations.shape == (12, 20)
    centres = restored.estimate[2::4, 2::5]
    np.testing.assert_array_equal(centres > 0.5, black_and_white(picture()) > 0.5)


def test_pictures_of_a_batch_are_kept_apart() -> None:
    pictures = [picture(seed) for seed in range(5)]
    masks = [some_images(5, seed=3)[index].bool().reshape(SHAPE).numpy() for index in range(5)]
    together, solution = restore_pictures(engine_of(), pictures, Damage.of(0.1, hidden=masks))
    assert len(solution.means[0]) == 5
    for index, restored in enumerate(together):
        alone = only(restore_pictures(engine_of(), [pictures[index]], Damage.of(0.1, hidden=[masks[index]])))
        np.testing.assert_allclose(restored.means, alone.means, atol=1e-5)
        assert restored.status is alone.status is Status.CONVERGED


def test_inversion_restores_dark_on_light() -> None:
    values = picture()
    plain = only(restore_pictures(engine_of(), [values], Damage.of(0.1)))
    inverted = only(restore_pictures(engine_of(), [1 - values], Damage.of(0.1), invert=True))
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
        notes = only(restore_pictures(engine, [values], Damage.of(0.1))).notes
        assert any("--invert" in note for note in notes) == says
    for share, values, expected in (
        (0.1, np.ones(SHAPE), "light strokes on dark"),
        (0.9, np.zeros(SHAPE), "dark on light"),
    ):
        prior = replace(trained(), pixel_means=torch.full((PIXELS,), share))
        notes = only(restore_pictures(Engine.of(prior, torch.device("cpu")), [values], Damage.of(0.1))).notes
        assert f"looks inverted: tiny expects {expected}; try --invert" in notes


def test_62_an_image_that_did_not_converge_says_so() -> None:
    restored = only(restore_pictures(engine_of(scale=1.0, max_iter=2, tol=0.0), [picture()], Damage.of(0.3)))
    assert restored.status is Status.MAX_ITER
    # Both of its tries.
    assert restored.iterations == 2 + 2
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
    restored, _ = restore_pictures(engine, pictures, Damage.of())
    for row, picture in enumerate(restored):
        np.testing.assert_allclose(picture.means.ravel(), got.means[0][row].numpy(), atol=1e-5)


def test_who_is_told_of_the_damage() -> None:
    learnt, told = conditional(), engine_of()
    mask = MASK.reshape(SHAPE).numpy()
    for options in ({"p": 0.1}, {"hidden": [mask]}, {"p": 0.1, "hidden": [mask]}):
        with pytest.raises(UsageError, match=r"tiny has learnt to undo flip:0\.1 from the damaged image"):
            restore_pictures(learnt, [picture()], Damage.of(**options))  # type: ignore[arg-type]
        restore_pictures(told, [picture()], Damage.of(**options))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"has learnt to undo flip:0\.1"):
        learnt.restore(some_images(1), BitFlip(0.1))
    with pytest.raises(UsageError, match="p is missing"):
        told.restore(some_images(1))
