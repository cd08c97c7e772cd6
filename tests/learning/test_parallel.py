"""Training in several processes: the outcome of one, and all of them end together."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import together
import torch
from fits import LEARNERS, log_of
from hypothesis import given
from hypothesis import strategies as st
from machines import bars_and_stripes, seeded
from processes import HANG, wait_for
from refusals import refused
from safetensors.torch import load_file, save_file
from torch import Tensor

from restore.errors import TrainingError, UsageError
from restore.learning.run import parallel
from restore.learning.run.folder import Stopped
from restore.learning.run.parallel import Share

SUPPORT = Path(__file__).parents[1] / "support"

pytestmark = pytest.mark.skipif(
    not torch.distributed.is_available() or not torch.distributed.is_gloo_available(), reason="torch without gloo"
)


def start(folder: Path, *words: object) -> subprocess.Popen[str]:
    """Two processes by torchrun in a folder, in an installation without onnx, whose export would take longest."""
    without = folder / "without"
    without.mkdir(exist_ok=True)
    (without / "onnx.py").write_text("raise ModuleNotFoundError('none here', name='onnx')")
    places = [str(without), str(SUPPORT.parents[1]), str(SUPPORT), *filter(None, [os.environ.get("PYTHONPATH")])]
    launch = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", *map(str, words)]
    return subprocess.Popen(
        launch,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(places), "OMP_NUM_THREADS": "1"},
        text=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def spoken(stderr: str) -> list[str]:
    """The lines that are not torchrun's."""
    return [line for line in stderr.splitlines() if line.startswith("restore:")]


