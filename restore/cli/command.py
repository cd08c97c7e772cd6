"""The command line: its commands by name, and an exit code for every outcome."""

from __future__ import annotations

import errno
import os
import re
import signal
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any

import typer

import restore
from restore import signals
from restore.console import drop, say, tell
from restore.errors import OutputError, RestoreError, UsageError, extra, in_command

# By name: the module, its function if that has another name, and what it does.
COMMANDS = {
    "denoise": ("restoring", "", "Remove noise from images."),
    "complete": ("restoring", "", "Fill the pixels under a mask."),
    "examples": ("examples", "", "Copy pictures to try it on."),
    "corrupt": ("corrupt", "", "Damage images on purpose."),
    "train": ("train", "", "Train a prior on your images."),
    "import": ("importing", "import_", "Make a prior of another program's weights."),
    "evaluate": ("evaluate", "", "Score a prior on damaged images."),
    "models": ("models", "", "List the priors."),
    "info": ("models", "", "Show the card of a prior."),
    "export": ("export", "", "Write a prior with its solver as an ONNX file."),
    "app": ("app", "", "Restore images on a page in the browser."),
    "serve": ("serve", "", "Restore images that programs post."),
}

# Those that write a file for each image, and so go on after a stop.
BATCHES = {"denoise", "complete", "corrupt"}

# Optional libraries, and the extra of the package that installs each.
EXTRAS = dict.fromkeys(("torch", "scipy", "skimage", "onnx", "onnxscript"), "torch") | {
    "matplotlib": "plots",
    "sklearn": "sklearn",
    **dict.fromkeys(("uvicorn", "fastapi", "prometheus_client", "multipart"), "serve"),
    "huggingface_hub": "hub",
}

# Errors of a stream or a file that cannot be written: no space, no quota, no device, not open.
UNWRITABLE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF}


# What stands for a value in --help, by the parser's name of its type; and the range of a number.
VALUES = {"str": "TEXT", "int": "NUMBER", "int range": "NUMBER", "float": "NUMBER", "path": "PATH"}
RANGE = r"; (\d+<=)?x[<>]=\d+(?=\])|  \[(\d+<=)?x[<>]=\d+\]"


class Command(typer.core.TyperCommand):
    """A command whose options are shown in panels, without the library that draws typer's own."""

    def panels(self, ctx: Any) -> dict[str, list[tuple[str, str]]]:
        """The words of each option with its help, by the title of its panel."""
        panels: dict[str, list[tuple[str, str]]] = {}
        for one in self.get_params(ctx):
            record = one.get_help_record(ctx)
            if record is not None:
                words, text = record
                words = re.sub(r"<(.*)>$", lambda kind: VALUES.get(kind[1], kind[1]), words)
                record = words, re.sub(RANGE, "", text)
                kind = "Arguments" if one.param_type_name == "argument" else "Options"
                panels.setdefault(getattr(one, "rich_help_panel", None) or kind, []).append(record)
        return panels

    def format_options(self, ctx: Any, formatter: Any) -> None:
        for title, records in self.panels(ctx).items():
            with formatter.section(title):
                formatter.write_dl(records)


def app(word: str = "") -> typer.Typer:
    """The command line; only the named command is loaded, the others are listed."""
    made = typer.Typer(
        name="restore",
        help="Clean noisy pictures and fill holes in them, with priors: what was learnt from pictures of one kind.",
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # brackets in help texts are brackets
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    made.callback(invoke_without_command=True)(common)
    for name, (module, function, help) in COMMANDS.items():
        if name == word:
            loaded = import_module(f"restore.cli.{module}")
            made.command(name, epilog=loaded.EXAMPLE, cls=Command)(getattr(loaded, function or name))
        else:
            made.command(name, help=help)(lambda: None)
    return made


def common(show: Annotated[bool, typer.Option("--version", "-V", help="Show the version and exit.")] = False) -> None:
    if show:
        tell(f"restore {restore.__version__}")
        raise typer.Exit


def run(words: Sequence[str]) -> int:
    """Run a command line and return its exit code."""
    warnings.showwarning = lambda message, *where: say(f"restore: {' '.join(str(message).split())}")
    try:
        with in_command():
            code = _invoked(list(words) or ["--help"])
            sys.stdout.flush()
            return code
    except RestoreError as fault:
        return _failed(str(fault), fault.exit_code)
    except (KeyboardInterrupt, signals.Terminated) as stop:
        return _stopped(stop, words)
    except BrokenPipeError:
        # Whoever read stdout is gone; that is no error.
        drop(sys.stdout)
        return 0
    except Exception as fault:
        return _foreseen(fault)


def _stopped(stop: BaseException, words: Sequence[str]) -> int:
    ended = isinstance(stop, signals.Terminated)
    again = ["the same command with --skip-existing goes on"] if words and words[0] in BATCHES else []
    # The command's own notes say more.
    remedies = getattr(stop, "__notes__", again)
    number = signal.SIGTERM if ended else getattr(stop, "signal_number", signal.SIGINT)
    return _failed("; ".join(["terminated" if ended else "stopped", *remedies]), 128 + number)


def _foreseen(fault: Exception) -> int:
    """The exit code of an exception of a library; what nobody foresaw is an internal fault."""
    if hasattr(fault, "format_message"):  # the command-line parser's own errors
        command = getattr(getattr(fault, "ctx", None), "command", None)
        example = f"; {command.epilog}" if type(fault).__name__ == "MissingParameter" and command else ""
        return _failed(fault.format_message().rstrip(".") + example, UsageError.exit_code)
    if isinstance(fault, ModuleNotFoundError) and (library := (fault.name or "").split(".")[0]) in EXTRAS:
        return _failed(f"this needs {library}; {extra(EXTRAS[library])}", UsageError.exit_code)
    if isinstance(fault, OSError) and fault.errno in UNWRITABLE:
        drop(sys.stdout)
        return _failed(f"{fault.filename or 'stdout'}: cannot be written ({fault.strerror})", OutputError.exit_code)
    if "RESTORE_DEBUG" in os.environ:
        raise fault
    return _failed(f"internal fault, {type(fault).__name__}: {fault}; RESTORE_DEBUG=1 shows where", 1)


def _invoked(words: list[str]) -> int:
    """Run a command to its end; once a signal has come, any exception becomes KeyboardInterrupt or `Terminated`."""
    typed = os.environ.get("COMP_WORDS", "").split()[1:] if "_RESTORE_COMPLETE" in os.environ else words
    command = typer.main.get_command(app(typed[0] if typed else ""))
    try:
        if "_RESTORE_COMPLETE" in os.environ:  # the shell asks how words may go on
            command.main(prog_name="restore")
        # Not `command()`, which exits with a code of its own if stdout is closed.
        with command.make_context("restore", words) as context, signals.Raised():
            try:
                context.command.invoke(context)
            except Exception as fault:
                signals.stop(fault)
                raise
    except typer.Exit as done:
        return done.exit_code
    return 0


def _failed(message: str, code: int) -> int:
    say(f"restore: {' '.join(message.split())}")
    return int(code)
