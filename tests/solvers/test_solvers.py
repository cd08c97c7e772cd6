"""Solvers against the enumeration oracle: the loop, naive mean field, TAP, several starts, Gibbs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import (
    SMALL,
    brute_force,
    errors,
    numerical_gradients,
    of_shapes,
    orders,
    random_deep,
    random_fully_visible,
    random_rbm,
    seeded,
    two_patterns,
    with_weights,
)
from scipy import stats
from torch import Tensor

from restore.channels import BitFlip
from restore.errors import UsageError
from restore.fields import Fields
from restore.learning.gradients.statistics import fixed_point
from restore.marginals import Status
from restore.priors import RBM, BoltzmannMachine, FullyVisible
from restore.priors.bits import pack
from restore.priors.exact import binary_states, exact_moments
from restore.registry import SOLVERS
from restore.solvers import (
    TAP,
    AdaptiveTAP,
    BeliefPropagation,
    Gibbs,
    LayeredMap,
    MeanField,
    RelaxedBeliefPropagation,
    SeveralStarts,
    Solution,
    solver_of,
)
from restore.solvers.loop import iterate
from restore.solvers.samplers.gibbs import gibbs_steps
from restore.solvers.solution import concatenate
from restore.solvers.starts import SAME, merge, nearest_modes, repeated
from restore.tracing import tracing
from restore.zoo.description import Inference

both = pytest.mark.parametrize("kind", [MeanField, TAP], ids=["mean-field", "tap"])
PRECISE: dict[str, Any] = {"max_iter": 5000, "tol": 1e-14, "damping": 0.5}


def halves(machine: BoltzmannMachine, batch: int = 1) -> Tensor:
    return torch.full((batch, machine.layers[0].size), 0.5, dtype=machine.couplings[0].weights.dtype)


def random_evidence(batch: int, size: int, strength: float = 2.0, seed: int = 9) -> Fields:
    linear = strength * torch.randn(batch, size, generator=seeded(seed), dtype=torch.float64)
    return Fields(linear, torch.rand(batch, size, generator=seeded(seed + 1), dtype=torch.float64))


def row_of(solution: Solution, row: int) -> Solution:
    return Solution(
        tuple(mean[row : row + 1] for mean in solution.means),
        tuple(variance[row : row + 1] for variance in solution.variances),
        solution.log_partition[row : row + 1],
        solution.iterations[row : row + 1],
        solution.residual[row : row + 1],
        solution.status[row : row + 1],
    )


# --- the loop ---


@dataclass(frozen=True)
class Linear:
    """x -> rate * x + shift, one pair per image; the answer is known image by image."""

    rate: Tensor
    shift: Tensor

    def rows(self, index: Tensor) -> Linear:
        sizes.append(len(index))
        return Linear(self.rate[index], self.shift[index])


sizes: list[int] = []


def linear_step(problem: Linear, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    watched, counter = state
    return problem.rate[:, None] * watched + problem.shift[:, None], counter + 1


def one_by_one(rate: float, shift: float, start: float, max_iter: int, tol: float) -> tuple[float, int, float, Status]:
    value = start
    for iteration in range(1, max_iter + 1):
        new = rate * value + shift
        moved, value = abs(new - value), new
        if not math.isfinite(moved):
            return value, iteration, moved, Status.DIVERGED
        if moved <= tol:
            return value, iteration, moved, Status.CONVERGED
    return value, max_iter, moved, Status.MAX_ITER


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([0.0, 0.3, 0.5, 0.9, 0.99, 1.0, -1.0, 2.0, 1e200, math.nan]),
            st.sampled_from([0.0, 1.0, math.inf]),
            st.sampled_from([0.0, 1.0, -3.0]),
        ),
        min_size=1,
        max_size=12,
    ),
    st.sampled_from([1, 2, 7, 60]),
    st.sampled_from([0.0, 1e-3]),
)
def test_every_image_ends_as_it_would_alone(
    images: list[tuple[float, float, float]], max_iter: int, tol: float
) -> None:
    rate, shift, start = torch.tensor(images, dtype=torch.float64).T
    state = (start[:, None].expand(-1, 3).contiguous(), torch.zeros(len(images), 1, dtype=torch.float64))
    kept = tuple(value.clone() for value in state)
    outcome = iterate(linear_step, Linear(rate, shift), state, max_iter=max_iter, tol=tol, watched=1)
    for row, image in enumerate(images):
        value, iterations, moved, status = one_by_one(*image, max_iter, tol)
        assert int(outcome.status[row]) == status
        assert int(outcome.iterations[row]) == iterations
        # A state that is not watched stops with the image as well.
        assert float(outcome.state[1][row]) == iterations
        np.testing.assert_allclose(outcome.state[0][row], [value] * 3, rtol=1e-12)
        np.testing.assert_allclose(float(outcome.residual[row]), moved, rtol=1e-9, atol=1e-13)
    assert all(torch.equal(value, before) for value, before in zip(state, kept, strict=True))


def test_finished_images_are_taken_out_of_the_work() -> None:
    sizes.clear()
    rate = torch.tensor([0.99, 0.0, 0.5, 0.5, 0.9, 0.0, 0.0, 0.97], dtype=torch.float64)
    state = (torch.ones(8, 2, dtype=torch.float64), torch.zeros(8, 1, dtype=torch.float64))
    outcome = iterate(linear_step, Linear(rate, torch.zeros(8)), state, max_iter=1000, tol=1e-6, watched=1)
    assert sizes == [3, 1]
    assert not tracing()
    assert outcome.iterations[0] > outcome.iterations[7] > outcome.iterations[4] > outcome.iterations[2]


# --- settings and names ---


@both
@pytest.mark.parametrize(
    "wrong",
    [{"max_iter": 0}, {"tol": -1e-9}, {"tol": math.nan}, {"damping": 1.0}, {"damping": -0.1}, {"damping": math.nan}],
    ids=str,
)
def test_impossible_settings_are_refused(kind: type[LayeredMap], wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        kind(**wrong)  # type: ignore[arg-type]


def test_names_and_sentences() -> None:
    plain: dict[str, Any] = {"max_iter": 7, "tol": 1e-3, "damping": 0.2, "modes": 0, "starts": 0}
    made = {name: solver_of(Inference(name, **plain)) for name in SOLVERS}
    assert made == {
        "tap": TAP(7, 1e-3, 0.2),
        "mean_field": MeanField(7, 1e-3, 0.2),
        "relaxed_bp": RelaxedBeliefPropagation(7, 1e-3, 0.2),
        "adaptive_tap": AdaptiveTAP(7, 1e-3, 0.2),
        "sum_product": BeliefPropagation("sum", 7, 1e-3, 0.2),
        "max_product": BeliefPropagation("max", 7, 1e-3, 0.2),
        "mixed_product": BeliefPropagation("mixed", 7, 1e-3, 0.2),
    }
    with pytest.raises(UsageError, match=r"solver must be one of tap, .*, not 'gibbs'"):
        Inference("gibbs")
    sentences = [status.sentence for status in Status]
    assert len(set(sentences)) == 3
    assert all(isinstance(text, str) and "\n" not in text for text in sentences)


# --- fixed points against the oracle ---


@both
@pytest.mark.parametrize("damping", [0.0, 0.5])
def test_decoupled_machines_are_solved_exactly(kind: type[LayeredMap], damping: float) -> None:
    machine = with_weights(random_rbm(5, 4), 0.0).tilt(random_evidence(6, 5), random_evidence(6, 4, seed=20))
    solution = kind(**PRECISE | {"damping": damping}).solve(machine, halves(machine, 6))
    exact = exact_moments(machine)
    torch.testing.assert_close(solution.means[0], exact.visible, rtol=0, atol=1e-12)
    torch.testing.assert_close(solution.means[1], exact.hidden, rtol=0, atol=1e-12)
    torch.testing.assert_close(solution.variances[0], exact.visible * (1 - exact.visible), rtol=0, atol=1e-12)
    torch.testing.assert_close(solution.log_partition, exact.log_partition, rtol=0, atol=1e-11)
    assert bool((solution.status == Status.CONVERGED).all())


@both
def test_decoupled_deep_machines_are_solved_exactly(kind: type[LayeredMap]) -> None:
    machine = with_weights(random_deep(3, 4, 2), 0.0)
    truth = brute_force(machine)
    solution = kind(**PRECISE).solve(machine, halves(machine))
    for mean, wanted in zip(solution.means, truth.means, strict=True):
        np.testing.assert_allclose(mean[0], wanted, atol=1e-12)
    assert float(solution.log_partition) == pytest.approx(truth.log_partition, abs=1e-12)


# Errors of log Z and of the means shrink with this power of the weights.
ORDER = {MeanField: 2, TAP: 3}


@both
@of_shapes(*SMALL)
def test_errors_shrink_at_the_order_of_the_method(kind: type[LayeredMap], machine: BoltzmannMachine) -> None:
    found = []
    for power in (7, 8):
        weak = with_weights(machine, 2.0**-power)
        solution, truth = kind(**PRECISE).solve(weak, halves(weak)), brute_force(weak)
        found.append(errors(solution, truth.log_partition, truth.means))
    assert orders(found) == pytest.approx([ORDER[kind]] * 2, abs=0.1)


def test_tap_beats_mean_field_at_moderate_weights() -> None:
    gained = []
    for seed in range(10):
        machine = random_rbm(6, 4, scale=0.4, seed=seed)
        exact = exact_moments(machine)
        ours, theirs = (
            float((kind(**PRECISE).solve(machine, halves(machine)).means[0][0] - exact.visible).abs().max())
            for kind in (TAP, MeanField)
        )
        assert ours < 0.02
        gained.append(theirs / ours)
    assert np.median(gained) > 3


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 6), st.integers(1, 5), st.sampled_from([0.1, 1.0, 4.0]), st.integers(0, 10_000))
def test_mean_field_bounds_log_partition_from_below(visible: int, hidden: int, scale: float, seed: int) -> None:
    machine = random_rbm(visible, hidden, scale=scale, seed=seed)
    start = torch.rand(4, visible, generator=seeded(seed), dtype=torch.float64)
    solution = MeanField(max_iter=3000, tol=1e-12, damping=0.5).solve(machine, start)
    bound = solution.log_partition[solution.status == Status.CONVERGED]
    assert bool((bound <= exact_moments(machine).log_partition + 1e-9).all())


@both
def test_damping_does_not_move_the_fixed_point(kind: type[LayeredMap]) -> None:
    machine = random_rbm(6, 5, scale=0.5).tilt(random_evidence(8, 6))
    reference = kind(**PRECISE | {"damping": 0.0}).solve(machine, halves(machine, 8))
    for damping in (0.3, 0.8):
        solution = kind(**PRECISE | {"damping": damping}).solve(machine, halves(machine, 8))
        assert bool((solution.status == Status.CONVERGED).all())
        for got, wanted in zip(
            (*solution.means, *solution.variances), (*reference.means, *reference.variances), strict=True
        ):
            torch.testing.assert_close(got, wanted, rtol=0, atol=1e-11)
        torch.testing.assert_close(solution.log_partition, reference.log_partition, rtol=0, atol=1e-11)


@both
def test_a_solution_stays_where_it_is(kind: type[LayeredMap]) -> None:
    machine = random_deep(5, 4, 3, scale=0.5)
    solver = kind(**PRECISE)
    solution = solver.solve(machine, halves(machine))
    state = (*solution.means, *solution.variances)
    for got, wanted in zip(solver.step(machine, state), state, strict=True):
        torch.testing.assert_close(got, wanted, rtol=0, atol=1e-12)


def gradient_in_means(solver: LayeredMap, machine: BoltzmannMachine, means: tuple[Tensor, ...]) -> list[Tensor]:
    moved = [mean.clone().requires_grad_() for mean in means]
    value = solver.log_partition(machine, moved, [mean * (1 - mean) for mean in moved])
    return list(torch.autograd.grad(value.sum(), moved))


@both
@pytest.mark.parametrize(
    "machine",
    [random_rbm(6, 4, scale=0.6), random_deep(5, 4, 3, scale=0.5), random_fully_visible(8, scale=0.4)],
    ids=["rbm", "three-layers", "fully-visible"],
)
def test_free_energy_is_stationary_at_the_fixed_point(kind: type[LayeredMap], machine: BoltzmannMachine) -> None:
    solver = kind(**PRECISE)
    solution = solver.solve(machine, halves(machine))
    for gradient in gradient_in_means(solver, machine, solution.means):
        assert float(gradient.abs().max()) < 1e-11
    away = tuple((mean + 0.1).clamp(max=0.95) for mean in solution.means)
    assert max(float(gradient.abs().max()) for gradient in gradient_in_means(solver, machine, away)) > 1e-3


def plefka(machine: RBM, visible: Tensor, hidden: Tensor, second_order: bool) -> Tensor:
    """log Z of a binary RBM expanded to second order in the weights at given means, written out from the papers."""
    entropy = sum(-(m * m.log() + (1 - m) * (1 - m).log()).sum(-1) for m in (visible, hidden))
    fields = visible @ machine.visible.parameters["bias"] + hidden @ machine.hidden.parameters["bias"]
    pairs = (visible @ machine.weights * hidden).sum(-1)
    reaction = ((visible - visible**2) @ machine.weights**2 * (hidden - hidden**2)).sum(-1) / 2
    return entropy + fields + pairs + (reaction if second_order else 0)


@both
def test_log_partition_is_the_plefka_expansion(kind: type[LayeredMap]) -> None:
    machine = random_rbm(6, 4, scale=0.6)
    solution = kind(**PRECISE).solve(machine, halves(machine))
    wanted = plefka(machine, *solution.means, second_order=kind is TAP)
    torch.testing.assert_close(solution.log_partition, wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "machine", [random_rbm(5, 4, scale=0.6), random_deep(4, 3, 3, scale=0.5)], ids=["rbm", "three-layers"]
)
def test_statistics_of_a_fixed_point_are_the_gradient_of_its_log_partition(machine: BoltzmannMachine) -> None:
    solver = TAP(**PRECISE)

    def log_partition(moved: BoltzmannMachine) -> Tensor:
        return solver.solve(moved, halves(moved)).log_partition

    solution = solver.solve(machine, halves(machine))
    gradient, means, variances = fixed_point(machine, list(solution.means), list(solution.variances))
    for name, wanted in numerical_gradients(log_partition, machine).items():
        torch.testing.assert_close(gradient[name], wanted, rtol=0, atol=1e-8)
    for got, wanted in zip((*means, *variances), (*solution.means, *solution.variances), strict=True):
        torch.testing.assert_close(got, wanted, rtol=0, atol=1e-12)


def test_fixed_point_statistics_average_over_solutions() -> None:
    machine = random_rbm(5, 4, scale=0.6)
    solution = TAP(**PRECISE).solve(machine, torch.rand(7, 5, generator=seeded(1), dtype=torch.float64))
    single, _, _ = fixed_point(machine, [m[:1] for m in solution.means], [v[:1] for v in solution.variances])
    several, _, _ = fixed_point(machine, list(solution.means), list(solution.variances))
    for name, value in several.items():
        torch.testing.assert_close(value, single[name], rtol=0, atol=1e-11)


# --- batches, precision, verdicts ---


@both
@pytest.mark.parametrize("deep", [False, True], ids=["rbm", "three-layers"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_a_batch_gives_what_each_image_alone_gives(kind: type[LayeredMap], deep: bool, dtype: torch.dtype) -> None:
    machine = (random_deep(12, 8, 5, scale=0.5) if deep else random_rbm(12, 8, scale=0.6)).to(dtype)
    batch = 23
    strength = torch.logspace(-2, 3, batch, dtype=dtype)[:, None]
    linear = strength * torch.randn(batch, 12, generator=seeded(1), dtype=dtype)
    start = torch.rand(batch, 12, generator=seeded(2), dtype=dtype)
    solver = kind(max_iter=500, tol=1e-6, damping=0.5)
    together = solver.solve(machine.tilt(Fields(linear)), start)
    # Images that finish at different times make the batch shrink several times.
    assert len(together.iterations.unique()) >= 5
    for row in range(batch):
        alone = solver.solve(machine.tilt(Fields(linear[row : row + 1])), start[row : row + 1])
        shared = row_of(together, row)
        for got, wanted in zip((*shared.means, *shared.variances), (*alone.means, *alone.variances), strict=True):
            torch.testing.assert_close(got, wanted, rtol=0, atol=1e-5)
        torch.testing.assert_close(shared.log_partition, alone.log_partition, rtol=1e-7, atol=1e-5)
        assert torch.equal(shared.status, alone.status)
        if dtype is torch.float64:
            assert torch.equal(shared.iterations, alone.iterations)


@both
def test_evidence_in_the_machine_or_in_its_bias_is_the_same(kind: type[LayeredMap]) -> None:
    machine, evidence = random_rbm(6, 5, scale=0.5), random_evidence(1, 6)
    tilted = kind(**PRECISE).solve(machine.tilt(evidence), halves(machine))
    bias = machine.visible.parameters["bias"] + evidence.linear[0] - evidence.quadratic[0] / 2
    plain = RBM.binary(machine.weights, bias, machine.hidden.parameters["bias"])
    merged = kind(**PRECISE).solve(plain, halves(plain))
    torch.testing.assert_close(tilted.means[0], merged.means[0])
    torch.testing.assert_close(tilted.log_partition, merged.log_partition)


@pytest.mark.parametrize("kind", [MeanField, TAP, RelaxedBeliefPropagation, AdaptiveTAP])
def test_certain_pixels_stay_and_the_others_are_conditioned_on_them(kind: type) -> None:
    machine = random_rbm(10, 6, scale=0.3).to(torch.float32)
    image = (torch.arange(10) % 2).float()[None]
    solution = kind().solve(machine.tilt(BitFlip(0.0).evidence(image)), image)
    assert torch.equal(solution.means[0], image)
    assert solution.variances[0].abs().max() == 0
    hidden, _ = machine.hidden.moments(machine.hidden_fields(image))
    torch.testing.assert_close(solution.means[1], hidden)
    assert solution.log_partition.dtype == torch.float64
    # With the image known there is nothing left to approximate.
    weight = -machine.tilt(BitFlip(0.0).evidence(image)).to(torch.float64).free_energy(image.double())
    torch.testing.assert_close(solution.log_partition, weight, rtol=0, atol=1e-6)


@both
def test_verdicts(kind: type[LayeredMap]) -> None:
    machine = random_rbm(6, 5, scale=0.5)
    linear = torch.randn(4, 6, generator=seeded(1), dtype=torch.float64)
    start = halves(machine, 4)
    tight = kind(max_iter=3, tol=1e-12).solve(machine.tilt(Fields(linear)), start)
    assert tight.status.tolist() == [Status.MAX_ITER] * 4
    assert tight.iterations.tolist() == [3] * 4
    assert bool((tight.residual > 1e-12).all())
    good = kind(max_iter=300, tol=1e-9).solve(machine.tilt(Fields(linear)), start)
    assert good.status.tolist() == [Status.CONVERGED] * 4
    assert bool((good.residual <= 1e-9).all())


@both
@pytest.mark.parametrize("where", ["evidence", "start"])
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_an_image_that_is_not_finite_diverges_alone(kind: type[LayeredMap], where: str, value: float) -> None:
    machine = random_rbm(6, 5, scale=0.5)
    linear = torch.randn(4, 6, generator=seeded(1), dtype=torch.float64)
    start = halves(machine, 4)
    solver = kind(max_iter=300, tol=1e-9)
    good = solver.solve(machine.tilt(Fields(linear)), start)
    broken_linear, broken_start = linear.clone(), start.clone()
    (broken_linear if where == "evidence" else broken_start)[1, 2] = value
    got = solver.solve(machine.tilt(Fields(broken_linear)), broken_start)
    if where == "evidence" and value == math.inf:
        # An infinite field is a certain pixel; only log Z has no number then.
        assert int(got.status[1]) == Status.CONVERGED
        assert float(got.means[0][1, 2]) == pytest.approx(1, abs=1e-8)
        assert not bool(torch.isfinite(got.log_partition[1]))
    else:
        assert int(got.status[1]) == Status.DIVERGED
        assert int(got.iterations[1]) == 1
    for row in (0, 2, 3):
        assert int(got.status[row]) == Status.CONVERGED
        torch.testing.assert_close(got.means[0][row], good.means[0][row], rtol=0, atol=1e-8)


def test_weights_that_are_not_finite_diverge() -> None:
    machine = random_rbm(4, 3)
    broken = machine.with_parameters(machine.parameters | {"weights.0": machine.weights * math.nan})
    assert TAP().solve(broken, halves(broken, 2)).status.tolist() == [Status.DIVERGED] * 2


def test_batches_are_put_together_in_order() -> None:
    machine = random_rbm(6, 5, scale=0.5).tilt(random_evidence(5, 6))
    solver = TAP(tol=1e-10)
    whole = solver.solve(machine, halves(machine, 5))
    parts = concatenate(
        [
            solver.solve(machine.rows(torch.arange(first, last)), halves(machine, last - first))
            for first, last in ((0, 2), (2, 5))
        ]
    )
    torch.testing.assert_close(parts.means[0], whole.means[0])
    assert torch.equal(parts.iterations, whole.iterations)


# --- several starts ---


def made_up(means: list[list[float]], log_partition: list[float], status: list[int] | None = None) -> Solution:
    """Solutions of one image as a solver would return them."""
    visible = torch.tensor(means, dtype=torch.float64)
    count = len(means)
    return Solution(
        (visible,),
        (visible * (1 - visible),),
        torch.tensor(log_partition, dtype=torch.float64),
        torch.arange(1, count + 1),
        torch.linspace(1e-6, 1e-5, count, dtype=torch.float64),
        torch.tensor(status or [0] * count),
    )


def test_distinct_solutions_are_weighted_by_their_partition_function() -> None:
    found = made_up([[0.9, 0.2], [0.1, 0.4], [0.9 + SAME / 2, 0.2]], [1.0, 2.0, 1.0])
    mixed = merge(found, 1, 3)
    weight = np.exp([1.0, 2.0]) / np.exp([1.0, 2.0]).sum()
    centre = weight[0] * np.array([0.9, 0.2]) + weight[1] * np.array([0.1, 0.4])
    np.testing.assert_allclose(mixed.means[0][0], centre)
    # Of binary pixels the variance is that of the mixed probability: within the solutions plus between them.
    np.testing.assert_allclose(mixed.variances[0][0], centre * (1 - centre))
    assert float(mixed.log_partition) == pytest.approx(np.log(np.exp([1.0, 2.0]).sum()))
    assert mixed.iterations.tolist() == [3]
    assert mixed.status.tolist() == [Status.CONVERGED]


def test_a_power_flattens_the_weights_but_not_the_partition_function() -> None:
    found = made_up([[0.9], [0.1]], [0.0, 2 * math.log(3)])
    mixed = merge(found, 1, 2, torch.tensor([0.5]))
    assert float(mixed.means[0]) == pytest.approx(0.25 * 0.9 + 0.75 * 0.1)
    assert float(mixed.log_partition) == pytest.approx(math.log(10))
    assert float(merge(found, 1, 2, torch.tensor([0.0])).means[0]) == pytest.approx(0.5)


def test_weights_of_any_size() -> None:
    found = made_up([[0.9], [0.1]], [-5000.0, -5000.0 + math.log(3)])
    mixed = merge(found, 1, 2)
    assert float(mixed.means[0]) == pytest.approx(0.25 * 0.9 + 0.75 * 0.1)
    assert float(mixed.log_partition) == pytest.approx(-5000 + math.log(4))


def test_only_fixed_points_count() -> None:
    # What did not converge has the highest log Z, and no say.
    found = made_up([[0.9], [0.1], [0.5]], [0.0, math.log(3), 30.0], [0, 0, Status.MAX_ITER])
    mixed = merge(found, 1, 3)
    assert float(mixed.means[0]) == pytest.approx(0.25 * 0.9 + 0.75 * 0.1)
    assert float(mixed.log_partition) == pytest.approx(math.log(4))
    assert (mixed.status.tolist(), mixed.residual.tolist()) == ([Status.CONVERGED], found.residual[1:2].tolist())
    # Nor does it hide the fixed point that it lies close to.
    found = made_up([[0.9], [0.9]], [30.0, 1.0], [Status.MAX_ITER, 0])
    assert float(merge(found, 1, 2).log_partition) == pytest.approx(1.0)


def test_an_image_without_a_fixed_point_says_so() -> None:
    stopped = int(Status.MAX_ITER)
    found = made_up([[0.9], [0.1], [0.3], [0.7]], [0.0, math.log(3), 0.0, 5.0], [stopped, stopped, 0, stopped])
    mixed = merge(found, 2, 2)
    assert mixed.status.tolist() == [Status.MAX_ITER, Status.CONVERGED]
    assert mixed.means[0].flatten().tolist() == pytest.approx([0.25 * 0.9 + 0.75 * 0.1, 0.3])


def test_images_none_of_whose_starts_settle_have_another_try() -> None:
    # Two units that inhibit each other: updated at once by mean field, they jump between (0, 0) and (1, 1).
    bias, coupling = torch.tensor([4.0, 4.0]), torch.tensor([[0.0, -8.0], [-8.0, 0.0]])
    machine = FullyVisible.binary(coupling.double(), bias.double())
    solver = MeanField(damping=0.0, tol=1e-6, max_iter=60)
    jumping, settling = torch.full((2,), 0.1).double(), torch.tensor([1.0, 0.0]).double()
    tilted = machine.tilt(Fields(torch.zeros(2, 2).double()))
    starts = torch.stack([torch.stack([jumping, settling]), torch.stack([jumping, jumping])])
    assert solver.solve(tilted, starts[:, 0]).status.tolist() == [Status.MAX_ITER] * 2
    found = SeveralStarts(solver).solve(tilted, starts)
    assert found.status.tolist() == [Status.CONVERGED] * 2
    # The first has the solution that it found at once, alone; the second one that more damping found.
    alone = solver.solve(tilted, starts[:, 1])
    torch.testing.assert_close(found.means[0][0], alone.means[0][0])
    assert float(found.log_partition[0]) == pytest.approx(float(alone.log_partition[0]))
    torch.testing.assert_close(found.means[0][1], torch.full((2,), 0.5).double(), rtol=0, atol=1e-4)
    assert int(found.iterations[1]) > solver.max_iter


@pytest.mark.parametrize("order", [[0, 1, 2], [1, 0, 2], [2, 1, 0]], ids=str)
def test_diverged_starts_are_left_out_wherever_they_come(order: list[int]) -> None:
    values = [[math.nan, math.nan], [0.9, 0.2], [0.1, 0.4]]
    logs, status = [math.nan, 1.0, 2.0], [Status.DIVERGED, 0, 0]
    found = made_up([values[i] for i in order], [logs[i] for i in order], [int(status[i]) for i in order])
    mixed, clean = merge(found, 1, 3), merge(made_up(values[1:], logs[1:]), 1, 2)
    torch.testing.assert_close(mixed.means[0], clean.means[0])
    torch.testing.assert_close(mixed.variances[0], clean.variances[0])
    torch.testing.assert_close(mixed.log_partition, clean.log_partition)
    assert mixed.status.tolist() == [Status.CONVERGED]


def test_a_diverged_start_hides_no_other() -> None:
    values = torch.tensor([[[math.nan, math.nan], [0.9, 0.2]], [[math.nan, 0.2], [0.9, 0.2]]])
    assert not bool(repeated(values, torch.tensor([[False, True], [False, True]])).any())


def test_an_image_whose_starts_all_diverge_says_so() -> None:
    bad = made_up([[math.nan]] * 2 + [[0.3], [0.6]], [math.nan, math.nan, 0.0, 0.0], [2, 2, 0, 0])
    mixed = merge(bad, 2, 2)
    assert mixed.status.tolist() == [Status.DIVERGED, Status.CONVERGED]
    assert bool(mixed.means[0][0].isnan().all())
    assert bool(mixed.log_partition[0].isnan())
    assert float(mixed.means[0][1]) == pytest.approx(0.45)


@both
def test_one_start_is_the_solver_itself(kind: type[LayeredMap]) -> None:
    machine = random_rbm(6, 5, scale=0.5).tilt(random_evidence(4, 6))
    solver = kind(tol=1e-9)
    start = torch.rand(4, 6, generator=seeded(1), dtype=torch.float64)
    plain, several = solver.solve(machine, start), SeveralStarts(solver).solve(machine, start[:, None])
    for got, wanted in zip((*several.means, *several.variances), (*plain.means, *plain.variances), strict=True):
        torch.testing.assert_close(got, wanted)
    for name in ("log_partition", "iterations", "residual", "status"):
        torch.testing.assert_close(getattr(several, name), getattr(plain, name))


def test_starts_that_meet_count_once() -> None:
    machine = random_rbm(6, 5, scale=0.3).tilt(random_evidence(4, 6))
    solver = TAP(tol=1e-9)
    starts = torch.rand(4, 9, 6, generator=seeded(1), dtype=torch.float64)
    several, plain = SeveralStarts(solver).solve(machine, starts), solver.solve(machine, starts[:, 0])
    torch.testing.assert_close(several.log_partition, plain.log_partition, rtol=0, atol=1e-9)
    torch.testing.assert_close(several.means[0], plain.means[0], rtol=0, atol=1e-7)
    torch.testing.assert_close(several.variances[0], plain.variances[0], rtol=0, atol=1e-7)


def test_several_starts_solve_a_machine_with_two_modes_where_one_fails() -> None:
    # The observation is nearer to the first pattern and draws the pointwise estimate into its basin, but not near
    # enough to outweigh the prior's preference for the second.
    machine, patterns = two_patterns()
    y = patterns[0].clone()
    y[:5] = 1 - y[:5]
    evidence = BitFlip(0.3).evidence(y[None])
    tilted = machine.tilt(evidence)
    exact = exact_moments(tilted)
    pointwise = torch.sigmoid(evidence.linear)
    solver = TAP(tol=1e-10, max_iter=2000, damping=0.5)
    alone = solver.solve(tilted, pointwise)
    assert alone.status.tolist() == [Status.CONVERGED]
    assert float((alone.means[0] - exact.visible).abs().max()) > 0.5
    assert float((alone.means[0] - patterns[0]).abs().max()) < 0.2
    starts = torch.cat([pointwise[:, None], patterns[None]], 1)
    several = SeveralStarts(solver).solve(tilted, starts)
    torch.testing.assert_close(several.means[0], exact.visible, rtol=0, atol=0.01)
    torch.testing.assert_close(several.means[1], exact.hidden, rtol=0, atol=0.01)
    torch.testing.assert_close(several.variances[0], exact.visible * (1 - exact.visible), rtol=0, atol=0.01)
    torch.testing.assert_close(several.log_partition, exact.log_partition, rtol=0, atol=0.03)
    assert several.status.tolist() == [Status.CONVERGED]


def test_nearest_modes_are_the_likeliest_under_the_channel() -> None:
    modes = torch.bernoulli(torch.full((20, 8), 0.5), generator=seeded(1))
    observed = torch.bernoulli(torch.full((5, 8), 0.5), generator=seeded(2))
    channel = BitFlip(torch.linspace(0.05, 0.9, 8))
    chosen = nearest_modes(channel.evidence(observed).linear, pack(modes), 3)
    assert chosen.shape == (5, 3, 8)
    for y, picked in zip(observed, chosen, strict=True):
        scores = channel.log_likelihood(y.expand_as(modes), modes).sum(-1)
        wanted = scores.sort(descending=True).values[:3]
        torch.testing.assert_close(channel.log_likelihood(y.expand(3, 8), picked).sum(-1), wanted)
    assert nearest_modes(torch.zeros(5, 8), pack(modes[:2]), 3).shape == (5, 2, 8)
    assert nearest_modes(torch.zeros(5, 8), pack(modes[:0]), 3).shape == (5, 0, 8)
    assert nearest_modes(torch.zeros(5, 8), pack(modes), 0).shape == (5, 0, 8)


def test_of_modes_as_likely_the_earlier_one_is_nearer_in_any_batch() -> None:
    # Flips of one probability: the likelihood of a mode counts pixels, so that many are the same.
    modes = torch.bernoulli(torch.full((40, 11), 0.5), generator=seeded(1))
    observed = torch.bernoulli(torch.full((9, 11), 0.5), generator=seeded(2))
    evidence = BitFlip(0.3).evidence(observed).linear
    together = nearest_modes(evidence, pack(modes), 6)
    for row, y in enumerate(observed):
        apart = (modes != y).sum(1).tolist()
        wanted = modes[sorted(range(40), key=lambda mode, apart=apart: (apart[mode], mode))[:6]]
        assert torch.equal(together[row], wanted)
        assert torch.equal(nearest_modes(evidence[row : row + 1], pack(modes), 6)[0], wanted)
    # Nothing was observed: the first ones.
    assert torch.equal(nearest_modes(torch.zeros(1, 11), pack(modes), 6)[0], modes[:6])


def test_very_many_solutions_of_one_weight_all_have_a_say() -> None:
    count = 150
    means = torch.linspace(0, 10, count)[:, None]
    status = torch.full((count,), int(Status.CONVERGED))
    residual = torch.linspace(0, 1, count)
    found = Solution((means,), (means * 0,), torch.zeros(count).double(), torch.arange(count), residual, status)
    assert float(merge(found, 1, count).residual) == 1.0


# --- Gibbs sampling ---


def exact_samples(machine: RBM, count: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Visible states drawn from the exact distribution; and all states with their probabilities."""
    states = binary_states(machine.visible.size, machine.weights)
    probability = torch.softmax(-machine.free_energy(states), 0)
    return states[torch.multinomial(probability, count, replacement=True, generator=generator)], states, probability


