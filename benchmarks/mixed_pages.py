"""Pages of text with a figure, repaired by either prior alone and without options; wrong pixels in %, as a table.

    python benchmarks/mixed_pages.py

Pages and figures are those of `kinds_of_pictures.py`. A prior alone is told the level of the flips, which `restore`
without options finds. The last columns are wrong pixels of the figure and of the rest.
"""

from __future__ import annotations

import warnings

import numpy as np
from kinds_of_pictures import FAMILIES
from scoring import inverted, row

import restore
from restore.learning.run.card import machine_facts

# Figures by family and number, each on the page of the same number.
FIGURES = (("masks", 4), ("plans", 5), ("masks", 6), ("icons", 5))
FLIPS = (0.05, 0.1, 0.2)

# Of the part of a figure that is shown, and where on its page it begins.
SHOWN, TOP, LEFT = (160, 200), 80, 100

PRIORS = ("tap-text", "conv-shapes")


def page_with(family: str, number: int) -> tuple[np.ndarray, np.ndarray]:
    """A page with a figure, and where the figure is, (H, W) each."""
    page, figure = FAMILIES["pages"](number).copy(), FAMILIES[family](number)[: SHOWN[0], : SHOWN[1]]
    where = np.zeros(page.shape, bool)
    where[TOP : TOP + figure.shape[0], LEFT : LEFT + figure.shape[1]] = True
    page[where] = figure.ravel()
    return page, where


def share(wrong: np.ndarray) -> str:
    return f"{100 * wrong.mean():.2f}"


def main() -> None:
    warnings.simplefilter("ignore")
    print(machine_facts())
    row("figure", "flip", *PRIORS, "without options", "restored with", "its figure", "its text")
    row("---", "---:", *["---:"] * len(PRIORS), "---:", "---", "---:", "---:")
    for family, number in FIGURES:
        page, where = page_with(family, number)
        for p in FLIPS:
            (seen,) = inverted([page], p, number)
            alone = [restore.denoise(seen.ink, prior, p, force=True) != page for prior in PRIORS]
            found, solution = restore.denoise(seen.ink, return_solution=True)
            wrong = found != page
            row(
                f"{family} {number}",
                f"{p:g}",
                *map(share, alone),
                share(wrong),
                solution.model,
                share(wrong[where]),
                share(wrong[~where]),
            )


if __name__ == "__main__":
    main()
