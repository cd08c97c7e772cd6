"""A step in a scikit-image pipeline.

A noisy page is restored before its letters are counted: flipped pixels would count as letters, too. A median filter
removes specks, but also thin strokes.
"""

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw
from skimage import io
from skimage.filters import median
from skimage.measure import label

import restore

ASSETS = Path(__file__).resolve().parent.parent / "assets"


def main() -> None:
    clean = io.imread(ASSETS / "page.png", as_gray=True) > 127
    flipped = np.random.default_rng(0).random(clean.shape) < 0.1
    noisy = clean ^ flipped
    pictures = {
        "10 % flipped": noisy,
        "median 3x3": median(noisy, np.ones((3, 3))),
        "restore": restore.denoise(noisy, model="conv-text", p=0.1),
    }
    for name, picture in pictures.items():
        shapes = label(~picture, return_num=True)[1]  # connected pieces of ink
        print(f"{name}: {shapes} connected pieces, {np.mean(picture != clean):.2%} of the pixels wrong")
    print(f"without noise: {label(~clean, return_num=True)[1]} connected pieces")
    save(pictures, "scikit_image.png")


def save(pictures: dict[str, np.ndarray], path: str) -> None:
    height, width = next(iter(pictures.values())).shape
    sheet = Image.new("L", (len(pictures) * (width + 8) - 8, height + 16), 255)
    for place, (name, picture) in enumerate(pictures.items()):
        left = place * (width + 8)
        sheet.paste(Image.fromarray(picture), (left, 16))
        ImageDraw.Draw(sheet).text((left, 2), name, 0)
    sheet.save(path)


if __name__ == "__main__":
    main()