@pytest.mark.parametrize("tilted", [False, True], ids=["prior", "posterior"])
def test_chains_started_at_the_distribution_stay_there(tilted: bool) -> None:
    machine = random_rbm(4, 3, scale=1.5)
    if tilted:
        machine = machine.tilt(Fields(torch.tensor([1.0, -2.0, 0.5, 0.0]).double()))
    count, generator = 40_000, seeded(1)
    chains, _, probability = exact_samples(machine, count, generator)
    for _ in range(3):
        chains = gibbs_steps(machine, chains, 2, generator)
        codes = (chains.long() << torch.arange(4)).sum(-1)
        seen = torch.bincount(codes, minlength=16).double()
        statistic = float(((seen - count * probability) ** 2 / (count * probability)).sum())
        # One in a million such tests fails by chance.
        assert statistic <= stats.chi2.ppf(1 - 1e-6, 15)


def test_a_wrong_sampler_would_be_noticed() -> None:
    machine = random_rbm(4, 3, scale=1.5)
    count, generator = 40_000, seeded(1)
    chains, _, probability = exact_samples(machine, count, generator)
    wrong = with_weights(machine, 0.95)
    codes = (gibbs_steps(wrong, chains, 6, generator).long() << torch.arange(4)).sum(-1)
    seen = torch.bincount(codes, minlength=16).double()
    assert float(((seen - count * probability) ** 2 / (count * probability)).sum()) > stats.chi2.ppf(1 - 1e-6, 15)


