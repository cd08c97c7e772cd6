"""Threads that share the work of restoring: as many as told, in order, and not one for what is a single item."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from restore.inference import threads


@pytest.mark.parametrize(("setting", "count"), [("3", 3), ("1", 1), (" 2,4", 2)])
def test_as_many_work_at_a_time_as_are_told(setting: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", setting)
    # Each waits for as many as there should be.
    together = threading.Barrier(count)
    picture = threads.run_all(lambda item: (together.wait(60), item)[1], range(2 * count))
    assert picture == list(range(2 * count))


def test_what_nobody_shares_stays_in_its_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    here = threading.get_ident()
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert threads.run_all(lambda _: threading.get_ident(), [0]) == [here]
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert threads.run_all(lambda _: threading.get_ident(), [0, 1]) == [here, here]
    assert threads.run_all(abs, []) == []


def test_the_first_fault_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    with pytest.raises(ZeroDivisionError):
        threads.run_all(lambda item: 1 / item, [1, 0, 2])


@pytest.mark.parametrize(
    ("own", "quotas", "count"),
    [
        ("0::/\n", {"": "150000 100000"}, 1),
        ("0::/\n", {"": "max 100000"}, 4),
        ("0::/pod/container\n", {"pod/container": "max 100000", "pod": "300000 100000"}, 3),
        ("0::/pod\n", {"pod": "10000 100000"}, 1),
        ("0::/pod\n", {"pod": "1600000 100000"}, 4),
        ("4:cpu:/old\n", {}, 4),
        (None, {}, 4),
    ],
)
def test_processors_are_those_that_the_process_may_use(
    own: str | None, quotas: dict[str, str], count: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Of a machine with 64, four by its affinity, and as many as the quota of its control groups pays for."""
    monkeypatch.setattr("os.cpu_count", lambda: 64)
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0, 1, 5, 9}, raising=False)
    if own is not None:
        (tmp_path / "own").write_text(own)
    for name, quota in quotas.items():
        (tmp_path / "groups" / name).mkdir(parents=True, exist_ok=True)
        (tmp_path / "groups" / name / "cpu.max").write_text(quota + "\n")
    assert threads.processors(tmp_path / "own", tmp_path / "groups") == count


def test_without_a_setting_every_processor_has_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert threads.count() == threads.processors() >= 1


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({}, ["PASSIVE", None]),
        ({"OMP_WAIT_POLICY": "ACTIVE"}, ["ACTIVE", None]),
        ({"OMP_NUM_THREADS": "3"}, ["PASSIVE", "3"]),
    ],
)
def test_the_command_tells_libraries_not_to_spin(given: dict[str, str], wanted: list[str | None]) -> None:
    """Before any of them is loaded; what the user has set stays."""
    names = ("OMP_WAIT_POLICY", "OMP_NUM_THREADS")
    clean = {name: value for name, value in os.environ.items() if name not in names} | given
    ask = "import atexit, os, sys; from restore.cli import main; sys.argv = ['restore', '--version']\n"
    ask += f"atexit.register(lambda: print([os.environ.get(name) for name in {names}], 'torch' in sys.modules)); main()"
    said = subprocess.run([sys.executable, "-c", ask], env=clean, capture_output=True, text=True, check=True).stdout
    policy, count = wanted
    assert said.splitlines()[-1] == f"{[policy, count or str(threads.processors())]} False"
