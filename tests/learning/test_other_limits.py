"""A run that was stopped goes on under another limit of time."""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from lessons import CPU, lesson
from timed_runs import SHAPE, in_time, timed
from timed_runs import bars as columns

from restore.learning.pipeline import train
from restore.learning.recipes.recipe import read_recipe
from restore.learning.run.folder import Stopped
from restore.learning.run.session import Session
from restore.learning.train import learn


def interrupted(at: int) -> Callable[[Any], None]:
    def watch(passed: Any) -> None:
        if passed.done == at and not passed.stage:
            os.kill(os.getpid(), signal.SIGTERM)

    return watch


@pytest.mark.thorough
@pytest.mark.usefixtures("same_learner", "quick_disk")
@pytest.mark.parametrize(
    ("minutes", "epochs", "says"),
    [
        # 26 epochs of 4 s fit into nine tenths of 116 s; 5 of them have taken 24 s with the first steps, or 4.8 s each.
        (2, 26, ""),
        # 24 s and nine tenths of the 216 s that are left, at 4.8 s each.
        (4, int((24 + 0.9 * 216) / 4.8), "another limit of time made 26 epochs 45, after step 20"),
        (1, int((24 + 0.9 * 36) / 4.8), "another limit of time made 26 epochs 11, after step 20"),
        # There is no time left at all.
        (0.1, 5, "another limit of time made 26 epochs 5, after step 20"),
    ],
)
def test_row59_another_limit_of_time_is_another_number_of_epochs(
    minutes: float, epochs: int, says: str, tmp_path: Path
) -> None:
    settings, learner = timed(minutes=2)
    with pytest.raises(Stopped):
        in_time(settings, learner, tmp_path, watch=interrupted(5))
    assert learner.clock.now == 24
    changed = replace(settings, training=replace(settings.training, minutes=minutes))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        trained = in_time(changed, learner, tmp_path, resume=True)
    assert trained.settled.training.epochs == epochs and trained.settled.training.minutes == 0
    assert trained.verdict == says
    assert [str(one.message) for one in told if "limit" in str(one.message)] == (
        [f"{tmp_path}: {says}; its recipe will not repeat the run to the bit"] if says else []
    )
    if minutes > 1:
        assert learner.clock.now <= 60 * minutes
    if not says:
        whole = train(trained.settled, columns(), SHAPE, Session(tmp_path / "again", "x"))
        for name, value in whole.prior.machine.parameters.items():
            assert torch.equal(value, trained.prior.machine.parameters[name]), name


@pytest.mark.usefixtures("same_learner", "quick_disk")
def test_row59_a_limit_that_is_lifted_leaves_the_epochs_of_the_recipe(tmp_path: Path) -> None:
    settings, learner = timed(minutes=0.5, epochs=9)
    with pytest.raises(Stopped):
        in_time(settings, learner, tmp_path, watch=interrupted(2))
    lifted = replace(settings, training=replace(settings.training, minutes=0.0))
    with pytest.warns(UserWarning, match="another limit of time made 5 epochs 9"):
        trained = in_time(lifted, learner, tmp_path, resume=True)
    assert trained.settled.training.epochs == 9
    # What has ended has ended.
    with pytest.warns(UserWarning, match="training has ended, which no other limit changes; give another --run"):
        again = in_time(settings, learner, tmp_path, resume=True)
    assert again.settled.training.epochs == 9


GROWN: dict[str, Any] = {
    "growth": {"units": 2},
    "training": {"epochs": 2},
    "inference": {"modes": 0, "starts": 1},
}


@pytest.mark.usefixtures("quick_growth")
def test_row59_growth_goes_on_under_another_limit_and_units_that_were_filled_up_stay(tmp_path: Path) -> None:
    """The plan of a limit says how many units there are at least; those that are trained already are not grown anew."""

    def planned(minutes: float) -> Any:
        # So little time that it decides; growth ends by its limit of units.
        made = lesson(hidden="auto", epochs=None, minutes=minutes, tables=GROWN)
        filled = {"filled": 3 + round(10 * minutes)}
        assert made.tables is not None
        tables = {**made.tables, "prior": {**made.tables["prior"], **filled}}
        return replace(made, recipe=replace(made.recipe, prior=replace(made.recipe.prior, **filled)), tables=tables)

    with pytest.raises(Stopped):
        learn(planned(0.5), Session(tmp_path, watch=interrupted(1)), device=CPU)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learnt = learn(planned(0.6), Session(tmp_path, resume=True), device=CPU)
    assert learnt.trained.prior.description.hidden == 8
    assert read_recipe(tmp_path / "recipe.toml").prior.filled == 8
