"""Rows of the tables of bad images as cases of a test, and what every message must have."""

from __future__ import annotations

import io

import pytest
from bad_images import Case
from hypothesis import settings

from restore.errors import RestoreError
from restore.images import Picture, read_picture

quick = settings(max_examples=40)


def cases(table: list[Case]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", [pytest.param(case, id=case.row) for case in table if case.possible])


def read(data: bytes, **options: int) -> Picture:
    return read_picture(io.BytesIO(data), name="x.png", **options)


def check_message(fault: RestoreError, name: object) -> None:
    message = str(fault)
    assert message.isprintable()
    assert message.startswith(f"{name}: ")
