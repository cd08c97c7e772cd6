"""Holes of several shapes in pictures that nobody learnt from: what fills them, and what is said of it.

    python benchmarks/choices/holes.py [--seeds 11 40] [--model auto conv-art conv-text]

Holes hide some pixels of each picture of `pictures/all_kinds.py`: squares of 8, oblique and upright scratches of 3
pixels, a thin curve, and letters. The table says for each model and shape how many of the hidden pixels are wrong: of
the answer, of the prior alone in its better polarity, and of diffusion alone; of the pictures whose answer has a note
on what is expected to be wrong, how much that is and how much is wrong; and of how many pictures the answer is worse
than diffusion by more than a tenth and by three pixels.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

from collections.abc import Callable

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from benchmarks.measures.script import command_line, head, row
from benchmarks.pictures.all_kinds import PICTURES, picture
from restore.channels.damage import Damage, Observed
from restore.inference.candidates import Prior
from restore.inference.open import Engines
from restore.inference.options import Options
from restore.inference.restore import restore
from restore.inference.rivals.diffusion import Diffusion


def squares(shape: tuple[int, int], dice: np.random.Generator) -> np.ndarray:
    return (
        np.kron(dice.random((-(-shape[0] // 8), -(-shape[1] // 8))) < 0.06, np.ones((8, 8)))[: shape[0], : shape[1]] > 0
    )


def bands(angle: float, shape: tuple[int, int], dice: np.random.Generator) -> np.ndarray:
    rows, columns = np.mgrid[: shape[0], : shape[1]]
    return (rows * np.cos(angle) + columns * np.sin(angle) + 50 * dice.random()) % 50 < 3


def curve(shape: tuple[int, int], dice: np.random.Generator) -> np.ndarray:
    columns = np.arange(shape[1])
    middle = shape[0] * (0.5 + 0.35 * np.sin(columns / (15 + 20 * dice.random())))
    return np.abs(np.arange(shape[0])[:, None] - middle) < 1.5


def letters(shape: tuple[int, int], dice: np.random.Generator) -> np.ndarray:
    sheet = Image.new("1", (shape[1], shape[0]))
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(28)
    for top in range(10, shape[0] - 30, 60):
        draw.text((8 + 20 * dice.random(), top), "Sample Copy", 1, font)
    return np.asarray(sheet)


SHAPES: dict[str, Callable[[tuple[int, int], np.random.Generator], np.ndarray]] = {
    "squares of 8": squares,
    "oblique scratches": lambda shape, dice: bands(np.pi / 4 + 0.3 * dice.normal(), shape, dice),
    "upright scratches": lambda shape, dice: bands(np.pi / 2, shape, dice),
    "curve": curve,
    "letters": letters,
}


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--seeds", nargs="+", type=int, default=[11, 40], help="[%(default)s]")
    parser.add_argument("--model", nargs="+", default=["auto", "conv-art", "conv-text"], help="[%(default)s]")
    chosen = parser.parse_args()
    head(
        "model",
        "holes",
        "wrong, %",
        "prior alone",
        "diffusion",
        "expected",
        "wrong there",
        "worse than diffusion",
        "of",
        left=["holes"],
    )
    for model in chosen.model:
        engines = Engines(Options(model))
        for shape, hole in SHAPES.items():
            shares, worse = [], 0
            for seed in chosen.seeds:
                for name in PICTURES:
                    truth = picture(name, seed).astype(float)
                    if not np.isin(truth, (0, 1)).all():
                        continue
                    hidden = hole(truth.shape, np.random.default_rng(seed))
                    observed = Observed(np.where(hidden, 0.5, truth), Damage(hidden=hidden))
                    found = measured(observed, truth, engines, model)
                    worse += found[0] > 1.1 * found[2] + 3 / hidden.sum()
                    shares.append(found)
            row(model, shape, *(f"{100 * value:.2f}" for value in _means(shares)), worse, len(shares))


def measured(observed: Observed, truth: np.ndarray, engines: Engines, model: str) -> list[float]:
    """The share of hidden pixels that are wrong: of the answer, of the prior, of diffusion, and as expected."""
    hidden = observed.damage.hidden
    (answer,) = restore([observed], Options(model), engines)
    about = [note.split("%")[0].split()[-1] for note in answer.notes if "expected to be wrong" in note]
    alone = np.nan
    if model != "auto":
        alone = min(
            wrong(
                Prior(engines.for_picture(observed)[0], invert).posterior(observed, lambda share: None).means[0],
                truth,
                hidden,
            )
            for invert in (False, True)
        )
    diffused = Diffusion().posterior(observed, lambda share: None).means[0]
    expected, found = float(about[0]) / 100 if about else np.nan, wrong(answer.means, truth, hidden)
    return [found, alone, wrong(diffused, truth, hidden), expected, found if about else np.nan]


def _means(shares: list[list[float]]) -> np.ndarray:
    """The mean of each column over the pictures that have it, or NaN."""
    table = np.array(shares)
    count = (~np.isnan(table)).sum(0)
    return np.where(count, np.nansum(table, 0) / np.maximum(count, 1), np.nan)


def wrong(means: np.ndarray, truth: np.ndarray, hidden: np.ndarray | None) -> float:
    return float(np.mean(((means > 0.5) != (truth > 0.5))[hidden]))


if __name__ == "__main__":
    main()
