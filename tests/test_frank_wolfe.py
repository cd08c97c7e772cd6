"""Frank-Wolfe: the inner problem against finite differences, growth against exactly enumerated likelihoods."""

from __future__ import annotations

import json
import math
import signal
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import bars_and_stripes, numerical_gradient, random_rbm, seeded
from torch import Tensor
from torch.nn.functional import softplus

import restore
from restore.errors import TrainingError, UsageError
from restore.learning import hidden_unit
from restore.learning.contrastive import ContrastiveDivergence
from restore.learning.frank_wolfe import (
    FrankWolfe,
    Growth,
    prior_of,
    rbm_of,
    settled,
    stopping_verdict,
    unit_means,
    without_worst,
)
from restore.learning.hidden_unit import Unit, change, factor, find_unit, fitting_scale, objective
from restore.learning.pipeline import grow, train
from restore.learning.recipe import Data, PriorShape, Recipe, Training, parse
from restore.learning.run_folder import Stopped
from restore.priors import RBM, FractionalRBM
from restore.priors.exact import binary_states, exact_moments, log_likelihood
from restore.solvers.gibbs import gibbs_steps
from restore.zoo import describe

IMAGES = bars_and_stripes(3)
SMALL = FrankWolfe(units=8, samples=4000, penalty=0.003, bias_steps=20, bias_rate=0.3, away_every=4)


def exact_samples(machine: RBM, count: int, seed: int = 0) -> Tensor:
    """Independent samples of a small machine."""
    states = binary_states(machine.visible.size, machine.weights)
    probabilities = log_likelihood(machine, states).exp()
    return states[torch.multinomial(probabilities, count, replacement=True, generator=seeded(seed))]


def random_unit(size: int, seed: int = 0, scale: float = 1.0) -> Unit:
    draw = scale * torch.randn(size + 1, generator=seeded(seed), dtype=torch.float64)
    return Unit(draw[:-1], draw[-1])


def penalised(machine: RBM, penalty: float) -> float:
    squares = machine.weights.square().sum() + machine.hidden.parameters["bias"].square().sum()
    return float(log_likelihood(machine, IMAGES.to(machine.weights)).mean()) - penalty / 2 * float(squares)


# --- the inner problem ---


def drift_of(images: Tensor, samples: Tensor) -> Tensor:
    return samples.mean(0) - images.mean(0)


NO_DRIFT = torch.zeros(9, dtype=torch.float64)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.01, 1.0]))
def test_the_gradient_of_the_objective_is_that_of_finite_differences(seed: int, penalty: float) -> None:
    images, samples = IMAGES.double(), exact_samples(random_rbm(9, 3, seed=seed), 30, seed)
    unit, drift = random_unit(9, seed, 2.0), drift_of(images, samples)

    def value(weights: Tensor, bias: Tensor) -> float:
        return objective(Unit(weights, bias), images, samples, drift, penalty)[0]

    _, slope = objective(unit, images, samples, drift, penalty)
    by_weights = numerical_gradient(lambda moved: value(moved, unit.bias), unit.weights)
    by_bias = numerical_gradient(lambda moved: value(unit.weights, moved[0]), unit.bias[None])
    torch.testing.assert_close(slope.weights, by_weights, rtol=0, atol=1e-8)
    torch.testing.assert_close(slope.bias[None], by_bias, rtol=0, atol=1e-8)


def test_the_objective_is_the_formula_and_that_of_no_unit_is_zero() -> None:
    images, samples, unit = IMAGES.double(), exact_samples(random_rbm(9, 3), 20), random_unit(9)
    drift = drift_of(images, samples)

    def fields(visible: Tensor) -> list[float]:
        return [float(v @ unit.weights + unit.bias) for v in visible]

    def softplus(visible: Tensor) -> float:
        return sum(math.log1p(math.exp(field)) for field in fields(visible)) / len(visible)

    square = sum(float(w) ** 2 for w in (*unit.weights, unit.bias))
    assert unit.square == pytest.approx(square)
    # Eq. 9, where the means agree.
    expected = 0.35 / 2 * square + softplus(samples) - softplus(images)
    assert objective(unit, images, samples, NO_DRIFT, 0.35)[0] == pytest.approx(expected, abs=1e-12)
    # Where they do not, without what the visible bias takes over.
    share = sum(1 / (1 + math.exp(-field)) for field in fields(images)) / len(images)
    linear = share * (sum(fields(samples)) / len(samples) - sum(fields(images)) / len(images))
    assert objective(unit, images, samples, drift, 0.35)[0] == pytest.approx(expected - linear, abs=1e-12)
    nothing = Unit(torch.zeros(9, dtype=torch.float64), torch.zeros((), dtype=torch.float64))
    assert objective(nothing, images, samples, drift, 0.35)[0] == 0


