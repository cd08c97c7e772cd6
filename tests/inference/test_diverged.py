"""Row 64: a solver that diverges gives no image, whoever asks and whatever computes."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from exports import Exported, with_huge_weights
from exports import images as binary_images
from grey_priors import TRUNCATED, grey_prior, saved_grey
from PIL import Image

import restore
from restore.errors import ModelError
from restore.inference.onnx.engine import OnnxEngine
from restore.marginals import Marginals, Status, voided
from restore.ray_data import Worker

SHAPE = (5, 7)
KINDS: dict[str, Callable[[np.ndarray], Any]] = {
    "uint8": lambda grey: np.rint(grey * 255).astype(np.uint8),
    "uint16": lambda grey: np.rint(grey * 65535).astype(np.uint16),
    "float": lambda grey: grey.astype(np.float32),
    "bool": lambda grey: grey > 0.5,
    "tensor": lambda grey: torch.from_numpy(grey),
    "pil": lambda grey: [Image.fromarray(np.rint(one * 255).astype(np.uint8)) for one in grey],
}


@pytest.fixture(autouse=True)
def no_warnings() -> Iterator[None]:
    """No number is cast from NaN."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        yield


@pytest.fixture(scope="module")
def unstable(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A prior whose Gaussian hidden units have no curvature left where little of an image is seen."""
    prior = grey_prior(TRUNCATED, "gaussian", scale=3.0, curvature=0.5, name="unstable")
    return saved_grey(tmp_path_factory.mktemp("models"), prior)


@pytest.fixture
def wild(exported: Callable[[str], Exported]) -> restore.Restorer:
    """A graph whose weights overflow."""
    case = exported("tap")
    return restore.Restorer(replace(OnnxEngine.load(case.path), session=with_huge_weights(case, 1e38)))


def some(count: int = 3) -> np.ndarray:
    return np.random.default_rng(0).uniform(0.2, 0.8, (count, *SHAPE))


def holes() -> np.ndarray:
    """Three masks; the solver survives only the first and the last."""
    masks = np.zeros((3, *SHAPE), bool)
    masks[:, 2, 3] = True
    masks[1, 1:] = True
    return masks


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_row64_what_diverged_is_an_error(kind: Callable[[np.ndarray], Any], unstable: Path) -> None:
    for call in (restore.denoise, restore.load(str(unstable)).denoise):
        told: dict[str, Any] = {"model": str(unstable)} if call is restore.denoise else {}
        with pytest.raises(ModelError, match=r"^image 0 of 3, from 0: the solver diverged .*; so it did for 2 more of"):
            call(kind(some()), sigma=0.5, **told)
        with pytest.raises(ModelError, match=r"^the image: the solver diverged"):
            call(kind(some())[0], sigma=0.5, **told)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_row64_one_of_several_is_named_and_with_the_solution_stays_as_it_was(
    kind: Callable[[np.ndarray], Any], unstable: Path
) -> None:
    prior, images, masks = restore.load(str(unstable)), kind(some()), holes()
    with pytest.raises(ModelError, match=r"^image 1 of 3, from 0: the solver diverged .* return_solution=True"):
        prior.complete(images, masks)
    found, solution = prior.complete(images, masks, return_solution=True)
    assert (solution.status == Status.DIVERGED).tolist() == [False, True, False]
    assert np.isnan(solution.means[0][1]).all() and np.isfinite(solution.means[0][[0, 2]]).all()
    before, after = np.stack([np.asarray(one) for one in images]), np.stack([np.asarray(one) for one in found])
    assert type(found) is type(images) and after.dtype == before.dtype
    np.testing.assert_array_equal(after[1], before[1])
    np.testing.assert_array_equal(after[0], np.asarray(prior.complete(images[0], masks[0])))


def test_row64_a_path_is_named(unstable: Path, tmp_path: Path) -> None:
    paths = [tmp_path / "a.png", tmp_path / "b\x1b.png"]
    for path, values in zip(paths, some(), strict=False):
        Image.fromarray(np.rint(values * 255).astype(np.uint8)).save(path)
    with pytest.raises(ModelError, match=r"b\\x1b\.png: the solver diverged"):
        restore.complete(paths, list(holes()[:2]), str(unstable))


@pytest.mark.thorough
def test_row64_a_graph_that_diverges_is_an_error_too(wild: restore.Restorer) -> None:
    images = np.rint(binary_images(2) * 255).astype(np.uint8)
    with pytest.raises(ModelError, match=r"^image 0 of 2, from 0: the solver diverged"):
        wild.denoise(images, 0.1)
    found, solution = wild.denoise(images, 0.1, return_solution=True)
    assert (solution.status == Status.DIVERGED).all()
    np.testing.assert_array_equal(found, images)


def test_row64_ray_data_names_the_image_or_keeps_it_with_its_status(unstable: Path) -> None:
    batch = {"image": some(), "mask": holes(), "path": np.array(["a.png", "b.png", "c.png"])}

    def worker(status: str | None) -> Worker:
        return Worker(str(unstable), "cpu", "torch", "image", "mask", ("clean", status), {})

    with pytest.raises(ModelError, match=r"^b\.png: the solver diverged"):
        worker(None)(batch)
    found = worker("outcome")(batch)
    assert found["outcome"][1] == "diverged" and "diverged" not in found["outcome"][[0, 2]]
    np.testing.assert_array_equal(found["clean"][1], batch["image"][1])


def test_row64_the_command_writes_nothing(
    unstable: Path, run: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "a.png"
    Image.fromarray(np.rint(some()[0] * 255).astype(np.uint8)).save(source)
    assert run("denoise", source, "--model", unstable, "--sigma", 0.5, "--json") == 5
    assert "diverged" in json.loads(capsys.readouterr().out)["error"]
    assert list(tmp_path.iterdir()) == [source]


def test_row64_a_pixel_that_is_no_number_is_a_divergence() -> None:
    means = np.array([[0.5, 0.5], [0.5, np.nan], [0.5, 0.5]], np.float32)
    variances = np.array([[0.1, 0.1], [0.1, 0.1], [np.inf, 0.1]], np.float32)
    found = voided(Marginals((means,), (variances,), np.zeros(3), np.ones(3, int), np.zeros(3), np.zeros(3, int)))
    assert found.status.tolist() == [Status.CONVERGED, Status.DIVERGED, Status.DIVERGED]
    assert np.isnan(found.means[0][1:]).all() and np.isfinite(found.means[0][0]).all()
