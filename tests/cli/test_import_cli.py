"""RBMs of other programs from the command line: kept under a name, or, when stopped, not at all."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
from commands import QUICK, Run, command
from machines import random_rbm, seeded
from processes import HANG
from torch import Tensor

from restore import zoo
from restore.learning import imports
from restore.priors import RBM


def written(path: Path, weights: Tensor, visible: Tensor, hidden: Tensor) -> Path:
    np.savez(path, W=weights, b=visible, c=hidden)
    return path


def of_machine(path: Path, machine: RBM) -> Path:
    biases = (layer.parameters["bias"] for layer in machine.layers)
    return written(path, machine.weights, *biases)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(imports, "SWEEPS", 20)
    monkeypatch.setattr("restore.learning.finish.MODE_SWEEPS", 5)
    weights = 0.3 * torch.randn(36, 5, generator=seeded(5))
    return written(tmp_path / "rbm.npz", weights, -torch.ones(36), torch.zeros(5))


@pytest.mark.usefixtures("without_graph")
def test_import_keeps_a_prior_under_its_name(file: Path, run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("import", file, "--name", "mine", "--quiet") == 0
    assert capsys.readouterr() == ("", "")
    header = zoo.describe(zoo.find("mine"))
    assert (header.image_shape, header.hidden, header.method, header.data) == ((6, 6), 5, "import", "rbm.npz")
    assert header.licence == "unknown" and "rbm.npz" in (zoo.find("mine") / zoo.CARD).read_text()
    weights = (zoo.find("mine") / zoo.WEIGHTS).read_bytes()
    assert run("import", file, "--name", "mine") == 5
    assert "--overwrite" in capsys.readouterr().err
    assert run("import", file, "--name", "mine", "--overwrite", "--seed", 0) == 0
    assert (zoo.find("mine") / zoo.WEIGHTS).read_bytes() == weights
    assert run("import", file, "--name", QUICK) == 5 and run("import", file, "--name", "../x") == 2


@pytest.mark.thorough
def test_what_is_imported_restores_at_once(file: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = zoo.load(zoo.find(QUICK)).machine
    assert isinstance(machine, RBM)
    monkeypatch.setattr(imports, "SWEEPS", 100)
    of_machine(file, machine)
    assert run("import", file, "--name", "mine", "--quiet") == 0
    digit = Path(__file__).parent.parent.parent / "assets" / "digit-noisy.png"
    for engine in ("onnx", "torch"):
        out = file.with_name(f"{engine}.png")
        assert run("denoise", digit, "--model", "mine", "--p", 0.1, "--engine", engine, "-o", out) == 0
    assert file.with_name("onnx.png").read_bytes() == file.with_name("torch.png").read_bytes()


# --- stopped ---


@pytest.mark.thorough
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["int", "term"])
def test_a_signal_leaves_nothing_behind(
    number: int, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    # So large that drawing images takes many seconds.
    path = of_machine(tmp_path / "rbm.npz", random_rbm(784, 500))
    words = command("import", path, "--name", "mine")
    process = subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    assert process.stderr and process.stderr.readline().startswith("mine: drawing images")
    process.send_signal(number)
    said = process.communicate(timeout=HANG)[1].splitlines(keepends=True)[-1]
    assert process.returncode == code
    assert said.startswith("restore: ")
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.usefixtures("without_graph")
@pytest.mark.parametrize("place", ["restore.learning.imports.prior_of", "restore.zoo.save"])
def test_a_stop_keeps_the_prior_that_was_to_be_replaced(
    place: str, file: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("import", file, "--name", "mine", "--quiet") == 0
    kept = {path: path.read_bytes() for path in zoo.find("mine").iterdir()}
    monkeypatch.setattr(place, interrupted)
    assert run("import", file, "--name", "mine", "--overwrite", "--seed", 1) == 130
    assert {path: path.read_bytes() for path in zoo.find("mine").iterdir()} == kept


def interrupted(*header: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("shape", ["6x5", "6"])
def test_bad_words_leave_nothing_behind(shape: str, file: Path, run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("import", file, "--name", "mine", "--shape", shape) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert not (zoo.user_folder() / "mine").exists()