def test_a_unit_that_is_always_on_or_always_off_is_none() -> None:
    # Its effect is that of a visible bias, which has a step of its own.
    images, samples = IMAGES.double(), exact_samples(random_rbm(9, 3), 50)
    for bias in (-60.0, 60.0):
        unit = Unit(random_unit(9).weights, torch.tensor(bias, dtype=torch.float64))
        assert objective(unit, images, samples, drift_of(images, samples), 0.0)[0] == pytest.approx(0, abs=1e-12)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10_000))
def test_a_unit_and_the_one_with_on_and_off_exchanged_are_the_same(seed: int) -> None:
    images, samples, unit = IMAGES.double(), exact_samples(random_rbm(9, 3), 50), random_unit(9, seed)
    other, drift = Unit(-unit.weights, -unit.bias), drift_of(images, samples)
    values = [objective(each, images, samples, drift, 0.1)[0] for each in (unit, other)]
    assert values[0] == pytest.approx(values[1], abs=1e-12)


def test_minus_the_objective_is_the_slope_of_the_likelihood_in_the_share_of_the_unit() -> None:
    # Eq. 8: with a unit of power k, d log-likelihood / dk at k = 0 is the linearised gain.
    machine, images, unit = random_rbm(9, 3), IMAGES.double(), random_unit(9)
    states = binary_states(9, machine.weights)
    weights = log_likelihood(machine, states).exp()

    def likelihood(power: float) -> float:
        at = [-machine.free_energy(v) + power * softplus(unit.inputs(v)) for v in (images, states)]
        return float(at[0].mean() - torch.logsumexp(at[1], 0))

    slope = (likelihood(1e-5) - likelihood(-1e-5)) / 2e-5
    model, data = float(weights @ softplus(unit.inputs(states))), float(softplus(unit.inputs(images)).mean())
    assert slope == pytest.approx(data - model, abs=1e-8)
    # And `objective` is minus that when its samples are the model: here every state as often as it is probable.
    many = exact_samples(machine, 400_000)
    assert objective(unit, images, many, NO_DRIFT, 0.0)[0] == pytest.approx(-slope, abs=0.01)


def with_unit(machine: RBM, unit: Unit, share: float) -> RBM:
    """The machine and the unit, of which the visible bias takes back what it adds to the means."""
    return RBM.binary(
        torch.cat([machine.weights, unit.weights[:, None]], 1),
        machine.visible.parameters["bias"] - share * unit.weights,
        torch.cat([machine.hidden.parameters["bias"], unit.bias[None]]),
    )


def test_the_estimated_gain_of_a_unit_is_the_exact_one_within_its_error() -> None:
    machine, images, unit = random_rbm(9, 3), IMAGES.double(), random_unit(9, 4, 0.8)
    share = 0.37
    exact = float((log_likelihood(with_unit(machine, unit, share), images) - log_likelihood(machine, images)).mean())
    deviations = []
    for seed in range(40):
        samples = exact_samples(machine, 3000, seed)
        at = lambda v: factor(unit.inputs(v), share, float(unit.bias), 1.0)  # noqa: E731
        outcome = change(at(images), at(samples))
        deviations.append((outcome.gain - exact) / outcome.error)
    spread = torch.tensor(deviations)
    # Forty standard normal numbers, if the error is what it says.
    assert 0.7 < float(spread.std()) < 1.3
    assert abs(float(spread.mean())) < 0.6


def test_overlap_is_the_effective_share_of_the_samples() -> None:
    assert change(torch.zeros(3).double(), torch.zeros(10).double()) == pytest.approx((0, 0, 1), abs=1e-6)
    lopsided = torch.tensor([50.0] + [0.0] * 9, dtype=torch.float64)
    outcome = change(torch.zeros(3).double(), lopsided)
    assert outcome.overlap == pytest.approx(0.1, abs=1e-6)
    assert outcome.gain == pytest.approx(math.log(10) - 50, abs=1e-6)


