"""Tasks: their texts, the damage they do, and what they tell the restorer."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from restore.channels import BitFlip, Occlusion
from restore.errors import UsageError
from restore.tasks import Flip, Patch, parse_task

SHAPE = (6, 9)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def noise(n: int) -> torch.Tensor:
    return (torch.rand(n, SHAPE[0] * SHAPE[1], generator=seeded(99)) < 0.4).float()


@pytest.mark.parametrize(
    ("text", "mask", "task"),
    [
        ("flip:0.1", None, Flip(0.1)),
        ("flip:0", None, Flip(0.0)),
        ("flip:1", None, Flip(1.0)),
        ("flip:5e-2", None, Flip(0.05)),
        ("patch:8", None, Patch(8, 0.0, "known")),
        ("patch:12:1", "known", Patch(12, 1.0, "known")),
        ("patch:12:0.5", "unknown", Patch(12, 0.5, "unknown")),
    ],
)
def test_texts(text: str, mask: str | None, task: Flip | Patch) -> None:
    assert parse_task(text, mask) == task
    assert parse_task(str(task), task.mask) == task


@pytest.mark.parametrize(
    "text",
    [
        *("", "flip", "flip:", "flip:x", "flip:0.1:1", "flip:-0.1", "flip:1.1", "flip:nan", "Flip:0.1", "noise:0.1"),
        *("patch", "patch:", "patch:0", "patch:-3", "patch:2.5", "patch:x", "patch:8:", "patch:8:2", "patch:8:nan"),
        *("patch:8:0:0", "patch:8:x", "flip:0,1", "patch:inf"),
    ],
)
def test_bad_texts_are_usage_errors(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_task(text)
    assert "\n" not in str(caught.value)


def test_a_bad_text_gets_the_accepted_forms() -> None:
    for text in ("", "noise:1", "flip:x", "patch:8:x"):
        with pytest.raises(UsageError, match=r"flip:P .* patch:SIZE or patch:SIZE:FILL"):
            parse_task(text)


def test_masks() -> None:
    with pytest.raises(UsageError, match="no mask to know"):
        parse_task("flip:0.1", "unknown")
    with pytest.raises(UsageError, match="known or unknown"):
        parse_task("patch:8", "maybe")


def test_flips_change_the_stated_share() -> None:
    clean = noise(2000)
    observed, channel = parse_task("flip:0.2").damage(clean, SHAPE, seeded())
    assert channel == BitFlip(0.2)
    share = (observed != clean).double().mean()
    assert share == pytest.approx(0.2, abs=5 * (0.16 / clean.numel()) ** 0.5)
    for p, expected in ((0, clean), (1, 1 - clean)):
        assert torch.equal(Flip(p).damage(clean, SHAPE, seeded()).observed, expected)


@pytest.mark.parametrize("text", ["flip:0.2", "patch:3", "patch:4:1"])
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
    observed, channel = parse_task(text).damage(clean, SHAPE, seeded())
    assert isinstance(channel, Occlusion)
    for hidden, before, after in zip(channel.hidden.reshape(-1, *SHAPE), clean, observed, strict=True):
        rows, columns = torch.nonzero(hidden, as_tuple=True)
        assert int(hidden.sum()) == size * size
        assert int(rows.max() - rows.min()) == int(columns.max() - columns.min()) == size - 1
        expected = torch.where(hidden.flatten(), torch.tensor(fill), before)
        assert torch.equal(after, expected)
    evidence = channel.evidence(observed).linear
    assert torch.equal(evidence == 0, channel.hidden)
    assert torch.equal((evidence > 0).float()[~channel.hidden], clean[~channel.hidden])


def test_every_place_is_equally_likely() -> None:
    channel = Patch(3).damage(noise(1).expand(28_000, -1), SHAPE, seeded()).channel
    assert isinstance(channel, Occlusion)
    places, counts = np.unique(channel.hidden.int().argmax(dim=1).numpy(), return_counts=True)
    assert len(places) == 4 * 7
    np.testing.assert_allclose(counts, 1000, atol=5 * 1000**0.5)


# --- one picture, without torch: the same law ---


def drawn(task: Flip | Patch, picture: np.ndarray, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A picture damaged many times: what was observed and what was hidden, (count, H, W) each."""
    generator = np.random.default_rng(seed)
    found = [task.damage_picture(picture, generator) for _ in range(count)]
    nothing = np.zeros(picture.shape, dtype=bool)
    return np.stack([seen for seen, _ in found]), np.stack([nothing if h is None else h for _, h in found])


