"""Machines that grow by Frank-Wolfe: their units and shares, away steps, and when they stop."""

from __future__ import annotations

import math
from functools import cache
from itertools import pairwise

import pytest
import torch
from directions import IMAGES, growth_of
from machines import bars_and_stripes, random_rbm, seeded
from oracle import binary_states, exact_moments, log_likelihood
from torch import Tensor

from restore.learning.gradients.hidden_unit import Unit
from restore.learning.rules import frank_wolfe
from restore.learning.rules.frank_wolfe import (
    FrankWolfe,
    Growth,
    machine_of,
    stopping_verdict,
    unit_means,
    without_worst,
)
from restore.priors import RBM
from restore.solvers.samplers.gibbs import gibbs_steps

SMALL = growth_of()


def penalised(machine: RBM, penalty: float) -> float:
    squares = machine.weights.square().sum() + machine.hidden.parameters["bias"].square().sum()
    return float(log_likelihood(machine, IMAGES.to(machine.weights)).mean()) - penalty / 2 * float(squares)


# --- growth ---


def grown(settings_: FrankWolfe = SMALL, seed: int = 0, rounds: int | None = None, validation=IMAGES, start=None):
    """Rounds of growth: the states, and the rounds."""
    growth, draw = Growth(settings_, validation), seeded(seed)
    states, outcomes = [growth.begin(IMAGES, draw)], []
    if start is not None:
        states = [states[0] | begun(start, settings_.samples)]
    for _ in range(rounds or growth.rounds):
        outcomes.append(growth.advance(IMAGES, states[-1], draw))
        states.append(outcomes[-1].state)
        if outcomes[-1].verdict:
            break
    return states, outcomes


@cache
def usual():
    """A whole growth, for the tests that only look at it."""
    return grown()


def begun(machine: RBM, count: int) -> dict[str, Tensor]:
    """What a state has of a machine that is there before the first round, judged by the images themselves."""
    means = unit_means(machine, IMAGES)
    samples = gibbs_steps(machine, IMAGES[torch.arange(count) % len(IMAGES)], 50, seeded(9))
    visible, hidden = (layer.parameters["bias"] for layer in machine.layers)
    known = {"weights": machine.weights, "visible_bias": visible, "hidden_bias": hidden, "samples": samples}
    return known | {"means": means, "validation_means": means, "gaps": torch.zeros(1, dtype=torch.float64)}


def test_no_unit_lowers_the_exact_penalised_likelihood() -> None:
    states, outcomes = usual()
    heights = [penalised(machine_of(state), SMALL.penalty) for state in states]
    # Sampling error: the gain's own, and that of the bias steps.
    assert all(after > before - 0.02 for before, after in pairwise(heights))
    assert heights[-1] > heights[0] + 1.0
    assert all(outcome.monitors["objective"] < 0 for outcome in outcomes)


def test_what_a_state_knows_of_each_unit_is_what_the_images_say() -> None:
    state = usual()[0][5]
    torch.testing.assert_close(state["means"], unit_means(machine_of(state), IMAGES), rtol=0, atol=1e-5)
    other = bars_and_stripes(3)[:5]
    states, outcomes = grown(rounds=5, validation=other)
    machine = machine_of(states[-1])
    gap = float(-machine.free_energy(IMAGES).mean() + machine.free_energy(other).mean())
    assert outcomes[-1].monitors["gap"] == pytest.approx(gap, abs=1e-4)
    # But for what the steps on the visible bias gain.
    before, after = (float(log_likelihood(machine_of(each), other).mean()) for each in (states[0], states[-1]))
    assert outcomes[-1].monitors["validation_gain"] == pytest.approx(after - before, abs=0.1)
    assert after - before > 1


# --- away steps ---


def test_a_harmful_unit_is_taken_away_and_the_likelihood_rises() -> None:
    state = usual()[0][5]
    harmful = Unit(torch.tensor([2.0, -2.0, 2.0, -2.0, 2.0, -2.0, 2.0, -2.0, 2.0]), torch.tensor(-3.0))
    worse = state | {
        "weights": torch.cat([state["weights"][:, :2], harmful.weights[:, None], state["weights"][:, 2:]], 1),
        "hidden_bias": torch.cat([state["hidden_bias"][:2], harmful.bias[None], state["hidden_bias"][2:]]),
    }
    worse |= {"means": unit_means(machine_of(worse), IMAGES)}
    worse |= {"validation_means": unit_means(machine_of(worse), IMAGES[:5])}
    worse |= {"samples": gibbs_steps(machine_of(worse), state["samples"], 200, seeded())}
    settings_ = growth_of(overlap=0.01)
    better = without_worst(worse, IMAGES, settings_, seeded(1))
    assert better is not None
    torch.testing.assert_close(better["weights"], state["weights"])
    torch.testing.assert_close(better["means"], state["means"])
    torch.testing.assert_close(
        better["validation_means"], unit_means(machine_of(better), IMAGES[:5]), rtol=0, atol=1e-5
    )
    rise = penalised(machine_of(better), SMALL.penalty) - penalised(machine_of(worse), SMALL.penalty)
    assert rise > 0
    # What is counted is the rise of the likelihood alone, but for the steps on the bias.
    saved = SMALL.penalty / 2 * harmful.square
    assert float(better["gain"] - worse["gain"]) == pytest.approx(rise - saved, abs=0.3 * (rise - saved))


