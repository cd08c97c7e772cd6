"""Statistics of the data and the model, and gradients in centred parameters: against finite differences and by hand."""

from __future__ import annotations

from directions import assert_close, free, some_images
from machines import numerical_gradients, random_rbm

from restore.learning.gradients.statistics import clamped, difference
from restore.priors.exact import log_likelihood_gradient

# --- statistics ---


def test_clamped_statistics_are_the_gradient_of_the_clamped_term() -> None:
    machine, images = random_rbm(5, 4, scale=1.5), some_images(7, 5)
    numerical = numerical_gradients(lambda moved: -moved.free_energy(images).mean(), machine)
    assert_close(clamped(machine, images), numerical, 1e-9)


def test_clamped_minus_exact_free_statistics_is_the_exact_gradient() -> None:
    machine, images = random_rbm(5, 4), some_images(7, 5)
    assert_close(difference(clamped(machine, images), free(machine)), log_likelihood_gradient(machine, images), 1e-12)
