"""The command line: its commands by name, and an exit code for every outcome."""

from __future__ import annotations

import errno
import os
import signal
import sys
import warnings
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Annotated, TextIO

import typer

from restore.cli.process import signals
from restore.console import drop, say, tell
from restore.errors import OutputError, RestoreError, UsageError

# By name: the module, and in it the function and the example of the command.
COMMANDS = {
    "denoise": ("denoise", "denoise", "EXAMPLE"),
    "complete": ("complete", "complete", "EXAMPLE"),
    "corrupt": ("corrupt", "corrupt", "EXAMPLE"),
    "train": ("train", "train", "EXAMPLE"),
    "import": ("importing", "import_", "EXAMPLE"),
    "evaluate": ("evaluate", "evaluate", "EXAMPLE"),
    "models": ("models", "models", "MODELS_EXAMPLE"),
    "info": ("models", "info", "INFO_EXAMPLE"),
    "export": ("export", "export", "EXAMPLE"),
    "app": ("app", "app", "EXAMPLE"),
}

# Those that write a file for each image, and so go on after a stop.
BATCHES = {"denoise", "complete", "corrupt"}

# Optional libraries, and the extra of the package that installs each.
EXTRAS = dict.fromkeys(("torch", "scipy", "skimage", "onnx", "onnxscript"), "torch") | {
    "matplotlib": "plots",
    "sklearn": "sklearn",
}

# Errors of a stream or a file that cannot be written: no space, no quota, no device, not open.
UNWRITABLE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF}


def app(names: Iterable[str]) -> typer.Typer:
    """The command line with only these commands."""
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

        tell(f"restore {version('restore-prior')}")
        raise typer.Exit


def run(words: Sequence[str]) -> int:
    """Run a command line and return its exit code."""
    warnings.showwarning = _warn
    try:
        code = _invoked(words or ["--help"])
        sys.stdout.flush()
        return code
    except RestoreError as fault:
        return _failed(str(fault), fault.exit_code)
    except KeyboardInterrupt as stop:
        number = getattr(stop, "signal_number", signal.SIGINT)
        return _failed("; ".join(["stopped", *_remedies(stop, words)]), 128 + number)
    except signals.Terminated as stop:
        return _failed("; ".join(["terminated", *_remedies(stop, words)]), 128 + signal.SIGTERM)
    except BrokenPipeError:
        # Whoever read stdout is gone; that is no error.
        drop(sys.stdout)
        return 0
    except Exception as fault:
        if hasattr(fault, "format_message"):  # the command-line parser's own errors
            return _failed(fault.format_message(), UsageError.exit_code)
        if isinstance(fault, ModuleNotFoundError) and (library := (fault.name or "").split(".")[0]) in EXTRAS:
            missing = f"this needs {library}; pip install 'restore-prior[{EXTRAS[library]}]'"
            return _failed(missing, UsageError.exit_code)
        if isinstance(fault, OSError) and fault.errno in UNWRITABLE:
            drop(sys.stdout)
            return _failed(f"{fault.filename or 'stdout'}: cannot be written ({fault.strerror})", OutputError.exit_code)
        if "RESTORE_DEBUG" in os.environ:
            raise
        return _failed(f"internal fault, {type(fault).__name__}: {fault}; RESTORE_DEBUG=1 shows where", 1)


def _invoked(words: Sequence[str]) -> int:
    """Run a command to its end; once a signal has come, any exception becomes KeyboardInterrupt or `Terminated`."""
    # Only the named command is loaded: each takes a millisecond.
    # The others are not made for a command that is named: each takes a millisecond.
    made = app([words[0]] if words[0] in COMMANDS else COMMANDS)
    try:
        # Not `made()`, which exits with a code of its own if stdout is closed.
        with (
            typer.main.get_command(made).make_context("restore", list(words)) as context,
            signals.Raised() as sent,
        ):
            try:
                context.command.invoke(context)
            except Exception as fault:
                sent.stop(fault)
                raise
    except typer.Exit as done:
        return done.exit_code
    return 0


def _remedies(stop: BaseException, words: Sequence[str]) -> Sequence[str]:
    """What to do after a stop: what the command has noted; nothing, if it neither has nor goes on."""
    again = "the same command goes on (with --skip-existing for single files)"
    return getattr(stop, "__notes__", [again] if words and words[0] in BATCHES else [])


def _failed(message: str, code: int) -> int:
    say(f"restore: {' '.join(message.split())}")
    return int(code)


def _warn(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print a warning as one line, like errors."""
    _failed(str(message), 0)
