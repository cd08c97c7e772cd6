"""Machines that grow by Frank-Wolfe: their units, away steps, when they stop, and runs from recipe to prior."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from directions import IMAGES, growth_of
from machines import bars_and_stripes, random_rbm, seeded
from oracle import binary_states, exact_moments, log_likelihood
from refusals import refused
from torch import Tensor

import restore
from restore.errors import TrainingError
from restore.learning.course import CleanImages, course_of
from restore.learning.gradients.hidden_unit import Unit
from restore.learning.recipe.recipe import Recipe
from restore.learning.recipe.spec import Data, PriorShape, Training
from restore.learning.rules import frank_wolfe
from restore.learning.rules.contrastive import ContrastiveDivergence
from restore.learning.rules.frank_wolfe import (
    FrankWolfe,
    Growth,
    machine_of,
    stopping_verdict,
    unit_means,
    without_worst,
)
from restore.learning.run.session import Progress, Session
from restore.learning.train import train
from restore.priors import RBM
from restore.solvers.samplers.gibbs import gibbs_steps
from restore.zoo.inference import Inference

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


# --- recipes and runs ---

QUICK = growth_of(samples=500)


def recipe_of(hidden: int | str = "auto", learner: object = QUICK, **options: object) -> Recipe:
    in_rounds = isinstance(learner, FrankWolfe)
    return Recipe(
        name="test",
        data=Data("bars-and-stripes", validation=4 if hidden == "auto" else 0),
        prior=PriorShape(hidden=hidden),
        method="frank_wolfe" if in_rounds else "contrastive",
        learner=learner,
        training=Training(checkpoint_every=2) if in_rounds else Training(epochs=3, batch=5),
        # To draw modes would take longest.
        inference=Inference(modes=0, starts=1),
        **options,
    )


def test_a_run_that_was_stopped_and_resumed_ends_with_the_same_bits(tmp_path: Path) -> None:
    recipe = recipe_of(6)
    whole = train(recipe, IMAGES, (3, 3), Session(tmp_path / "whole", "data")).prior.machine

    def stop(passed: Progress) -> None:
        assert isinstance(passed.machine, RBM) and passed.machine.hidden.size <= passed.done <= passed.total == 6
        if passed.done == 3:
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError):
        train(recipe, IMAGES, (3, 3), Session(tmp_path / "parts", "data", watch=stop))
    parts = train(recipe, IMAGES, (3, 3), Session(tmp_path / "parts", "data", resume=True))
    assert parts.epoch == 6
    for name, value in whole.parameters.items():
        assert torch.equal(value, parts.prior.machine.parameters[name]), name
    logs = [
        [json.loads(line) for line in (tmp_path / run / "log.jsonl").read_text().splitlines()]
        for run in ("whole", "parts")
    ]
    whole_gains, parts_gains = ([entry["gain"] for entry in log] for log in logs)
    assert whole_gains == parts_gains
    with refused(TrainingError, tmp_path / "parts", "penalty"):
        train(
            recipe_of(6, replace(QUICK, penalty=0.1)), IMAGES, (3, 3), Session(tmp_path / "parts", "data", resume=True)
        )


@pytest.mark.parametrize("learner", [QUICK, ContrastiveDivergence()])
def test_images_without_anything_for_a_first_unit_are_an_error(tmp_path: Path, learner: object) -> None:
    options = {} if learner is QUICK else {"growth": QUICK}
    recipe = recipe_of(learner=learner, **options)
    with refused(TrainingError, "penalty"):
        train(recipe, torch.ones(20, 9), (3, 3), Session(tmp_path / "run", "data"), every=1)
    assert not list(tmp_path.rglob("*.safetensors"))


def test_a_limit_that_comes_before_the_stopping_rule_is_said(tmp_path: Path) -> None:
    found = train(recipe_of(learner=replace(QUICK, units=2)), IMAGES, (3, 3), Session(tmp_path, "data"))
    assert (found.prior.description.hidden, found.epoch) == (2, 2) and "units" in found.verdict


def filling(growth: FrankWolfe, filled: int = 9) -> Recipe:
    """A recipe that wants nine units for the learner that goes on from what is grown."""
    made = recipe_of(learner=ContrastiveDivergence(), growth=growth)
    return replace(made, prior=replace(made.prior, filled=filled, weight_scale=0.02), storage="float32")


def first_of(recipe: Recipe, folder: Path, monkeypatch: pytest.MonkeyPatch) -> RBM:
    """The machine from which the learner goes on that follows the growth."""
    seen: list[RBM] = []

    def course(recipe: Recipe, images: Tensor, shape: tuple[int, int], start: RBM, validation: Tensor) -> CleanImages:
        seen.append(start)
        return course_of(recipe, images, shape, start, validation)

    monkeypatch.setattr("restore.learning.train.course_of", course)
    train(recipe, IMAGES, (3, 3), Session(folder, "data", resume=True))
    return seen[0]


@pytest.mark.thorough
def test_a_growth_that_a_limit_ended_is_filled_up_with_units_of_random_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grown = first_of(filling(growth_of(3), 0), tmp_path / "grown", monkeypatch)
    filled = first_of(filling(growth_of(3)), tmp_path / "filled", monkeypatch)
    assert (grown.hidden.size, filled.hidden.size) == (3, 9)
    assert torch.equal(filled.weights[:, :3], grown.weights)
    assert torch.equal(filled.visible.parameters["bias"], grown.visible.parameters["bias"])
    assert torch.equal(filled.hidden.parameters["bias"], torch.cat([grown.hidden.parameters["bias"], torch.zeros(6)]))
    drawn = filled.weights[:, 3:]
    # 54 draws: their spread is known to a tenth or so.
    assert 0.012 < float(drawn.std()) < 0.03 and abs(float(drawn.mean())) < 0.02
    again = first_of(filling(growth_of(3)), tmp_path / "filled", monkeypatch)
    assert torch.equal(again.weights, filled.weights)


def test_a_growth_that_images_held_out_ended_is_large_enough(tmp_path: Path) -> None:
    # All that later units bring is less than all units together.
    recipe = filling(growth_of(samples=500, window=2, least=0.99))
    for resume in (False, True):
        found = train(recipe, IMAGES, (3, 3), Session(tmp_path, "data", resume=resume))
        assert found.prior.description.hidden < 8 and "random" not in found.verdict


# --- for users ---


@pytest.mark.usefixtures("quick_growth")
def test_restore_train_finds_the_size(tmp_path: Path) -> None:
    images = IMAGES.reshape(-1, 3, 3).numpy()
    small = {"penalty": 0.01}
    mine = restore.train(np.tile(images, (4, 1, 1)), hidden="auto", epochs=2, growth=small | {"units": 6})
    assert 1 <= mine.description.hidden <= 6
    few = restore.train(images[2:7], hidden="auto", epochs=1, growth=small | {"units": 1})
    assert few.description.hidden == 1  # of five images one is held out
    alone = restore.train(images, hidden=3, learner={"method": "frank_wolfe", **small})
    assert alone.description.hidden == 3 and alone.description.method == "frank_wolfe"
