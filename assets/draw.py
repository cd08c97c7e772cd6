"""Draws the example images in this folder: `python assets/draw.py`.

It takes the package, and for the page the fonts that test pages are drawn in.

A digit is written with a round pen along Bézier curves and prepared as those of MNIST are: white on black, 28x28
pixels, inside a box of 20x20, its centre of mass in the middle. Noise comes from numpy with a fixed seed.

    digit.png                               the digit, black and white
    digit-noisy.png, digit-very-noisy.png   with 10 % and 30 % of its pixels inverted
    digit-torn.png, digit-hole.png          with a patch of 10x10 painted black, and that patch in white
    digit-patched.png                       with a patch of 12x12 painted black, for a prior that sees no mask
    digit-large.png                         the digit at 56x56, in grey levels
    digit-large-torn.png, digit-large-hole.png
    page.png                                a part of a page of printed text, black on white
    page-noisy.png                          printed text, black on white, with 10 % of its pixels inverted
    page-spots.png, page-dots.png           the same page with dirt, and with a band of dots behind the print
    page-rules.png                          with rules across the print
    page-scan.png                           the same page scanned: shaded, blurred, and with noise of 0.1
    code.png, code-noisy.png                square modules, as in a QR code, and with 10 % of its pixels inverted
    mask-noisy.png                          a mask of cells, white on black, with 10 % of its pixels inverted
    silhouette.png                          a fish, black on white as the silhouettes of Caltech-101 are
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw
from scipy.ndimage import gaussian_filter

from training.data.marks import MARKS
from training.data.pages import page
from training.data.text import families_for_tests

HERE = Path(__file__).parent
SIDE = 28
ENLARGED = 2

# Points drawn per pixel of the finest picture, in each direction; averaging over them gives smooth edges.
FINE = 16

# Cubic Bézier curves, four (x, y) points each, in pixels of the small picture: a three, from its upper left end.
STROKES = (
    ((9.0, 8.6), (10.2, 5.2), (18.6, 3.4), (18.6, 8.4)),
    ((18.6, 8.4), (18.4, 11.4), (15.4, 13.0), (12.2, 13.4)),
    ((12.2, 13.4), (17.0, 12.8), (19.6, 14.8), (18.8, 18.2)),
    ((18.8, 18.2), (17.6, 23.4), (9.6, 24.2), (7.6, 20.2)),
)
PEN = 1.25  # radius

# Upper left corner (row, column) and side of the patches.
PATCH = (8, 12, 10)
LARGER_PATCH = (11, 10, 12)

# Size of the part of the page that the local page opens with.
PART = (120, 200)


def curve(points: tuple[tuple[float, float], ...], count: int = 400) -> np.ndarray:
    """Points along a cubic Bézier curve, shape (count, 2)."""
    t = np.linspace(0, 1, count)[:, None]
    a, b, c, d = np.asarray(points)
    return (1 - t) ** 3 * a + 3 * (1 - t) ** 2 * t * b + 3 * (1 - t) * t**2 * c + t**3 * d


def written(side: int, shift: np.ndarray) -> np.ndarray:
    """The digit as grey values in [0, 1], shape (side, side), every stroke moved by `shift` (x, y)."""
    canvas = Image.new("L", (side * FINE, side * FINE))
    pen = ImageDraw.Draw(canvas)
    scale = side * FINE / SIDE
    for stroke in STROKES:
        for x, y in (curve(stroke) + shift) * scale:
            # A hand presses harder on the way down the page.
            radius = scale * PEN * (0.92 + 0.16 * y / (side * FINE))
            pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=255)
    return np.asarray(canvas).reshape(side, FINE, side, FINE).mean((1, 3)) / 255


def centring() -> np.ndarray:
    """The shift (x, y) that brings the digit's centre of mass into the middle."""
    grey = written(SIDE, np.zeros(2))
    middle = np.arange(SIDE) + 0.5
    return SIDE / 2 - np.array([grey.sum(0) @ middle, grey.sum(1) @ middle]) / grey.sum()


def flipped(image: np.ndarray, p: float, seed: int) -> np.ndarray:
    """A black and white image with each pixel inverted with probability p."""
    return image ^ (np.random.default_rng(seed).random(image.shape) < p)


def noisy(image: np.ndarray, sigma: float, seed: int) -> np.ndarray:
    """Grey values with Gaussian noise of a standard deviation, cut off at black and white."""
    return (image + sigma * np.random.default_rng(seed).standard_normal(image.shape)).clip(0, 1)


def hole(enlarged: int = 1, patch: tuple[int, int, int] = PATCH) -> np.ndarray:
    """A patch: True where pixels are hidden."""
    hidden = np.zeros((SIDE, SIDE), bool)
    row, column, side = patch
    hidden[row : row + side, column : column + side] = True
    return hidden.repeat(enlarged, 0).repeat(enlarged, 1)


