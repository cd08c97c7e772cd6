"""The table of bad places for results (rule 7), and of odd names: what to arrange, and what has to come of it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bad_images import GREY, NOT_ROOT, encoded

from restore.errors import OutputError, RestoreError, UsageError


@dataclass(frozen=True)
class OutputCase:
    """One arrangement of files: `arrange(folder)` makes it and returns the inputs and what -o is given."""

    row: str
    arrange: Callable[[Path], tuple[list[Path], str | None]]
    error: type[RestoreError]
    possible: bool = True


def images(folder: Path, *names: str) -> list[Path]:
    paths = [folder / name for name in names]
    for path in paths:
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes(encoded(GREY))
    return paths


def _same_stem_in_two_folders(folder: Path) -> tuple[list[Path], str]:
    (folder / "out").mkdir()
    return images(folder, "a/x.png", "b/x.png"), str(folder / "out")


def _output_is_link_to_input(folder: Path) -> tuple[list[Path], str]:
    (folder / "link.png").symlink_to("x.png")
    return images(folder, "x.png"), str(folder / "link.png")


def _output_is_hard_link_to_input(folder: Path) -> tuple[list[Path], str]:
    inputs = images(folder, "x.png")
    (folder / "link.png").hardlink_to(inputs[0])
    return inputs, str(folder / "link.png")


def _output_is_another_input(folder: Path) -> tuple[list[Path], None]:
    return images(folder, "x.png", "x.restored.png"), None


def _read_only_folder(folder: Path) -> tuple[list[Path], str]:
    (folder / "out").mkdir(mode=0o555)
    return images(folder, "x.png"), str(folder / "out")


def _existing_output(folder: Path) -> tuple[list[Path], None]:
    return images(folder, "x.png", "x.restored.png")[:1], None


def _output_is_folder(folder: Path) -> tuple[list[Path], None]:
    (folder / "x.restored.png").mkdir()
    return images(folder, "x.png"), None


def _file(name: str) -> Callable[[Path], tuple[list[Path], str]]:
    return lambda folder: (images(folder, "x.png"), f"{folder}/{name}")


OUTPUTS = [
    OutputCase("two-names", lambda folder: (images(folder, "x.dat", "x.dat.png"), None), UsageError),
    OutputCase("two-folders", _same_stem_in_two_folders, UsageError),
    OutputCase("same-twice", lambda folder: (images(folder, "x.png") * 2, None), UsageError),
    OutputCase("file-for-two", lambda folder: (images(folder, "x.png", "y.png"), str(folder / "out.png")), UsageError),
    OutputCase("lossy", _file("y.jpg"), UsageError),
    OutputCase("no-ending", _file("y"), UsageError),
    OutputCase("output-is-input", _file("x.png"), UsageError),
    OutputCase("symbolic-link", _output_is_link_to_input, UsageError),
    OutputCase("hard-link", _output_is_hard_link_to_input, UsageError),
    OutputCase("another-input", _output_is_another_input, UsageError),
    OutputCase("read-only-folder", _read_only_folder, OutputError, possible=NOT_ROOT),
    OutputCase("missing-folder", _file("no/y.png"), OutputError),
    OutputCase("missing-parent", _file("no/out/"), OutputError),
    OutputCase("existing", _existing_output, OutputError),
    OutputCase("folder-in-the-way", _output_is_folder, OutputError),
]


ODD_NAMES = {
    "brackets": "[bold]x[0].png",
    "newline": "two\nlines.png",
    "leading-dash": "-x.png",
    "not-utf-8": os.fsdecode(b"caf\xe9.png"),
    "255-bytes": "n" * 251 + ".png",
    "spaces": " x .png",
}
