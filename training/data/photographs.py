"""Photographs that are installed with scikit-image, grey: what a patch prior of natural images learns from.

Tiles of 128x128 pixels, side by side. Photographs to learn from are taken at three scales, and their tiles turned and
mirrored in turn, so that no direction is preferred; those for testing are other photographs, as they are. Nothing is
downloaded: what scikit-image would fetch on first use is left out.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image

from restore.data.dataset import Images, Split
from restore.errors import InputError

SIDE = 128

# The one split of them, by file name in the folder skimage/data.
PHOTOGRAPHS_OF: dict[Split, tuple[str, ...]] = {
    "train": (
        "brick.png",
        "clock_motion.png",
        "coffee.png",
        "grass.png",
        "gravel.png",
        "moon.png",
        "motorcycle_left.png",
        "motorcycle_right.png",
        "rocket.jpg",
    ),
    "test": ("astronaut.png", "camera.png", "chelsea.png", "coins.png"),
}
SCALES = (1.0, 0.7, 0.5)

# Where Debian's mate-backgrounds, lomiri-wallpapers-16.04 and lomiri-wallpapers-20.04 install more of them.
BACKGROUNDS = Path("/usr/share/backgrounds")
FILES = ("mate/nature/*.jpg", "*_by_*.jpg")

# The least side that is kept of them: print shows no more.
LEAST_SIDE = 700


@cache
def photograph(name: str, mode: str = "L") -> Images:
    """A photograph by its file name, (H, W), or in mode "RGB" (H, W, 3).

    Raises:
        InputError: if scikit-image is not installed, or without it.
    """
    try:
        import skimage.data

        with Image.open(Path(skimage.data.__file__).parent / name) as opened:
            return np.asarray(opened.convert(mode))
    except (ImportError, OSError) as fault:
        raise InputError(f"photographs: {name} of scikit-image cannot be read; pip install scikit-image") from fault


@cache
def to_learn_from() -> tuple[Images, ...]:
    """The photographs of the training split, and those that some packages of Debian have installed, grey, (H, W) each.

    Raises:
        InputError: as `photograph` does.
    """
    found = [photograph(name) for name in PHOTOGRAPHS_OF["train"]]
    for path in sorted(path for pattern in FILES for path in BACKGROUNDS.glob(pattern)):
        with Image.open(path) as opened:
            opened.draft("L", (LEAST_SIDE, LEAST_SIDE))
            whole = opened.convert("L")
        found.append(np.asarray(whole.resize([round(LEAST_SIDE * size / min(whole.size)) for size in whole.size])))
    return tuple(found)


def _tiles(grey: Images) -> Images:
    """What of an image lies in whole tiles, (N, 128, 128)."""
    down, across = (length // SIDE for length in grey.shape)
    cut = grey[: down * SIDE, : across * SIDE].reshape(down, SIDE, across, SIDE)
    return cut.swapaxes(1, 2).reshape(-1, SIDE, SIDE)


def _at(grey: Images, scale: float) -> Images:
    height, width = (round(scale * length) for length in grey.shape)
    return np.asarray(Image.fromarray(grey).resize((width, height), Image.Resampling.LANCZOS))


def images(split: Split) -> Images:
    """The tiles of a split, (N, 128, 128)."""
    scales = SCALES if split == "train" else (1.0,)
    tiles = np.concatenate([_tiles(_at(photograph(name), scale)) for name in PHOTOGRAPHS_OF[split] for scale in scales])
    if split == "train":
        turned = [np.rot90(tile, number)[:, :: -1 if number % 8 > 3 else 1] for number, tile in enumerate(tiles)]
        tiles = np.stack(turned)
    return tiles