# --- learners ---


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where two processes have made all runs, and in `alone` one process has."""
    place = tmp_path_factory.mktemp("parallel")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    save_file(together.outcomes(place / "alone"), place / "alone.safetensors")
    torch.set_num_threads(threads)
    together.in_two_processes(together.main, place)
    together.in_two_processes(together.differing, place)
    return place


@pytest.fixture(scope="module")
def alone(folder: Path) -> dict[str, Tensor]:
    return load_file(folder / "alone.safetensors")


@pytest.fixture(scope="module")
def both(folder: Path) -> list[dict[str, Tensor]]:
    return [load_file(folder / f"{number}.safetensors") for number in (0, 1)]


def of(name: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    chosen = {key: value for key, value in tensors.items() if key.startswith(f"{name}/")}
    assert chosen
    return chosen


RUNS = [*LEARNERS, "tap-data-alone", "cd-alone", *together.CONDITIONAL, *together.PIPELINES]


@pytest.mark.thorough
@pytest.mark.parametrize("name", RUNS)
def test_two_processes_end_where_one_does(
    name: str, alone: dict[str, Tensor], both: list[dict[str, Tensor]], folder: Path
) -> None:
    for key, wanted in of(name, alone).items():
        # What a machine in closed form ends with has single precision.
        torch.testing.assert_close(both[0][key], wanted, rtol=0, atol=1e-6)
        assert torch.equal(both[1][key], both[0][key])
    records = zip(log_of(folder / "alone" / name), log_of(folder / "together" / name), strict=True)
    for one, two in records:
        assert two == pytest.approx(one, rel=1e-6, abs=1e-6)


@pytest.mark.thorough
def test_a_signal_to_one_stops_all_and_the_run_goes_on_with_the_same_bits(
    both: list[dict[str, Tensor]], folder: Path
) -> None:
    for number, tensors in enumerate(both):
        said, _, _ = (folder / f"{number}.txt").read_text().splitlines()
        assert said == f"Stopped: {int(signal.SIGTERM)} at step 6"
        for key, value in of("stopped", tensors).items():
            assert torch.equal(value, tensors[key.replace("stopped", "pcd")])


@pytest.mark.thorough
def test_what_the_first_cannot_write_ends_all(folder: Path) -> None:
    for number in (0, 1):
        assert (folder / f"{number}.txt").read_text().splitlines()[1] == "TrainingError: the disk is full"


@pytest.mark.thorough
def test_row59_another_number_of_processes_is_refused(folder: Path) -> None:
    for number in (0, 1):
        said = (folder / f"{number}.txt").read_text().splitlines()[2]
        assert said.startswith("TrainingError: ") and "processes was 1 and is 2" in said


@pytest.mark.thorough
def test_processes_that_are_given_different_things_all_refuse(folder: Path) -> None:
    for number in (0, 1):
        assert (folder / f"{number}-differing.txt").read_text().startswith("TrainingError: processes differ")


# --- the command ---


def recipe_in(folder: Path, epochs: int) -> Path:
    """A recipe of a conditional prior, which is learnt without a draw that rounding could change, and its images."""
    images = bars_and_stripes(4).unflatten(1, (4, 4)).repeat(4, 1, 1)
    np.save(folder / "bars.npy", (255 * images).numpy().astype(np.uint8))
    recipe = folder / "mine.toml"
    recipe.write_text(
        'name = "mine"\n[data]\nsource = "bars.npy"\ntask = "flip:0.2"\nvalidation = 40\n[prior]\nfamily = "crbm"\n'
        f'hidden = 3\n[learner]\nmethod = "mean_field"\niterations = 3\n[training]\nepochs = {epochs}\nbatch = 9\n'
        f"checkpoint_every = {epochs}\n"
    )
    return recipe


def trained_by_two(folder: Path, *words: object) -> subprocess.Popen[str]:
    # All words after `--` are those of the command; torchrun would read --run as an option of its own.
    return start(folder, "-m", "--", "restore", "train", "mine.toml", *words, "--threads", 1)


@pytest.mark.thorough
def test_the_command_trains_in_two_processes(
    run: Callable[..., int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe_in(tmp_path, epochs=2)
    both = trained_by_two(tmp_path, "-o", "two", "--run", "run-of-two")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert run("train", "mine.toml", "-o", "one", "--run", "run-of-one", "--threads", 1) == 0
    _, stderr = both.communicate(timeout=HANG)
    assert both.returncode == 0, stderr
    one, two = (load_file(tmp_path / name / "weights.safetensors") for name in ("one", "two"))
    assert one.keys() == two.keys()
    for name, value in one.items():
        # What is stored has half precision.
        torch.testing.assert_close(two[name], value, rtol=1e-3 if value.dtype == torch.float16 else 0, atol=1e-5)
    assert stderr.count("two: trained in") == 1
    assert "torchrun --nproc-per-node=2 -m -- restore train mine.toml" in (tmp_path / "two" / "card.md").read_text()
    capsys.readouterr()
    # Row 59.
    words = ("train", "mine.toml", "-o", "two", "--run", "run-of-two", "--threads", 1, "--resume", "--overwrite")
    assert run(*words) == 7
    assert "processes was 2 and is 1" in capsys.readouterr().err


def process_of(launcher: subprocess.Popen[str], number: int) -> int:
    """The id of the process with a rank that torchrun has started."""
    children = Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text(encoding="utf-8").split()
    variables = {int(child): Path(f"/proc/{child}/environ").read_bytes().split(b"\0") for child in children}
    (found,) = [child for child, words in variables.items() if f"RANK={number}".encode() in words]
    return found


@pytest.mark.thorough
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds processes as Linux shows them")
def test_all_end_when_one_is_killed(tmp_path: Path) -> None:
    recipe_in(tmp_path, epochs=100_000)
    launcher = trained_by_two(tmp_path, "-o", "two", "--run", "run", "--quiet")
    log = tmp_path / "run" / "log.jsonl"
    wait_for(log.exists, launcher)
    os.kill(process_of(launcher, 1), signal.SIGKILL)
    _, stderr = launcher.communicate(timeout=HANG)
    (line,) = spoken(stderr)
    assert line.startswith("restore: another process of this training is gone (")
    assert line.endswith("); go on with --resume")


@pytest.mark.parametrize(
    ("number", "fault", "code", "lines"),
    [
        (0, TrainingError("a fault"), 7, ["before", "restore: a fault"]),
        (1, TrainingError("a fault"), 7, []),
        (0, Stopped(signal.SIGTERM), 143, ["before", "restore: stopped"]),
        (1, Stopped(signal.SIGTERM), 143, []),
        (1, ZeroDivisionError("a bug"), 1, ["restore: internal fault, ZeroDivisionError: a bug"]),
    ],
    ids=["fault, first", "fault, other", "signal, first", "signal, other", "bug, other"],
)
def test_the_first_alone_speaks_and_all_have_one_exit_code(
    number: int,
    fault: BaseException,
    code: int,
    lines: list[str],
    run: Callable[..., int],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(path: Path) -> None:
        print("before", file=sys.stderr)
        raise fault

    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", str(number))
    monkeypatch.setattr(parallel, "joined", nullcontext)
    monkeypatch.setattr("restore.learning.recipe.recipe.read_recipe", fail)
    assert run("train", "mine.toml") == code
    assert [line.split(";")[0] for line in capsys.readouterr().err.splitlines()] == lines


# --- pieces ---


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"WORLD_SIZE": "two"}, "WORLD_SIZE must be a number of processes, not 'two'"),
        ({"WORLD_SIZE": "2"}, "start with torchrun, or unset it"),
    ],
    ids=["no number", "no torchrun"],
)
def test_an_environment_that_is_not_torchruns(
    variables: dict[str, str],
    says: str,
    run: Callable[..., int],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert run("train", "mine.toml") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert says in line


def as_process(monkeypatch: pytest.MonkeyPatch, number: int, count: int) -> None:
    monkeypatch.setattr("restore.learning.run.parallel.processes", lambda: count)
    monkeypatch.setattr("restore.learning.run.parallel.rank", lambda: number)


@given(rows=st.integers(0, 20), count=st.integers(1, 6))
def test_shares_are_even_and_make_up_all_rows(rows: int, count: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        shares = []
        for number in range(count):
            as_process(patch, number, count)
            shares.append(Share.of(rows))
    values = torch.rand(rows, 3, generator=seeded(rows))
    assert torch.equal(torch.cat([share.own(values) for share in shares]), values)
    assert max(share.size for share in shares) - min(share.size for share in shares) <= 1
    assert torch.equal(torch.stack([share.placed(share.own(values)) for share in shares]).sum(0), values)
    if rows:
        parts = [share.part({"mean": share.own(values).mean(0)})["mean"] for share in shares]
        torch.testing.assert_close(torch.stack(parts).sum(0), values.mean(0))


@pytest.mark.parametrize("draw", [torch.rand, torch.randn])
def test_rows_get_the_numbers_that_they_would_get_in_one_process(draw: Any) -> None:
    whole, part = seeded(1), seeded(1)
    wanted = draw((7, 9), generator=whole)
    share = Share(2, 5, 7)
    with share.draws():
        found = draw((3, 9), generator=part)
    assert torch.equal(found, wanted[2:5])
    assert torch.equal(part.get_state(), whole.get_state())


def test_one_process_needs_no_others() -> None:
    assert (parallel.processes(), parallel.rank(), parallel.highest(3)) == (1, 0, 3)
    values = {"a": torch.ones(2)}
    assert parallel.summed(values)["a"] is values["a"]
    with refused(UsageError, "once"):
        parallel.from_first(lambda: (_ for _ in ()).throw(UsageError("once")))