def test_growth_counts_and_survives_a_removal() -> None:
    # Units of a machine of noise, which the images do not want.
    start = random_rbm(9, 4, scale=2.0, seed=7).to(torch.float32)
    eager = growth_of(10, away_every=1, overlap=0.05)
    states, outcomes = grown(eager, rounds=4, start=start)
    removed = [int(outcome.monitors["removed"]) for outcome in outcomes]
    assert sum(removed) >= 1
    assert states[-1]["weights"].shape[1] == 4 + 4 - sum(removed)
    assert len(states[-1]["gains"]) == len(states[-1]["gaps"]) == 5
    for state in states[1:]:
        torch.testing.assert_close(state["means"], unit_means(machine_of(state), IMAGES), rtol=0, atol=1e-5)
        torch.testing.assert_close(state["validation_means"], state["means"], rtol=0, atol=1e-5)
    rise = float(log_likelihood(machine_of(states[-1]), IMAGES).mean() - log_likelihood(start, IMAGES).mean())
    assert 0.3 * rise < float(states[-1]["gain"]) < 1.1 * rise


def test_an_away_step_that_would_not_pay_is_refused() -> None:
    states, outcomes = usual()
    assert without_worst(states[-1], IMAGES, SMALL, seeded()) is None
    machine = machine_of(states[-1])
    moments = exact_moments(machine)  # it is a sound machine
    assert bool(torch.isfinite(moments.log_partition))
    assert without_worst(states[1], IMAGES, SMALL, seeded()) is None  # a single unit is never taken
    assert [outcome.monitors.get("removed") for outcome in outcomes] == [None, None, None, 0.0] * 2


def test_an_away_step_is_taken_at_the_penalty_that_outweighs_what_the_unit_gains() -> None:
    state = usual()[0][4]
    machine = machine_of(state)
    bias, weights = state["hidden_bias"], state["weights"]
    on = torch.sigmoid(machine.hidden_fields(IMAGES).linear + bias).mean(0)
    base, even = log_likelihood(machine, IMAGES).mean(), []
    for unit in range(len(bias)):
        # Without it, by enumeration; its share of the images' activity goes to the biases of pixels.
        kept = torch.arange(len(bias)) != unit
        rest = RBM.binary(weights[:, kept], state["visible_bias"] + on[unit] * weights[:, unit], bias[kept])
        lost = float(base - log_likelihood(rest, IMAGES).mean())
        even.append(2 * lost / float(weights[:, unit].square().sum() + bias[unit] ** 2))
    # Gains of about .5 nats are estimated from samples to about a tenth.
    below, above = (growth_of(penalty=factor * min(even), overlap=0.01) for factor in (0.7, 1.4))
    assert without_worst(state, IMAGES, below, seeded(1)) is None
    shorter = without_worst(state, IMAGES, above, seeded(1))
    assert shorter is not None and shorter["weights"].shape[1] == len(bias) - 1


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


# --- what a unit does to the rest ---


def test_a_unit_that_does_nothing_is_taken_away_for_its_penalty_alone() -> None:
    state = usual()[0][2]
    idle = state | {
        "weights": torch.cat([state["weights"], torch.zeros(9, 1)], 1),
        "hidden_bias": torch.cat([state["hidden_bias"], torch.tensor([-40.0])]),
    }
    # Without it the images would be less likely by a millionth of a nat, had the unit no penalty.
    mean = torch.tensor([1e-6]).double()
    idle |= {name: torch.cat([state[name], mean]) for name in ("means", "validation_means")}
    better = without_worst(idle, IMAGES, SMALL, seeded(1))
    assert better is not None and torch.equal(better["weights"], state["weights"])


def test_the_gain_of_taking_a_unit_away_is_judged_by_later_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    state = usual()[0][4]
    assert without_worst(state, IMAGES, SMALL, seeded(1)) is None
    # Samples that are all the one image in which the first unit is furthest from what it is in the images.
    every = binary_states(9, torch.zeros(1))
    inputs = machine_of(state).hidden_fields(every).linear[:, 0] + state["hidden_bias"][0]
    far = state | {"samples": every[inputs.argmax()].repeat(len(state["samples"]), 1)}
    monkeypatch.setattr(frank_wolfe, "gibbs_steps", lambda *more: state["samples"])
    assert without_worst(far, IMAGES, SMALL, seeded(1)) is None
    monkeypatch.setattr(frank_wolfe, "gibbs_steps", lambda *more: far["samples"])
    assert without_worst(far, IMAGES, SMALL, seeded(1)) is not None


def test_what_a_unit_that_is_always_on_adds_to_pixels_goes_to_their_biases() -> None:
    """Such a unit and the biases that make up for it leave the distribution as it was."""
    state, weights = usual()[0][2], torch.tensor([1.0, -2.0, 0.5, 0.0, 1.5, -0.5, 2.0, -1.0, 0.25])
    on = state | {
        "weights": torch.cat([state["weights"], weights[:, None]], 1),
        "hidden_bias": torch.cat([state["hidden_bias"], torch.tensor([40.0])]),
        "visible_bias": state["visible_bias"] - weights,
    }
    on |= {name: torch.cat([state[name], unit_means(machine_of(on), IMAGES)[-1:]]) for name in ("means",)}
    on |= {"validation_means": torch.cat([state["validation_means"], on["means"][-1:]])}
    better = without_worst(on, IMAGES, growth_of(bias_steps=0), seeded(1))
    assert better is not None and torch.equal(better["weights"], state["weights"])
    torch.testing.assert_close(better["visible_bias"], state["visible_bias"])
