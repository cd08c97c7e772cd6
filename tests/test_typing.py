"""What type checkers make of a user's script: the kind of an image is the kind of its result."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from processes import HANG

ROOT = Path(__file__).parents[1]

SCRIPT = """
from collections.abc import Sequence
from pathlib import Path
from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

import restore
from restore.api.batch import RestoredBatch
from restore.inference.restored import Level, Restored
from restore.status import Status

def honest(array: NDArray[np.uint8], tensor: Tensor, picture: Image.Image) -> None:
    restore.denoise("digit.png", model="tap-mnist", p=0.1).save("clean.png")
    restore.denoise(Path("digit.png"), p="scan").save("clean.png")
    restore.complete(picture, "mask.png", fit="resize").save("whole.png")
    restore.denoise(array, p=0.1, sigma="auto").astype(float).mean()
    restore.denoise(tensor, p=np.full((2, 2), 0.1)).requires_grad_()
    restore.denoise([array, array], invert=True)[0].astype(bool)
    restore.denoise((array, array), p=[[0.1, 0.2]])[0].astype(bool)
    restore.complete([tensor], tensor)[0].requires_grad_()
    restore.denoise([Path("a.png"), Path("b.png")], progress=True)
    restore.denoise(["a.png", "b.png"], progress=lambda done, total, note: print(done, total, note.upper()))
    prior = restore.load("tap-mnist", device="cpu")
    clean, solution = prior.denoise(picture, p=0.1, return_solution=True)
    clean.save("clean.png")
    print(solution.means.shape, prior.description.hidden)
    prior.complete(array, array, p=0.1).astype(int)
    assert_type(restore.denoise("digit.png"), Image.Image)
    assert_type(restore.denoise(picture, return_solution=True), tuple[Image.Image, Restored | RestoredBatch])
    assert_type(prior.denoise([picture, picture]), Sequence[Image.Image])

def answered(one: Restored, several: RestoredBatch) -> None:
    assert_type(one.status, Status)
    assert_type(one.changed, float | None)
    assert_type(one.level, Level | None)
    assert_type(several.answers[0], Restored)
    assert_type(several.level, tuple[Level | None, ...] | None)
    assert_type(several.changed, NDArray[np.float64] | None)
    if one.level is not None:
        assert_type(one.level.value, float | NDArray[Any])
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
restore.denoise("digit.png", p="typo")
restore.complete([np.zeros((2, 2))], np.zeros((2, 2)), p="typo")
restore.load("tap-mnist").denoise("digit.png", p="typo")
restore.denoise(3)
restore.denoise("digit.png", progress="yes")
"""


def mypy(path: Path) -> tuple[set[int], str]:
    """The lines of a script that mypy refuses, and all that it says."""
    words = ["-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", str(path.parent / "cache"), str(path)]
    said = _said(path, *words, MYPYPATH=str(ROOT))
    return {int(line.split(":")[1]) for line in said.splitlines() if "script.py" in line and " error: " in line}, said


def pyright(path: Path) -> tuple[set[int], str]:
    """The same for pyright, in the program that comes with the package: nothing is downloaded."""
    pytest.importorskip("pyright", reason="without pyright; pip install 'restore-prior[dev]'")
    settings = {"typeCheckingMode": "strict", "extraPaths": [str(ROOT)], "include": [path.name]}
    (path.parent / "pyrightconfig.json").write_text(json.dumps(settings))
    words = ["-m", "pyright", "--outputjson", "--pythonpath", sys.executable]
    said = _said(path, *words, PYRIGHT_PYTHON_IGNORE_WARNINGS="1")
    faults = json.loads(said)["generalDiagnostics"]
    return {fault["range"]["start"]["line"] + 1 for fault in faults if fault["severity"] == "error"}, said


def _said(path: Path, *words: str, **variables: str) -> str:
    command, environment = [sys.executable, *words], os.environ | variables
    done = subprocess.run(command, cwd=path.parent, env=environment, capture_output=True, text=True, timeout=HANG)
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


@pytest.mark.thorough
@pytest.mark.parametrize("checker", [mypy, pyright])
def test_a_script_is_checked_strictly(checker: Callable[[Path], tuple[set[int], str]], tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT + WRONG)
    lines, said = checker(path)
    first = SCRIPT.count("\n") + 2
    assert lines == set(range(first, first + WRONG.strip().count("\n") + 1)), said
    if checker is mypy:  # a wrong word is answered by the words there are
        typos = [line for line in said.splitlines() if "typo" in line]
        assert len(typos) == 3, said
        for line in typos:
            assert 'Argument "p"' in line and "'auto'" in line and "'scan'" in line, line
