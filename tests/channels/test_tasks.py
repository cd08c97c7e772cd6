"""Tasks: their texts, the damage they do, and what they tell the restorer."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from refusals import refused

from restore.channels import BitFlip, GaussianNoise, Holes, Patch, SaltAndPepper, Task, parse_task
from restore.errors import UsageError

SHAPE = (6, 9)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def noise(n: int) -> torch.Tensor:
    return (torch.rand(n, SHAPE[0] * SHAPE[1], generator=seeded(99)) < 0.4).float()


@pytest.mark.parametrize(
    ("text", "mask", "task"),
    [
        ("flip:0.1", None, Task((BitFlip(0.1),))),
        ("flip:0", None, Task((BitFlip(0.0),))),
        ("flip:1", None, Task((BitFlip(1.0),))),
        ("flip:5e-2", None, Task((BitFlip(0.05),))),
        ("patch:8", None, Task((Patch(8, fill=0.0),), "known")),
        ("patch:12:1", "known", Task((Patch(12, fill=1.0),), "known")),
        ("patch:12:0.5", "unknown", Task((Patch(12, fill=0.5),), "unknown")),
        ("holes:8:0.1", None, Task((Holes(8, 0.1),), "known")),
        ("holes:3:.25", "unknown", Task((Holes(3, 0.25),), "unknown")),
        ("noise:0.1", None, Task((GaussianNoise(0.1),))),
        ("salt:.25", None, Task((SaltAndPepper(0.25),))),
        ("flip:0.1+patch:8", "unknown", Task((BitFlip(0.1), Patch(8)), "unknown")),
        ("noise:0.1+salt:0.2+patch:8:1", None, Task((GaussianNoise(0.1), SaltAndPepper(0.2), Patch(8, 1.0)), "known")),
    ],
)
def test_texts(text: str, mask: str | None, task: Task) -> None:
    assert parse_task(text, mask) == task
    assert parse_task(str(task), task.mask) == task


BAD_TEXTS = """
flip flip: flip:x flip:0.1:1 flip:-0.1 flip:1.1 flip:nan Flip:0.1 flip:0,1 flip:0.1+ + blur:3
noise noise:-0.1 noise:nan noise:1.1 noise:inf salt salt:1.1 salt:nan
patch patch: patch:0 patch:-3 patch:2.5 patch:x patch:8: patch:8:2 patch:8:nan patch:8:0:0 patch:8:x patch:inf
holes holes:8 holes:0:0.1 holes:8:0 holes:8:0.3 holes:8:nan holes:8:0.1:1
"""


@pytest.mark.parametrize("text", ["", *BAD_TEXTS.split()])
def test_bad_texts_are_usage_errors(text: str) -> None:
    with refused(UsageError):
        parse_task(text)


@pytest.mark.parametrize(
    "text", ["flip:0.2", "patch:3", "patch:4:1", "noise:0.2", "salt:0.2", "noise:0.1+patch:3", "holes:2:0.2"]
)
def test_the_seed_fixes_the_damage(text: str) -> None:
    clean, task = noise(50), parse_task(text)
    before = clean.clone()
    first, again, other = (task.damage(clean, SHAPE, seeded(seed)).observed for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(clean, before)


@pytest.mark.parametrize(
    ("text", "size", "fill"), [("patch:3", 3, 0.0), ("patch:4:1", 4, 1.0), ("patch:6:0.5", 6, 0.5)]
)
def test_a_patch_is_one_filled_square_and_nothing_else(text: str, size: int, fill: float) -> None:
    clean = noise(40)
    observed, damage = parse_task(text).damage(clean, SHAPE, seeded())
    assert isinstance(damage.hidden, torch.Tensor) and damage.hidden.shape == (40, *SHAPE)
    for hidden, before, after in zip(damage.hidden, clean, observed, strict=True):
        rows, columns = torch.nonzero(hidden, as_tuple=True)
        assert int(hidden.sum()) == size * size
        assert int(rows.max() - rows.min()) == int(columns.max() - columns.min()) == size - 1
        expected = torch.where(hidden.flatten(), torch.tensor(fill), before)
        assert torch.equal(after, expected)
    evidence, hidden = damage.channel(grey=False).evidence(observed).linear, damage.hidden.flatten(1)
    assert torch.equal(evidence == 0, hidden)
    assert torch.equal((evidence > 0).float()[~hidden], clean[~hidden])


# --- one picture, without torch: the same law ---


def drawn(task: Task, picture: np.ndarray, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A picture damaged many times: what was observed and what was hidden, (count, H, W) each."""
    generator = np.random.default_rng(seed)
    actual = [task.damage_picture(picture, generator) for _ in range(count)]
    nothing = np.zeros(picture.shape, dtype=bool)
    return np.stack([observed for observed, _ in actual]), np.stack([nothing if h is None else h for _, h in actual])


