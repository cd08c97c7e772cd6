"""Before a run with a limit of time its machine is timed: threads, epochs, judging and the forecast follow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from timed_runs import SHAPE, Timed, bars, in_time, log_of, timed

from restore.learning.course import CleanImages
from restore.learning.measuring import JUDGING, Speed, use_fastest_threads
from restore.learning.pipeline import train
from restore.learning.rules.contract import Step
from restore.learning.run.judging import Trial
from restore.learning.run.pace import SPARE
from restore.learning.run.session import Session

SECONDS = st.floats(1e-3, 100)


@given(st.builds(Speed, SECONDS, st.integers(1, 1000), SECONDS), st.integers(1, 50))
def test_judging_takes_at_most_its_share_and_is_as_rare_as_asked(speed: Speed, least: int) -> None:
    every = speed.judged_every(least)
    assert every >= least
    assert speed.judging / every <= JUDGING * speed.epoch * (1 + 1e-9)
    if every > least:
        # Not rarer than it must be.
        assert speed.judging / (every - 1) >= JUDGING * speed.epoch * (1 - 1e-9)


@given(
    st.builds(Speed, SECONDS, st.integers(1, 100), SECONDS),
    st.floats(0, 1e4),
    st.integers(1, 20),
    st.one_of(st.just(0.0), st.floats(0.01, 1)),
)
def test_as_many_epochs_as_are_forecast_to_end_in_time(speed: Speed, seconds: float, every: int, slower: float) -> None:
    epochs = speed.epochs(seconds, every, slower)
    # The number is found as if each epoch were judged by its share; the last one is judged in any case.
    assert epochs == 1 or speed.forecast(epochs, every, slower) <= SPARE * seconds + speed.judging + 1e-6 * seconds
    assert speed.forecast(epochs + 1, every, slower) >= SPARE * seconds * (1 - 1e-6)


@pytest.fixture
def many_threads() -> Iterator[int]:
    """As if torch had eight threads, on any machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(8)
    yield 8
    torch.set_num_threads(before)


@dataclass(frozen=True)
class Threaded(Timed):
    """A learner whose step takes so many seconds with each number of threads."""

    takes: dict[int, float] = field(default_factory=dict)

    def step(self, *arguments: Any) -> Step:
        self.pace[0] = self.takes[torch.get_num_threads()]
        return super().step(*arguments)


@pytest.mark.parametrize(
    ("takes", "fastest"),
    [({8: 1, 4: 2, 2: 4, 1: 8}, 8), ({8: 3, 4: 2, 2: 1, 1: 2}, 2), ({8: 4, 4: 3, 2: 2, 1: 1}, 1)],
)
def test_the_number_of_threads_is_the_fastest(
    takes: dict[int, float], fastest: int, many_threads: int, tmp_path: Path
) -> None:
    settings, _ = timed(minutes=1)
    learner = Threaded(starts="redrawn", takes=takes)
    course = CleanImages(bars())
    session = Session(tmp_path, clock=learner.clock)
    use_fastest_threads(replace(settings, learner=learner), course, session)
    assert torch.get_num_threads() == fastest


@pytest.mark.usefixtures("same_learner")
@pytest.mark.parametrize("free", [True, False])
def test_threads_are_chosen_only_where_nobody_has_told_them(free: bool, many_threads: int, tmp_path: Path) -> None:
    settings, learner = timed(minutes=1)
    learner = Threaded(starts="redrawn", clock=learner.clock, takes={8: 4, 4: 3, 2: 1, 1: 2})
    said: list[str] = []
    in_time(replace(settings, learner=learner), learner, tmp_path, any_threads=free, announce=said.append)
    chosen = torch.get_num_threads()
    assert chosen == (2 if free else many_threads)
    assert f" on {chosen} threads, about " in said[0]
    assert learner.clock.now <= 60


@pytest.mark.usefixtures("same_learner")
def test_what_is_announced_comes_true(tmp_path: Path) -> None:
    settings, learner = timed(minutes=2)
    said: list[str] = []
    in_time(settings, learner, tmp_path, announce=said.append)
    epochs = len(log_of(tmp_path))
    assert said[0].startswith(f"{epochs} epochs on ")
    minutes, rest = divmod(round(learner.clock.now), 60)
    assert said[0].endswith(f", about {minutes}:{rest:02d} of training")


@pytest.mark.usefixtures("same_learner")
def test_slow_judging_is_done_less_often_and_the_settled_recipe_repeats_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, learner = timed(minutes=2)
    judged = Trial.judged

    def slowly(self: Trial, *arguments: Any) -> Any:
        learner.clock.now += 3.0
        return judged(self, *arguments)

    monkeypatch.setattr(Trial, "judged", slowly)
    first = in_time(settings, learner, tmp_path / "first")
    every = first.settled.training.watch_every
    # Four seconds an epoch, and twice three for judging a trained prior.
    assert every == 15
    log = log_of(tmp_path / "first")
    watched = [record["epoch"] for record in log if "validation_error" in record]
    assert watched == [*range(every, len(log), every), len(log)]
    again = train(first.settled, bars(), SHAPE, Session(tmp_path / "again", "x"))
    assert again.epoch == first.epoch
    for name, value in first.prior.machine.parameters.items():
        assert torch.equal(value, again.prior.machine.parameters[name]), name
