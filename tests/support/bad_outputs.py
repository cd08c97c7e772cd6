"""The table of bad places for results, and of odd names: what to arrange, and what has to come of it.

Each case is named as in `bad_images`.
"""

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
    says: str = ""
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


OUTPUTS = [
    OutputCase("row49-two-names", lambda folder: (images(folder, "x.dat", "x.dat.png"), None), UsageError, "both"),
    OutputCase("row49-two-folders", _same_stem_in_two_folders, UsageError, "both"),
    OutputCase("row49-same-twice", lambda folder: (images(folder, "x.png") * 2, None), UsageError, "both"),
    OutputCase(
        "row49-file-for-two",
        lambda folder: (images(folder, "x.png", "y.png"), str(folder / "out.png")),
        UsageError,
        "give a folder",
    ),
    OutputCase(
        "row49-lossy", lambda folder: (images(folder, "x.png"), str(folder / "y.jpg")), UsageError, "choose .png"
    ),
    OutputCase(
        "row49-no-ending", lambda folder: (images(folder, "x.png"), str(folder / "y")), UsageError, "choose .png"
    ),
    OutputCase(
        "row50-output-is-input", lambda folder: (images(folder, "x.png"), str(folder / "x.png")), OutputError, "input"
    ),
    OutputCase("row50-symbolic-link", _output_is_link_to_input, OutputError, "input"),
    OutputCase("row50-hard-link", _output_is_hard_link_to_input, OutputError, "input"),
    OutputCase("row50-another-input", _output_is_another_input, OutputError, "input"),
    OutputCase("row52-read-only-folder", _read_only_folder, OutputError, "written to", possible=NOT_ROOT),
    OutputCase(
        "row52-missing-folder",
        lambda folder: (images(folder, "x.png"), str(folder / "no" / "y.png")),
        OutputError,
        "folder",
    ),
    OutputCase(
        "row52-missing-parent",
        lambda folder: (images(folder, "x.png"), f"{folder}/no/out/"),
        OutputError,
        "folder",
    ),
    OutputCase("row52-existing", _existing_output, OutputError, "--overwrite"),
    OutputCase("row52-folder-in-the-way", _output_is_folder, OutputError, "folder"),
    OutputCase("row56-long-name", lambda folder: (images(folder, "n" * 251 + ".png"), None), OutputError, "-o"),
]


ODD_NAMES = {
    "row56-brackets": "[bold]x[0].png",
    "row56-newline": "two\nlines.png",
    "row56-leading-dash": "-x.png",
    "row56-not-utf-8": os.fsdecode(b"caf\xe9.png"),
    "row56-255-bytes": "n" * 251 + ".png",
    "row56-spaces": " x .png",
}
