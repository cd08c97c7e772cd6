"""Streams that are closed or full, signals from start to end, and what reaches a terminal."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import bad_images
import numpy as np
import pytest
from commands import QUICK, Run, strokes
from PIL import Image
from priors import random_prior, saved_prior
from processes import HANG

from restore.console import progress, say
from restore.zoo import save

ASSETS = Path(__file__).parents[2] / "assets"
needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder: an image, a data set, a recipe, and a prior of the user's."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    saved_prior(tmp_path / "home" / "restore" / "models", bad_images.SHAPE)
    Image.fromarray(bad_images.GREY).save("n.png")
    np.save("data.npy", np.random.default_rng(0).integers(0, 256, (20, *bad_images.SHAPE), dtype=np.uint8))
    Path("mine.toml").write_text(
        'name = "mine"\n[data]\nsource = "data.npy"\n[prior]\nhidden = 3\n[learner]\nmethod = "tap"\n'
        '[training]\nepochs = 1\nbatch = 10\n[inference]\nsolver = "mean_field"\nmodes = 0\nstarts = 0\n',
        encoding="utf-8",
    )
    return tmp_path


# The command, the file it makes, and whether it owes something to stdout. All say something on stderr.
COMMANDS: dict[str, tuple[str, str, bool]] = {
    "denoise": ("denoise n.png --model random-12x10 --p 0.1 -o out.png", "out.png", False),
    "denoise-json": ("denoise n.png --model random-12x10 --p 0.1 -o out.png --json", "out.png", True),
    "denoise-to-stdout": ("denoise n.png --model random-12x10 --p 0.1 -o -", "", True),
    "complete": ("complete n.png --mask n.png --model random-12x10 --force -o out.png", "out.png", False),
    "corrupt": ("corrupt n.png --task flip:0.1 -o out.png", "out.png", False),
    "corrupt-json": ("corrupt n.png --task flip:0.1 -o out.png --json", "out.png", True),
    "models": ("models", "", True),
    "info": ("info random-12x10", "", True),
    "help": ("--help", "", True),
    "version": ("--version", "", True),
    "evaluate": ("evaluate random-12x10 --data data.npy --task flip:0.1 --n 9", "", True),
    "train": ("train mine.toml -o model", "model", False),
    "export": ("export random-12x10 -o out.onnx", "out.onnx", False),
}


@pytest.mark.thorough
@needs_full
@pytest.mark.parametrize("state", ["closed", "full"])
@pytest.mark.parametrize(("words", "made", "owed"), COMMANDS.values(), ids=COMMANDS.keys())
@pytest.mark.usefixtures("quick_disk", "without_graph")
def test_work_is_done_whatever_hears_of_it(
    words: str, made: str, owed: bool, state: str, run: Run, places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if words.startswith("export"):
        monkeypatch.setattr("restore.export.packing.standalone", lambda *_, **__: b"graph")
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        # As Python finds them: None where they are closed.
        monkeypatch.setattr(sys, name, None if state == "closed" else open("/dev/full", mode))  # noqa: PTH123, SIM115
    code = run(*words.split())
    monkeypatch.undo()
    assert code == (5 if owed else 0)
    assert not made or (places / made).exists()


def test_nothing_can_be_read_from_a_closed_stdin(
    run: Run, places: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert run("denoise", "-", "--model", "random-12x10", "--p", 0.1, "-o", "out.png") == 3
    assert capsys.readouterr().err.startswith("restore: stdin: cannot be read")
    assert not Path("out.png").exists()


@pytest.mark.thorough
@needs_full
def test_the_shell_closes_streams(tmp_path: Path) -> None:
    """All that a process has besides its streams is as ever: no file has taken the number of one."""
    restored = "denoise {} --model tap-mnist-25 --p 0.1 --overwrite"
    image = ASSETS / "digit-noisy.png"
    lines = {
        f"{restored.format(image)} -o out.png >&- 2>&- <&-": 0,
        f"{restored.format('-')} -o - <{image} >&-": 5,
        "info tap-mnist-25 >/dev/full 2>&-": 5,
        "nonsense 2>/dev/full": 2,
    }
    for line, code in lines.items():
        done = subprocess.run(
            f"'{sys.executable}' -m restore {line}", shell=True, cwd=tmp_path, capture_output=True, check=False
        )
        assert done.returncode == code, line
        assert b"Traceback" not in done.stderr and b"Exception" not in done.stderr
    assert np.asarray(Image.open(tmp_path / "out.png")).shape == (28, 28)


# --------------------------------------------------------------------------------------------------------- signals

# Restores in children of one process, each of which gets a signal when it first loads a module, or when it is done; and
# prints by what exit code each ended and whether there is an image.
SIGNALLED = """
import atexit, importlib.abc, os, signal, sys, time
from pathlib import Path