def independent(images: Tensor) -> RBM:
    """The machine without correlations that has the images' means."""
    bias = torch.logit(images.mean(0, dtype=torch.float64))
    return RBM.binary(torch.zeros(9, 1, dtype=torch.float64), bias, torch.zeros(1, dtype=torch.float64))


def test_a_unit_found_lowers_the_objective_and_gains_what_is_estimated() -> None:
    machine, images = independent(IMAGES), IMAGES.double()
    samples = exact_samples(machine, 5000)
    found = find_unit(images, samples, 0.003, 1.0, 0.3, seeded())
    assert found is not None
    fitting = found.fitting
    reached, _ = objective(found.unit, images, samples, drift_of(images, samples), 0.003)
    assert fitting.objective == pytest.approx(reached, abs=1e-9)
    assert fitting.objective < 0 < fitting.net < fitting.change.gain
    assert fitting.change.overlap >= 0.3
    rise = log_likelihood(with_unit(machine, found.unit, fitting.share), images) - log_likelihood(machine, images)
    assert float(rise.mean()) == pytest.approx(fitting.change.gain, abs=4 * fitting.change.error)


def test_the_scale_gains_most_after_penalty_among_those_with_overlap() -> None:
    machine, images = independent(IMAGES), IMAGES.double()
    samples = exact_samples(machine, 5000)
    found = find_unit(images, samples, 0.003, 1.0, 0.3, seeded())
    assert found is not None
    unit = found.unit.scaled(3.0)
    wide, narrow = (fitting_scale(unit, images, samples, 0.003, 1.0, overlap) for overlap in (0.3, 0.95))
    assert wide is not None and narrow is not None
    assert narrow.scale < wide.scale and narrow.net < wide.net
    assert narrow.change.overlap >= 0.95
    for fitting in (wide, narrow):
        assert fitting.net == pytest.approx(fitting.change.gain - 0.0015 * fitting.scale**2 * unit.square)
    assert fitting_scale(unit, images, samples, 0.003, 1.0, 0.999999) is None
    assert fitting_scale(unit, images, samples, 10.0, 1.0, 0.3) is None


def test_there_is_no_unit_where_the_model_is_the_data() -> None:
    # Samples of their own: images that are the samples would cancel in every term but the penalty.
    images, samples = (exact_samples(random_rbm(9, 2), 4000, seed) for seed in (0, 1))
    assert find_unit(images, samples, 0.03, 1.0, 0.3, seeded()) is None


@pytest.mark.parametrize("penalty", [1.0, 100.0, 1e6])
def test_a_unit_of_no_size_is_none(penalty: float) -> None:
    # L-BFGS ends beside zero then, where the rounding of both terms decides about the sign of the gain.
    samples = exact_samples(independent(IMAGES), 200).float()
    assert find_unit(IMAGES, samples, penalty, 1.0, 0.3, seeded()) is None


def test_a_failing_search_is_begun_again_and_then_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def failing(start: Unit, images: Tensor, samples: Tensor, drift: Tensor, penalty: float) -> tuple[Unit, int]:
        tried.append((start, penalty))
        return Unit(10 * torch.ones_like(start.weights), start.bias), 1  # an end far above where it began

    monkeypatch.setattr(hidden_unit, "_descend", failing)
    assert find_unit(IMAGES, IMAGES, 1.0, 1.0, 0.3, seeded()) is None
    assert [penalty for _, penalty in tried] == list(hidden_unit.STIFFNESS)
    assert not torch.equal(tried[0][0].weights, tried[1][0].weights)


def test_an_objective_that_is_not_finite_is_an_error() -> None:
    with pytest.raises(TrainingError, match="finite"):
        find_unit(IMAGES * 1e200, IMAGES, 0.01, 1.0, 0.3, seeded())


# --- growth ---


def grown(settings_: FrankWolfe = SMALL, seed: int = 0, rounds: int | None = None, **options):
    """Rounds of growth: the states, and the rounds."""
    growth, draw = Growth(settings_, options.pop("validation", IMAGES), **options), seeded(seed)
    states, outcomes = [growth.begin(IMAGES, draw)], []
    for _ in range(rounds or growth.rounds):
        outcomes.append(growth.advance(IMAGES, states[-1], draw))
        states.append(outcomes[-1].state)
        if outcomes[-1].verdict:
            break
    return states, outcomes


