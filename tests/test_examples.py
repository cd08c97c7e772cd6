"""The examples in docstrings do what they say, and all that users of the library call has one."""

from __future__ import annotations

import ast
import doctest
import inspect
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import restore

PACKAGE = Path(restore.__file__).parent
WITH_EXAMPLES = sorted(path for path in PACKAGE.rglob("*.py") if ">>>" in path.read_text(encoding="utf-8"))
ROOMS = ("", ".units", ".couplings", ".priors", ".channels", ".solvers", ".zoo", ".data")

# `load` is shown with the `Restorer` that it makes. The others are results, parts of other things, or for other rooms.
WITHOUT = {
    "restore.load",
    "restore.channels.Damaged",
    "restore.data.Gathered",
    "restore.data.Gathering",
    "restore.data.Limits",
    "restore.solvers.Solution",
    "restore.zoo.TrainedPrior",
    "restore.zoo.assembled",
    "restore.zoo.leave_out",
    "restore.zoo.read",
    "restore.zoo.user_folder",
}


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_examples(path: Path) -> None:
    name = ".".join(("restore", *path.relative_to(PACKAGE).with_suffix("").parts))
    found = doctest.testmod(import_module(name.removesuffix(".__init__")))
    assert found.attempted and not found.failed


def exported(module: ModuleType) -> list[str]:
    """What a room exports: the names of `__all__`, or those that it imports as themselves, or defines."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    body = ast.parse(inspect.getsource(module)).body
    imported = [name for node in body if isinstance(node, ast.ImportFrom) for name in node.names]
    return [each.name for each in imported if each.asname] + [n.name for n in body if isinstance(n, ast.FunctionDef)]


def test_what_users_call_has_examples() -> None:
    missing = set()
    for room in ROOMS:
        module = import_module(f"restore{room}")
        for name in exported(module):
            thing = getattr(module, name)
            if _called(thing) and ">>>" not in (thing.__doc__ or ""):
                missing.add(f"restore{room}.{name}")
    assert missing == WITHOUT


def _called(thing: object) -> bool:
    """Whether it is a function, or a class that is neither a contract nor an exception."""
    if not isinstance(thing, type):
        return callable(thing) and inspect.unwrap(thing).__module__.startswith("restore.")
    return not (inspect.isabstract(thing) or getattr(thing, "_is_protocol", False) or issubclass(thing, Exception))
