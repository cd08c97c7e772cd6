"""Installing the runtime of the local page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from refusals import refused
from serving import FILES, WANTED, local, released, tarball

from restore.app import runtime
from restore.errors import ModelError, OutputError


@pytest.fixture
def release(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    """Makes an archive the one that is published, and those of FILES its members."""

    def published(archive: bytes) -> None:
        monkeypatch.setattr(runtime, "RELEASE", released(archive))
        monkeypatch.setattr(runtime, "MEMBERS", WANTED)

    return published


def test_the_wanted_files_and_no_others_are_installed(tmp_path: Path, release: Callable[[bytes], None]) -> None:
    archive = tarball(FILES)
    release(archive)
    folder = tmp_path / "deep" / "there"
    with pytest.raises(ModelError):
        runtime.installed(folder)
    runtime.install(folder, local(tmp_path, archive))
    content = {Path(path).name: FILES[path] for path in WANTED}
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == content
    assert runtime.installed(folder) == {path.name: path for path in folder.iterdir()}
    (folder / "run.wasm").unlink()
    with pytest.raises(ModelError):
        runtime.installed(folder)


def test_without_a_network_nothing_is_installed(tmp_path: Path, release: Callable[[bytes], None]) -> None:
    release(tarball(FILES))  # nothing listens at the address of its mirror
    with pytest.raises(ModelError) as fault:
        runtime.install(tmp_path / "there")
    assert "run-1.0.tgz" in str(fault.value) and not list(tmp_path.iterdir())


def test_a_wrong_archive_of_the_users_stays(tmp_path: Path, release: Callable[[bytes], None]) -> None:
    path = local(tmp_path, b"another version")
    release(tarball(FILES))
    with refused(ModelError, "run.tgz"):
        runtime.install(tmp_path / "there", path)
    assert path.exists() and not (tmp_path / "there").exists()


def test_a_folder_that_cannot_be_made_is_an_output_fault(tmp_path: Path, release: Callable[[bytes], None]) -> None:
    archive = tarball(FILES)
    release(archive)
    with pytest.raises(OutputError):
        runtime.install(local(tmp_path, archive) / "there", local(tmp_path, archive))


@pytest.mark.slow
def test_the_real_release_is_what_npm_publishes(tmp_path: Path) -> None:
    try:
        runtime.install(tmp_path)
    except ModelError as missing:
        pytest.skip(str(missing))
    assert set(runtime.installed(tmp_path)) == {path.name for path in tmp_path.iterdir()}
