"""Ten pictures of different kinds, and their damage, for `what_for.py`: drawn by code, but for a photograph in CC0."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from skimage import data

from benchmarks.filters.unet import holes
from benchmarks.measures.scoring import inverted
from benchmarks.pictures.kinds import mask, plan, sign
from training.data.pages import page
from training.data.text import families_for_tests

ASSETS = Path(__file__).parents[2] / "assets"
FLIPS, SIGMA = 0.1, 0.1


@dataclass(frozen=True)
class Example:
    """A picture before and after damage.

    Attributes:
        title: the kind of picture.
        truth, seen: (H, W), in [0, 1]; seen is black in holes.
        command: what restores `NAME.png`.
        hidden: which pixels are holes, booleans (H, W), if any are.
        part: the rows and columns that are shown, of a large picture.
    """

    title: str
    truth: np.ndarray
    seen: np.ndarray
    command: str
    hidden: np.ndarray | None = None
    part: tuple[slice, slice] = (slice(None), slice(None))

    @property
    def grey(self) -> bool:
        """Whether it is to come back in grey levels."""
        return bool(((self.truth > 0) & (self.truth < 1)).any())

    @property
    def flipped(self) -> bool:
        """Whether it is damaged by flips alone."""
        return self.hidden is None and set(np.unique(self.seen)) <= {0, 1}


def example(name: str) -> Example:
    """The picture of a kind, one of `EXAMPLES`."""
    return EXAMPLES[name](name)


def kept(name: str) -> np.ndarray:
    """An example image of the repository, in [0, 1]."""
    return np.asarray(Image.open(ASSETS / f"{name}.png").convert("L")) / 255


def printed() -> np.ndarray:
    """The page of which assets/page-noisy.png and page-scan.png are made (see assets/draw.py)."""
    return page(families_for_tests(), 17, 0, (200, 320)) <= 127


def under_flips(title: str, name: str, truth: np.ndarray, *part: slice) -> Example:
    seen = inverted([truth], FLIPS, seed=1)[0].ink
    return Example(title, truth, seen, f"restore denoise {name}.png", part=(*part, slice(None), slice(None))[:2])


def digit(name: str) -> Example:
    return Example("digit, 28x28", kept("digit"), kept("digit-noisy"), f"restore denoise {name}.png")


def print_(name: str) -> Example:
    shown = slice(0, 110), slice(0, 136)
    return Example("page of print", printed(), kept("page-noisy"), f"restore denoise {name}.png", part=shown)


def scan(name: str) -> Example:
    shown = slice(0, 110), slice(0, 136)
    return Example("scan in grey", printed(), kept("page-scan"), f"restore denoise {name}.png", part=shown)


def segmented(name: str) -> Example:
    return under_flips("mask of a segmentation", name, mask(2), slice(20, 156), slice(40, 176))


def code(name: str) -> Example:
    return under_flips("square modules, as in a QR code", name, kept("code") > 0.5, slice(0, 136), slice(0, 136))


def drawing(name: str) -> Example:
    """A bicycle in lines of two pixels."""
    sheet = Image.new("1", (200, 136), 1)
    ink = ImageDraw.Draw(sheet)
    for x in (50, 150):
        ink.ellipse((x - 36, 54, x + 36, 126), outline=0, width=2)
        ink.ellipse((x - 4, 86, x + 4, 94), outline=0, width=2)
        for angle in np.arange(0, np.pi, np.pi / 6):
            across, down = 34 * np.cos(angle), 34 * np.sin(angle)
            ink.line((x - across, 90 - down, x + across, 90 + down), 0)
    ink.line(((50, 90), (78, 44), (132, 44), (92, 90), (50, 90)), 0, 2)
    ink.line(((92, 90), (73, 34)), 0, 2)
    ink.line(((150, 90), (129, 26), (144, 22)), 0, 2)
    ink.line(((62, 32), (84, 32)), 0, 4)
    ink.ellipse((84, 82, 100, 98), outline=0, width=2)
    ink.line(((84, 106), (100, 74)), 0, 2)
    return under_flips("line drawing", name, np.asarray(sheet), slice(16, 130), slice(64, 200))


def icon(name: str) -> Example:
    return under_flips("icon, 64x64", name, sign("⚙"))


def floors(name: str) -> Example:
    return under_flips("floor plan", name, plan(0), slice(8, 144), slice(118, 254))


def photograph(name: str) -> Example:
    """The camera man of scikit-image, which is CC0; the noise is cut off at black and white, as in a file."""
    truth = data.camera() / 255
    seen = (truth + SIGMA * np.random.default_rng(0).standard_normal(truth.shape)).clip(0, 1)
    command = f"restore denoise {name}.png --sigma {SIGMA:g}"
    return Example("grey photograph", truth, np.rint(255 * seen) / 255, command, part=(slice(60, 196), slice(180, 316)))


def form(name: str) -> Example:
    """Boxes, rules and words, with holes of 8x8 over a tenth of it."""
    sheet = Image.new("L", (272, 208), 255)
    ink, (regular, _, bold, _) = ImageDraw.Draw(sheet), families_for_tests()[0]
    ink.text((12, 8), "Order form", 0, ImageFont.truetype(bold, 20))
    words = ImageFont.truetype(regular, 13)
    for top, word in ((42, "Name"), (68, "Street"), (94, "City")):
        ink.text((12, top + 2), word, 0, words)
        ink.rectangle((64, top, 258, top + 18), outline=0)
    for row in range(4):
        ink.line((12, 126 + 18 * row, 258, 126 + 18 * row), 0, 2 if row in (0, 3) else 1)
    for column, word in ((12, "Item"), (130, "Pieces"), (196, "Price")):
        ink.line((column, 126, column, 181), 0)
        ink.text((column + 6, 129), word, 0, words)
    ink.line((258, 126, 258, 181), 0)
    for left, word in ((12, "by post"), (96, "collected")):
        ink.rectangle((left, 190, left + 11, 201), outline=0, width=2)
        ink.text((left + 18, 188), word, 0, words)
    truth = np.asarray(sheet) > 127
    hidden = holes(np.random.default_rng(0), truth.shape)
    command = f"restore complete {name}.png --mask holes.png"
    return Example("form with holes", truth, truth & ~hidden, command, hidden, (slice(98, 208), slice(0, 136)))


EXAMPLES: dict[str, Callable[[str], Example]] = {
    "digit": digit,
    "page": print_,
    "scan": scan,
    "mask": segmented,
    "code": code,
    "drawing": drawing,
    "icon": icon,
    "plan": floors,
    "photograph": photograph,
    "form": form,
}


def colours(name: str) -> tuple[np.ndarray, str]:
    """A photograph in colour: the astronaut of scikit-image, which is in the public domain."""
    return data.astronaut(), f"restore denoise {name}.png"


def noise(name: str) -> tuple[np.ndarray, str]:
    return np.random.default_rng(0).random((128, 128)) < 0.5, f"restore denoise {name}.png"


def untold(name: str) -> tuple[np.ndarray, str]:
    """A photograph in grey, without a word on its noise."""
    return photograph(name).seen, f"restore denoise {name}.png"


def dithered(name: str) -> tuple[np.ndarray, str]:
    """A photograph in dots of black and white: `camera` of scikit-image."""
    grey = data.camera()[::2, ::2] / 255
    return grey > np.random.default_rng(0).random(grey.shape), f"restore denoise {name}.png"


# Pictures and commands that are refused, by name.
REFUSED: dict[str, Callable[[str], tuple[np.ndarray, str]]] = {
    "colours": colours,
    "grey": untold,
    "noise": noise,
    "dithered": dithered,
}
