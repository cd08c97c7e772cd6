"""A restoration from the command line loads little more than onnxruntime; benchmarks/cold_start.py times it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from waiting import HANG

from restore import zoo

IMAGE = Path(__file__).parents[2] / "assets" / "digit-noisy.png"
GRAPH = zoo.published_folder() / zoo.preferred() / zoo.GRAPH

# What no command line that restores with onnxruntime can do without.
PEER = f"import numpy, PIL.Image, onnxruntime; onnxruntime.InferenceSession({str(GRAPH)!r})"
COMMAND = "from restore.cli import main; main()"

# Prints the modules that were loaded, and the bytes of the file of each.
REPORT = """
import atexit, json, os, sys
def report():
    files = {name: getattr(module, "__file__", None) or "" for name, module in sys.modules.items()}
    sizes = {name: os.path.getsize(file) if os.path.exists(file) else 0 for name, file in files.items()}
    print(json.dumps(sizes), file=sys.stderr)
atexit.register(report)
"""


def loaded(code: str, *arguments: str) -> dict[str, int]:
    command = [sys.executable, "-c", REPORT + code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG, check=True, env=os.environ)
    sizes: dict[str, int] = json.loads(done.stderr.splitlines()[-1])
    return sizes


def test_few_modules_are_loaded_beside_those_of_onnxruntime(tmp_path: Path) -> None:
    options = ("--model", zoo.preferred(), "--p", "0.1", "-o", str(tmp_path / "restored.png"))
    peer, restoration = loaded(PEER), loaded(COMMAND, "denoise", str(IMAGE), *options)
    # Most of them ours and those of typer; with torch it is over 1,000.
    assert len(restoration) - len(peer) < 210
    # Half of it Python's own; of torch it is hundreds of megabytes, of scipy tens.
    assert sum(restoration.values()) - sum(peer.values()) < 15_000_000
