"""What studies ask of open priors."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from machines import brute_force
from opened import features, free_machine, plain_machine
from priors import random_conditional, random_deep_prior, random_prior

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
