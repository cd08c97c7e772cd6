"""The examples in docstrings do what they say."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import restore

PACKAGE = Path(restore.__file__).parent
WITH_EXAMPLES = sorted(path for path in PACKAGE.rglob("*.py") if ">>>" in path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_examples(path: Path) -> None:
    name = ".".join(("restore", *path.relative_to(PACKAGE).with_suffix("").parts))
    found = doctest.testmod(import_module(name))
    assert found.attempted and not found.failed


def test_the_public_functions_have_examples() -> None:
    for name in restore.__all__:
        thing = getattr(restore, name)
        if not (isinstance(thing, type) and issubclass(thing, Exception)) and name != "load":
            assert ">>>" in thing.__doc__, name
