"""One's own glyphs: a prior learnt in a minute, then holes filled.

Runes of an invented alphabet stand for yours: a few hundred small pictures of the same kind are enough. The prior is
trained on some, and fills holes in others that it has not seen.
"""

import numpy as np
from PIL import Image, ImageDraw

import restore


def rune(dice: np.random.Generator) -> np.ndarray:
    """A stem with two or three twigs, 16x16, white on black, drawn by hand: no two are alike."""
    image = Image.new("1", (16, 16))
    pen = ImageDraw.Draw(image)
    stem = 4 + dice.integers(3)
    pen.line((stem, 1, stem, 14), 1, 2)
    for start in dice.choice([1, 4, 7, 10], dice.integers(2, 4), replace=False):
        pen.line((stem, start, stem + 7, start + dice.integers(3, 6)), 1, 2)
    return np.asarray(image)


def main() -> None:
    dice = np.random.default_rng(0)
    runes = np.stack([rune(dice) for _ in range(800)])
    prior = restore.train(runes[:-40], method="tap", hidden=60, minutes=0.7)
    test = runes[-40:]
    holes = np.zeros(test.shape, bool)
    for hole, (top, left) in zip(holes, dice.integers(2, 9, (40, 2)), strict=True):
        hole[top : top + 5, left : left + 5] = True
    torn = test & ~holes
    whole = prior.complete(torn, holes)
    wrong, left = np.mean(whole[holes] != test[holes]), np.mean(test[holes])
    print(f"{wrong:.1%} of the hidden pixels wrong; {left:.1%} if they are left black")
    rows = [
        np.concatenate(list(np.pad(row[:12], ((0, 0), (1, 1), (1, 1)), constant_values=True)), 1)
        for row in (torn, whole, test)
    ]
    sheet = np.concatenate(rows)
    Image.fromarray(sheet).convert("L").resize((sheet.shape[1] * 4, sheet.shape[0] * 4), 0).save("own_glyphs.png")


if __name__ == "__main__":
    main()
