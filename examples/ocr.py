"""Text recognition before and after.

Tesseract reads a page of which one pixel in ten is flipped, then the same page restored. Needs the program `tesseract`;
for whole documents in PDF, OCRmyPDF does the same with the plugin of `restore`.
"""

import subprocess
from difflib import SequenceMatcher
from pathlib import Path

import numpy as np
from PIL import Image

import restore

ASSETS = Path(__file__).resolve().parent.parent / "assets"


def read(page: Image.Image) -> str:
    """What tesseract reads; small print is enlarged for it."""
    large = page.convert("L").resize((page.width * 3, page.height * 3), Image.Resampling.BICUBIC)
    large.save("page.png", dpi=(300, 300))
    return subprocess.run(["tesseract", "page.png", "-"], capture_output=True, check=True, text=True).stdout


def main() -> None:
    clean = Image.open(ASSETS / "page.png").convert("1")
    flipped = np.random.default_rng(0).random((clean.height, clean.width)) < 0.1
    noisy = Image.fromarray(np.asarray(clean) ^ flipped)
    restored = restore.denoise(noisy)
    truth = read(clean)
    for name, page in {"10 % flipped": noisy, "restored": restored}.items():
        alike = SequenceMatcher(None, truth, read(page), autojunk=False).ratio()
        print(f"{name}: {alike:.0%} like the text of the clean page")
    sheet = Image.new("1", (2 * clean.width + 8, clean.height), 1)
    sheet.paste(noisy, (0, 0))
    sheet.paste(restored, (clean.width + 8, 0))
    sheet.save("ocr.png")


if __name__ == "__main__":
    main()
