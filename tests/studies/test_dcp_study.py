"""The study of S-DCP: its trials side by side against a plain loop, its curves against enumeration, its tables."""

from __future__ import annotations

import json
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import dcp_fall as fall
import dcp_large as large
import dcp_small as small
import numpy as np
import pytest
import torch
from dcp_learners import ALGORITHMS, learner_of
from dcp_small import BEST
from machines import random_rbm, seeded
from oracle import exact_moments, log_likelihood, log_likelihood_gradient
from scipy.optimize import minimize
from torch import Tensor

from restore.data import binarise, load
from restore.learning.course import initial_prior
from restore.learning.gradients.centring import follow, translated
from restore.learning.rules.contract import Learner, LearnerState, Step
from restore.learning.rules.contrastive import ContrastiveDivergence
from restore.learning.run.session import Session
from restore.priors import RBM
from restore.zoo.structure import structure


def images_of(name: str) -> Tensor:
    return torch.from_numpy(binarise(load(name).images))


# --- small sets ---


def test_the_best_is_that_of_the_set_itself() -> None:
    for name, best in BEST.items():
        patterns, counts = images_of(name).unique(dim=0, return_counts=True)
        shares = counts / counts.sum()
        assert float((shares * shares.log()).sum()) == pytest.approx(best, abs=1e-6)
        assert len(patterns) == {"shifting-bar": 9, "bars-and-stripes": 14}[name]


def ascent(images: Tensor, hidden: int, seed: int) -> float:
    """Where the exact mean log-likelihood ends from one start, by L-BFGS."""
    machine = random_rbm(images.shape[1], hidden, scale=1.0, seed=seed)
    named = machine.parameters

    def slope(point: np.ndarray) -> tuple[float, np.ndarray]:
        parts = torch.from_numpy(point).split([value.numel() for value in named.values()])
        moved = machine.with_parameters(
            {name: part.view_as(named[name]) for name, part in zip(named, parts, strict=True)}
        )
        gradient = log_likelihood_gradient(moved, images)
        value = -float(log_likelihood(moved, images).mean())
        return value, -torch.cat([gradient[name].flatten() for name in named]).numpy()

    start = torch.cat([value.flatten() for value in named.values()]).numpy()
    return -float(minimize(slope, start, jac=True, method="L-BFGS-B", options={"maxiter": 1500}).fun)


@pytest.mark.thorough
@pytest.mark.parametrize(("hidden", "end"), [(4, small.REACHABLE["bars-and-stripes"]), (5, BEST["bars-and-stripes"])])
def test_the_best_ascent_ends_at_what_is_reachable(hidden: int, end: float) -> None:
    images = images_of("bars-and-stripes").double()
    assert max(ascent(images, hidden, seed) for seed in range(10)) == pytest.approx(end, abs=2e-4)


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few epochs."""
    monkeypatch.setattr(small, "EPOCHS", 6)
    monkeypatch.setattr(small, "EVERY", 2)


def alone(learner: Learner[RBM, Tensor], machine: RBM, batch: Tensor, rate: float) -> list[float]:
    """The exact mean log-likelihood along six epochs of plain ascent, every second epoch."""
    generator = seeded(5)
    state, values = learner.init(machine, batch, generator), []
    for done in range(7):
        if done % 2 == 0:
            values.append(float(log_likelihood(machine, batch).mean()))
        step = learner.step(machine, batch, state, generator, 0)
        while step is not None:
            direction, state = learner.direction(step.gradient), step.state
            machine = machine.with_parameters(
                {name: value + rate * direction[name] for name, value in machine.parameters.items()}
            )
            step = step.again and step.again(machine)
    return values


@pytest.mark.parametrize(("algorithm", "copies"), [*((name, 1) for name in ALGORITHMS), ("PCD", 3), ("CS-DCP", 3)])
def test_a_lane_is_what_the_learner_does_alone(
    brief: None, monkeypatch: pytest.MonkeyPatch, algorithm: str, copies: int
) -> None:
    images, rate = images_of("shifting-bar"), 0.3
    monkeypatch.setattr(small, "RATES", (rate,))
    monkeypatch.setattr(small, "CONTROLS", ())
    (found,) = small.learn("shifting-bar", algorithm, images, copies=copies, trials=1, seed=4)
    batch = images.repeat(copies, 1)
    wanted = alone(learner_of(algorithm, 12, 3, len(batch)), initial_prior(batch, 4, 0.01, seeded(4)), batch, rate)
    assert found.epochs == (0, 2, 4, 6)
    assert found.mean == pytest.approx(wanted, abs=2e-4)
    assert found.ends == (found.mean[-1],)


class ByMoments(ContrastiveDivergence):
    """The learner with the oracle's moments in place of its chains."""

    def _inner_step(
        self, prior: RBM, batch: Any, hidden: Tensor, state: LearnerState, generator: torch.Generator, remaining: int
    ) -> Step:
        model = exact_moments(prior)
        state = state | {f"offset.{layer}": follow(state[f"offset.{layer}"], batch.means[layer]) for layer in (0, 1)}
        offsets, pairs = self._offsets(state), model.pairs
        if offsets:
            below, above = offsets
            pairs = pairs - torch.outer(below, model.hidden) - torch.outer(model.visible - below, above)
        means = zip(batch.means, (model.visible, model.hidden), strict=True)
        gradient = {f"units.{layer}.bias": data - mean for layer, (data, mean) in enumerate(means)}
        gradient = translated(prior.couplings, gradient | {"weights.0": batch.weights - pairs}, offsets)

        def again(moved: RBM) -> Step:
            return self._inner_step(moved, batch, hidden, state, generator, remaining - 1)

        return Step(gradient, state, {}, again if remaining > 1 else None)


