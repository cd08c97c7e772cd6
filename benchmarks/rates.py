"""Rates of white and of black flips that `--p auto` finds on drawn pages and drawings, beside the true ones.

python benchmarks/rates.py
"""

from __future__ import annotations

import argparse

import numpy as np

from restore.inference.choose import choose
from restore.inference.damage import Damage, Observed, Rates
from restore.inference.open import open_engine
from restore.inference.tiles.blend import Prior
from training.data.drawings import drawing
from training.data.pages import page
from training.data.text import families_to_learn_from

# Of white pixels that turn black, and of black ones that turn white.
RATES = ((0.2, 0.2), (0.05, 0.05), (0.0, 0.1), (0.02, 0.2), (0.1, 0.0), (0.2, 0.05), (0.15, 0.01))
CLOSE = 0.02


def text(number: int) -> np.ndarray:
    return page(families_to_learn_from(), 91, number, (240, 320)) > 127


def four_drawings(number: int) -> np.ndarray:
    numbers = 4 * number + np.arange(4).reshape(2, 2)
    return np.block([[drawing(9, each) for each in row] for row in numbers.tolist()]) > 127


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pictures", type=int, default=3, help="of each kind [%(default)s]")
    asked = parser.parse_args()
    print("| prior | white pixels, % | true rates | found |\n| --- | ---: | --- | --- |")
    close, count = 0, 0
    for model, draw in (("tap-text", text), ("tap-shapes", four_drawings)):
        engine = open_engine(model)
        for number in range(1, 1 + asked.pictures):
            white = draw(number)
            dice = np.random.default_rng(number).random(white.shape)
            for rates in RATES:
                seen = (white ^ (dice < np.where(white, *rates))).astype(np.float64)
                (choice,) = choose([Observed(seen, Damage("auto"))], [Prior(engine)], grey=False)
                p = choice.damage.p
                found = np.array(p if isinstance(p, Rates) else (p, p), np.float64)
                close += int((abs(found - rates) <= CLOSE).all())
                count += 1
                said = " | ".join(
                    ", ".join(f"{rate:.3g}" for rate in pair) for pair in (rates, found.round(3).tolist())
                )
                print(f"| `{model}` | {100 * white.mean():.0f} | {said} |", flush=True)
    print(f"\n{close} of {count} pairs are within {CLOSE}.")


if __name__ == "__main__":
    main()
