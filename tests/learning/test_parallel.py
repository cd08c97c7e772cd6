"""Training in several processes: they learn what one does, hold one prior, and end together."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import fits
import numpy as np
import pytest
import together
import torch
from fits import LEARNERS
from hypothesis import given
from hypothesis import strategies as st
from machines import bars_and_stripes, seeded
from processes import HANG, wait_for
from refusals import refused
from safetensors.torch import load_file, save_file
from torch import Tensor

from restore.errors import TrainingError, UsageError
from restore.learning.run import checkpoint as checkpoints
from restore.learning.run import parallel
from restore.learning.run.folder import Stopped

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
    """Where two processes have made all runs, and one process some."""
    place = tmp_path_factory.mktemp("parallel")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    fits.run(fits.recipe_of("pcd"), place / "alone")
    save_file(together.certain(place / "certain-alone"), place / "alone.safetensors")
    torch.set_num_threads(threads)
    together.in_two_processes(together.main, place)
    together.in_two_processes(together.differing, place)
    return place


@pytest.fixture(scope="module")
def alone(folder: Path) -> dict[str, Tensor]:
    return load_file(folder / "alone.safetensors")


@pytest.fixture(scope="module")
def one_by_one(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tensor]:
    return together.curves(tmp_path_factory.mktemp("curves"))


@pytest.fixture(scope="module")
def both(folder: Path) -> list[dict[str, Tensor]]:
    return [load_file(folder / f"{number}.safetensors") for number in (0, 1)]


def of(name: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    chosen = {key: value for key, value in tensors.items() if key.startswith(f"{name}/")}
    assert chosen
    return chosen


@pytest.mark.thorough
@pytest.mark.parametrize("name", together.CERTAIN)
def test_without_draws_two_processes_end_where_one_does(
    name: str, alone: dict[str, Tensor], both: list[dict[str, Tensor]]
) -> None:
    for key, wanted in of(name, alone).items():
        torch.testing.assert_close(both[0][key], wanted, rtol=0, atol=1e-5)
        assert torch.equal(both[1][key], both[0][key])


@pytest.mark.thorough
@pytest.mark.parametrize("name", together.DRAWING)
def test_with_draws_two_processes_follow_the_curve_of_one(
    name: str, one_by_one: dict[str, Tensor], both: list[dict[str, Tensor]]
) -> None:
    """The exact log-likelihood after each epoch is the same on average, within five standard errors."""
    alone, joint = one_by_one[name], both[0][f"curve/{name}"]
    error = ((alone.var(0) + joint.var(0)) / together.SEEDS).sqrt()
    assert bool(((alone.mean(0) - joint.mean(0)).abs() < 5 * error).all())
    # It has risen by more than that.
    assert float(alone.mean(0)[-1] - alone.mean(0)[0]) > 5 * float(error[-1])


@pytest.mark.thorough
@pytest.mark.parametrize("name", [*LEARNERS, *together.CONDITIONAL, *together.PIPELINES])
def test_two_processes_hold_one_prior(name: str, both: list[dict[str, Tensor]]) -> None:
    for key, value in of(name, both[0]).items():
        assert torch.equal(value, both[1][key])
        assert bool(torch.isfinite(value).all())


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "kept"), [("pcd", "chains"), ("tap-redrawn", "solution.0")])
def test_the_checkpoint_has_the_chains_and_the_generator_of_each_process(name: str, kept: str, folder: Path) -> None:
    tensors = load_file(folder / "together" / name / checkpoints.NAME)
    first, second = tensors[f"learner_state.{kept}"], tensors[f"process.1.learner_state.{kept}"]
    # Five in one process.
    assert len(first) == len(second) == 3
    assert not torch.equal(first, second)
    assert not torch.equal(tensors["generator"], tensors["process.1.generator"])


def told(folder: Path, number: int) -> list[str]:
    """How runs ended in a process: one that was stopped, with a full disk, from one process, and with other data."""
    return [line for name in ("", "-differing") for line in (folder / f"{number}{name}.txt").read_text().splitlines()]


@pytest.mark.thorough
def test_a_signal_to_one_stops_all_and_the_run_goes_on_with_the_same_bits(
    both: list[dict[str, Tensor]], folder: Path
) -> None:
    for number, tensors in enumerate(both):
        assert told(folder, number)[0] == f"Stopped: {int(signal.SIGTERM)} at step 6"
        for key, value in of("stopped", tensors).items():
            assert torch.equal(value, tensors[key.replace("stopped", "pcd")])


@pytest.mark.thorough
@pytest.mark.parametrize("number", [0, 1])
def test_all_end_with_what_one_cannot_do(number: int, folder: Path) -> None:
    _, disk, count, other = told(folder, number)
    assert disk == "TrainingError: the disk is full"
    assert count.startswith("TrainingError: ") and "processes was 1 and is 2" in count
    assert other.startswith("TrainingError: processes differ")


# --- the command ---


def recipe_in(folder: Path, epochs: int) -> Path:
    """A recipe of a conditional prior, and its images."""
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
    assert {name: value.shape for name, value in one.items()} == {name: value.shape for name, value in two.items()}
    assert stderr.count("two: trained in") == 1
    assert "torchrun --nproc-per-node=2 -m -- restore train mine.toml" in (tmp_path / "two" / "card.md").read_text()
    capsys.readouterr()
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
    first, other = (process_of(launcher, number) for number in (0, 1))
    # The launcher ends all as soon as one is gone: not before the first has said why.
    launcher.send_signal(signal.SIGSTOP)
    os.kill(other, signal.SIGKILL)
    wait_for(lambda: Path(f"/proc/{first}/stat").read_text("utf-8").rpartition(")")[2].split()[0] == "Z", launcher)
    launcher.send_signal(signal.SIGCONT)
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


@given(rows=st.integers(1, 20), count=st.integers(1, 6))
def test_rows_are_shared_evenly_and_count_equally(rows: int, count: int) -> None:
    values, shares = torch.rand(rows, 3, generator=seeded(rows)), []
    with pytest.MonkeyPatch.context() as patch:
        for number in range(count):
            as_process(patch, number, count)
            shares.append(parallel.own_rows(values))
    torch.testing.assert_close(sum(own.mean(0) * weight for own, weight in shares), values.mean(0))
    sizes = [len(own) for own, _ in shares]
    assert min(sizes) >= 1 and max(sizes) - min(sizes) <= 1
    if rows >= count:
        assert torch.equal(torch.cat([own for own, _ in shares]), values)


def test_the_first_process_has_the_numbers_of_one_and_the_others_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []
    for number in range(4):
        as_process(monkeypatch, number, 4)
        generator = seeded(1)
        parallel.own_numbers(generator)
        drawn.append(torch.rand(3, generator=generator))
    assert torch.equal(drawn[0], torch.rand(3, generator=seeded(1)))
    assert len({tuple(numbers.tolist()) for numbers in drawn}) == 4


def test_one_process_needs_no_others() -> None:
    assert (parallel.processes(), parallel.rank(), parallel.highest(3)) == (1, 0, 3)
    values = {"a": torch.ones(2)}
    assert parallel.summed(values)["a"] is values["a"]
    assert parallel.collected(values) == [values]
    with refused(UsageError, "once"):
        parallel.from_first(lambda: (_ for _ in ()).throw(UsageError("once")))
