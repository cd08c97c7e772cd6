"""What holds for all tests; pytest reads this before any of them loads torch."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# Every run tries the same cases, so that a failure is the fault of the change at hand, and takes its time on a busy
# machine. To look for others:
# pytest --hypothesis-profile=default
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

# Workers of `pytest -n` share the cores: with as many threads each as there are cores they would fight over them. What
# they start inherits the setting.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# Workers, and the programs that tests start by the hundred, compile each file once, whatever the shell says of that.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A shell without job control has what it starts in the background ignore Ctrl-C, and that would be inherited too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# All that is imported and collected stays: the collector need not look through it again and again, then or later.
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Run the command in this process with these words, and return its exit code."""
    from restore.cli import main

    def call(*words: object) -> int:
        monkeypatch.setattr(sys, "argv", ["restore", *(os.fspath(w) if isinstance(w, Path) else str(w) for w in words)])
        previous = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            with pytest.raises(SystemExit) as stopped:
                main()
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)
        return int(stopped.value.code or 0)

    return call


@pytest.fixture
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """No waiting for the disk: nothing pulls the plug."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def without_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is trained gets an empty file in place of its graph: to make one takes seconds, and has tests of its own."""
    monkeypatch.setattr("restore.export.packing.beside_weights", lambda folder: b"")


@pytest.fixture
def quick_growth(monkeypatch: pytest.MonkeyPatch) -> None:
    """Growth by few samples, which takes no time and finds worse units."""
    from restore.learning.rules.frank_wolfe import FrankWolfe

    monkeypatch.setattr(FrankWolfe, "samples", 100)
    monkeypatch.setattr(FrankWolfe, "bias_steps", 1)


@pytest.fixture
def same_learner(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recipes do not tell learners apart: one with a clock, for a test, is as good as the same without."""
    from dataclasses import asdict

    from restore.learning.recipe.recipe import Recipe

    monkeypatch.setattr(Recipe, "training_facts", property(lambda self: {"training": asdict(self.training)}))
    monkeypatch.setattr(Recipe, "digest", property(lambda self: "0" * 64))


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A web server on this machine that has what a test puts there."""
    from processes import serving

    monkeypatch.setenv("no_proxy", "*")
    with serving() as state:
        yield state


@pytest.fixture
def foreseen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program that exchanges scans ends by no exception but a want of memory."""
    real = subprocess.run

    def run(*command: Any, **options: Any) -> Any:
        try:
            return real(*command, **options)
        except subprocess.CalledProcessError as fault:
            said = fault.stderr or b""
            assert b"Traceback" not in said or b"MemoryError" in said, said
            raise

    monkeypatch.setattr("restore.images.pdf.subprocess.run", run)


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Any]:
    """Call with a name of `exports.MADE` for the prior of this name, exported once for all workers of this run."""
    from exports import exporter

    place = tmp_path_factory.getbasetemp()
    shared = (place.parent if "PYTEST_XDIST_WORKER" in os.environ else place) / "exported"
    shared.mkdir(exist_ok=True)
    return exporter(shared)


@pytest.fixture
def beside(tmp_path: Path) -> Path:
    """A copy of a published folder, whose graph refers to the weights."""
    name = "crbm-bp-mnist-flip10"
    return Path(shutil.copytree(Path(__file__).parents[1] / "models" / name, tmp_path / "published" / name))


@pytest.fixture
def fonts() -> None:
    """What pages and forms are drawn with."""
    from restore.errors import InputError
    from training.data.text import families_for_tests

    try:
        families_for_tests()
    except InputError:
        pytest.skip("the fonts for testing are not installed")
