"""What CONTRIBUTING says first is so: the calls of two commands in their order, the glossary, the list of rooms."""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pytest
from PIL import Image

from benchmarks.package.path_length import PACKAGE, ROOT, call

TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
LINE = re.compile(r"\d+\. `(\S+) -> (\S+)\((\S+\.py)\) : (.+?)`: (\S.*)")

# A function by its file and its name.
Called: TypeAlias = tuple[str, str]

# Whoever starts a command.
SHELL = "shell"

# The most characters of a line of the list of rooms, its mark included.
WIDTH = 160


class Arrow(NamedTuple):
    """A line of the text: a function that calls another, perhaps through more of them, and what it gets back."""

    caller: str
    function: str
    file: str
    type: str
    purpose: str


def section(title: str) -> str:
    return TEXT.split(f" {title}\n", 1)[1].split("\n#", 1)[0]


def arrows(command: str) -> list[Arrow]:
    """The lines that CONTRIBUTING has for a command."""
    numbered = [line for line in section(f"One `{command}` in twelve calls").splitlines() if re.match(r"\d", line)]
    lines = [LINE.fullmatch(line) for line in numbered]
    assert all(lines), numbered
    return [Arrow(*line.groups()) for line in lines if line]


class Calls:
    """Every call of the functions named, in order, with the functions it came through.

    Attributes:
        wanted: functions by file and name.
        names: their last parts, by which most calls are passed over.
        calls: file and name of each, and those of all its callers.
    """

    def __init__(self, named: list[Arrow]) -> None:
        self.wanted = {(arrow.file, arrow.function) for arrow in named}
        self.names = {arrow.function.rpartition(".")[2] for arrow in named}
        self.calls: list[tuple[Called, set[Called]]] = []

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        """Receive a call; as this returns None, nothing else of its frame is traced."""
        if frame.f_code.co_name in self.names and (called := named_of(frame.f_code)) in self.wanted:
            self.calls.append((called, set(callers(frame))))


def named_of(code: CodeType) -> Called:
    return code.co_filename.removeprefix(PACKAGE).replace(os.sep, "/"), code.co_qualname


def callers(frame: FrameType) -> Iterator[Called]:
    while (above := frame.f_back) is not None:
        yield named_of(above.f_code)
        frame = above


def check_order(named: list[Arrow], words: list[str]) -> None:
    """Run a command, and check that each function was called by its caller, after the one in the line before."""
    trace, previous = Calls(named), sys.gettrace()
    sys.settrace(trace)
    try:
        code = call(words)
    finally:
        sys.settrace(previous)
    assert code == 0
    files, calls = {arrow.function: arrow.file for arrow in named}, iter(trace.calls)
    for arrow in named:
        came_from = (files.get(arrow.caller, ""), arrow.caller)
        assert any(
            called == (arrow.file, arrow.function) and (arrow.caller == SHELL or came_from in before)
            for called, before in calls
        ), f"CONTRIBUTING.md says {arrow.caller} -> {arrow.function}({arrow.file}); it was not called so, or not then"


@pytest.mark.parametrize("command", ["denoise", "train"])
def test_the_text_names_functions_and_what_they_return(command: str) -> None:
    named = arrows(command)
    assert 10 <= len(named) <= 14 and named[0].caller == SHELL
    for number, arrow in enumerate(named):
        assert arrow.caller in {SHELL, *(before.function for before in named[:number])}, arrow
        scope: Any = ast.parse((Path(PACKAGE) / arrow.file).read_text(encoding="utf-8"))
        for name in arrow.function.split("."):
            (scope,) = (node for node in scope.body if getattr(node, "name", "") == name)
        assert ast.unparse(scope.returns) == arrow.type, arrow
        assert arrow.purpose.endswith((".", "?"))


def test_a_digit_goes_through_the_calls_in_this_order(tmp_path: Path) -> None:
    output = tmp_path / "restored.png"
    words = ["denoise", str(ROOT / "assets" / "digit-noisy.png"), "--model", "tap-mnist", "-o", str(output)]
    check_order(arrows("denoise"), words)
    assert output.exists()


def test_a_training_goes_through_the_calls_in_this_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without_graph: None, quick_disk: None
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my-images").mkdir()
    for number in range(40):
        picture = np.zeros((12, 12), np.uint8)
        picture[number % 5 + 1 : number % 5 + 5, number % 7 : number % 7 + 4] = 255
        Image.fromarray(picture).save(tmp_path / "my-images" / f"{number}.png")
    check_order(arrows("train"), ["train", "my-images", "--minutes", "0.02", "-o", "prior"])
    assert (tmp_path / "prior").is_dir()


def test_the_glossary_explains_twenty_words_in_a_sentence_each() -> None:
    entries = re.findall(r"^- \*\*(.+?)\*\*: (.+)$", section("Glossary"), re.MULTILINE)
    assert len({word for word, _ in entries}) == len(entries) >= 20
    for word, sentence in entries:
        plain = re.sub(r"`.*?`", "", sentence)
        assert plain.endswith(".") and ". " not in plain, word


def test_the_list_of_rooms_has_each_in_a_short_line() -> None:
    lines = [line for line in section("Rooms").splitlines() if line.startswith("- ")]
    assert not [line for line in lines if len(line) > WIDTH]
    first = [name for line in lines for name in re.findall(r"`([\w/.]+)`", line.split(": ")[0])]
    assert len(set(first)) == len(first)
    rooms = {
        path.name + "/" * path.is_dir() for path in Path(PACKAGE).iterdir() if not path.name.startswith(("_", "."))
    }
    assert rooms - {"py.typed"} <= set(first)
    assert all((Path(PACKAGE) / name).exists() or (ROOT / name).exists() for name in first)