@pytest.mark.parametrize("text", ["flip:0", "flip:0.2", "flip:1", "salt:0.2", "noise:0.3"])
def test_a_picture_is_damaged_by_the_law_of_a_data_set(text: str) -> None:
    """Whose law tests of channels know: means, squares, and products of neighbours."""
    picture = np.repeat([0.0, 0.4, 1.0], 40_000).reshape(3, 200, 200)
    observed, hidden = parse_task(text).damage_picture(picture.reshape(600, 200), np.random.default_rng(0))
    assert hidden is None and 0 <= observed.min() < observed.max() <= 1
    images = torch.from_numpy(picture).flatten(1)
    other = parse_task(text, grey="flip" not in text).damage(images, (200, 200), seeded()).observed.clamp(0, 1)
    ours, theirs = observed.reshape(picture.shape), other.numpy().reshape(picture.shape)
    for of in (lambda x: x, lambda x: x * x, lambda x: x[:, 1:] * x[:, :-1], lambda x: x[:, :, 1:] * x[:, :, :-1]):
        for one, two in zip(of(ours), of(theirs), strict=True):
            # Neighbours share pixels, so that their products vary together.
            assert abs(one.mean() - two.mean()) <= 5 * (2 * (one.var() + two.var()) / one.size) ** 0.5 + 1e-12


@pytest.mark.parametrize(("size", "fill"), [(3, 0.0), (4, 0.25), (6, 1.0)])
def test_patches_on_a_picture_have_the_law_of_those_on_a_data_set(size: int, fill: float) -> None:
    picture, places = np.random.default_rng(1).random(SHAPE), (SHAPE[0] - size + 1) * (SHAPE[1] - size + 1)
    count = 400 * places
    task = Task((Patch(size, fill=fill),), "known")
    observed, hidden = drawn(task, picture, count)
    np.testing.assert_array_equal(observed, np.where(hidden, fill, picture))
    clean = torch.from_numpy(picture.flatten()).expand(count, -1)
    other = task.damage(clean, SHAPE, seeded()).damage.hidden
    assert isinstance(other, torch.Tensor)
    # The same patches come up, each as often as any other: 5 standard deviations.
    ours, times = np.unique(hidden.reshape(count, -1), axis=0, return_counts=True)
    theirs = np.unique(other.flatten(1).numpy(), axis=0)
    np.testing.assert_array_equal(ours, theirs)
    assert len(ours) == places
    np.testing.assert_allclose(times, 400, atol=5 * 400**0.5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("text", ["flip:0.2", "patch:3:0.5", "noise:0.2", "salt:0.2", "noise:0.1+patch:3"])
def test_a_generator_fixes_the_damage_of_a_picture(text: str, dtype: type) -> None:
    picture, task = np.random.default_rng(1).random(SHAPE).astype(dtype), parse_task(text)
    before = picture.copy()
    first, again, other = (task.damage_picture(picture, np.random.default_rng(seed))[0] for seed in (1, 1, 2))
    assert first.dtype == dtype and first.shape == SHAPE
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    np.testing.assert_array_equal(picture, before)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 6])
def test_an_unknown_patch_is_told_as_half_its_coverage(size: int) -> None:
    clean = noise(10)
    task = Task((Patch(size, fill=1.0),), "known")
    observed, damage = task.unmasked().damage(clean, SHAPE, seeded(3))
    assert torch.equal(observed, task.damage(clean, SHAPE, seeded(3)).observed)
    inside, places = np.zeros(SHAPE), 0
    for row, column in itertools.product(range(SHAPE[0] - size + 1), range(SHAPE[1] - size + 1)):
        inside[row : row + size, column : column + size] += 1
        places += 1
    assert isinstance(damage.p, np.ndarray) and damage.hidden is None
    np.testing.assert_allclose(damage.p[0], inside / places / 2, rtol=1e-12)
    assert damage.channel(grey=False).evidence(observed).linear.shape == clean.shape


# --- grey images ---


def levels(n: int) -> torch.Tensor:
    return torch.rand(n, SHAPE[0] * SHAPE[1], generator=seeded(99))


def test_noise_of_a_data_set_is_not_cut_off() -> None:
    clean = levels(2000)
    observed, damage = parse_task("noise:0.3").damage(clean, SHAPE, seeded())
    assert (damage.p, damage.sigma, damage.hidden) == (None, 0.3, None)
    noise = (observed - clean).double()
    assert float(noise.std()) == pytest.approx(0.3, rel=0.01)
    assert float((noise**3).mean()) == pytest.approx(0, abs=1e-3)
    assert float(observed.min()) < -0.5 and float(observed.max()) > 1.5