def fish() -> np.ndarray:
    """A silhouette as grey values in [0, 1], black on white, shape (SIDE, SIDE)."""
    canvas = Image.new("L", (SIDE * FINE, SIDE * FINE), 255)
    pen = ImageDraw.Draw(canvas)
    pen.ellipse([FINE * place for place in (2.0, 7.5, 21.0, 20.5)], fill=0)
    pen.polygon([FINE * place for place in (18.0, 14.0, 26.0, 7.0, 24.5, 14.0, 26.0, 21.0)], fill=0)
    pen.polygon([FINE * place for place in (9.0, 9.0, 13.0, 3.5, 17.0, 10.0)], fill=0)
    return np.asarray(canvas).reshape(SIDE, FINE, SIDE, FINE).mean((1, 3)) / 255


def cells(shape: tuple[int, int], count: int, seed: int) -> np.ndarray:
    """A mask of round cells, some of which overlap: True inside."""
    dice = np.random.default_rng(seed)
    down, across = np.indices(shape)
    centres, radii, turns = (
        dice.uniform(0, shape, (count, 2)),
        dice.uniform(7, 14, (count, 2)),
        dice.uniform(0, np.pi, count),
    )
    y, x = down[..., None] - centres[:, 0], across[..., None] - centres[:, 1]
    along, beside = x * np.cos(turns) + y * np.sin(turns), y * np.cos(turns) - x * np.sin(turns)
    return np.any(np.hypot(along / radii[:, 0], beside / radii[:, 1]) < 1, -1)


def code() -> np.ndarray:
    """Finders, timing, and modules at random, five pixels each: what a QR code looks like, but not to be read."""
    modules = np.random.default_rng(0).random((25, 25)) < 0.5
    modules[6, ::2], modules[6, 1::2], modules[::2, 6], modules[1::2, 6] = True, False, True, False
    ring = np.maximum(*np.abs(np.indices((9, 9)) - 4))
    finder = (ring != 2) & (ring < 4)
    modules[:8, :8], modules[:8, -8:], modules[-8:, :8] = finder[1:, 1:], finder[1:, :-1], finder[:-1, 1:]
    return ~np.pad(modules, 2).repeat(5, 0).repeat(5, 1)


def scanned(white: np.ndarray) -> np.ndarray:
    """A page, black on white, in light that falls off towards a corner, slightly blurred and noisy; in [0, 1]."""
    down, across = (np.linspace(0, 1, size) for size in white.shape)
    light = 0.95 - 0.45 * down[:, None] * across
    return noisy(light * (0.2 + 0.8 * gaussian_filter(white.astype(float), 0.6, mode="nearest")), 0.1, seed=3)


def save(name: str, values: np.ndarray) -> None:
    """Write values in [0, 1] as an 8-bit grey PNG."""
    Image.fromarray(np.rint(255 * values.astype(float)).astype(np.uint8)).save(HERE / name, optimize=True)


def main() -> None:
    shift = centring()
    digit = written(SIDE, shift) > 0.5
    large = written(SIDE * ENLARGED, shift)
    save("digit.png", digit)
    save("digit-noisy.png", flipped(digit, 0.1, seed=2))
    save("digit-very-noisy.png", flipped(digit, 0.3, seed=2))
    save("digit-torn.png", digit & ~hole())
    save("digit-hole.png", hole())
    save("digit-grey-noisy.png", noisy(written(SIDE, shift), 0.3, seed=2))
    save("digit-patched.png", digit & ~hole(patch=LARGER_PATCH))
    save("digit-large.png", large)
    save("digit-large-torn.png", np.where(hole(ENLARGED), 0, large))
    save("digit-large-hole.png", hole(ENLARGED))
    printed = ~(page(families_for_tests(), 17, 0, (200, 320)) > 127)
    save("page.png", printed[: PART[0], : PART[1]])
    save("page-noisy.png", flipped(printed, 0.1, seed=2))
    for name, kind, seed in (("page-spots", "specks", 5), ("page-dots", "dots", 2), ("page-rules", "rules", 9)):
        save(f"{name}.png", ~MARKS[kind](~printed, np.random.default_rng(seed), 2 if kind == "rules" else 3)[0])
    save("page-scan.png", scanned(printed))
    save("code.png", code())
    save("code-noisy.png", flipped(code(), 0.1, seed=2))
    save("mask-noisy.png", flipped(cells(PART, 14, seed=1), 0.1, seed=2))
    save("silhouette.png", fish() > 0.5)


if __name__ == "__main__":
    main()
