"""Families of binary pictures after flips: the level that is found, and what is left wrong without and with it, in %.

    python benchmarks/choices/levels_found.py --pictures 4 --first 60

Pages are given to `conv-text` and all others to `conv-art` where the level is told. `found` is the geometric mean of
found over true levels. Nothing is refused.
"""

from __future__ import annotations

import warnings

import numpy as np

import restore
from benchmarks.choices.families import FLIPS, damaged, with_prior, wrong_of_each
from benchmarks.measures.script import command_line, head, row
from benchmarks.pictures.kinds import FAMILIES

# A level at which little is left.
STRONG = 0.3

SHOWN = ("pages", "masks", "strokes", "icons", "plans")


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--pictures", type=int, default=4, help="of each family [%(default)s]")
    parser.add_argument("--first", type=int, default=60, help="number of the first, and seed [%(default)s]")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    head("family", "flips", "found", "wrong, untold", "wrong, told")
    for family in SHOWN:
        clean = [np.asarray(FAMILIES[family](asked.first + number)) for number in range(asked.pictures)]
        prior = "conv-text" if family == "pages" else "conv-art"
        for p in (*FLIPS, STRONG):
            seen = damaged(clean, str(p), asked.first)
            untold, solutions = zip(
                *(restore.denoise(each.ink, return_solution=True, force=True) for each in seen), strict=True
            )
            found = [solution.level.value for solution in solutions]
            true = [(one != each.ink).mean() for one, each in zip(clean, seen, strict=True)]
            answers = (untold, [with_prior(prior, each, p) for each in seen])
            wrong = (f"{100 * np.mean(wrong_of_each(clean, seen, each)):.3f}" for each in answers)
            row(family, str(p), f"{np.exp(np.log(np.divide(found, true)).mean()):.2f}", *wrong)


if __name__ == "__main__":
    main()
