"""Remedies that hold for the installation at hand."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from restore import zoo
from restore.errors import ModelError, extra
from restore.zoo import search


def test_an_extra_is_installed_by_the_pip_of_this_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    beside, elsewhere = str(Path(sys.executable).parent / "pip"), "/elsewhere/pip"
    for pip, program in ((beside, "pip"), (elsewhere, f"{sys.executable} -m pip"), (None, f"{sys.executable} -m pip")):
        monkeypatch.setattr(shutil, "which", lambda name, pip=pip: pip)
        assert extra("torch") == f'{program} install "restore-prior[torch]"'


@pytest.mark.parametrize("origin", ["clone", "clone that is gone", "index"])
def test_priors_of_papers_come_from_where_the_package_came(
    origin: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone = tmp_path / "a clone"
    if origin == "clone":
        (clone / "models").mkdir(parents=True)
        (clone / "models" / "pyproject.toml").touch()
    direct = None if origin == "index" else json.dumps({"url": clone.as_uri(), "dir_info": {}})
    monkeypatch.setattr(
        "importlib.metadata.distribution", lambda name: type("", (), {"read_text": lambda s, n: direct})()
    )
    monkeypatch.setattr(search, "published_folder", lambda: search.PACKAGE / "models")
    with pytest.raises(ModelError) as fault:
        zoo.find("fw-mnist-of-a-paper")
    remedy = f'install "{clone / "models"}"' if origin == "clone" else 'install "restore-prior[papers]"'
    assert remedy in str(fault.value)
