"""Pictures with holes, from windows around these alone and from whole parts: processor time, and pixels that differ.

    python benchmarks/package/holes_cost.py [--seeds 5]

The pictures are the kinds of `pictures/all_kinds.py` that are black and white, and pages in fonts that no prior has
learnt. Their holes are specks, lines, large blocks and a torn edge, filled by `conv-text` and
`conv-art` in both polarities in turn. Bits differ where any of a pixel's mean or of its variance
does, colours where its mean is on the other side of a half.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import cycle

import numpy as np

from benchmarks.measures.script import command_line, head, row
from benchmarks.measures.timing import on_processors
from benchmarks.pictures.all_kinds import PICTURES, picture
from restore.channels.damage import Damage, Observed
from restore.inference.candidates import Prior
from restore.inference.engine import Posterior
from restore.inference.open import open_engine
from restore.inference.tiles import blend
from restore.learning.run.card import machine_facts
from training.data.pages import page
from training.data.text import families_for_tests

PAGE = (400, 300)


def specks(shape: tuple[int, int], dice: np.random.Generator) -> np.ndarray:
    hole = np.zeros(shape, bool)
    count = max(3, shape[0] * shape[1] // 20_000)
    for top, left, side in zip(*(dice.integers(0, most, count) for most in (*shape, 7)), strict=True):
        hole[top : top + side, left : left + side] = True
    return hole


def lines(shape: tuple[int, int], dice: np.random.Generator) -> np.ndarray:
    hole = np.zeros(shape, bool)
    hole[dice.integers(0, shape[0]) :][:2] = True
    hole[:, dice.integers(0, shape[1]) :][:, :1] = True
    return hole


def blocks(shape: tuple[int, int], dice: np.random.Generator) -> np.ndarray:
    hole = np.zeros(shape, bool)
    top, left = (dice.integers(0, size - 60) for size in shape)
    hole[top : top + 50, left : left + 60] = True
    return hole


def torn(shape: tuple[int, int], dice: np.random.Generator) -> np.ndarray:
    edge = 8 + dice.integers(-1, 2, shape[0]).cumsum().clip(-8, 60)
    return np.arange(shape[1]) < edge[:, None]


HOLES: dict[str, Callable[[tuple[int, int], np.random.Generator], np.ndarray]] = {
    "specks": specks,
    "lines": lines,
    "blocks": blocks,
    "torn edge": torn,
}


def drawn(seeds: int) -> Iterator[np.ndarray]:
    """Pictures in black and white, True for white."""
    families = families_for_tests()
    for seed in range(seeds):
        for name in PICTURES:
            one = picture(name, seed)
            if one.dtype == bool:
                yield one
        for number in range(len(PICTURES)):
            yield page(families, seed, number, PAGE) < 128


def timed(prior: Prior, seen: Observed) -> tuple[Posterior, float]:
    start = time.process_time()
    return prior.posterior(seen, lambda share: None), time.process_time() - start


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="of all kinds, and of as many pages [%(default)s]")
    chosen = parser.parse_args()
    on_processors(1)
    engines = [open_engine(name, engine="onnx") for name in ("conv-text", "conv-art")]
    priors = cycle([Prior(engine, invert) for invert in (False, True) for engine in engines])
    figures = {name: np.zeros(8) for name in HOLES}
    reach_of = blend.reach_of
    for number, white in enumerate(drawn(chosen.seeds)):
        name = list(HOLES)[number % len(HOLES)]
        shape, prior = (white.shape[0], white.shape[1]), next(priors)
        hidden = HOLES[name](shape, np.random.default_rng(number))
        seen = Observed(white.astype(float), Damage(hidden=hidden))
        blend.reach_of = reach_of
        windows, some = timed(prior, seen)
        blend.reach_of = lambda header, damage: 0
        parts, all_ = timed(prior, seen)
        differs = (windows.means != parts.means) | (windows.variances != parts.variances)
        colours = (windows.means > 0.5) != (parts.means > 0.5)
        figures[name] += 1, white.size, hidden.sum(), some, all_, differs.sum(), colours.sum(), 0
        figures[name][-1] = max(figures[name][-1], np.abs(windows.means - parts.means).max())
    head(
        "holes",
        "pictures",
        "megapixels",
        "hidden, %",
        "windows, CPU-s",
        "parts, CPU-s",
        "bits differ",
        "colours differ",
        "most by",
    )
    for name, (count, pixels, hidden_, some, all_, wrong, turned, most) in figures.items():
        share = f"{100 * hidden_ / pixels:.2f}"
        row(
            name,
            int(count),
            f"{pixels / 1e6:.1f}",
            share,
            f"{some:.1f}",
            f"{all_:.1f}",
            int(wrong),
            int(turned),
            f"{most:.0e}",
        )
    print(machine_facts())


if __name__ == "__main__":
    main()
