"""Files that are replaced: whole or not at all, and by nobody's leave but theirs."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from restore.files import write_atomically

pytestmark = pytest.mark.usefixtures("quick_disk")


@pytest.fixture
def umask() -> Iterator[int]:
    mask = 0o022
    before = os.umask(mask)
    yield mask
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("kept", [0o600, 0o640, 0o664, 0o400, 0o755], ids=oct)
def test_row74_a_replaced_file_keeps_its_permissions(kept: int, umask: int, tmp_path: Path) -> None:
    path = tmp_path / "image.png"
    path.write_bytes(b"old")
    path.chmod(kept)
    write_atomically(path, b"new")
    assert (mode(path), path.read_bytes()) == (kept, b"new")


def test_row74_a_new_file_has_those_of_the_user(umask: int, tmp_path: Path) -> None:
    write_atomically(tmp_path / "image.png", b"new")
    assert mode(tmp_path / "image.png") == 0o666 & ~umask


def test_row74_what_replaces_a_private_file_is_never_open_to_others(
    umask: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "image.png"
    path.write_bytes(b"old")
    path.chmod(0o600)
    seen: list[int] = []
    monkeypatch.setattr(os, "fchmod", lambda descriptor, mode: seen.append(stat.S_IMODE(os.fstat(descriptor).st_mode)))
    write_atomically(path, b"new")
    assert seen == [0o600]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_row74_a_replaced_file_keeps_owner_and_group(tmp_path: Path) -> None:
    path = tmp_path / "image.png"
    path.write_bytes(b"old")
    os.chown(path, 12345, 23456)
    write_atomically(path, b"new")
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 23456)


def test_row74_another_group_is_not_allowed_what_the_old_one_was(
    umask: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "image.png"
    path.write_bytes(b"old")
    path.chmod(0o664)
    elsewhere = path.stat().st_gid + 1

    def refused(descriptor: int, owner: int, group: int) -> None:
        raise PermissionError

    real = os.stat_result

    def of_another_group(self: Path) -> os.stat_result:
        status = os.stat(self)  # noqa: PTH116
        return real((*status[:5], elsewhere, *status[6:]))

    monkeypatch.setattr(os, "fchown", refused)
    monkeypatch.setattr(Path, "stat", of_another_group)
    write_atomically(path, b"new")
    monkeypatch.undo()
    assert mode(path) == 0o644


def test_row71_a_link_is_replaced_and_what_it_leads_to_is_not(tmp_path: Path) -> None:
    precious, link = tmp_path / "precious", tmp_path / "link.png"
    precious.write_bytes(b"precious")
    link.symlink_to(precious)
    write_atomically(link, b"new")
    assert not link.is_symlink() and link.read_bytes() == b"new" and precious.read_bytes() == b"precious"
