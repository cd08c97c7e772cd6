"""Pipes and devices in a folder are no images: opening a pipe that nobody writes to waits for ever."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from restore.images.outputs import expand


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_in_a_folder_is_left_out(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "broken.png").symlink_to("nowhere")
    (tmp_path / "image.png").touch()
    assert [path.name for path in expand([tmp_path])] == ["broken.png", "image.png"]
