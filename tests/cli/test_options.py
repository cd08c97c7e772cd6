"""One set of options for the command and for Python, and a command that starts at once."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
import typer
from commands import Run
from processes import HANG

import restore
from restore import zoo
from restore.cli.command import COMMANDS, app
from restore.inference.options import Options
from restore.learning.options import TrainOptions
from restore.registry import LEVELS

NAMES = [each.name for each in fields(Options)]


@pytest.mark.parametrize("name", ["denoise", "complete"])
def test_every_option_is_one_of_the_command_and_of_python(name: str) -> None:
    parameters = inspect.signature(getattr(restore, name)).parameters
    made = typer.main.get_command(app(name)).commands[name].params  # type: ignore[attr-defined]
    flags = {each.name: each for each in made}
    for each in fields(Options):
        assert parameters[each.name].default == each.default, each.name
        assert f"--{each.name.replace('_', '-')}" in flags[each.name].opts and flags[each.name].help, each.name
        assert flags[each.name].default == each.default, each.name
        assert each.name in (getattr(restore, name).__doc__ or "")
    # A loaded prior knows how it was opened.
    assert set(NAMES) - set(inspect.signature(getattr(restore.Restorer, name)).parameters) == {
        *("model", "engine", "device", "max_memory")
    }


def test_every_option_of_training_is_one_of_the_command_and_of_python() -> None:
    made = typer.main.get_command(app("train")).commands["train"].params  # type: ignore[attr-defined]
    flags = {each.name: each for each in made}
    parameters = inspect.signature(restore.train).parameters
    offered = {each.name: each for each in fields(TrainOptions) if "help" in each.metadata}
    for name, each in offered.items():
        assert f"--{name.replace('_', '-')}" in flags[name].opts and flags[name].default == each.default, name
        assert each.metadata["help"] in flags[name].help, name
        if name in parameters:
            assert parameters[name].default == each.default and f"{name}: " in (restore.train.__doc__ or ""), name
    # In Python images are given, and where they lie is no question.
    assert offered.keys() - parameters.keys() == {"data", "every"}
    assert flags.keys() - offered.keys() == {"source", "output", "threads", "quiet"}
    assert parameters.keys() - offered.keys() == {"images", "keep", "progress"}


def test_help_shows_options_in_panels(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("denoise", "--help") == 0
    said = capsys.readouterr().out
    places = [said.index(title) for title in ("Arguments:", "Options:", "Prior:", "Results:", "Computing:")]
    assert places == sorted(places)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_plain(name: str, run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """No type of the parser's and no range is shown, and no default of another command."""
    assert run(name, "--help") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert not re.search(r"<\w|x[<>]=|<=x|denoise: |complete: ", said)
    shown = {owner for owner, default in LEVELS["p"].defaults.items() if f"[{default}]" in said}
    assert shown == {name} & LEVELS["p"].defaults.keys()


@pytest.mark.parametrize("name", ["denoise", "complete", "corrupt", "train", "evaluate", "info"])
def test_a_command_alone_shows_its_example(name: str, run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(name) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and re.search(r"Example: restore \w+", said)


# Prints the modules that were loaded, and the bytes of the file of each.
REPORT = """
import atexit, json, os, sys
def report():
    files = {name: getattr(module, "__file__", None) or "" for name, module in sys.modules.items()}
    sizes = {name: os.path.getsize(file) if os.path.exists(file) else 0 for name, file in files.items()}
    print(json.dumps(sizes), file=sys.stderr)
atexit.register(report)
"""
COMMAND = "from restore.cli import main; main()"


def loaded(code: str, *words: str) -> tuple[dict[str, int], str]:
    """The modules that some code loads, with their sizes, and what it prints."""
    called = [sys.executable, "-c", REPORT + code, *words]
    done = subprocess.run(called, capture_output=True, text=True, timeout=HANG, check=True)
    return json.loads(done.stderr.splitlines()[-1]), done.stdout


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["-V"], ["denoise", "--help"]], ids=" ".join)
def test_words_about_the_command_load_no_numbers_and_no_pictures(words: list[str]) -> None:
    modules, said = loaded(COMMAND, *words)
    assert not {"numpy", "PIL", "rich", "torch"} & set(modules)
    assert "denoise" in said or said == f"restore {restore.__version__}\n"


def test_restoring_loads_few_modules_beside_those_of_onnxruntime(tmp_path: Path) -> None:
    """Times are measured by benchmarks/peers/cold_start.py."""
    graph = zoo.published_folder() / zoo.preferred() / zoo.GRAPH
    peer, _ = loaded(f"import numpy, PIL.Image, onnxruntime; onnxruntime.InferenceSession({str(graph)!r})")
    image = Path(__file__).parents[2] / "assets" / "digit-noisy.png"
    options = ("--model", zoo.preferred(), "--p", "0.1", "-o", str(tmp_path / "restored.png"))
    restoration, _ = loaded(COMMAND, "denoise", str(image), *options)
    # Most of them ours and those of typer; with torch it is over 1,000.
    assert len(restoration) - len(peer) < 230
    # Half of it Python's own; of torch it is hundreds of megabytes, of scipy tens.
    assert sum(restoration.values()) - sum(peer.values()) < 15_000_000


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("restore de", "denoise"),
        ("restore denoise --max-m", "--max-memory"),
        ("restore denoise --model conv-t", "conv-text"),
        ("restore info em", "em-photographs"),
        ("restore export tap-d", "tap-deep-mnist"),
        ("restore evaluate conv-a", "conv-art"),
        ("restore evaluate conv-art --task fl", "flip:"),
        ("restore train images --method prin", "principal"),
        ("restore train images --task ho", "holes:"),
        ("restore corrupt --task sp", "specks:"),
    ],
)
def test_the_shell_completes_words_and_names(
    typed: str, offered: str, run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = {"_RESTORE_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
    for name, value in asked.items():
        monkeypatch.setenv(name, value)
    run()
    assert capsys.readouterr().out.split() == [offered]
