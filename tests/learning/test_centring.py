"""Statistics of the data and the model, and gradients in centred parameters: against finite differences and by hand."""

from __future__ import annotations

import torch
from directions import assert_close, free, moved_by, some_images
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import numerical_gradients, random_rbm, seeded
from torch import Tensor

from restore.learning.gradients.centring import centred
from restore.learning.gradients.statistics import clamped, difference
from restore.learning.rules.contract import Gradient
from restore.priors import RBM
from restore.priors.exact import log_likelihood, log_likelihood_gradient

# --- statistics ---


def test_clamped_statistics_are_the_gradient_of_the_clamped_term() -> None:
    machine, images = random_rbm(5, 4, scale=1.5), some_images(7, 5)
    numerical = numerical_gradients(lambda moved: -moved.free_energy(images).mean(), machine)
    assert_close(clamped(machine, images), numerical, 1e-9)


def test_clamped_minus_exact_free_statistics_is_the_exact_gradient() -> None:
    machine, images = random_rbm(5, 4), some_images(7, 5)
    assert_close(difference(clamped(machine, images), free(machine)), log_likelihood_gradient(machine, images), 1e-12)


# --- centring ---


def exact_gradient(machine: RBM, images: Tensor) -> Gradient:
    return log_likelihood_gradient(machine, images)


@settings(max_examples=15)
@given(st.integers(0, 1000), st.sampled_from([0.01, 1.0]))
def test_centred_direction_is_a_step_in_the_centred_parameters(seed: int, rate: float) -> None:
    machine, images = random_rbm(4, 3, seed=seed), some_images(6, 4, seed)
    mu = torch.rand(4, generator=seeded(seed + 1), dtype=torch.float64)
    lam = torch.rand(3, generator=seeded(seed + 2), dtype=torch.float64)
    weights = machine.weights.clone().requires_grad_()
    visible = (machine.visible.parameters["bias"] + machine.weights @ lam).requires_grad_()
    hidden = (machine.hidden.parameters["bias"] + machine.weights.T @ mu).requires_grad_()

    def plain(weights: Tensor, visible: Tensor, hidden: Tensor) -> RBM:
        # exp((v - mu)' W (h - lam) + b'v + c'h), multiplied out.
        return RBM.binary(weights, visible - weights @ lam, hidden - weights.T @ mu)

    likelihood = log_likelihood(plain(weights, visible, hidden), images).mean()
    slopes = torch.autograd.grad(likelihood, (weights, visible, hidden))
    with torch.no_grad():
        wanted = plain(*(value + rate * slope for value, slope in zip((weights, visible, hidden), slopes, strict=True)))
    got = moved_by(machine, centred(machine.couplings, exact_gradient(machine, images), (mu, lam)), rate)
    assert_close(got.parameters, wanted.parameters, 1e-12)
