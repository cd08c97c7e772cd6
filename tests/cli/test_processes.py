"""The command as a process of its own: its streams, and the signals that stop it."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest
from commands import QUICK, command, levels
from waiting import HANG, wait_for

# An image for `QUICK`.
DIGIT = Path(__file__).parents[2] / "assets" / "digit-noisy.png"


def test_stdin_to_stdout(tmp_path: Path) -> None:
    words = command("denoise", "-", "--model", QUICK, "--p", 0.1)
    done = subprocess.run(words, input=DIGIT.read_bytes(), capture_output=True, check=True)
    (tmp_path / "out.png").write_bytes(done.stdout)
    assert levels(tmp_path / "out.png").shape == (28, 28)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["row58-int", "row58-term"]
)
def test_row58_training_stopped_by_a_signal_goes_on(number: int, code: int, tmp_path: Path) -> None:
    np.save(tmp_path / "data.npy", np.random.default_rng(0).integers(0, 256, (200, 6, 6), dtype=np.uint8))
    recipe = tmp_path / "mine.toml"
    recipe.write_text(
        f'name = "mine"\n[data]\nsource = "{tmp_path}/data.npy"\n[prior]\nhidden = 3\n[learner]\nmethod = "tap"\n'
        "[training]\nepochs = 4000\nbatch = 10\ncheckpoint_every = 10000\n[inference]\nmodes = 0\nstarts = 1\n"
    )
    words = ("train", recipe, "-o", tmp_path / "model", "--run", tmp_path / "run", "--threads", 1)
    process = subprocess.Popen(command(*words), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    log = tmp_path / "run" / "log.jsonl"
    wait_for(lambda: log.exists() and log.stat().st_size > 0, process)
    process.send_signal(number)
    _, said = process.communicate(timeout=HANG)
    assert process.returncode == code, said
    assert b"--resume" in said and len(list((tmp_path / "run").glob("checkpoint-*.json"))) == 1
