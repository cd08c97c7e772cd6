"""The exceptions of the package, with their exit codes on the command line.

Every message is one line that names the file or the argument at fault, and a remedy.
"""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote

# True where options are shown as the command spells them, in all threads.
_in_command = False


class RestoreError(Exception):
    """Base of every error this package raises on purpose.

    Attributes:
        subject: the file, prior or option at fault, with which the message then begins; empty if it has none.
    """

    exit_code = 1

    def __init__(self, message: str, subject: object = "") -> None:
        self.subject = masked(str(subject))
        super().__init__(f"{shown(self.subject)}: {message}" if self.subject else message)


class UsageError(RestoreError, ValueError):
    """An argument or a value is wrong (exit code 2)."""

    exit_code = 2


class InputError(RestoreError, ValueError):
    """An input image or mask cannot be used (exit code 3)."""

    exit_code = 3


class TooLarge(InputError):
    """An input has more pixels or bytes than allowed (exit code 3)."""


class ModelError(RestoreError):
    """A model is unknown, damaged, or does not fit the image (exit code 4)."""

    exit_code = 4


class NotRestored(ModelError):
    """With `strict`: no trustworthy restoration of a picture was found (exit code 4)."""


class OutputError(RestoreError, OSError):
    """A result cannot be written (exit code 5)."""

    exit_code = 5


class PartialFailure(RestoreError):
    """Some of many inputs failed; the others were restored (exit code 6)."""

    exit_code = 6


class TrainingError(RestoreError):
    """A data set, a run folder or a checkpoint cannot be used for training (exit code 7)."""

    exit_code = 7


class Unforeseen(RestoreError):
    """A fault that no other error foresees, while one image was read, restored or written (exit code 1)."""


class RestoreWarning(UserWarning):
    """Warning about a result."""


@contextmanager
def in_command(really: bool = True) -> Iterator[None]:
    """Make messages spell options as the command does, or as Python does."""
    global _in_command
    before, _in_command = _in_command, really
    try:
        yield
    finally:
        _in_command = before


def option(name: str, value: object = None) -> str:
    """An option in a message, as the command or Python spells it.

    >>> option("max_pixels"), option("fit", "tile")
    ('max_pixels', "fit='tile'")
    """
    if _in_command:
        return f"--{name.replace('_', '-')}" + ("" if value is None else f" {value}")
    return name if value is None else f"{name}={value!r}"


def remedy(command: str, python: str) -> str:
    """Choose between the remedies for the command line and for Python.

    >>> remedy("`restore models` lists them", "restore.list_models() lists them")
    'restore.list_models() lists them'
    """
    return command if _in_command else python


def require(condition: bool, message: str) -> None:
    """Raise a UsageError with a message, unless a condition holds."""
    if not condition:
        raise UsageError(message)


def pip(words: str) -> str:
    """Write a command for the pip of this environment, which may differ from the pip of the shell."""
    import shutil

    path = shutil.which("pip")
    ours = path is not None and Path(path).parent == Path(sys.executable).parent
    return f"{'pip' if ours else f'{sys.executable} -m pip'} {words}"


def extra(name: str) -> str:
    """Write the command that installs an extra of the package; pip knows the extras of what is installed.

    >>> extra("torch").endswith('pip install "restore-prior[torch]"')
    True
    """
    return pip(f'install "restore-prior[{name}]"')


def shown(name: str | os.PathLike[str]) -> str:
    r"""Write a file name on one printable line.

    Newlines, control characters, undecodable bytes and invisible characters become escapes such as `\n` or `\udcff`,
    so the result can be put into a message and encoded as UTF-8 whatever the name holds.
    """
    printable = (c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in os.fspath(name))
    return masked("".join(printable))


# A word that may be a URL, and who asks in it; some protocols have what is asked for in the place of that.
_WORD = re.compile(r"[^\s\"'<>]+")
_USER = re.compile(r"(?<![\w+.-])((?!(?:abfss?|wasbs?|github|hf)://)[A-Za-z][\w+.-]{0,30}://)([^/]+)@")


def masked(text: str) -> str:
    """Text without user names, passwords, tokens and signatures of the URLs in it: all messages pass through here.

    >>> masked("ftp://user:secret@host/x.png, https://host/x.png?sig=abc&size=3")
    'ftp://***@host/x.png, https://host/x.png?sig=***&size=***'
    """
    return _WORD.sub(lambda word: _hidden(word[0]), text) if "://" in text else text


def _hidden(word: str) -> str:
    url, mark, query = _queried(word)
    pairs = "&".join(f"{name}=***" if equals else "***" for name, equals, _ in query) if mark else ""
    return _USER.sub(r"\1***@", url) + mark + pairs


def _queried(word: str) -> tuple[str, str, list[tuple[str, str, str]]]:
    """A URL up to its query, the mark between them, and the pairs of the query; a word that is none has no query."""
    at = word.find("?", word.find("://")) if "://" in word else -1
    url, mark, query = (word, "", "") if at < 0 else (word[:at], "?", word[at + 1 :])
    return url, mark, [pair.partition("=") for pair in re.split("[&;]", query)]


def secrets(url: str) -> set[str]:
    """Who asks, in a URL, and the values in its query, as they may also stand in what a library says."""
    address, _, query = _queried(url)
    users = {part for _, user in _USER.findall(address) for part in (user, *user.split(":"))}
    values = {value for _, _, value in query}
    return {text for secret in users | values if len(secret) > 3 for text in (secret, unquote(secret))}


def unforeseen(fault: Exception, subject: object) -> RestoreError:
    """What any exception at one image becomes: itself if it is ours, else an error that names the image.

    Its note is the traceback, which goes with it from process to process.
    """
    if isinstance(fault, RestoreError):
        return fault
    where = remedy("; --debug shows where", "")
    error = Unforeseen(f"internal fault, {type(fault).__name__}: {reason(fault)}{where}", subject)
    error.__cause__ = fault
    error.add_note(masked("".join(traceback.format_exception(fault))))
    return error


# The most names that a message lists, and the length of a reason in characters.
NAMES_LISTED = 5
REASON = 240


def some(names: Iterable[str]) -> str:
    """List the first few names and the number of the others."""
    every = [shown(name) for name in names]
    more = f" and {len(every) - NAMES_LISTED} more" if len(every) > NAMES_LISTED else ""
    return ", ".join(every[:NAMES_LISTED]) + more


# A value in the query of an address, of which libraries may tell the path alone, also of one that they were sent on to.
_VALUE = re.compile(r"""([?&;][\w.~%-]+=)[^\s&;"'<>)]+""")


def reason(fault: BaseException, url: str = "") -> str:
    """The message of a fault, shortened to one printable line; its class if it has none.

    What is secret in addresses is left out: in the one that was asked for, and in all that the message names.

    >>> reason(OSError("no answer from /x.png?sig=abc of me:word"), "https://me:word@host/x.png?sig=abc")
    'no answer from /x.png?sig=*** of ***'
    """
    text = " ".join(str(fault).split())
    for secret in sorted(secrets(url), key=len, reverse=True):
        text = text.replace(secret, "***")
    return shown(_VALUE.sub(r"\1***", masked(text))[:REASON]) or type(fault).__name__
