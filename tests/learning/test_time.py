"""One number, the progress of a run, follows from its epochs or its time, and drives rate and end."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from directions import growth_of
from lessons import SHAPE, Hands, bars, columns, learn, recipe, timed_log_of

from restore.learning import finish
from restore.learning.course import Trial
from restore.learning.finish import own_modes
from restore.learning.lesson import lesson_of
from restore.learning.optimizers import scheduled_rate
from restore.learning.options import TrainOptions
from restore.learning.recipe.recipe import Recipe
from restore.learning.recipe.spec import Optimizer
from restore.learning.rules.contract import Step
from restore.learning.rules.frank_wolfe import Growth
from restore.learning.rules.tap_likelihood import TAPLikelihood
from restore.learning.run.folder import Stopped, epoch_records, stage_folder
from restore.learning.run.outcome import Trained
from restore.learning.run.session import Clock, Session
from restore.learning.train import train
from restore.priors import RBM
from restore.zoo.inference import Inference


@dataclass(frozen=True)
class Timed(TAPLikelihood):
    """A learner whose step takes as long as it is told."""

    hands: Hands = field(default_factory=Hands)
    pace: list[float] = field(default_factory=lambda: [1.0])

    def step(self, *arguments: Any) -> Step:
        self.hands.now += self.pace[0]
        return super().step(*arguments)


def timed(minutes: float, pace: float = 1.0, **tables: Any) -> tuple[Recipe, Timed]:
    """A recipe with a time limit, four steps an epoch, and its learner."""
    training = {"epochs": 0, "minutes": minutes} | tables.pop("training", {})
    learner = Timed(starts="redrawn", pace=[pace])
    return replace(recipe(training=training, **tables), learner=learner), learner


def in_time(
    settings: Recipe, learner: Timed, folder: Path, better: Any = lambda *kept: None, **session: Any
) -> Trained:
    own = Session(folder, "x", clock=Clock(now=learner.hands), **session)
    return train(settings, columns(), SHAPE, own, better=better)


pytestmark = pytest.mark.usefixtures("quick_disk")


def interrupted(at: int, stage: str = "") -> Callable[[Any], None]:
    def watch(passed: Any) -> None:
        if (passed.done, passed.stage) == (at, stage):
            os.kill(os.getpid(), signal.SIGTERM)

    return watch


# --- the clock and the session ---


def test_a_clock_counts_all_sittings_and_leaves_time_for_what_follows() -> None:
    hands = Hands(10.0)
    clock = Clock(80.0, spent=20.0, now=hands)
    hands.now = 30.0
    assert (clock.used, clock.end(0.0)) == (40.0, 60.0)
    assert not clock.later_than(0.0)
    hands.now = 61.0
    assert clock.later_than(0.5) and not clock.later_than(0.6)
    # Of an hour no more than a minute is left for that.
    assert Clock(3600.0, now=hands).end(0.0) == 3540.0
    free = Clock(now=hands)
    assert not free.limited and free.end(0.0) == float("inf") and not free.later_than(0.0)


def test_progress_is_that_of_epochs_or_time_whichever_is_larger() -> None:
    hands = Hands(0.0)
    session = Session(Path("run"), clock=Clock(80.0, now=hands))
    assert session.progress(0.25, began=0.0) == 0.25
    hands.now = 30.0
    assert session.progress(0.25, began=0.0) == 0.5
    # A stage has its share of the time that was left when it began; and what comes next must end in time, too.
    growing = replace(session, share=0.5)
    assert growing.progress(0.0, began=20.0) == 0.5
    assert growing.progress(0.0, began=20.0, soon=10.0) == 1.0
    hands.now = 200.0
    assert session.progress(0.1, began=0.0) == session.progress(0.1, began=90.0) == 1.0
    assert replace(growing, over=True, clock=Clock()).progress(0.0, 0.0) == 1.0
    assert replace(session, clock=Clock()).progress(0.3, 0.0) == 0.3


SCHEDULES = {
    "linear": ([0.2, 0.15, 0.1], {}),
    "linear to a share": ([0.2, 0.16, 0.12], {"end": 0.2}),
    "constant": ([0.2, 0.2, 0.2], {"schedule": "constant"}),
    "geometric": ([0.2, 0.1, 0.05], {"schedule": "geometric", "end": 0.0625}),
}


@pytest.mark.parametrize(("rates", "options"), SCHEDULES.values(), ids=SCHEDULES.keys())
def test_the_rate_follows_from_progress(rates: list[float], options: dict[str, Any]) -> None:
    found = [scheduled_rate(Optimizer(rate=0.2, **options), progress) for progress in (0.0, 0.25, 0.5)]
    assert found == pytest.approx(rates)


# --- runs with a time limit ---


@pytest.mark.usefixtures("same_learner")
def test_time_ends_training_in_the_middle_of_an_epoch_with_the_best_prior(tmp_path: Path) -> None:
    settings, learner = timed(minutes=0.5)
    trained = in_time(settings, learner, tmp_path)
    # 30 s, of which a quarter is for what follows; a step takes one, and none is begun that would be late.
    log = timed_log_of(tmp_path)
    assert learner.hands.now == 22 and [record["step"] for record in log] == [4, 8, 12, 16, 20, 22]
    # The rate falls to nothing in that time.
    assert log[-1]["rate"] == pytest.approx(0.2 * (1 - 21 / 22.5))
    assert trained.error == min(record["validation_error"] for record in log)
    assert trained.verdict


@pytest.mark.usefixtures("same_learner")
def test_a_machine_that_slows_down_still_ends_in_time(tmp_path: Path) -> None:
    settings, learner = timed(minutes=2)

    def slower(passed: Any) -> None:
        learner.pace[0] = 3.0

    in_time(settings, learner, tmp_path, watch=slower)
    assert 87 <= learner.hands.now <= 90


@pytest.mark.usefixtures("same_learner")
@pytest.mark.parametrize(("epochs", "done"), [(2, 2), (100, 6)])
def test_epochs_and_minutes_together_are_the_fewer(epochs: int, done: int, tmp_path: Path) -> None:
    settings, learner = timed(minutes=0.5, training={"epochs": epochs})
    in_time(settings, learner, tmp_path)
    assert len(timed_log_of(tmp_path)) == done


@pytest.mark.usefixtures("same_learner")
@pytest.mark.parametrize("watch", ["flip:0.1", ""])
def test_a_prior_is_judged_and_kept_by_the_time_whatever_the_epochs(watch: str, tmp_path: Path) -> None:
    settings, learner = timed(minutes=5, training={"epochs": 10_000, "watch": watch, "checkpoint_every": 500})
    kept: list[float] = []
    in_time(settings, learner, tmp_path, better=lambda *_: kept.append(learner.hands.now))
    judged = [record["seconds"] for record in timed_log_of(tmp_path) if "validation_error" in record]
    # A thirtieth of the time lies between two, and an epoch at most more.
    if watch:
        assert judged[0] == 4 and judged[-1] >= 236 and max(np.diff(judged)) <= 14
        assert kept[0] == 4 and set(kept) <= set(judged)
    else:
        assert not judged and kept[0] == 4 and kept[-1] >= 236 and max(np.diff(kept)) <= 14


@pytest.mark.usefixtures("same_learner")
@pytest.mark.parametrize(("last", "judged"), [(1.0, True), (50.0, False)], ids=["in time", "late"])
def test_judging_that_takes_long_is_done_seldom_and_only_while_there_is_time(
    last: float, judged: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, learner = timed(minutes=10)
    judge = Trial.judged

    def slow(self: Trial, *arguments: Any) -> Any:
        learner.hands.now += 10.0
        return judge(self, *arguments)

    def slower(passed: Any) -> None:
        learner.pace[0] = last if learner.hands.now > 515 else 1.0

    monkeypatch.setattr(Trial, "judged", slow)
    in_time(settings, learner, tmp_path, watch=slower)
    log = timed_log_of(tmp_path)
    count = sum("validation_error" in record for record in log)
    # A tenth of the time is a judgement in a hundred seconds.
    assert 5 <= count <= 7 and ("validation_error" in log[-1]) == judged
    # Of 60 s after learning a step that was slower than all before has taken more than a tenth.
    assert (learner.hands.now <= 540) == judged and 530 <= learner.hands.now <= 580


@pytest.mark.usefixtures("same_learner")
def test_a_stopped_run_goes_on_in_the_time_that_is_left(tmp_path: Path) -> None:
    settings, learner = timed(minutes=1)
    with pytest.raises(Stopped):
        in_time(settings, learner, tmp_path, watch=interrupted(3))
    assert learner.hands.now == 12
    learner.hands.now = 1000.0
    in_time(settings, learner, tmp_path, resume=True)
    assert learner.hands.now == 1000 + 44 - 12 and epoch_records(tmp_path)[-1]["seconds"] == 44
    # It has ended, and ends again without another step; with more time it goes on.
    in_time(settings, learner, tmp_path, resume=True)
    assert learner.hands.now == 1032
    more = replace(settings, training=replace(settings.training, minutes=2.0))
    in_time(more, learner, tmp_path, resume=True)
    assert learner.hands.now == 1032 + 89 - 44


def deep(**tables: Any) -> tuple[Any, Timed]:
    """A machine of two hidden layers that wants more epochs of each than there is time for."""
    return timed(2.0, prior={"family": "deep", "deeper": [3]}, pretraining={"epochs": 50}, **tables)


@pytest.mark.usefixtures("same_learner")
def test_pretraining_leaves_half_of_the_time_and_is_over_once_it_has_ended(tmp_path: Path) -> None:
    settings, learner = deep()
    with pytest.raises(Stopped):
        in_time(settings, learner, tmp_path, watch=interrupted(2))
    # 90 s, of which each layer may take a quarter.
    assert [epoch_records(stage_folder(tmp_path, number))[-1]["seconds"] for number in (1, 2)] == [22, 44]
    more = replace(settings, training=replace(settings.training, minutes=4.0))
    trained = in_time(more, learner, tmp_path, resume=True)
    assert [epoch_records(stage_folder(tmp_path, number))[-1]["seconds"] for number in (1, 2)] == [22, 44]
    assert learner.hands.now == 179 and trained.prior.description.deeper == (3,)


@pytest.mark.usefixtures("same_learner", "quick_growth")
def test_growth_for_which_there_is_no_time_leaves_it_to_units_of_random_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, learner = timed(minutes=2.0)
    growth = growth_of(20, 0.001, samples=100, bias_steps=1, window=40, least=0.0)
    settings = replace(settings, prior=replace(settings.prior, hidden="auto", filled=9), growth=growth)
    advance = Growth.advance

    def slow(self: Growth, *arguments: Any) -> Any:
        learner.hands.now += 7.0
        return advance(self, *arguments)

    monkeypatch.setattr(Growth, "advance", slow)
    with pytest.raises(Stopped):
        in_time(settings, learner, tmp_path, watch=interrupted(1))
    # A quarter of 90 s is for growth, and a fourth round would not end in it.
    grown = timed_log_of(tmp_path / "growth")
    assert len(grown) == 3 and grown[-1]["seconds"] == 21
    trained = in_time(settings, learner, tmp_path, resume=True)
    assert timed_log_of(tmp_path / "growth") == grown
    assert trained.prior.description.hidden == 9 and learner.hands.now == 89 and trained.verdict


def test_sweeps_for_modes_end_when_time_does(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, done = RBM.binary(torch.zeros(16, 2), torch.zeros(16), torch.zeros(2)), [0]
    quick = Inference(max_iter=2, modes=3)

    def move(prior: object, chains: torch.Tensor, sweeps: int, generator: object) -> torch.Tensor:
        done[0] += sweeps
        return chains

    monkeypatch.setattr(finish, "gibbs_steps", move)
    found = own_modes(machine, columns(), quick, torch.Generator(), lambda: done[0] >= 40)
    assert done[0] == 40 and len(found) == 3
    own_modes(machine, columns(), quick, torch.Generator())
    assert done[0] == 540


# --- a time too short for anything ---


def shades() -> list[np.ndarray]:
    """Grey images, 5x6."""
    return list(np.random.default_rng(0).integers(0, 256, (60, 5, 6)).astype(np.uint8))


METHODS: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    **{method: (bars, {"method": method}) for method in ("convolutional", "tap", "fvbm", "fw")},
    "growth-and-tap": (bars, {"hidden": "auto"}),
    "growth-and-crbm-bp": (bars, {"hidden": "auto", "task": "flip:0.1"}),
    "crbm-mssvm": (bars, {"method": "crbm-mssvm", "task": "flip:0.1"}),
    "principal": (shades, {"method": "principal", "hidden": 3}),
    "grey": (shades, {"method": "tap"}),
}


@pytest.mark.usefixtures("quick_growth")
@pytest.mark.parametrize(("images", "asked"), METHODS.values(), ids=METHODS.keys())
def test_a_time_too_short_for_anything_ends_with_a_prior(
    images: Callable[[], Any], asked: dict[str, Any], tmp_path: Path
) -> None:
    made = lesson_of(list(images()), TrainOptions(**asked, minutes=1e-6))
    learnt = learn(made, Session(tmp_path))
    assert all(bool(torch.isfinite(value).all()) for value in learnt.prior.machine.parameters.values())
    assert len(timed_log_of(tmp_path)) == 1
