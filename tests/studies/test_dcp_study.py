"""The study of S-DCP: its trials side by side against a plain loop, its curves against enumeration, its tables."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, replace
from pathlib import Path

import dcp
import dcp_large as large
import dcp_slow as slow
import dcp_small as small
import harness
import numpy as np
import pytest
import torch
from dcp_learners import ALGORITHMS, learner_of
from dcp_small import BEST
from harness import Asked
from machines import seeded
from oracle import log_likelihood
from torch import Tensor

from restore.data import binarise, load
from restore.errors import InputError
from restore.learning.course import initial_prior
from restore.learning.run.folder import Stopped
from restore.learning.run.session import Session
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


def test_a_mean_leaves_the_local_maximum_when_it_is_above_it() -> None:
    def one(rate: float, *mean: float) -> small.Trials:
        return small.Trials(slow.DATA, "CG", 1, rate, tuple(range(0, 200 * len(mean), 200)), mean, (), ())

    stays, goes = one(slow.SLOW[0], -3.2, -3.15, -3.12), one(slow.SLOW[1], -3.2, -3.15, -3.09, -3.2)
    assert (slow.leaves(stays), slow.leaves(goes)) == (None, 400)
    others = [replace(stays, data="bars-and-stripes"), replace(stays, algorithm="CD")]
    assert slow.as_table([stays, *others, goes]).splitlines()[2:] == ["| 0.1 | - |", "| 0.1667 | 400 |"]


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few epochs."""
    monkeypatch.setattr(small, "EPOCHS", 6)
    monkeypatch.setattr(small, "EVERY", 2)


@pytest.mark.parametrize(("algorithm", "copies"), [*((name, 1) for name in ALGORITHMS), ("PCD", 3), ("CS-DCP", 3)])
def test_a_lane_is_what_the_learner_does_alone(
    brief: None, monkeypatch: pytest.MonkeyPatch, algorithm: str, copies: int
) -> None:
    images, rate = images_of("shifting-bar"), 0.3
    monkeypatch.setattr(small, "RATES", (rate,))
    monkeypatch.setattr(small, "CONTROLS", ())
    (found,) = small.learn("shifting-bar", algorithm, images, copies=copies, trials=1, seed=4)
    batch = images.repeat(copies, 1)
    machine = initial_prior(batch, 4, 0.01, seeded(4))
    learner, generator = learner_of(algorithm, 12, 3, len(batch)), seeded(5)
    state, wanted = learner.init(machine, batch, generator), []
    for done in range(7):
        if done % 2 == 0:
            wanted.append(float(log_likelihood(machine, images).mean()))
        step = learner.step(machine, batch, state, generator, 0)
        machine = machine.with_parameters(
            {name: value + rate * step.gradient[name] for name, value in machine.parameters.items()}
        )
        while step.again is not None:
            step = step.again(machine)
            machine = machine.with_parameters(
                {name: value + rate * step.gradient[name] for name, value in machine.parameters.items()}
            )
        state = step.state
    assert found.epochs == (0, 2, 4, 6)
    assert found.mean == pytest.approx(wanted, abs=2e-4)
    assert found.ends == (found.mean[-1],)


# --- large sets ---

SHAPE = (4, 4)


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
    from restore.learning.loop import fit

    machine = fit(PLAN.recipe(3), CleanImages(training), Session(tmp_path / "again", "x")).machine
    exact = float(log_likelihood(machine, test).mean())
    assert curve.likelihood[-1] == pytest.approx(exact, abs=5 * curve.errors[-1] + 1e-3)
    assert 0 < curve.errors[-1] < 0.1
    assert structure(large.Curve, json.loads(json.dumps(asdict(curve)))) == curve


