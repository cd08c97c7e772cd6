"""The `restore` command: thin layers over the package, one file per command."""

from __future__ import annotations

import errno
import os
import signal
import sys
import warnings
from collections.abc import Iterable
from importlib import import_module
from types import FrameType
from typing import Annotated, TextIO

import typer

from restore.errors import OutputError, RestoreError, UsageError

# By name: the module, and what is in it of the command and its example.
COMMANDS = {
    "denoise": ("denoise", "denoise", "EXAMPLE"),
    "complete": ("complete", "complete", "EXAMPLE"),
    "corrupt": ("corrupt", "corrupt", "EXAMPLE"),
    "train": ("train", "train", "EXAMPLE"),
    "evaluate": ("evaluate", "evaluate", "EXAMPLE"),
    "probe": ("probe", "probe", "EXAMPLE"),
    "models": ("models", "models", "MODELS_EXAMPLE"),
    "info": ("models", "info", "INFO_EXAMPLE"),
    "export": ("export", "export", "EXAMPLE"),
    "parity": ("parity", "parity", "EXAMPLE"),
    "app": ("page", "app", "EXAMPLE"),
    "study": ("study", "study", "EXAMPLE"),
}

# Libraries that not every installation has, and the extra of the package that brings each.
EXTRAS = dict.fromkeys(("torch", "scipy", "skimage", "onnx", "onnxscript"), "torch") | {
    "matplotlib": "plots",
    "sklearn": "features",
}


def app(names: Iterable[str]) -> typer.Typer:
    """The command line with these commands."""
    made = typer.Typer(
        name="restore",
        help="Repair damaged images with trained priors and a deterministic fixed-point solver.",
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # brackets in help texts are brackets
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    made.callback(invoke_without_command=True)(common)
    for name in names:
        module, function, example = COMMANDS[name]
        place = import_module(f"restore.cli.{module}")
        made.command(name, epilog=getattr(place, example))(getattr(place, function))
    return made


def common(show: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False) -> None:
    if show:
        from importlib.metadata import version

        print(f"restore {version('restore-prior')}")
        raise typer.Exit


class Terminated(BaseException):
    """SIGTERM arrived; raised so that temporary files are removed on the way out."""


def _terminate(number: int, frame: FrameType | None) -> None:
    raise Terminated


def main() -> None:
    """Run the command line and leave with the exit code that fits: see `restore.errors` for those of faults."""
    signal.signal(signal.SIGTERM, _terminate)
    warnings.showwarning = _warn
    try:
        words = sys.argv[1:] or ["--help"]
        # The others are not made for a command that is named: each takes a millisecond.
        made = app([words[0]] if words[0] in COMMANDS else COMMANDS)
        # Not `made()`, which answers a closed stdout with an exit code of its own.
        with typer.main.get_command(made).make_context("restore", words) as context:
            context.command.invoke(context)
        sys.stdout.flush()
        code = 0
    except typer.Exit as done:
        code = done.exit_code
    except RestoreError as fault:
        code = _say(str(fault), fault.exit_code)
    except KeyboardInterrupt as stop:
        number = getattr(stop, "signal_number", signal.SIGINT)
        remedy = getattr(stop, "remedy", "the same command goes on (with --skip-existing for single files)")
        code = _say(f"stopped; {remedy}", 128 + number)
    except Terminated as stop:
        code = _say("; ".join(["terminated", *filter(None, [getattr(stop, "remedy", "")])]), 128 + signal.SIGTERM)
    except BrokenPipeError:
        # Whoever read stdout has gone, and nothing is wrong here.
        _drop_stdout()
        code = 0
    except Exception as fault:
        if hasattr(fault, "format_message"):  # the command-line parser's own errors
            code = _say(fault.format_message(), UsageError.exit_code)
        elif isinstance(fault, ModuleNotFoundError) and (library := (fault.name or "").split(".")[0]) in EXTRAS:
            missing = f"this needs {library}; pip install 'restore-prior[{EXTRAS[library]}]'"
            code = _say(missing, UsageError.exit_code)
        elif isinstance(fault, OSError) and fault.errno in (errno.ENOSPC, errno.EIO):
            _drop_stdout()
            code = _say(f"{fault.filename or 'stdout'}: cannot be written ({fault.strerror})", OutputError.exit_code)
        elif "RESTORE_DEBUG" in os.environ:
            raise
        else:
            code = _say(f"internal fault, {type(fault).__name__}: {fault}; RESTORE_DEBUG=1 shows where", 1)
    sys.exit(code)


def _drop_stdout() -> None:
    """Let what is still buffered go nowhere, so that flushing at exit does not complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _warn(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Warnings are one line too."""
    _say(str(message), 0)


def _say(message: str, code: int) -> int:
    one_line = " ".join(message.split())
    print(f"restore: {one_line}", file=sys.stderr)
    return int(code)
