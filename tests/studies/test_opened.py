"""What studies ask of open priors."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
import torch
from classification import Examples, examples_of, wrong_share
from data_sets import idx_bytes
from machines import brute_force
from opened import features, free_machine, plain_machine
from priors import random_conditional, random_deep_prior, random_prior, saved_prior

from restore.errors import ModelError
from restore.inference.torch_engine import Engine

CPU = torch.device("cpu")


def test_features_are_the_expected_hidden_units() -> None:
    prior, grey = random_prior((3, 4), modes=0), np.random.default_rng(0).random((4, 3, 4))
    found = features(Engine.of(prior, CPU), grey)
    # From the joint distribution of all units, by counting.
    joint = brute_force(prior.machine)
    for image, of_image in zip(grey > 0.5, found, strict=True):
        weight = joint.probabilities * (joint.states[:, :12] == image.ravel()).all(1)
        np.testing.assert_allclose(of_image, weight @ joint.states[:, 12:] / weight.sum(), atol=1e-5)


def test_what_a_prior_does_not_have_is_refused() -> None:
    conditional, deep = (Engine.of(make((3, 4)), CPU) for make in (random_conditional, random_deep_prior))
    for ask in (lambda: free_machine(conditional, "samples"), lambda: plain_machine(deep, "samples")):
        with pytest.raises(ModelError) as caught:
            ask()
        assert "samples" in str(caught.value)
    with pytest.raises(ModelError):
        features(deep, np.zeros((1, 3, 4)))


# --- a classifier of features ---


pytest.importorskip("sklearn")


def examples(count: int, seed: int, noise: float = 0.0) -> Examples:
    """Three classes, each a corner of its own; some labels wrong."""
    draw = np.random.default_rng(seed)
    labels = draw.integers(0, 3, count)
    features = (0.8 * np.eye(3)[labels] + 0.2 * draw.random((count, 3))).astype(np.float32)
    wrong = draw.random(count) < noise
    return Examples(features, np.where(wrong, (labels + 1) % 3, labels))


def test_wrong_labels_are_errors() -> None:
    found = wrong_share(examples(600, 0), examples(400, 1, noise=0.25), np.random.default_rng(0))
    # Drawn in the same order, so that the labels differ where they were made wrong.
    assert found == pytest.approx((examples(400, 1, noise=0.25).labels != examples(400, 1).labels).mean())
    assert wrong_share(examples(120, 0), examples(50, 1), np.random.default_rng(0)) == 0


IMAGES = np.random.default_rng(0).integers(0, 256, (40, 3, 4), dtype=np.uint8)
LABELS = (IMAGES[:, 0, 0] > 127).astype(np.uint8)


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_examples_are_the_features_and_labels_of_the_first_images(ending: str, tmp_path: Path) -> None:
    pack = gzip.compress if ending else bytes
    images = tmp_path / f"mine-images-idx3-ubyte{ending}"
    images.write_bytes(pack(idx_bytes(IMAGES)))
    (tmp_path / f"mine-labels-idx1-ubyte{ending}").write_bytes(pack(idx_bytes(LABELS)))
    engine = Engine.load(str(saved_prior(tmp_path, (3, 4))), "cpu")
    found = examples_of(engine, str(images), "train", 30)
    assert found.labels.tolist() == LABELS[:30].tolist()
    np.testing.assert_allclose(found.features, features(engine, IMAGES[:30] / 255))
