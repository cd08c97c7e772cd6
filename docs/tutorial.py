"""Make the pictures of the tutorial: `python docs/tutorial.py [--keep FOLDER]`, some minutes.

Every sh and python block of docs/tutorial.md runs in order, each in its own shell or interpreter, in one empty folder,
which also keeps the priors. Then the pictures on the page are copied from there.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE / "tutorial.md"
PICTURES = HERE / "tutorial"


@dataclass(frozen=True)
class Block:
    """A fenced block of the page: sh, python, or text, which is the output of the block before."""

    language: str
    code: str


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a Markdown page, in order."""
    return [Block(*found) for found in re.findall(r"^```(\w+)\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)]


def shown(page: str) -> list[str]:
    """The names of the pictures on a page."""
    return re.findall(rf"!\[[^]]*\]\({PICTURES.name}/([^)]+)\)", page)


def surroundings(folder: Path) -> dict[str, str]:
    """The environment for blocks: `restore` and `python` are those of this interpreter, and priors stay in `folder`."""
    programs = folder / ".programs"
    programs.mkdir()
    command = programs / "restore"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m restore "$@"\n')
    command.chmod(0o755)
    path = os.pathsep.join((str(programs), str(Path(sys.executable).parent), os.environ["PATH"]))
    return os.environ | {"PATH": path, "XDG_DATA_HOME": str(folder / ".data")}


def run(work: Sequence[Block], folder: Path) -> Iterator[str]:
    """Run blocks in a folder, and yield the output of each.

    Raises:
        CalledProcessError: if one fails, with its output in `output`.
    """
    environment = surroundings(folder)
    programs = {"sh": ["bash", "-euo", "pipefail", "-c"], "python": ["python", "-c"]}
    for block in work:
        ended = subprocess.run(
            [*programs[block.language], block.code],
            cwd=folder,
            env=environment,
            check=True,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        yield ended.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description="Run the tutorial, and keep its pictures.")
    parser.add_argument("--keep", type=Path, help="empty folder to run it in, which stays")
    keep = parser.parse_args().keep
    page = PAGE.read_text()
    work = [block for block in blocks(page) if block.language != "text"]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) if keep is None else keep.resolve()
        folder.mkdir(parents=True, exist_ok=True)
        try:
            for block, said in zip(work, run(work, folder), strict=True):
                print(f"{block.code}\n{said}", flush=True)
        except subprocess.CalledProcessError as fault:
            sys.exit(f"{fault.cmd[-1]}\n{fault.output}\nfailed with exit code {fault.returncode}")
        PICTURES.mkdir(exist_ok=True)
        for name in shown(page):
            shutil.copy(folder / name, PICTURES / name)
            print(f"{PICTURES / name}: {(PICTURES / name).stat().st_size} bytes")


if __name__ == "__main__":
    main()
