"""Say what an error names, in one line, instead of how it puts it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from restore.errors import RestoreError, shown


@contextmanager
def refused(kind: type[RestoreError], *subjects: str | Path) -> Iterator[None]:
    """Expect an error of a class, whose one printable line names all subjects: files, options, keys, numbers."""
    with pytest.raises(kind) as caught:
        yield
    said = str(caught.value)
    assert said.isprintable() and said.startswith(shown(caught.value.subject))
    assert all(str(subject) in said for subject in subjects), said
