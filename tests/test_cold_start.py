"""A restoration from the command line starts little later than onnxruntime; benchmarks/cold_start.py times it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from restore import zoo

IMAGE = Path(__file__).parent.parent / "assets" / "digit-noisy.png"
GRAPH = zoo.published_folder() / zoo.PREFERRED_BINARY / zoo.GRAPH

# What no command line that restores with onnxruntime can do without.
PEER = f"import numpy, PIL.Image, onnxruntime; onnxruntime.InferenceSession({str(GRAPH)!r})"
COMMAND = "from restore.cli import main; main()"

# Prints how many modules were loaded, and the processor time of the process in seconds.
REPORT = (
    "import atexit, os, sys; atexit.register(lambda: print(len(sys.modules), sum(os.times()[:2]), file=sys.stderr)); "
)


def cost(code: str, *arguments: str) -> tuple[int, float]:
    """Modules loaded, and seconds of processor time, the least of three runs."""
    runs = []
    # With bytecode kept, as Python does unless it is told otherwise.
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    for _ in range(3):
        command = [sys.executable, "-c", REPORT + code, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, env=environment)
        modules, seconds = done.stderr.split()[-2:]
        runs.append((int(modules), float(seconds)))
    return runs[0][0], min(seconds for _, seconds in runs)


@pytest.fixture(scope="module")
def peer() -> tuple[int, float]:
    return cost(PEER)


@pytest.fixture(scope="module")
def restoration(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, float]:
    target = tmp_path_factory.mktemp("cold") / "restored.png"
    options = ("--model", zoo.PREFERRED_BINARY, "--p", "0.1", "-o", str(target), "--overwrite")
    return cost(COMMAND, "denoise", str(IMAGE), *options)


def test_few_modules_are_loaded_beside_those_of_onnxruntime(
    peer: tuple[int, float], restoration: tuple[int, float]
) -> None:
    # 138 when this was written, most of them ours and those of typer; with torch it is over 1,000.
    assert restoration[0] - peer[0] < 180


def test_a_restoration_takes_little_more_processor_time_than_onnxruntime(
    peer: tuple[int, float], restoration: tuple[int, float]
) -> None:
    # 1.4 on a quiet machine. Processor time, and a wide limit, so that this fails for a library too many only.
    assert restoration[1] < 2.5 * peer[1]
