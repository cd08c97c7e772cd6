"""The command as a process of its own: its streams, and the signals that stop it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from commands import QUICK, command, levels

# An image for `QUICK`.
DIGIT = Path(__file__).parents[2] / "assets" / "digit-noisy.png"


def test_stdin_to_stdout(tmp_path: Path) -> None:
    words = command("denoise", "-", "--model", QUICK, "--p", 0.1)
    done = subprocess.run(words, input=DIGIT.read_bytes(), capture_output=True, check=True)
    (tmp_path / "out.png").write_bytes(done.stdout)
    assert levels(tmp_path / "out.png").shape == (28, 28)
