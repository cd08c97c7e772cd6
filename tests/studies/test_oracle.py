"""The oracle of machines with units of any type, against plain numpy going through every state; see machines.py."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from machines import Truth, brute_force, numerical_gradients, random_machine, seeded
from oracle import ExactMoments, exact_moments, log_likelihood, log_likelihood_gradient

from restore.errors import UsageError
from restore.fields import Fields
from restore.priors import RBM, FullyVisible
from restore.units import Gaussian, TruncatedGaussian

ANY = ["bernoulli", "spin", "gaussian", "truncated", "symmetric", "spiked-truncated", "spiked-symmetric"]
ANY += ["spiked-gaussian"]
any_kind = pytest.mark.parametrize("kind", ANY)
TWO_VALUES = pytest.mark.parametrize("other", ["bernoulli", "spin"])


def assert_same(exact: ExactMoments, truth: Truth, row: int | None = None) -> None:
    def pick(value: torch.Tensor) -> np.ndarray:
        return (value if row is None else value[row]).numpy()

    assert pick(exact.log_partition) == pytest.approx(truth.log_partition, abs=1e-9)
    np.testing.assert_allclose(pick(exact.pairs), truth.pairs[0], atol=1e-9)
    for statistics, mean, variance, values in zip(
        exact.statistics, truth.means, truth.variances, np.split(truth.states, [len(truth.means[0])], 1), strict=True
    ):
        np.testing.assert_allclose(pick(statistics["bias"]), mean, atol=1e-9)
        if "quadratic" in statistics:
            np.testing.assert_allclose(pick(statistics["quadratic"]), -(variance + mean**2) / 2, atol=1e-9)
        if "presence" in statistics:
            np.testing.assert_allclose(pick(statistics["presence"]), truth.probabilities @ (values != 0), atol=1e-9)


@any_kind
@TWO_VALUES
@pytest.mark.parametrize("seed", [0, 1])
def test_oracle_of_any_units_against_every_joint_state(kind: str, other: str, seed: int) -> None:
    machine = random_machine((kind, 2), (other, 3), seed=seed)
    assert_same(exact_moments(machine), brute_force(machine))
    assert_same(exact_moments(machine.transposed()), brute_force(machine.transposed()))


@any_kind
def test_oracle_of_a_batch_of_any_units(kind: str) -> None:
    machine = random_machine((kind, 2), ("spin", 3))
    visible = Fields(torch.randn(4, 2, generator=seeded(1), dtype=torch.float64), torch.tensor(0.3).double())
    hidden = Fields(torch.randn(4, 3, generator=seeded(2), dtype=torch.float64))
    for fields in ((visible, None), (None, hidden), (visible, hidden)):
        tilted = machine.tilt(*fields)
        exact = exact_moments(tilted)
        assert exact.log_partition.shape == (4,)
        for row in range(4):
            assert_same(exact, brute_force(tilted, row), row)


@pytest.mark.parametrize("tilted", [(), (0,), (1,), (0, 1)], ids=str)
def test_machines_of_two_gaussian_layers_are_one_normal_distribution(tilted: tuple[int, ...]) -> None:
    machine = random_machine(("gaussian", 2), ("gaussian", 1), scale=0.3)
    evidence = [Fields(torch.randn(3, n, generator=seeded(n)).double(), torch.tensor(0.3).double()) for n in (2, 1)]
    machine = machine.tilt(*(evidence[layer] if layer in tilted else None for layer in (0, 1)))
    exact = exact_moments(machine)
    for row in range(3 if tilted else 1):
        assert_same(exact, brute_force(machine, row, nodes=20), row if tilted else None)


@any_kind
@TWO_VALUES
def test_exact_gradient_of_any_units_against_finite_differences(kind: str, other: str) -> None:
    machines = [random_machine((kind, 3), (other, 2)), random_machine((other, 2), (kind, 3))]
    machines += [random_machine((kind, 3), (kind, 2), scale=0.3)] if kind == "gaussian" else []
    for machine in machines:
        images = machine.visible.sample(Fields(torch.zeros(6, machine.visible.size).double()), seeded(5))
        gradient = log_likelihood_gradient(machine, images)
        numerical = numerical_gradients(lambda moved, x=images: log_likelihood(moved, x).mean(), machine)
        assert gradient.keys() == machine.parameters.keys()
        for name, value in numerical.items():
            torch.testing.assert_close(gradient[name], value, rtol=0, atol=1e-8)


def test_outside_of_the_support_nothing_is_likely() -> None:
    machine = random_machine(("truncated", 2), ("bernoulli", 3))
    images = torch.tensor([[0.5, 1.01], [-0.01, 0.5], [0.5, 0.5]], dtype=torch.float64)
    assert torch.isinf(log_likelihood(machine, images)).tolist() == [True, True, False]


def test_machines_without_a_layer_to_enumerate_are_refused() -> None:
    machine = random_machine(("truncated", 2), ("gaussian", 2))
    with pytest.raises(UsageError):
        exact_moments(machine)
    with pytest.raises(UsageError):
        exact_moments(FullyVisible((TruncatedGaussian(torch.zeros(2), torch.zeros(2)),), (torch.zeros(2, 2),)))


@pytest.mark.parametrize("strength", [0.999, 1.001])
def test_gaussian_layers_coupled_too_strongly_are_unstable(strength: float) -> None:
    one = Gaussian(torch.ones(1).double(), torch.ones(1).double())
    machine = RBM((one, one), (torch.full((1, 1), strength, dtype=torch.float64),))
    if strength > 1:
        with pytest.raises(UsageError):
            exact_moments(machine)
    else:
        assert float(exact_moments(machine).visible) == pytest.approx(1 / (1 - strength))
