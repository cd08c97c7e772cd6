"""How much of the variance of grey levels two levels explain: of small pictures in black and white, and of others.

    RESTORE_DATA=DATA python benchmarks/choices/two_tones.py

The limit `two_tones` in `restore/inference/decision/rules.py` parts drawings with soft edges, which may be cut to black
and white, from photographs, faces and maps in several greys. Quantiles over pictures, and the share below the limit.
"""

from __future__ import annotations

import gzip
import io
import os
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from PIL import Image
from skimage import color, data

from benchmarks.choices.page_limits import PHOTOGRAPHS
from benchmarks.measures.script import command_line, head, row
from benchmarks.pictures.all_kinds import picture
from restore.images.tones import Tones, counted
from restore.inference.decision.rules import limit_of
from restore.status import Status

SIDES = (16, 24, 32, 44)

# What is no drawing in two tones.
GREY = ("maps in six greys", "faces of CBCL", "small parts of photographs")


def crops(each: int = 8) -> list[np.ndarray]:
    """Small parts of photographs, in full and at a quarter of their size."""
    dice, made = np.random.default_rng(0), []
    for name in PHOTOGRAPHS:
        image = getattr(data, name)()
        grey = np.rint(255 * color.rgb2gray(image[..., :3])).astype(np.uint8) if image.ndim == 3 else image
        for number in range(each):
            side, part = SIDES[number % len(SIDES)], grey[:: 1 + 3 * (number // 4), :: 1 + 3 * (number // 4)]
            if min(part.shape) > side:
                top, left = (int(dice.integers(size - side)) for size in part.shape)
                made.append(part[top : top + side, left : left + side])
    return made


def zipped(path: Path, most: int, side: int = 0) -> list[np.ndarray]:
    """The first images of an archive, in grey, averaged to a side if it is given."""
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name.endswith((".png", ".pgm"))][:most]
        images = [Image.open(io.BytesIO(archive.read(name))).convert("L") for name in names]
    sized = (image.resize((side, side), Image.Resampling.BOX) if side else image for image in images)
    return [np.asarray(image) for image in sized]


def sources(folder: Path) -> dict[str, Callable[[], Iterable[np.ndarray]]]:
    def digits() -> np.ndarray:
        with gzip.open(folder / "mnist" / "t10k-images-idx3-ubyte.gz") as file:
            return np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 28, 28)[:300]

    def drawn(name: str) -> list[np.ndarray]:
        return [np.rint(255 * picture(name, seed)).astype(np.uint8) for seed in range(100, 105)]

    return {
        "digits of MNIST": digits,
        "characters of Omniglot, averaged to 32x32": lambda: zipped(next((folder / "omniglot").glob("*.zip")), 200, 32),
        "icons with soft edges": lambda: drawn("grey icons"),
        GREY[0]: lambda: drawn("grey map"),
        GREY[1]: lambda: zipped(folder / "cbcl" / "test_faces.zip", 200),
        GREY[2]: crops,
    }


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("RESTORE_DATA"))
    chosen = parser.parse_args()
    if chosen.data is None:
        raise SystemExit("set RESTORE_DATA, or give --data: the folder that holds mnist/, omniglot/ and cbcl/")
    limit = limit_of(Status.NOT_INK, "two_tones")
    head("pictures", "least", "5 %", "median", "95 %", "most", "below the limit, %", "of")
    for name, images in sources(Path(chosen.data)).items():
        shares = np.array([Tones.of(counted(image)).explained for image in images()])
        figures = (f"{value:.3f}" for value in np.quantile(shares, (0, 0.05, 0.5, 0.95, 1)))
        row(name, *figures, f"{100 * np.mean(shares < limit):.0f}", len(shares))


if __name__ == "__main__":
    main()