@pytest.mark.parametrize("algorithm", small.EXACT)
def test_without_chains_a_lane_is_the_learner_with_the_oracles_moments(
    brief: None, monkeypatch: pytest.MonkeyPatch, algorithm: str
) -> None:
    # By large weights the gauges differ from the first epoch on.
    monkeypatch.setattr(small, "WEIGHT_SCALE", 1.0)
    images = images_of(small.EXACT_DATA)
    found = small.learn_exactly(algorithm, images, trials=1, seed=4)
    assert [one.rate for one in found] == list(small.RATES)
    inner = 3 if algorithm in ("S-DCP", "CS-DCP") else 1
    learner = ByMoments(centring=algorithm in ("CG", "CS-DCP"), inner_steps=inner)
    for one in found:
        wanted = alone(learner, initial_prior(images, 4, 1.0, seeded(4)), images, one.rate)
        assert one.mean == pytest.approx(wanted, abs=2e-4)
        assert one.mean[-1] > one.mean[0]


# --- large sets ---


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Machines that can be enumerated, and figures of two curves each."""
    for name, value in {"HIDDEN": 5, "RUNS": 50, "SCHEDULE": "linear:400"}.items():
        monkeypatch.setattr(large, name, value)


def digits(count: int = 60, seed: int = 0) -> Tensor:
    return (torch.rand(count, 16, generator=seeded(seed)) < torch.linspace(0.1, 0.9, 16)).float()


PLAN = large.Plan("mnist", "CS-DCP", 0.05, 4, every=2, batch=20)


def test_the_likelihood_along_a_curve_is_that_of_enumeration(tiny: None, tmp_path: Path) -> None:
    training, test = digits(), digits(40, 1)
    told: list[tuple[int, str]] = []
    curve = large.train(PLAN, training, test, tmp_path, 3, lambda done, note="": told.append((done, note)))
    assert curve.epochs == (2, 4)
    assert [done for done, _ in told] == [2, 4]
    from restore.learning.course import CleanImages
    from restore.learning.steps import fit

    machine = fit(PLAN.recipe(3), CleanImages(training), Session(tmp_path / "again", "x")).machine
    exact = float(log_likelihood(machine, test).mean())
    assert curve.likelihood[-1] == pytest.approx(exact, abs=5 * curve.errors[-1] + 1e-3)
    assert 0 < curve.errors[-1] < 0.1
    assert structure(large.Curve, json.loads(json.dumps(asdict(curve)))) == curve


def test_where_it_falls_machine_and_average_are_judged_as_enumeration_does(
    tiny: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from restore.learning.course import CleanImages
    from restore.learning.steps import fit

    # Steps so long that the average is another machine than the last.
    plan = large.Plan("mnist", "S-DCP", 0.5, 4, every=2, batch=20)
    for name, value in {"PLAN": plan, "RUNS": 50, "SCHEDULE": "linear:4000", "JUDGED": 20}.items():
        monkeypatch.setattr(fall, name, value)
    training, test = digits(), digits(40, 1)
    moments = fall.learn(training, test, seed=3)
    machines: list[Any] = []
    with tempfile.TemporaryDirectory() as folder:
        # A machine in training changes in place.
        kept = Session(
            Path(folder),
            watch=lambda passed: machines.append(
                passed.machine.with_parameters({name: each.clone() for name, each in passed.machine.parameters.items()})
            ),
        )
        fit(plan.recipe(3), CleanImages(training), kept)
    mean = machines[0].parameters
    for later in machines[1:]:
        mean = {name: fall.KEPT * value + (1 - fall.KEPT) * later.parameters[name] for name, value in mean.items()}
    last, average = machines[-1], machines[-1].with_parameters(mean)
    assert [moment.epoch for moment in moments] == [2, 4]
    for found, machine in ((moments[-1].machine, last), (moments[-1].average, average)):
        for value, images in ((found.test, test), (found.train, training[:20])):
            assert value == pytest.approx(float(log_likelihood(machine, images).mean()), abs=0.01)
        assert 40 < found.runs <= 50
    assert abs(moments[-1].machine.train - moments[-1].average.train) > 0.03
    assert len(fall.as_table(moments).splitlines()) == 4