class AtImport(importlib.abc.MetaPathFinder):
    def __init__(self, name, send):
        self.name, self.send = name, send
    def find_spec(self, name, path, target=None):
        if name == self.name:
            self.name = None
            self.send()

class Finalised:
    def __init__(self, number):
        self.number = number
    def __del__(self):
        os.kill(os.getpid(), self.number)
        time.sleep(0.01)

def plainly(number):
    os.kill(os.getpid(), number)

def turned_into_another(number):
    try:
        os.kill(os.getpid(), number)
        time.sleep(10)
    except BaseException as fault:
        raise ImportError("cannot be loaded") from fault

def in_a_finaliser(number):
    Finalised(number)
    time.sleep(10)

cases = [(name, how, number) for number in (signal.SIGINT, signal.SIGTERM) for name, how in (
    ("restore.cli.command", plainly), ("typer", plainly), ("typer", turned_into_another), ("numpy", in_a_finaliser),
    ("onnxruntime", plainly), ("onnxruntime", turned_into_another), ("onnxruntime", in_a_finaliser), ("end", plainly),
)]
for name, how, number in cases:
    child = os.fork()
    if not child:
        if name == "end":
            atexit.register(how, number)
        else:
            sys.meta_path.insert(0, AtImport(name, lambda: how(number)))
        sys.argv = ["restore", *sys.argv[1:]]
        from restore.cli import main
        main()
        os._exit(99)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    written = Path("out.png").exists()
    print(name, how.__name__, number.name, code, written)
    Path("out.png").unlink(missing_ok=True)
"""


@pytest.mark.thorough
def test_a_signal_ends_a_process_from_its_start_to_its_end(tmp_path: Path) -> None:
    words = ("denoise", ASSETS / "digit-noisy.png", "--model", "tap-mnist-25", "--p", 0.1, "-o", "out.png", "--quiet")
    done = subprocess.run(
        [sys.executable, "-c", SIGNALLED, *map(str, words)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr, done.stderr
    told = [line.split() for line in done.stdout.splitlines()]
    assert len(told) == 16
    for name, how, number, code, written in told:
        assert (name, how, int(code)) == (name, how, 128 + {"SIGINT": 2, "SIGTERM": 15}[number])
        assert written == str(name == "end"), name
    assert all(line.startswith("restore: ") for line in done.stderr.splitlines())
    assert list(tmp_path.iterdir()) == []


# Runs a command, which gets a signal while it waits for what a thread does: each time it takes a lock, once in turn,
# before it is inside the `with` that leaves the lock again.
LOCKED = """
import os, signal, sys, threading
from concurrent.futures import Future
enter, result = threading.Condition.__enter__, Future.result
waiting, left = [], [int(sys.argv.pop(1))]

def entered(condition):
    taken = enter(condition)
    if waiting and threading.current_thread() is threading.main_thread():
        left[0] -= 1
        if left[0] == 0:
            signal.raise_signal(signal.SIGINT)
    return taken

def told(future, timeout=None):
    waiting.append(future)
    try:
        return result(future, timeout)
    finally:
        waiting.pop()

