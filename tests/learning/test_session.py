"""A session is one value; what goes before the training of the whole prior has one of its own."""

from __future__ import annotations

import math
from pathlib import Path

from restore.learning.run.session import Session
from restore.progress import Passed

PASSED = Passed(2, 9, 1.0, {}, 5)


def test_a_session_of_which_nobody_wants_to_hear_is_silent() -> None:
    session = Session(Path("run"))
    session.meter(1, "loss 2")
    session.tell(PASSED)
    session.offer(PASSED)
    assert not session.exceeded(1e30) and session.budget == math.inf


def test_a_stage_is_told_of_by_its_name_in_a_share_of_the_budget() -> None:
    said: list[object] = []
    session = Session(
        Path("run"),
        "data",
        resume=True,
        meter=lambda done, note="": said.append((done, note)),
        watch=said.append,
        usable=said.append,
        budget=100.0,
    )
    growing = session.stage("growing", Path("run/growth"), 25.0, piece="round")
    assert (growing.folder, growing.data, growing.resume, growing.budget) == (Path("run/growth"), "data", True, 25.0)
    growing.meter(3, "gain 1")
    growing.tell(PASSED)
    growing.offer(PASSED)
    layer = session.stage("layer 1", Path("run/layer-1"), 50.0, of_use=False)
    layer.meter(4, "loss 1")
    layer.offer(PASSED)
    of_stage = Passed(2, 9, 1.0, {}, 5, "growing")
    assert said == [(0, "growing, round 3: gain 1"), of_stage, of_stage, (0, "layer 1, epoch 4: loss 1")]


def test_a_machine_is_made_of_a_state_only_for_who_hears_of_it() -> None:
    seen: list[Passed] = []
    session = Session(Path("run"), watch=seen.append).seeing(str)
    session.tell(PASSED)
    assert seen[0].machine == "5" and PASSED.machine == 5


def test_time_goes_on_from_the_sittings_before() -> None:
    now = iter((10.0, 10.5, 12.0))
    session = Session(Path("run"), budget=5.0, clock=lambda: next(now))
    elapsed = session.timer(3.0)
    assert (elapsed(), elapsed()) == (3.5, 5.0)
    assert session.exceeded(5.1) and not session.exceeded(5.0)