def test_gibbs_marginals_agree_with_the_oracle() -> None:
    machine = random_rbm(5, 4, scale=1.2).tilt(random_evidence(1, 5, seed=3))
    exact, chains = exact_moments(machine), 2000
    start, _, _ = exact_samples(machine, chains, seeded(1))
    solution = Gibbs(burn_in=0, samples=20).solve(
        machine.rows(torch.zeros(chains, dtype=torch.int64)), start, seeded(2)
    )
    for mean, variance, wanted in zip(
        solution.means, solution.variances, (exact.visible[0], exact.hidden[0]), strict=True
    ):
        # Chains are independent, so their spread tells the error of their average.
        error = mean.std(0) / math.sqrt(chains)
        assert bool(((mean.mean(0) - wanted).abs() <= 5 * error).all())
        second = variance + mean**2
        assert bool(((second.mean(0) - wanted).abs() <= 5 * second.std(0) / math.sqrt(chains)).all())


def test_gibbs_finds_the_posterior_from_anywhere() -> None:
    machine = random_rbm(6, 4, scale=0.5).tilt(random_evidence(3, 6, seed=3))
    exact = exact_moments(machine)
    solution = Gibbs(burn_in=50, samples=4000).solve(machine, torch.zeros(3, 6).double(), seeded(2))
    # At these weights a chain forgets within a few sweeps: at least 400 independent samples of variance at most 1/4.
    torch.testing.assert_close(solution.means[0], exact.visible, rtol=0, atol=5 * 0.5 / math.sqrt(400))
    torch.testing.assert_close(solution.means[1], exact.hidden, rtol=0, atol=5 * 0.5 / math.sqrt(400))
    assert solution.status.tolist() == [Status.CONVERGED] * 3
    assert solution.iterations.tolist() == [4050] * 3
    assert bool(solution.log_partition.isnan().all())


def test_gibbs_says_when_the_halves_of_a_chain_disagree() -> None:
    machine = random_rbm(5, 4)
    solution = Gibbs(burn_in=0, samples=5, tol=1e-6).solve(machine, torch.zeros(2, 5).double(), seeded(1))
    assert solution.status.tolist() == [Status.MAX_ITER] * 2
    assert bool((solution.residual > 1e-6).all())


def test_gibbs_is_a_function_of_its_generator() -> None:
    machine = random_rbm(5, 4)
    runs = [Gibbs(3, 7).solve(machine, torch.zeros(2, 5).double(), seeded(seed)).means[0] for seed in (1, 1, 2)]
    assert torch.equal(runs[0], runs[1])
    assert not torch.equal(runs[0], runs[2])


@pytest.mark.parametrize("wrong", [{"burn_in": -1}, {"samples": 1}], ids=str)
def test_impossible_chains_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(UsageError, match="burn_in"):
        Gibbs(**wrong)
