"""A limit of time holds for every method, and one that is too short for anything still ends with a prior."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from growing import growth_of
from timed_runs import SHAPE, Clock, Timed, bars, in_time, log_of, recipe, timed

from restore.learning import pipeline
from restore.learning.pipeline import train
from restore.learning.recipes.recipe import Recipe, parse
from restore.learning.recipes.wishes import Wishes
from restore.learning.rules.frank_wolfe import Growth
from restore.learning.run.folder import Stopped, epoch_seconds, stage_folder
from restore.learning.run.session import Session
from restore.learning.train import learn, planned_lesson

CPU = torch.device("cpu")


def deep(**tables: dict[str, Any]) -> Recipe:
    """A machine of two hidden layers, four steps an epoch, that wants more epochs of each than there is time for."""
    return recipe(
        prior={"family": "deep", "deeper": [3]},
        pretraining={"epochs": 50},
        training={"epochs": 0, "minutes": 2.0, "watch_every": 5},
        **tables,
    )


def in_virtual_time(settings: Recipe, folder: Path, learner: Timed, **session: Any) -> pipeline.Trained:
    """`in_time` for a deep machine, each of whose steps takes a second."""
    return in_time(replace(settings, learner=learner), learner, folder, **session)


def seconds(folder: Path) -> list[float]:
    """What each layer took, and all together, by the log."""
    return [epoch_seconds(stage_folder(folder, number))[-1] for number in (1, 2)] + [epoch_seconds(folder)[-1]]


@pytest.mark.thorough
def test_pretraining_leaves_half_of_the_time(tmp_path: Path) -> None:
    learner = Timed(starts="redrawn")
    trained = in_virtual_time(deep(), tmp_path, learner)
    first, second, whole = seconds(tmp_path)
    # A quarter of the time each, of which the first steps took 4 in the first layer alone.
    epochs = int(0.9 * (30 - 4) / 4)
    assert (first, second) == (4 + 4 * epochs, 4 * epochs)
    assert whole == learner.clock.now and 0.9 * 120 <= whole <= 120
    assert trained.verdict == ""
    assert trained.settled.pretraining.epochs == epochs and trained.settled.training.minutes == 0
    again = train(trained.settled, bars(), SHAPE, Session(tmp_path / "again", "x"))
    assert_same(trained, again)


@pytest.mark.thorough
def test_pretraining_takes_no_more_epochs_than_the_recipe_says(tmp_path: Path) -> None:
    learner = Timed(starts="redrawn")
    trained = in_virtual_time(replace(deep(), pretraining=replace(deep().pretraining, epochs=2)), tmp_path, learner)
    assert trained.settled.pretraining.epochs == 2
    assert seconds(tmp_path)[:2] == [12, 8] and 0.9 * 120 <= learner.clock.now <= 120


def test_a_layer_that_takes_longer_than_the_first_ends_in_time(tmp_path: Path) -> None:
    learner = Timed(starts="redrawn")

    def slower(passed: Any) -> None:
        learner.pace[0] = 3.0 if passed.stage == "layer 2" else 1.0

    trained = in_virtual_time(deep(), tmp_path, learner, watch=slower)
    first, second, whole = seconds(tmp_path)
    assert first + second <= 60 and second > first and whole <= 120
    done = len(log_of(stage_folder(tmp_path, 2)))
    assert trained.verdict == f"layer 2: time ran out after {done} of 5 epochs" and done < 5


@pytest.mark.thorough
def test_57_a_deep_machine_stopped_between_its_layers_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    settings = replace(deep(), training=replace(deep().training, minutes=0.1, batch=2))
    # Whoever looks at it makes it go on, by a hundredth of a second.
    ticks = count()

    def clock() -> float:
        return 0.01 * next(ticks)

    def stop(passed: Any) -> None:
        if (passed.stage, passed.done) == ("layer 2", 1):
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(Stopped):
        train(settings, bars(), SHAPE, Session(tmp_path / "run", "x", watch=stop, clock=clock))
    resumed = train(settings, bars(), SHAPE, Session(tmp_path / "run", "x", resume=True, clock=clock))
    assert resumed.verdict == "" and resumed.settled.pretraining.epochs > 2
    whole = train(resumed.settled, bars(), SHAPE, Session(tmp_path / "whole", "x"))
    assert_same(resumed, whole)


def assert_same(one: pipeline.Trained, other: pipeline.Trained) -> None:
    for name, value in one.prior.machine.parameters.items():
        assert torch.equal(value, other.prior.machine.parameters[name]), name


@pytest.mark.thorough
def test_epochs_and_minutes_together_are_the_fewer_epochs(tmp_path: Path) -> None:
    for wanted, found in ((3, 3), (100, 26)):
        settings, learner = timed(minutes=2, epochs=wanted)
        assert in_time(settings, learner, tmp_path / str(wanted)).settled.training.epochs == found


@pytest.mark.parametrize(("elsewhere", "left"), [(50.0, 70.0), (1000.0, 60.0)])
def test_time_is_left_for_other_work_but_not_all_of_it(elsewhere: float, left: float, tmp_path: Path) -> None:
    settings, learner = timed(minutes=2)
    trained = in_time(settings, learner, tmp_path, budget=120 - elsewhere)
    assert trained.settled.training.epochs == int(0.9 * (left - 4) / 4)


@pytest.mark.parametrize("family", ["deep", "rbm", "fvbm"])
def test_time_is_left_for_the_modes_of_every_family(
    family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables: dict[str, Any] = {"learner": {"method": "tap"}, "training": {"minutes": 1.0, "batch": 10}}
    tables["prior"] = {"family": family, "hidden": 4} | ({"deeper": [3]} if family == "deep" else {})
    if family == "fvbm":
        tables |= {"prior": {"family": family}, "learner": {"method": "bslm"}, "training": {"minutes": 1.0}}
    settings = parse({"name": "x", "data": {"source": "bars"}, "inference": {"modes": 9, "starts": 1}} | tables)
    # A sweep over the chains takes a second.
    clock = Clock()
    moves = pipeline.seconds_for_modes.__globals__

    def move(prior: object, chains: torch.Tensor, sweeps: int, generator: object) -> torch.Tensor:
        clock.now += sweeps
        return chains

    monkeypatch.setitem(moves, "_moves", lambda prior: move)
    assert pipeline._seconds_to_finish(settings, bars(), clock) == 700


def shades() -> list[np.ndarray]:
    """Grey images, 5x6."""
    return list(np.random.default_rng(0).integers(0, 256, (60, 5, 6)).astype(np.uint8))


def columns() -> list[np.ndarray]:
    """Columns of 5x6 images, white or black."""
    white = np.random.default_rng(0).random((60, 1, 6)) < 0.5
    return list(np.repeat(white, 5, axis=1).astype(np.uint8) * np.uint8(255))


METHODS: dict[str, tuple[Callable[[], list[np.ndarray]], dict[str, Any]]] = {
    **{method: (columns, {"method": method}) for method in ("tap", "pcd", "cd", "fvbm")},
    "fw": (columns, {"method": "fw"}),
    "growth-and-tap": (columns, {"hidden": "auto"}),
    "growth-and-crbm-bp": (columns, {"hidden": "auto", "task": "flip:0.1"}),
    **{method: (columns, {"method": method, "task": "flip:0.1"}) for method in ("crbm-bp", "crbm-mssvm")},
    "principal": (shades, {"method": "principal", "hidden": 3}),
    "grey": (shades, {"method": "tap"}),
}


@pytest.mark.usefixtures("quick_growth")
@pytest.mark.parametrize(("images", "asked"), METHODS.values(), ids=METHODS.keys())
def test_a_time_too_short_for_anything_ends_with_a_prior(
    images: Callable[[], list[np.ndarray]], asked: dict[str, Any], tmp_path: Path
) -> None:
    tables = {} if "task" in asked else {"inference": {"modes": 0, "starts": 1}}
    wishes = Wishes(**asked, tables=tables, minutes=1e-6)
    learnt = learn(
        planned_lesson(images(), "x", wishes, shown_as="images"), Session(tmp_path), device=CPU, elsewhere=9.0
    )
    assert all(bool(torch.isfinite(value).all()) for value in learnt.trained.prior.machine.parameters.values())
    assert len(learnt.curve) == 1 and learnt.trained.settled.training.minutes == 0


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("window", "first", "says"),
    [
        (40, 0.0, "there was no time for 40 rounds, so round 2 was the last"),
        (40, 7.0, "there was no time for 40 rounds, so round 1 was the last"),
        (4, 0.0, "time ran out after 5 rounds"),
    ],
)
@pytest.mark.usefixtures("same_learner")
def test_a_growth_for_which_there_is_no_time_leaves_it_to_units_of_random_weights(
    window: int, first: float, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, learner = timed(minutes=2.0)
    growth = growth_of(20, 0.001, samples=100, bias_steps=1, window=window, least=0.0)
    settings = replace(settings, prior=replace(settings.prior, hidden="auto", filled=9), growth=growth)

    def tick(passed: Any) -> None:
        # A quarter of the two minutes is for growth.
        learner.clock.now += 7.0 if passed.stage == "growing" else 0.0

    advance = Growth.advance

    def slow(self: Growth, images: torch.Tensor, state: Any, generator: torch.Generator) -> Any:
        learner.clock.now += first if len(state["gains"]) == 1 else 0.0
        return advance(self, images, state, generator)

    monkeypatch.setattr(Growth, "advance", slow)
    trained = in_time(settings, learner, tmp_path / "run", watch=tick)
    grown = trained.settled.growth.units
    assert trained.verdict.startswith(says) and f"; {9 - grown} units start from random" in trained.verdict
    assert trained.prior.description.hidden == 9 and trained.settled.prior.filled == 9
    assert 0.9 * 120 <= learner.clock.now <= 120
    assert_same(trained, train(trained.settled, bars(), SHAPE, Session(tmp_path / "again", "x")))


def test_a_time_too_short_for_a_deep_machine_ends_with_a_prior(tmp_path: Path) -> None:
    settings = replace(deep(), training=replace(deep().training, minutes=1e-6))
    trained = train(settings, bars(), SHAPE, Session(tmp_path, "x"))
    assert (trained.settled.pretraining.epochs, trained.settled.training.epochs) == (1, 1)
    assert all(bool(torch.isfinite(value).all()) for value in trained.prior.machine.parameters.values())
