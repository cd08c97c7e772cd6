"""What training shows while it goes on: the table on a terminal, and lines where there is none."""

from __future__ import annotations

import io
import re

import pytest

from restore.cli.live import in_lines, table_of
from restore.progress import Passed, clock, progress


def rendered(*history: Passed, since: float = 0.0, below: str = "") -> str:
    from rich.console import Console

    stream = io.StringIO()
    table = table_of("a[b]", "wrong pixels after flip:0.1", history, since, below)
    Console(file=stream, width=120).print(table)
    return stream.getvalue()


def test_the_table_tells_the_epoch_the_time_and_the_scores() -> None:
    history = [
        Passed(1, 10, 60.0, {"converged": 0.5}, None),
        Passed(2, 10, 120.0, {"validation_error": 0.04, "validation_converged": 1.0}, None),
        Passed(3, 10, 180.0, {"validation_error": 0.05, "validation_converged": 0.9}, None),
    ]
    made = rendered(*history, since=30.0)
    assert "a[b], 3 of at most 10, 3:30 so far, 6:30 left" in made
    assert re.search(r"3 . 3:00 .\s+0\.05000 .\s+0\.04000 .\s+90%", made)
    assert re.search(r"1 . 1:00 .\s+.\s+.\s+50%", made)


def test_the_table_shows_one_stage_and_the_newest_epochs() -> None:
    growing = [Passed(n, 400, n, {}, None, "growing") for n in range(1, 30)]
    made = rendered(*growing, below="growing, round 29: gain [1]")
    assert "a[b]: growing, 29 of at most 400" in made and "gain [1]" in made
    assert re.search(r"\b22 . 0:22", made) and not re.search(r"\b21 . 0:21", made)
    assert not re.search(r"0:29", rendered(*growing, Passed(1, 5, 70.0, {}, None)))
    assert "a[b]" in rendered()


def test_lines_tell_the_newest_score_though_not_every_epoch_has_one() -> None:
    told: list[tuple[int, str]] = []
    watch = in_lines(lambda done, note="": told.append((done, note)), "wrong pixels after flip:0.1")
    watch(Passed(3, 400, 6.0, {"gain": 0.1}, None, "growing"))
    watch(Passed(1, 4, 60.0, {"solution_change": 0.5}, None))
    watch(Passed(2, 4, 120.0, {"validation_error": 0.04, "validation_converged": 0.9}, None))
    watch(Passed(3, 4, 180.0, {"solution_change": 0.4}, None))
    score = "; wrong pixels after flip:0.1 0.04000, converged 90%"
    assert told == [
        (0, "growing 3: 0:06 so far, 13:14 left"),
        (1, "1:00 so far, 3:00 left"),
        (2, f"2:00 so far, 2:00 left{score}"),
        (3, f"3:00 so far, 1:00 left{score}"),
    ]


@pytest.mark.parametrize("total", [None, 2, 9])
def test_the_last_line_is_always_shown_and_once(total: int | None, capsys: pytest.CaptureFixture[str]) -> None:
    with progress("mine", total) as meter:
        meter(1, "a")
        meter(2, "b")
    assert capsys.readouterr().err == ("mine 2 b\n" if total is None else f"mine 2/{total} b\n")


def test_times_are_written_as_people_write_them() -> None:
    assert [clock(seconds) for seconds in (0.4, 61, 3599.6, 7384)] == ["0:00", "1:01", "1:00:00", "2:03:04"]
