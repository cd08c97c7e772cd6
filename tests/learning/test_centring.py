"""Statistics of the data and the model, and gradients in centred parameters: against finite differences and by hand."""

from __future__ import annotations

from directions import assert_close, free, some_images
from machines import random_rbm
from oracle import log_likelihood_gradient

from restore.learning.gradients.statistics import clamped, difference

# --- statistics ---


def test_clamped_minus_exact_free_statistics_is_the_exact_gradient() -> None:
    machine, images = random_rbm(5, 4), some_images(7, 5)
    assert_close(difference(clamped(machine, images), free(machine)), log_likelihood_gradient(machine, images), 1e-12)
