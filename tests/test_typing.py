"""What type checkers make of a user's script: the kind of an image is the kind of its result."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import HANG

SCRIPT = """
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

import restore

def honest(array: NDArray[np.uint8], tensor: Tensor, picture: Image.Image) -> None:
    restore.denoise("digit.png", model="tap-mnist", p=0.1).save("clean.png")
    restore.denoise(Path("digit.png"), p="10%").save("clean.png")
    restore.complete(picture, "mask.png", fit="resize").save("whole.png")
    restore.denoise(array, p=(0.1, 0.02), sigma="auto").astype(float).mean()
    restore.denoise(tensor, p=np.full((2, 2), 0.1)).requires_grad_()
    restore.denoise([array, array], invert=True)[0].astype(bool)
    prior = restore.load("tap-mnist", device="cpu")
    clean, solution = prior.denoise(picture, p=0.1, return_solution=True)
    clean.save("clean.png")
    print(solution.means.shape, prior.description.hidden)
    prior.complete(array, array, p=0.1).astype(int)
"""

# What stands on a line of its own is wrong.
WRONG = """
restore.denoise("digit.png").svae("clean.png")
restore.denoise(np.zeros((2, 2))).save("clean.png")
restore.complete(Image.new("L", (2, 2)), "mask.png").shape
restore.denoise(np.zeros((2, 2)), return_solution=True).mean()
restore.denoise("digit.png", fit="tiles")
restore.denoise("digit.png", colour=True)
restore.load("tap-mnist", engine="steam")
"""


@pytest.mark.thorough
def test_a_script_is_checked_strictly(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT + WRONG)
    root = Path(__file__).parents[1]
    words = ["-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", tmp_path / "cache", path]
    environment = os.environ | {"MYPYPATH": str(root)}
    done = subprocess.run(
        [sys.executable, *map(str, words)], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=HANG
    )
    first = SCRIPT.count("\n") + 2
    lines = {int(line.split(":")[1]) for line in done.stdout.splitlines() if "script.py" in line and " error: " in line}
    assert lines == set(range(first, first + WRONG.strip().count("\n") + 1)), done.stdout + done.stderr