def test_a_stopped_curve_goes_on_and_ends_the_same(tiny: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    training, test = digits(), digits(40, 1)
    whole = large.train(PLAN, training, test, tmp_path / "whole", 3)
    original = large.log_weights

    def stopping(*arguments: object) -> object:
        raise Stopped(2)

    monkeypatch.setattr(large, "log_weights", stopping)
    with pytest.raises(Stopped):
        large.train(PLAN, training, test, tmp_path / "stopped", 3)
    assert not (tmp_path / "stopped" / "likelihood.json").exists()
    monkeypatch.setattr(large, "log_weights", original)
    resumed = large.train(PLAN, training, test, tmp_path / "stopped", 3)
    assert replace(resumed, seconds=0) == replace(whole, seconds=0)
    assert replace(large.train(PLAN, training, test, tmp_path / "whole", 3), seconds=0) == replace(whole, seconds=0)


def curve_of(*values: float, **changed: object) -> large.Curve:
    plan = replace(large.Plan("mnist", "CD", 0.05, 8), **changed)  # type: ignore[arg-type]
    return large.Curve(plan, tuple(range(2, 2 * len(values) + 1, 2)), values, (0.25,) * len(values), 1.0)


def test_arrival_is_interpolated() -> None:
    assert large.arrival(curve_of(-150.0, -110.0, -90.0), -90) == pytest.approx(5)
    assert large.arrival(curve_of(-95.0, -90.0), -90) == 2
    assert large.arrival(curve_of(-150.0, -110.0), -90) is None
    # From the first time on, whatever follows.
    assert large.arrival(curve_of(-110.0, -90.0, -120.0, -80.0), -90) == pytest.approx(3)


# --- the whole ---


@pytest.mark.thorough
def test_what_is_missing_is_trained_and_written(
    brief: None, tiny: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    few = {
        "3": (replace(PLAN, every=1), replace(PLAN, algorithm="CD")),
        "7b": (replace(PLAN, images=40, zero_bias=True),),
    }
    monkeypatch.setattr(large, "plans", lambda: few)
    monkeypatch.setattr(small, "TRIALS", {1: 2, 2: 1})
    monkeypatch.setattr(dcp, "ALGORITHMS", ("CD", "CS-DCP"))
    # A stand-in for MNIST, which is not read.
    grey = np.random.default_rng(0).integers(0, 256, (60, *SHAPE), dtype=np.uint8)

    def loading(source: str, **options: object) -> object:
        return replace(load("shifting-bar"), images=grey) if source == "mnist" else load(source)

    for place in (dcp, harness):
        monkeypatch.setattr(place, "load", loading)
    asked = Asked(tmp_path, runs=tmp_path / "runs", seed=2)
    record, document = asked.records / "dcp.json", (asked.root / "log.md")
    document.write_text("# Log\n<!-- dcp-small: begin -->\nold\n<!-- dcp-small: end -->\n<!-- dcp-large: begin -->")
    with pytest.raises(InputError, match="--train"):
        dcp.study(asked)
    training = replace(asked, train_missing=True)
    dcp.study(training)
    text = capsys.readouterr().out
    assert "Bars & Stripes" in text and "Fig. 3, MNIST" in text and "base rate" not in text
    written = document.read_text()
    assert "old" not in written and "| CS-DCP | 0.5 |" in written and written.endswith("<!-- dcp-large: begin -->")
    found = json.loads(record.read_text())
    # Two sets, twice: CD at four rates, CS-DCP at two.
    assert len(found["small"]) == 24 and len(found["large"]) == 3
    # What the record has is not run again, even without its runs.
    shutil.rmtree(asked.runs)
    when = record.stat().st_mtime_ns
    dcp.study(training)
    assert capsys.readouterr().out == text
    assert record.stat().st_mtime_ns == when and not asked.runs.exists()
    with pytest.raises(InputError, match=r"dcp\.json: holds the study with seed 2, not 3"):
        dcp.study(replace(asked, seed=3))
    record.write_text("[]")
    with pytest.raises(InputError, match="not the record of this study"):
        dcp.study(replace(asked, seed=3))
