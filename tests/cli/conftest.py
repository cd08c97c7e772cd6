"""A prior for the tests of the command line."""

from __future__ import annotations

from pathlib import Path

import bad_images
import pytest
from commands import images
from priors import saved_prior


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(saved_prior(tmp_path_factory.mktemp("model"), bad_images.SHAPE))


@pytest.fixture
def words(model: str, tmp_path: Path) -> tuple[object, ...]:
    """A command that restores five images into a folder."""
    source = images(tmp_path / "in", 5)
    return ("denoise", source, "--model", model, "--p", 0.3, "--force", "-o", f"{tmp_path}/out/")