@pytest.mark.parametrize("seed", [0, 1])
def test_no_unit_lowers_the_exact_penalised_likelihood(seed: int) -> None:
    states, outcomes = grown(seed=seed)
    heights = [penalised(prior_of(state), SMALL.penalty) for state in states]
    # Sampling error: the gain's own, and that of the bias steps.
    assert all(after > before - 0.02 for before, after in pairwise(heights))
    assert heights[-1] > heights[0] + 1.0
    assert all(outcome.monitors["objective"] < 0 for outcome in outcomes)


def test_estimated_gains_add_up_to_the_exact_rise() -> None:
    states, outcomes = grown()
    images = IMAGES
    rise = float(
        log_likelihood(prior_of(states[-1]), images).mean() - log_likelihood(prior_of(states[0]), images).mean()
    )
    # What the bias steps gain comes on top.
    assert sum(outcome.monitors["gain"] for outcome in outcomes) == pytest.approx(rise, rel=0.25)


def test_the_machine_handed_over_is_the_fractional_one_with_as_many_powers_as_units() -> None:
    state = grown(rounds=3)[0][-1]
    machine = rbm_of(state)
    fractional = FractionalRBM(machine, torch.ones(3))
    states = binary_states(9, machine.weights)
    direct = torch.softmax(-fractional.free_energy(states).double(), 0)
    torch.testing.assert_close(
        direct.log(), log_likelihood(machine.to(torch.float64), states.double()), rtol=0, atol=1e-5
    )


@pytest.mark.parametrize("power", [0.5, 1.6])
def test_the_power_follows_its_gradient(power: float) -> None:
    state = grown(rounds=6)[0][-1]
    machine, states = rbm_of(state), binary_states(9, state["weights"])

    def likelihood(value: float) -> float:
        prior = FractionalRBM(machine, torch.full((6,), value))
        return float(
            -prior.free_energy(IMAGES).double().mean() - torch.logsumexp(-prior.free_energy(states).double(), 0)
        )

    slope = (likelihood(power + 0.01) - likelihood(power - 0.01)) / 0.02
    odd = state | {"power": torch.tensor(power)}
    weights = torch.softmax(-prior_of(odd).free_energy(states), 0)
    exact = states[torch.multinomial(weights, 20_000, replacement=True, generator=seeded(5))]
    # Steps on the bias would move the model: a single one of no size leaves the gradient in the power alone.
    settings_ = replace(SMALL, power_rate=0.5, bias_steps=1, bias_rate=1e-9)
    after = settled(odd | {"samples": exact}, settings_, seeded())
    # The power moves by a factor, along the gradient per unit.
    assert math.log(float(after["power"]) / power) == pytest.approx(0.5 * slope / 6, abs=0.01)
    assert abs(slope) > 0.1
    assert isinstance(prior_of(after), FractionalRBM)


def test_a_fractional_machine_grows_too() -> None:
    states, _ = grown(replace(SMALL, power_rate=0.2), rounds=5)
    state = states[-1]
    assert float(state["power"]) != 1
    prior = prior_of(state)
    every = binary_states(9, state["weights"])
    heights = [
        float(-prior_of(each).free_energy(IMAGES).mean() - torch.logsumexp(-prior_of(each).free_energy(every), 0))
        for each in (states[0], state)
    ]
    assert heights[1] > heights[0] + 0.5
    near = rbm_of(state)
    assert isinstance(prior, FractionalRBM) and near.hidden.size >= 5


def test_growth_goes_on_from_a_machine() -> None:
    start = grown(rounds=4)[0][-1]
    states, _ = grown(rounds=2, start=rbm_of(start))
    torch.testing.assert_close(states[0]["weights"], start["weights"])
    torch.testing.assert_close(states[0]["means"], start["means"])
    assert states[-1]["weights"].shape == (9, 6)
    torch.testing.assert_close(states[-1]["weights"][:, :4], start["weights"])
    assert penalised(prior_of(states[-1]), SMALL.penalty) > penalised(prior_of(states[0]), SMALL.penalty)
    assert Growth(replace(SMALL, units=6), IMAGES, rbm_of(start)).rounds == 2
    assert Growth(replace(SMALL, units=3), IMAGES, rbm_of(start)).rounds == 0