def test_a_patch_on_grey_values_tells_the_others_exactly() -> None:
    clean = levels(20)
    observed, damage = parse_task("patch:3:0.5", grey=True).damage(clean, SHAPE, seeded())
    binary = parse_task("patch:3:0.5").damage(clean, SHAPE, seeded())
    assert isinstance(damage.hidden, torch.Tensor) and isinstance(binary.damage.hidden, torch.Tensor)
    assert torch.equal(observed, binary.observed) and torch.equal(damage.hidden, binary.damage.hidden)
    fields, exact, hidden = damage.channel(grey=True).evidence(observed), GaussianNoise(0.0), damage.hidden.flatten(1)
    assert torch.equal(fields.linear, torch.where(hidden, 0.0, exact.evidence(clean).linear))
    assert torch.equal(fields.quadratic, torch.where(hidden, 0.0, exact.evidence(clean).quadratic))


@pytest.mark.parametrize("grey", [False, True])
def test_several_tasks_are_one_after_the_other(grey: bool) -> None:
    clean, task = levels(30), parse_task("noise:0.1+patch:3:1", grey=grey)
    observed, damage = task.damage(clean, SHAPE, seeded())
    generator = seeded()
    noisy = parse_task("noise:0.1").damage(clean, SHAPE, generator).observed
    expected = parse_task("patch:3:1").damage(noisy, SHAPE, generator)
    assert torch.equal(observed, expected.observed)
    assert isinstance(damage.hidden, torch.Tensor) and isinstance(expected.damage.hidden, torch.Tensor)
    assert torch.equal(damage.hidden, expected.damage.hidden)
    assert (damage.p, damage.sigma) == (None, 0.1)
    assert task.mask == "known"


def test_several_tasks_on_a_picture_are_one_after_the_other() -> None:
    picture, generator = np.random.default_rng(1).random(SHAPE), np.random.default_rng(2)
    observed, hidden = parse_task("patch:2+noise:0.1+patch:3:1").damage_picture(picture, generator)
    generator = np.random.default_rng(2)
    torn, first = parse_task("patch:2").damage_picture(picture, generator)
    noisy, _ = parse_task("noise:0.1").damage_picture(torn, generator)
    expected, second = parse_task("patch:3:1").damage_picture(noisy, generator)
    np.testing.assert_array_equal(observed, expected)
    assert hidden is not None and first is not None and second is not None
    np.testing.assert_array_equal(hidden, first | second)
    assert parse_task("noise:0.1+salt:0.1").damage_picture(picture, generator)[1] is None


@pytest.mark.parametrize(
    ("text", "mask", "grey"),
    [
        ("patch:3+noise:0.1", None, True),
        ("salt:0.1+noise:0.1", None, True),
        ("noise:0.1+noise:0.1", None, True),
        ("salt:0.1+salt:0.1", None, True),
        ("patch:3+flip:0.1", None, False),
        ("noise:0.1+flip:0.1", None, True),
        ("patch:3", "unknown", True),
        ("noise:0.1+salt:0.1", None, False),
        ("flip:0.1+noise:0.1", None, False),
        ("noise:0.1+patch:3", "unknown", False),
        ("flip:0.1", "unknown", False),
        ("noise:0.1+salt:0.1", "known", False),
        ("patch:8", "maybe", False),
        ("patch:7", None, False),
    ],
)
def test_what_has_no_channel_or_does_not_fit_is_refused(text: str, mask: str | None, grey: bool) -> None:
    with pytest.raises(UsageError):
        parse_task(text, mask, grey=grey).damage(noise(2), SHAPE, seeded())


def test_a_conditional_prior_is_told_of_no_mask() -> None:
    assert parse_task("flip:0.1+patch:3").unmasked() == Task((BitFlip(0.1), Patch(3)), "unknown")
    observed, damage = parse_task("flip:0.1+patch:3").unmasked().damage(noise(5), SHAPE, seeded())
    assert isinstance(damage.p, np.ndarray) and damage.hidden is None
    assert observed.shape == (5, SHAPE[0] * SHAPE[1])


def test_flips_that_follow_flips_invert_a_pixel_if_one_of_both_does() -> None:
    clean = torch.zeros(400, SHAPE[0] * SHAPE[1])
    observed, damage = parse_task("flip:0.2+flip:0.1").damage(clean, SHAPE, seeded())
    assert damage.p == pytest.approx(0.2 * 0.9 + 0.8 * 0.1)
    assert float(observed.mean()) == pytest.approx(float(damage.p), abs=5 * (0.26 * 0.74 / observed.numel()) ** 0.5)


def test_what_several_steps_hide_is_hidden() -> None:
    clean = torch.ones(20, SHAPE[0] * SHAPE[1])
    observed, damage = parse_task("patch:2+holes:2:0.2").damage(clean, SHAPE, seeded())
    assert isinstance(damage.hidden, torch.Tensor) and torch.equal(damage.hidden.flatten(1), observed == 0)
    channel = damage.channel(grey=False)
    assert torch.equal(channel.evidence(observed).linear == 0, observed == 0)
