"""Plug and play: a prior inside a torch optimisation.

A digit is blurred and noisy. Each step follows the gradient of the data term, then restores with the prior as if what
is left were Gaussian noise of a width that falls from step to step (Venkatakrishnan, Bouman & Wohlberg, 2013). Without
the prior, gradient steps alone stop where noise begins to grow.
"""

from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageDraw
from torch.nn.functional import conv2d

from restore.torch import Restorer

ASSETS = Path(__file__).resolve().parent.parent / "assets"
STEPS, STEP, NOISE = 60, 1.9, 0.05


def main() -> None:
    clean = torch.tensor(np.asarray(Image.open(ASSETS / "digit.png").convert("L")) / 255, dtype=torch.float32)[
        None, None
    ]
    line = torch.exp(-(torch.arange(-4.0, 5) ** 2) / (2 * 1.5**2))
    kernel = (line[:, None] * line / line.sum() ** 2)[None, None]
    blur = lambda image: conv2d(image, kernel, padding=4)  # noqa: E731
    seen = blur(clean) + NOISE * torch.randn(clean.shape, generator=torch.Generator().manual_seed(0))
    prior = Restorer("tap-mnist-real", iterations=20)
    plain = restored = seen
    best = float("inf")
    for width in torch.logspace(np.log10(0.3), np.log10(NOISE), STEPS):
        plain = plain + STEP * blur(seen - blur(plain))  # the kernel is its own transpose
        best = min(best, rms(plain - clean))
        with torch.no_grad():
            restored = prior(restored + STEP * blur(seen - blur(restored)), sigma=float(width))
    print(f"error: seen {rms(seen - clean):.3f}, gradient {best:.3f} at best, with prior {rms(restored - clean):.3f}")
    save({"clean": clean, "seen": seen, "gradient": plain, "with prior": restored}, "plug_and_play.png")


def rms(error: torch.Tensor) -> float:
    return float(error.square().mean().sqrt())


def save(pictures: dict[str, torch.Tensor], path: str) -> None:
    sheet = Image.new("L", (len(pictures) * 120 - 8, 128), 255)
    for place, (name, picture) in enumerate(pictures.items()):
        levels = (255 * picture[0, 0].clamp(0, 1)).byte().numpy()
        sheet.paste(Image.fromarray(levels).resize((112, 112), Image.Resampling.NEAREST), (place * 120, 16))
        ImageDraw.Draw(sheet).text((place * 120, 2), name, 0)
    sheet.save(path)


if __name__ == "__main__":
    main()
