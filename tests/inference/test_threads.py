"""Threads that share the work of restoring: as many as told, in order, and not one for what is a single item."""

from __future__ import annotations

import threading

import pytest

from restore.inference import threads


@pytest.mark.parametrize(("asked", "count"), [("3", 3), ("1", 1), (" 2,4", 2)])
def test_as_many_work_at_a_time_as_are_told(asked: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", asked)
    # Each waits for as many as there should be.
    together = threading.Barrier(count)
    seen = threads.each(lambda item: (together.wait(60), item)[1], range(2 * count))
    assert seen == list(range(2 * count))


def test_what_nobody_shares_stays_in_its_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    here = threading.get_ident()
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert threads.each(lambda _: threading.get_ident(), [0]) == [here]
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert threads.each(lambda _: threading.get_ident(), [0, 1]) == [here, here]
    assert threads.each(abs, []) == []


def test_the_first_fault_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    with pytest.raises(ZeroDivisionError):
        threads.each(lambda item: 1 / item, [1, 0, 2])
