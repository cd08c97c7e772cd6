"""Files that are replaced: whole or not at all, never through a link, with the permissions they had."""

from __future__ import annotations

import os
import pickle
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from restore.errors import OutputError, TrainingError
from restore.files import ABANDONED, remove_abandoned, write_atomically

pytestmark = pytest.mark.usefixtures("quick_disk")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("kept", [0o600, 0o640, 0o664, 0o400, 0o755], ids=oct)
def test_a_replaced_file_keeps_its_permissions(kept: int, tmp_path: Path) -> None:
    path = tmp_path / "image.png"
    path.write_bytes(b"old")
    path.chmod(kept)
    write_atomically(path, b"new")
    assert (mode(path), path.read_bytes()) == (kept, b"new")


def test_a_new_file_has_those_of_the_user(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "image.png", b"new")
    finally:
        os.umask(before)
    assert mode(tmp_path / "image.png") == 0o640


def test_what_replaces_a_private_file_is_never_open_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "image.png"
    path.write_bytes(b"old")
    path.chmod(0o600)
    seen: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: seen.append(stat.S_IMODE(os.fstat(descriptor).st_mode)))
    write_atomically(path, b"new")
    assert seen[0] == 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_replaced_file_keeps_owner_and_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "image.png"
    path.write_bytes(b"old")
    os.chown(path, 12345, 23456)
    path.chmod(0o664)
    write_atomically(path, b"new")
    assert (path.stat().st_uid, path.stat().st_gid, mode(path)) == (12345, 23456, 0o664)

    def refused(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "chown", refused)
    write_atomically(path, b"newer")
    # Another group is not allowed what the old one was.
    assert mode(path) == 0o604


def test_a_link_is_replaced_and_what_it_leads_to_is_not(tmp_path: Path) -> None:
    precious, link = tmp_path / "precious", tmp_path / "link.png"
    precious.write_bytes(b"precious")
    for place in (precious, tmp_path / "nowhere"):
        link.unlink(missing_ok=True)
        link.symlink_to(place)
        write_atomically(link, b"new")
        assert not link.is_symlink() and link.read_bytes() == b"new"
    assert precious.read_bytes() == b"precious" and not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_full_or_vanishing_disk_leaves_the_old_file(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "image.png"
    path.write_bytes(b"old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(*((os, "fsync") if step == "fsync" else (Path, "replace")), full)
    for error in (OutputError, TrainingError):
        with pytest.raises(error) as caught:
            write_atomically(path, b"new", error)
        assert caught.value.subject == pickle.loads(pickle.dumps(caught.value)).subject == str(path)
    assert [file.name for file in tmp_path.iterdir()] == ["image.png"] and path.read_bytes() == b"old"
    with pytest.raises(OutputError):
        write_atomically(tmp_path / "no" / "image.png", b"new")


def test_what_killed_processes_left_is_removed_after_a_while(tmp_path: Path) -> None:
    names = [f".restore-{letter * 16}" for letter in "abc"]
    for name in (*names[:2], ".restore-mine"):
        (tmp_path / name).write_bytes(b"half")
    (tmp_path / names[2]).symlink_to(".restore-mine")
    now = (tmp_path / names[0]).stat().st_mtime
    for name in (names[0], ".restore-mine"):
        os.utime(tmp_path / name, (now - ABANDONED - 9,) * 2)
    remove_abandoned(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {".restore-mine", *names[1:]}


def test_images_and_files_are_imported_without_what_windows_lacks() -> None:
    code = "import sys; sys.modules['fcntl'] = sys.modules['resource'] = None; import restore.files, restore.api.kinds"
    subprocess.run([sys.executable, "-c", code], check=True)