def test_what_a_state_knows_of_each_unit_is_what_the_images_say() -> None:
    state = grown(rounds=5)[0][-1]
    for images, name in ((IMAGES, "means"),):
        torch.testing.assert_close(state[name], unit_means(prior_of(state), images), rtol=0, atol=1e-5)
    other = bars_and_stripes(3)[:5]
    states, outcomes = grown(rounds=5, validation=other)
    machine = prior_of(states[-1])
    gap = float(-machine.free_energy(IMAGES).mean() + machine.free_energy(other).mean())
    assert outcomes[-1].monitors["gap"] == pytest.approx(gap, abs=1e-4)


# --- away steps ---


def test_a_harmful_unit_is_taken_away_and_the_likelihood_rises() -> None:
    state = grown(rounds=5)[0][-1]
    harmful = Unit(torch.tensor([2.0, -2.0, 2.0, -2.0, 2.0, -2.0, 2.0, -2.0, 2.0]), torch.tensor(-3.0))
    worse = state | {
        "weights": torch.cat([state["weights"][:, :2], harmful.weights[:, None], state["weights"][:, 2:]], 1),
        "hidden_bias": torch.cat([state["hidden_bias"][:2], harmful.bias[None], state["hidden_bias"][2:]]),
    }
    worse |= {"means": unit_means(prior_of(worse), IMAGES), "validation_means": unit_means(prior_of(worse), IMAGES)}
    worse |= {"samples": gibbs_steps(prior_of(worse), state["samples"], 200, seeded())}
    settings_ = replace(SMALL, overlap=0.01)
    better = without_worst(worse, IMAGES, settings_, seeded(1))
    assert better is not None
    torch.testing.assert_close(better["weights"], state["weights"])
    torch.testing.assert_close(better["means"], state["means"])
    assert penalised(prior_of(better), SMALL.penalty) > penalised(prior_of(worse), SMALL.penalty)


def test_an_away_step_that_would_not_pay_is_refused() -> None:
    states, outcomes = grown()
    assert without_worst(states[-1], IMAGES, SMALL, seeded()) is None
    machine = prior_of(states[-1])
    moments = exact_moments(machine)  # it is a sound machine
    assert bool(torch.isfinite(moments.log_partition))
    assert without_worst(states[1], IMAGES, SMALL, seeded()) is None  # a single unit is never taken
    assert [outcome.monitors.get("removed") for outcome in outcomes] == [None, None, None, 0.0] * 2


# --- when to stop ---


def test_growth_stops_once_validation_images_gain_too_little() -> None:
    gaps, gains = torch.arange(30).double() * 0.1, torch.full((30,), 0.2).double()
    # Of 6.0 - 2.9 nats on the whole the last ten units brought 2.0 - 1.0.
    assert stopping_verdict(gaps, gains, 10, 0.3) == ""
    assert "by 1.00 nats, all units by 3.1" in stopping_verdict(gaps, gains, 10, 0.33)
    gains[-10:] = 0.05
    assert "by -0.50 nats" in stopping_verdict(gaps, gains, 10, 0.0)
    assert stopping_verdict(gaps[:10], gains[:10], 10, 0.9) == ""
    assert stopping_verdict(gaps * math.nan, gains, 10, 0.9) == ""


def test_overfitting_stops_growth() -> None:
    # Three training images of noise: there is nothing to learn for others.
    noise = torch.bernoulli(torch.full((80, 9), 0.5), generator=seeded(2))
    growth = Growth(FrankWolfe(units=60, samples=2000, penalty=1e-4, bias_steps=5, window=3), noise[6:])
    draw = seeded()
    state, verdict, rounds = growth.begin(noise[:6], draw), "", 0
    while not verdict and rounds < 60:
        outcome = growth.advance(noise[:6], state, draw)
        state, verdict, rounds = outcome.state, outcome.verdict, rounds + 1
    assert rounds < 20
    assert "of validation images by" in verdict


# --- recipes and runs ---


