"""The `restore` command: thin layers over the package, one file per command."""

from __future__ import annotations

import errno
import os
import signal
import sys
import warnings
from types import FrameType
from typing import Annotated, TextIO

import typer

from restore.cli import complete, corrupt, denoise, evaluate, export, models, page, parity, study, train
from restore.errors import OutputError, RestoreError, UsageError

app = typer.Typer(
    name="restore",
    help="Repair damaged images with trained priors and a deterministic fixed-point solver.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # brackets in help texts are brackets
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("denoise", epilog=denoise.EXAMPLE)(denoise.denoise)
app.command("complete", epilog=complete.EXAMPLE)(complete.complete)
app.command("corrupt", epilog=corrupt.EXAMPLE)(corrupt.corrupt)
app.command("train", epilog=train.EXAMPLE)(train.train)
app.command("evaluate", epilog=evaluate.EXAMPLE)(evaluate.evaluate)
app.command("models", epilog=models.MODELS_EXAMPLE)(models.models)
app.command("info", epilog=models.INFO_EXAMPLE)(models.info)
app.command("export", epilog=export.EXAMPLE)(export.export)
app.command("parity", epilog=parity.EXAMPLE)(parity.parity)
app.command("app", epilog=page.EXAMPLE)(page.app)
app.command("study", epilog=study.EXAMPLE)(study.study)

# Libraries that not every installation has, and the extra of the package that brings each.
EXTRAS = dict.fromkeys(("torch", "scipy", "skimage", "onnx", "onnxscript"), "torch") | {"matplotlib": "plots"}


@app.callback(invoke_without_command=True)
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
        # Not `app()`, which answers a closed stdout with an exit code of its own.
        command = typer.main.get_command(app)
        with command.make_context("restore", sys.argv[1:] or ["--help"]) as context:
            command.invoke(context)
        sys.stdout.flush()
        code = 0
    except typer.Exit as done:
        code = done.exit_code
    except RestoreError as fault:
        code = _say(str(fault), fault.exit_code)
    except KeyboardInterrupt as stop:
        number = getattr(stop, "signal_number", signal.SIGINT)
        code = _say("stopped; the same command goes on (with --skip-existing, or --resume for training)", 128 + number)
    except Terminated:
        code = _say("terminated", 128 + signal.SIGTERM)
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