threading.Condition.__enter__, Future.result = entered, told
from restore.cli import main
main()
"""


@pytest.mark.parametrize(("files", "turn"), [(6, 1), (6, 2), (6, 5), (1, 1), (1, 3)])
def test_a_signal_leaves_no_lock_taken(files: int, turn: int, tmp_path: Path) -> None:
    """Threads read and write many files; for a single one they try priors."""
    source = strokes(tmp_path / "in", files)
    prior = ("--model", QUICK, "--p", 0.3, "--force") if files > 1 else ()
    words = ("denoise", source, *prior, "-o", f"{tmp_path}/out/", "--quiet")
    done = subprocess.run(
        [sys.executable, "-c", LOCKED, str(turn), *map(str, words)],
        env=os.environ | {"OMP_NUM_THREADS": "2"},
        capture_output=True,
        timeout=HANG,
        check=False,
    )
    assert done.returncode == 130 and b"Traceback" not in done.stderr, done.stderr


# -------------------------------------------------------------------------------------------------------- terminals

# Sets the title of a terminal, and clears it.
EVIL = "\x1b]0;owned\x07\x1b[2J\x9b1m\u202e"


def harmless(text: str) -> bool:
    return all(c.isprintable() or c == "\n" for c in text)


def test_nothing_steers_the_terminal(run: Run, places: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evil = random_prior(bad_images.SHAPE, name=f"evil{EVIL}")
    header = replace(evil.description, data=f"data{EVIL}\nfake-prior", licence=EVIL)
    folder = places / "home" / "restore" / "models" / f"evil{EVIL}"
    save(folder, replace(evil, description=header), f"# A card\n\n{EVIL}\n")
    (folder / "card.md").write_bytes((folder / "card.md").read_bytes() + b"\xff\xfe\n")
    image = f"n{EVIL}.png"
    os.rename("n.png", image)  # noqa: PTH104
    lines = [
        (["models"], 0),
        (["info", folder.name], 0),
        (["info", folder.name, "--json"], 0),
        (["denoise", image, "--model", f"none{EVIL}", "--p", 0.1], 4),
        (["denoise", image, "--model", folder.name, "--p", 0.1, "--json"], 0),
        (["denoise", image, "--model", folder.name, "--p", 0.1], 5),
        (["denoise", f"none{EVIL}", "--model", folder.name, "--p", EVIL], 2),
        (["denoise", image, f"--{EVIL}"], 2),
        ([EVIL], 2),
        (["evaluate", folder.name, "--data", "data.npy", "--task", "flip:0.1", "--n", 9], 0),
        (["evaluate", folder.name, "--data", "data.npy", "--task", EVIL], 2),
        (["evaluate", folder.name, "--data", f"{EVIL}.npy", "--task", "flip:0.1"], 3),
        (["corrupt", image, "--task", EVIL], 2),
    ]
    for words, code in lines:
        assert run(*words) == code, words
        said = capsys.readouterr()
        assert harmless(said.out) and harmless(said.err), words
        assert "--json" in words or said.out or said.err
        if words == ["models"]:
            assert not any(line.startswith("fake-prior") for line in said.out.splitlines())


def test_progress_bars_do_not_steer_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress(f"work {EVIL}", 2) as meter:
        meter(1, f"note {EVIL}")
    said = terminal.getvalue()
    assert said.count("owned") >= 2
    for piece in ("\x1b]0", "\x07", "\x1b[2J", "\x9b", "\u202e"):
        assert piece not in said


def test_what_is_said_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    with open("/dev/full", "w", encoding="utf-8") as full:  # noqa: PTH123
        monkeypatch.setattr(sys, "stderr", full)
        say("nobody hears this")
        say("nor this")


def test_json_is_one_line_of_ascii(run: Run, places: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.rename("n.png", "é\n\x1b.png")  # noqa: PTH104
    assert run("corrupt", "é\n\x1b.png", "--task", "flip:0.1", "--json", "-o", "out.png") == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.isascii() and json.loads(line)["input"] == r"é\n\x1b.png"
