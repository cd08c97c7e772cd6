"""The one exception family of the package, and the exit code each member has on the command line.

Every message is one line that names the file or the argument at fault and says what to do about it.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable
from typing import ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

# A command-line option in a message, with its value if it has one: a number, a size, or one of these words.
_WORDS = "resize|crop|error|auto|binary|grey|torch|onnx|tap|mean_field|(?:relaxed|adaptive|sum|max|mixed)_[a-z]+"
_OPTION = re.compile(rf"(?<![^\s(])--([a-z]+(?:-[a-z]+)*)(?: (\d+x\d+|\d[\d.]*\d|\d|[a-z]+-[a-z0-9-]+|{_WORDS})\b)?")
_COMMAND = re.compile(r"`restore [^`]*`")
_FRAME = re.compile(r"choose one with --frame (\d+) to (\d+)")
# Where a message names both, only the argument is kept.
_BOTH = re.compile(r"--[a-z-]+(?: \S+)? (?:\(or ([a-z_]+=[\w.]*)\)|or ([a-z_]+=[\w.]*))")


class RestoreError(Exception):
    """Base of every error this package raises on purpose."""

    exit_code = 1


class UsageError(RestoreError, ValueError):
    """An argument or a value is wrong (exit code 2)."""

    exit_code = 2


class InputError(RestoreError, ValueError):
    """An input image or mask cannot be used (exit code 3)."""

    exit_code = 3


class ModelError(RestoreError):
    """A model is unknown, damaged, or does not fit the image (exit code 4)."""

    exit_code = 4


class Foreign(ModelError):
    """Nothing that is known explains an image (exit code 4)."""


class OutputError(RestoreError, OSError):
    """A result cannot be written (exit code 5)."""

    exit_code = 5


class PartialFailure(RestoreError):
    """Some of many inputs failed; the others were restored (exit code 6)."""

    exit_code = 6


class TrainingError(RestoreError):
    """A data set, a run folder or a checkpoint cannot be used for training (exit code 7)."""

    exit_code = 7


def shown(name: str | os.PathLike[str]) -> str:
    r"""Write a file name on one printable line.

    Newlines, control characters, undecodable bytes and invisible characters become escapes such as `\n` or `\udcff`,
    so the result can be put into a message and encoded as UTF-8 whatever the name holds.
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in os.fspath(name))


def in_python(message: str) -> str:
    """Rewrite the command-line options in a message as Python arguments: `--fit resize` becomes `fit="resize"`.

    Commands in backticks stay as they are typed.
    """

    def argument(found: re.Match[str]) -> str:
        name, value = found[1].replace("-", "_"), found[2]
        if value is None:
            return name
        if "x" in value and value[0].isdigit():
            return f"{name}=({value.replace('x', ', ')})"
        return f"{name}={value}" if value[0].isdigit() else f'{name}="{value}"'

    framed = _FRAME.sub(r"open it with PIL, seek one of \1 to \2, and give that", message)
    words, commands = _COMMAND.split(framed), _COMMAND.findall(framed)
    spoken = [_OPTION.sub(argument, _BOTH.sub(r"\1\2", part)) for part in words]
    return "".join(part for pair in zip(spoken, [*commands, ""], strict=True) for part in pair)


def speaking_python(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Decorate a function so that the messages of its errors name Python arguments; see `in_python`."""

    @functools.wraps(function)
    def called(*arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
        try:
            return function(*arguments, **named)
        except RestoreError as fault:
            fault.args = (in_python(str(fault)),)
            raise

    return called


# The most characters of a reason that are shown.
REASON = 240


def reason(fault: BaseException) -> str:
    """The message of a fault, shortened to one printable line."""
    return shown(" ".join(str(fault).split())[:REASON])
