"""What holds for reading and writing images."""

from __future__ import annotations

import warnings

import pytest


@pytest.fixture
def silent(capfd):
    """Whatever happens, Pillow and its libraries say nothing of their own."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield
    assert capfd.readouterr() == ("", "")
