"""False ink at the borders of grainy pages beside that inside, as tables; and the recall of ink at borders.

    python benchmarks/choices/page_edges.py [--model PRIOR] [--count 3]

Print in a font that no prior learnt from is cut at every border of a page; the grain is white or blurred noise. The
sides leave a rest of 0, 1, 2 or 3 when divided by 4, the step of the coarsest layers. Outer pixels are those of four
rows or columns at a side. Shares are of paper away from all ink that became ink, and of ink that was found, in %.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.ndimage import binary_dilation, gaussian_filter

import restore
from benchmarks.measures.script import command_line, head, row
from restore.learning.run.card import machine_facts
from training.data.pages import Family, page
from training.data.text import families_for_tests

# Sides but for their rest, and what is cut off at each; rows and columns that count as outer, and those between that
# count as neither; and how far paper is away from ink, in pixels.
SIDES, CUT, OUTER, BETWEEN, AWAY = (200, 800), 120, 4, 4, 3

# Grey levels of ink and paper, and standard deviations of grain: of white noise, and of blurred noise.
INK, PAPER, GRAINS, BLUR = 0.25, 0.8, (0.04, 0.08, 0.12), 0.7


def grainy(families: list[Family], rest: int, count: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Pages, uint8, whose sides have a rest, their ink, and the paper away from it."""
    shape = (SIDES[0] + rest, SIDES[1] + rest)
    for number in range(count):
        rng = np.random.default_rng([rest, number])
        larger = page(families, 7, number, (shape[0] + 2 * CUT, shape[1] + 2 * CUT))
        covered = larger[CUT:-CUT, CUT:-CUT] / 255
        away = ~binary_dilation(covered > 0, iterations=AWAY)
        for grain in GRAINS:
            for blurred in (False, True):
                noise = rng.standard_normal(shape)
                noise = gaussian_filter(noise, BLUR) if blurred else noise
                grey = PAPER + (INK - PAPER) * covered + grain * noise / noise.std()
                yield np.rint(255 * grey.clip(0, 1)).astype(np.uint8), covered > 0.5, away


def places(shape: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Where the first and last rows, the first and last columns, and the inside are."""
    rows, columns = np.indices(shape)
    first, last = np.minimum(rows, columns), np.minimum(shape[0] - 1 - rows, shape[1] - 1 - columns)
    return {
        "first rows": rows < OUTER,
        "last rows": rows >= shape[0] - OUTER,
        "first columns": columns < OUTER,
        "last columns": columns >= shape[1] - OUTER,
        "inside": np.minimum(first, last) >= OUTER + BETWEEN,
    }


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--model", default="conv-scan", help="[%(default)s]")
    parser.add_argument("--count", type=int, default=3, help="pages of each rest, times six grains [%(default)s]")
    asked = parser.parse_args()
    families = families_for_tests()
    false, true = dict[int, list[float]](), dict[int, list[float]]()
    for rest in range(4):
        sums = np.zeros((5, 4))
        for grey, ink, away in grainy(families, rest, asked.count):
            _, solution = restore.denoise(grey, model=asked.model, p="scan", return_solution=True)
            found = solution.means < 0.5
            for number, where in enumerate(places(ink.shape).values()):
                counts = (found & away & where, away & where, found & ink & where, ink & where)
                sums[number] += [part.sum() for part in counts]
        false[rest], true[rest] = (
            list(100 * sums[:, column] / np.maximum(sums[:, column + 1], 1)) for column in (0, 2)
        )
    names = list(places((1, 1)))
    print(machine_facts())
    for said, shares in (("paper that became ink, %", false), ("ink that was found, %", true)):
        head(said, *names)
        for rest, values in shares.items():
            row(f"rest {rest}", *(f"{value:.3f}" for value in values))
        print()
    means = np.mean(list(false.values()), 0)
    print(f"At most {max(means[:4]) / means[4]:.1f} times as much paper as inside becomes ink at a side.")


if __name__ == "__main__":
    main()