def recipe_of(hidden: int | str = "auto", learner: object = SMALL, **options: object) -> Recipe:
    in_rounds = isinstance(learner, FrankWolfe)
    return Recipe(
        name="test",
        data=Data("bars-and-stripes", validation=4 if hidden == "auto" else 0),
        prior=PriorShape(hidden=hidden),
        method="frank_wolfe" if in_rounds else "contrastive",
        learner=learner,
        training=Training(checkpoint_every=2) if in_rounds else Training(epochs=3, batch=5),
        **options,
    )


def test_a_run_that_was_stopped_and_resumed_ends_with_the_same_bits(tmp_path: Path) -> None:
    recipe = recipe_of(6)
    whole, *_ = grow(recipe, IMAGES, tmp_path / "whole", fingerprint="data")

    def stop(rounds: int, machine: RBM) -> None:
        if rounds == 3:
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        grow(recipe, IMAGES, tmp_path / "parts", fingerprint="data", after_round=stop)
    parts, rounds, _ = grow(recipe, IMAGES, tmp_path / "parts", fingerprint="data", resume=True)
    assert rounds == 6
    for name, value in whole.parameters.items():
        assert torch.equal(value, parts.parameters[name]), name
    logs = [
        [json.loads(line) for line in (tmp_path / run / "log.jsonl").read_text().splitlines()]
        for run in ("whole", "parts")
    ]
    whole_gains, parts_gains = ([entry["gain"] for entry in log] for log in logs)
    assert whole_gains == parts_gains
    with pytest.raises(TrainingError, match="penalty was"):
        grow(recipe_of(6, replace(SMALL, penalty=0.1)), IMAGES, tmp_path / "parts", fingerprint="data", resume=True)


def test_a_signal_in_the_last_round_of_growth_stops_what_would_follow(tmp_path: Path) -> None:
    recipe = recipe_of(learner=ContrastiveDivergence(), growth=replace(SMALL, units=2))
    whole = train(recipe, IMAGES, (3, 3), tmp_path / "whole", fingerprint="data")

    def interrupt(done: int, note: str = "") -> None:
        if "units 2" in note:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(Stopped):
        train(recipe, IMAGES, (3, 3), tmp_path / "parts", fingerprint="data", meter=interrupt)
    assert not (tmp_path / "parts" / "log.jsonl").exists()
    parts = train(recipe, IMAGES, (3, 3), tmp_path / "parts", fingerprint="data", resume=True)
    assert parts.verdict == whole.verdict
    for name, value in whole.prior.machine.parameters.items():
        assert torch.equal(value, parts.prior.machine.parameters[name]), name


@pytest.mark.parametrize("learner", [SMALL, ContrastiveDivergence()])
def test_images_without_anything_for_a_first_unit_are_an_error(tmp_path: Path, learner: object) -> None:
    options = {} if learner is SMALL else {"growth": SMALL}
    recipe = recipe_of(learner=learner, **options)
    with pytest.raises(TrainingError, match="no hidden unit gains"):
        train(recipe, torch.ones(20, 9), (3, 3), tmp_path / "run", fingerprint="data", every=1)
    assert not list(tmp_path.rglob("*.safetensors"))


def test_a_limit_that_comes_before_the_stopping_rule_is_said(tmp_path: Path) -> None:
    machine, rounds, verdict = grow(recipe_of(learner=replace(SMALL, units=2)), IMAGES, tmp_path, fingerprint="data")
    assert (machine.hidden.size, rounds) == (2, 2)
    assert "limit of 2 units" in verdict and "raise units" in verdict


def test_a_size_found_by_growth_is_where_another_learner_begins(tmp_path: Path) -> None:
    growth = replace(SMALL, units=5)
    recipe = recipe_of(learner=ContrastiveDivergence(), growth=growth)
    trained = train(recipe, IMAGES, (3, 3), tmp_path / "run", fingerprint="data", every=1)
    alone, *_ = grow(recipe, IMAGES, tmp_path / "alone", fingerprint="data")
    assert trained.prior.description.hidden == alone.hidden.size == 5
    assert trained.verdict
    # Three epochs of small steps lead away from there, but not far.
    moved = (trained.prior.machine.weights - alone.weights).abs().max()
    assert 0 < float(moved) < 0.3
    assert len(list((tmp_path / "run" / "epochs").iterdir())) == 3


FROM_TEXT = {
    "name": "x",
    "data": {"source": "mnist", "validation": 10},
    "prior": {"hidden": "auto"},
    "learner": {"method": "frank_wolfe"},
}