def test_flips_of_a_picture_have_the_law_of_those_of_a_data_set() -> None:
    picture, count, p = np.random.default_rng(1).random(SHAPE), 4000, 0.2
    observed, _ = drawn(Flip(p), picture, count)
    assert Flip(p).damage_picture(picture, np.random.default_rng())[1] is None
    changed = observed != picture
    np.testing.assert_array_equal(observed[changed], np.broadcast_to(1 - picture, observed.shape)[changed])
    images = torch.from_numpy(picture.flatten()).expand(count, -1)
    other = Flip(p).damage(images, SHAPE, seeded()).observed != images
    # Per pixel the share of flips, and for neighbours that of flips of both: 5 standard deviations.
    for found in (changed.reshape(count, -1), other.numpy()):
        np.testing.assert_allclose(found.mean(0), p, atol=5 * (p * (1 - p) / count) ** 0.5)
        both = (found[:, 1:] & found[:, :-1]).mean(0)
        np.testing.assert_allclose(both, p * p, atol=5 * (p * p * (1 - p * p) / count) ** 0.5)
    for sure, expected in ((0.0, picture), (1.0, 1 - picture)):
        np.testing.assert_array_equal(Flip(sure).damage_picture(picture, np.random.default_rng(0))[0], expected)


@pytest.mark.parametrize(("size", "fill"), [(3, 0.0), (4, 0.25), (6, 1.0)])
def test_patches_on_a_picture_have_the_law_of_those_on_a_data_set(size: int, fill: float) -> None:
    picture, places = np.random.default_rng(1).random(SHAPE), (SHAPE[0] - size + 1) * (SHAPE[1] - size + 1)
    count = 400 * places
    observed, hidden = drawn(Patch(size, fill), picture, count)
    np.testing.assert_array_equal(observed, np.where(hidden, fill, picture))
    channel = Patch(size, fill).damage(torch.from_numpy(picture.flatten()).expand(count, -1), SHAPE, seeded()).channel
    assert isinstance(channel, Occlusion)
    # The same patches come up, each as often as any other: 5 standard deviations.
    ours, times = np.unique(hidden.reshape(count, -1), axis=0, return_counts=True)
    theirs = np.unique(channel.hidden.numpy(), axis=0)
    np.testing.assert_array_equal(ours, theirs)
    assert len(ours) == places
    np.testing.assert_allclose(times, 400, atol=5 * 400**0.5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("text", ["flip:0.2", "patch:3:0.5"])
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
    observed, channel = Patch(size, 1.0, "unknown").damage(clean, SHAPE, seeded(3))
    assert torch.equal(observed, Patch(size, 1.0, "known").damage(clean, SHAPE, seeded(3)).observed)
    inside, places = np.zeros(SHAPE), 0
    for row, column in itertools.product(range(SHAPE[0] - size + 1), range(SHAPE[1] - size + 1)):
        inside[row : row + size, column : column + size] += 1
        places += 1
    assert isinstance(channel, BitFlip)
    np.testing.assert_allclose(channel.probability, inside.flatten() / places / 2, rtol=1e-6)
    assert channel.evidence(observed).linear.shape == clean.shape


def test_a_patch_that_does_not_fit() -> None:
    with pytest.raises(UsageError, match="does not fit into images of 9x6"):
        Patch(7).damage(noise(1), SHAPE, seeded())
    with pytest.raises(UsageError, match="does not fit into images of 9x6"):
        Patch(7).damage_picture(np.zeros(SHAPE), np.random.default_rng(0))
