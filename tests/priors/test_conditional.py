"""Conditional RBMs against models written out."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from conditionals import SIZES, all_states, log_weight, log_z, random_prior, scores, some_pairs, total
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import brute_force
from torch import Tensor

from restore.errors import InputError
from restore.priors import ConditionalRBM

# --- the prior ---


@settings(max_examples=20)
@given(st.sampled_from(SIZES), st.integers(0, 1000), st.sampled_from([torch.float64, torch.float32]))
def test_given_is_the_conditional_distribution(sizes: tuple[int, int, int], seed: int, dtype: torch.dtype) -> None:
    prior, pairs = random_prior(sizes, seed=seed), some_pairs(sizes, 3, seed)
    wanted = scores(prior, pairs.observed)
    given = prior.to(dtype).given(pairs.observed.to(dtype))
    assert given.weights.dtype == given.layers[0].parameters["bias"].dtype == dtype
    close = 1e-12 if dtype == torch.float64 else 1e-4
    visible, hidden = (torch.from_numpy(all_states(size)).to(dtype) for size in sizes[:2])
    for row in range(3):
        machine = given.rows(torch.tensor([row]))
        energies = [machine.energy((v.expand(len(hidden), -1), hidden)).double().numpy() for v in visible]
        np.testing.assert_allclose(-np.array(energies), wanted[row], rtol=0, atol=close)
        result = -machine.free_energy(visible).double().numpy()
        np.testing.assert_allclose(result, total(wanted[row]), rtol=0, atol=close)
        assert brute_force(given, row).log_partition == pytest.approx(log_z(prior, pairs.observed)[row], abs=close)
    np.testing.assert_allclose(
        -given.free_energy(pairs.clean.to(dtype)).double().numpy(), log_weight(prior, pairs), rtol=0, atol=close
    )


@pytest.mark.parametrize(
    ("visible", "hidden"),
    [((4, 5), (3, 5)), ((5, 5), (2, 5)), ((5, 5), (3, 4)), ((5,), (3, 5)), ((5, 5), (3,)), ((5, 5, 1), (3, 5, 1))],
    ids=str,
)
def test_inputs_that_do_not_lead_to_the_layers(visible: tuple[int, ...], hidden: tuple[int, ...]) -> None:
    with pytest.raises(ValueError) as caught:
        ConditionalRBM(random_prior().machine, torch.zeros(visible), torch.zeros(hidden))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(
    "observed",
    [
        torch.zeros(2, 5),
        torch.zeros(2, 0),
        torch.zeros(4),
        torch.zeros(1, 2, 4),
        torch.tensor([[0, 1, 0, math.nan]]),
        torch.tensor([[0, 1, 0, 0], [math.inf, 1, 0, 0]]),
        torch.tensor([[0, -math.inf, 0, 0]]),
    ],
    ids=["size", "nothing", "flat", "3d", "nan", "inf", "-inf"],
)
def test_observed_images_that_cannot_be_used(observed: Tensor, dtype: torch.dtype) -> None:
    with pytest.raises(InputError) as caught:
        random_prior().to(dtype).given(observed.to(dtype))
    assert "\n" not in str(caught.value)