def test_a_recipe_reads() -> None:
    recipe = parse(FROM_TEXT | {"learner": {"method": "frank_wolfe", "penalty": 0.5}})
    assert recipe.auto and recipe.in_rounds and recipe.learner.penalty == 0.5
    assert recipe.limit == 700 and replace(recipe, prior=PriorShape(hidden=3)).limit == 3
    fine_tuned = parse(
        FROM_TEXT | {"learner": {"method": "tap"}, "training": {"epochs": 2}, "growth": {"penalty": 0.25}}
    )
    assert fine_tuned.auto and not fine_tuned.in_rounds and fine_tuned.growth.penalty == 0.25


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"prior": {"hidden": "some"}}, "[prior] hidden must be a whole number"),
        ({"data": {"source": "mnist"}}, "[data] validation is missing"),
        ({"growth": {"penalty": 0.5}}, "[growth] has no meaning for frank_wolfe"),
        (
            {
                "data": {"source": "mnist", "validation": 10, "task": "flip:0.1"},
                "prior": {"hidden": "auto", "family": "crbm", "weight_scale": 0.0},
                "learner": {"method": "logistic"},
                "training": {"epochs": 1},
            },
            "no meaning for logistic regression",
        ),
        ({"training": {"epochs": 3}}, "[training] epochs has no meaning for frank_wolfe"),
        ({"learner": {"method": "tap"}}, "[training] epochs is missing"),
        ({"learner": {"method": "frank_wolfe", "overlap": 1.0}}, "overlap must lie in (0, 1)"),
        ({"learner": {"method": "frank_wolfe", "samples": 0}}, "samples must be at least 1"),
        ({"learner": {"method": "frank_wolfe", "penalty": 0.0}}, "penalty must be positive"),
        ({"learner": {"method": "frank_wolfe", "power_rate": 1.0}}, "power_rate"),
        ({"learner": {"method": "tap"}, "training": {"epochs": 3, "patience": 1}}, "[training] patience needs"),
    ],
)
def test_recipes_that_make_no_sense_are_refused(changed: dict, says: str) -> None:
    with pytest.raises(UsageError) as fault:
        parse(FROM_TEXT | {"training": {}} | changed)
    assert says in str(fault.value)


# --- for users ---


def test_restore_train_finds_the_size(tmp_path: Path) -> None:
    images = IMAGES.reshape(-1, 3, 3).numpy()
    small = {"samples": 500, "bias_steps": 5, "penalty": 0.01}
    mine = restore.train(np.tile(images, (4, 1, 1)), hidden="auto", epochs=2, growth=small | {"units": 6})
    assert 1 <= mine.description.hidden <= 6
    few = restore.train(images[2:7], hidden="auto", epochs=1, growth=small | {"units": 1})
    assert few.description.hidden == 1  # of five images one is held out
    alone = restore.train(images, hidden=3, learner={"method": "frank_wolfe", **small})
    assert alone.description.hidden == 3 and alone.description.method == "frank_wolfe"


def test_the_command_line_takes_a_size_or_auto(run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "images.npy", np.tile(IMAGES.reshape(-1, 3, 3).bool().numpy(), (3, 1, 1)))
    recipe = tmp_path / "mine.toml"
    recipe.write_text(
        f'name = "mine"\n[data]\nsource = "{tmp_path}/images.npy"\n[prior]\nhidden = 3\n'
        '[learner]\nmethod = "contrastive"\n'
        "[training]\nepochs = 1\n[growth]\nunits = 4\nsamples = 500\n[inference]\nmodes = 5\nstarts = 2\n"
    )
    command = ["train", recipe, "--run", tmp_path / "run", "-o", tmp_path / "out", "--overwrite"]
    assert run(*command, "--hidden", "auto") == 0
    assert "mine: 4 hidden units: the limit of 4 units was reached" in capsys.readouterr().err
    about = describe(tmp_path / "out")
    assert about.hidden == 4
    card = (tmp_path / "out" / "card.md").read_text()
    assert "--hidden auto" in card and "38 images" in card
    for hidden, says in (("many", "a whole number or auto, not many"), ("0", "hidden must be at least 1")):
        assert run(*command, "--hidden", hidden) == 2
        assert says in capsys.readouterr().err
