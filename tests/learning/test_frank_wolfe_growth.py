"""Machines that grow by Frank-Wolfe: their units and shares, away steps, and when they stop."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from growing import IMAGES, SMALL
from machines import bars_and_stripes, random_rbm, seeded
from torch import Tensor

from restore.learning.gradients import hidden_unit
from restore.learning.gradients.hidden_unit import Unit, find_unit
from restore.learning.rules import frank_wolfe
from restore.learning.rules.frank_wolfe import FrankWolfe, Growth, stopping_verdict
from restore.learning.rules.frank_wolfe_moves import prior_of, rbm_of, repowered, unit_means, without_worst
from restore.priors import RBM, FractionalRBM
from restore.priors.exact import binary_states, exact_moments, log_likelihood
from restore.solvers.samplers.gibbs import gibbs_steps


def penalised(machine: RBM, penalty: float) -> float:
    squares = machine.weights.square().sum() + machine.hidden.parameters["bias"].square().sum()
    return float(log_likelihood(machine, IMAGES.to(machine.weights)).mean()) - penalty / 2 * float(squares)


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


def exact_height(state: dict[str, Tensor], images: Tensor, penalty: float) -> float:
    """Mean log-likelihood of images, by enumeration, after penalty."""
    prior = prior_of(state)
    at = [-prior.free_energy(v).double() for v in (images, binary_states(images.shape[1], images))]
    squares = state["weights"].double().square().sum() + state["hidden_bias"].double().square().sum()
    return float(at[0].mean() - torch.logsumexp(at[1], 0) - state["power"] * penalty / 2 * squares)


@pytest.mark.parametrize("power", [0.5, 3.0])
def test_the_power_follows_its_gradient(power: float) -> None:
    state = grown(rounds=6)[0][-1]
    shares = torch.sigmoid(IMAGES @ state["weights"] + state["hidden_bias"]).mean(0)

    def at(value: float) -> dict[str, Tensor]:
        # The visible bias takes back what the power adds to the means.
        bias = state["visible_bias"] - (value - power) * state["weights"] @ shares
        return state | {"power": torch.tensor(value), "visible_bias": bias}

    slope = (exact_height(at(power + 0.01), IMAGES, 0.003) - exact_height(at(power - 0.01), IMAGES, 0.003)) / 0.02
    states = binary_states(9, state["weights"])
    weights = torch.softmax(-prior_of(at(power)).free_energy(states), 0)
    exact = states[torch.multinomial(weights, 20_000, replacement=True, generator=seeded(5))]
    settings_ = replace(SMALL, power_rate=0.5, overlap=0.01)
    after = repowered(at(power) | {"samples": exact}, IMAGES, settings_)
    # By a factor along the gradient per unit, or by a part of that.
    whole = power * (math.exp(0.5 * slope / 6) - 1)
    parts = (float(after["power"]) - power) / whole
    assert min(abs(parts - scale) for scale in hidden_unit.SCALES) < 0.02 * parts
    assert abs(slope) > 0.1
    torch.testing.assert_close(after["visible_bias"], at(float(after["power"]))["visible_bias"], rtol=0, atol=1e-5)
    before = at(power)
    assert exact_height(after, IMAGES, 0.003) > exact_height(before, IMAGES, 0.003)
    rise = exact_height(after, IMAGES, 0.0) - exact_height(before, IMAGES, 0.0)
    assert float(after["gain"] - state["gain"]) == pytest.approx(rise, abs=0.02)
    assert isinstance(prior_of(after), FractionalRBM)


def test_no_step_of_the_power_lowers_the_likelihood(monkeypatch: pytest.MonkeyPatch) -> None:
    # A step of the whole gradient at this rate overshoots by many nats.
    images, rises = IMAGES[:9], []

    def watched(state: dict[str, Tensor], images: Tensor, settings: FrankWolfe) -> dict[str, Tensor]:
        after = repowered(state, images, settings)
        rises.append(exact_height(after, images, settings.penalty) - exact_height(state, images, settings.penalty))
        return after

    monkeypatch.setattr(frank_wolfe, "repowered", watched)
    bold = FrankWolfe(units=12, samples=1000, power_rate=0.5, away_every=0, window=100)
    growth, draw = Growth(bold, IMAGES[9:]), seeded(3)
    state = growth.begin(images, draw)
    for _ in range(8):
        state = growth.advance(images, state, draw).state
    assert min(rises) > -0.05 and max(rises) > 0.005
    assert float(state["power"]) != 1


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
    torch.testing.assert_close(state["means"], unit_means(prior_of(state), IMAGES), rtol=0, atol=1e-5)
    other = bars_and_stripes(3)[:5]
    states, outcomes = grown(rounds=5, validation=other)
    machine = prior_of(states[-1])
    gap = float(-machine.free_energy(IMAGES).mean() + machine.free_energy(other).mean())
    assert outcomes[-1].monitors["gap"] == pytest.approx(gap, abs=1e-4)
    # But for what the steps on the visible bias gain.
    before, after = (float(log_likelihood(prior_of(each), other).mean()) for each in (states[0], states[-1]))
    assert outcomes[-1].monitors["validation_gain"] == pytest.approx(after - before, abs=0.1)
    assert after - before > 1


# --- away steps ---


def test_a_harmful_unit_is_taken_away_and_the_likelihood_rises() -> None:
    state = grown(rounds=5)[0][-1]
    harmful = Unit(torch.tensor([2.0, -2.0, 2.0, -2.0, 2.0, -2.0, 2.0, -2.0, 2.0]), torch.tensor(-3.0))
    worse = state | {
        "weights": torch.cat([state["weights"][:, :2], harmful.weights[:, None], state["weights"][:, 2:]], 1),
        "hidden_bias": torch.cat([state["hidden_bias"][:2], harmful.bias[None], state["hidden_bias"][2:]]),
    }
    worse |= {"means": unit_means(prior_of(worse), IMAGES)}
    worse |= {"validation_means": unit_means(prior_of(worse), IMAGES[:5])}
    worse |= {"samples": gibbs_steps(prior_of(worse), state["samples"], 200, seeded())}
    settings_ = replace(SMALL, overlap=0.01)
    better = without_worst(worse, IMAGES, settings_, seeded(1))
    assert better is not None
    torch.testing.assert_close(better["weights"], state["weights"])
    torch.testing.assert_close(better["means"], state["means"])
    torch.testing.assert_close(better["validation_means"], unit_means(prior_of(better), IMAGES[:5]), rtol=0, atol=1e-5)
    rise = penalised(prior_of(better), SMALL.penalty) - penalised(prior_of(worse), SMALL.penalty)
    assert rise > 0
    # What is counted is the rise of the likelihood alone, but for the steps on the bias.
    saved = SMALL.penalty / 2 * harmful.square
    assert float(better["gain"] - worse["gain"]) == pytest.approx(rise - saved, abs=0.3 * (rise - saved))


def test_growth_counts_and_survives_a_removal() -> None:
    # Units of a machine of noise, which the images do not want.
    start = random_rbm(9, 4, scale=2.0, seed=7).to(torch.float32)
    eager = replace(SMALL, units=10, away_every=1, overlap=0.05)
    states, outcomes = grown(eager, rounds=4, start=start)
    removed = [int(outcome.monitors["removed"]) for outcome in outcomes]
    assert sum(removed) >= 1
    assert states[-1]["weights"].shape[1] == 4 + 4 - sum(removed)
    assert len(states[-1]["gains"]) == len(states[-1]["gaps"]) == 5
    for state in states[1:]:
        torch.testing.assert_close(state["means"], unit_means(prior_of(state), IMAGES), rtol=0, atol=1e-5)
        torch.testing.assert_close(state["validation_means"], state["means"], rtol=0, atol=1e-5)
    rise = float(log_likelihood(prior_of(states[-1]), IMAGES).mean() - log_likelihood(start, IMAGES).mean())
    assert 0.3 * rise < float(states[-1]["gain"]) < 1.1 * rise


def test_a_unit_is_judged_by_later_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def watched(images: Tensor, samples: Tensor, fresh: Tensor, *rest: object) -> object:
        seen.append((samples, fresh))
        return find_unit(images, samples, fresh, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(frank_wolfe, "find_unit", watched)
    grown(replace(SMALL, samples=200, draws=3), rounds=2)
    for samples, fresh in seen:
        assert (len(samples), len(fresh)) == (600, 200)
        sets = samples.split(200)
        assert not any(torch.equal(one, fresh) for one in sets) and not torch.equal(sets[0], sets[1])


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
    gaps, gains = torch.arange(31).double() * 0.1, torch.arange(31).double() * 0.2
    # Of 6.0 - 3.0 nats on the whole the last ten units brought 2.0 - 1.0.
    assert stopping_verdict(gaps, gains, 10, 0.3) == ""
    assert "by 1.00 nats, all units by 3.0" in stopping_verdict(gaps, gains, 10, 0.34)
    gains[21:] = gains[20] + 0.05 * torch.arange(1, 11)
    assert "by -0.50 nats" in stopping_verdict(gaps, gains, 10, 0.0)
    assert stopping_verdict(gaps[:10], gains[:10], 10, 0.9) == ""
    # A loss on the whole is no excuse for a smaller one at the end.
    assert "all units by -1.0" in stopping_verdict(
        torch.tensor([0.0, 1.0, 1.0]), torch.tensor([0.0, 0.0, -0.001]), 1, 0.01
    )
    assert stopping_verdict(gaps * math.nan, gains, 1, 0.9) == ""


def test_overfitting_stops_growth() -> None:
    # Six training images of noise: there is nothing to learn for others.
    noise = torch.bernoulli(torch.full((80, 9), 0.5), generator=seeded(2))
    growth = Growth(FrankWolfe(units=60, samples=2000, penalty=1e-4, bias_steps=5, window=3), noise[6:])
    draw = seeded()
    state, verdict, rounds = growth.begin(noise[:6], draw), "", 0
    while not verdict and rounds < 60:
        outcome = growth.advance(noise[:6], state, draw)
        state, verdict, rounds = outcome.state, outcome.verdict, rounds + 1
    assert rounds < 20
    assert "of validation images by" in verdict
