"""How well the probabilities of published priors fit, as they are and without their temperature, as a table.

    python benchmarks/peers/calibration.py --seed 900

New drawings for `conv-art`, pages in fonts for tests for `conv-text`, and the first test digits for `conv-mnist`,
all told the level. The loss is minus the mean log2 of the probability of what is true, in bits per 1,000 pixels; the
calibration error is the mean distance of probability and share of white, over 15 bins weighted by their pixels. In
holes only hidden pixels count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch

import restore
from benchmarks.choices.families import damaged
from benchmarks.measures.scoring import HOLES
from benchmarks.measures.script import command_line, head, row
from benchmarks.peers.digits import calibration
from benchmarks.pictures.kinds import FAMILIES
from restore import zoo
from restore.channels.values import log_odds_of, probability_of
from restore.data import load
from training.data.drawings import drawings

LEVELS = ("0.05", "0.1", "0.2", "0.3", HOLES)


def digits(count: int, _: int) -> list[np.ndarray]:
    return list(load("mnist", split="test").images[:count] > 127)


def pages(count: int, seed: int) -> list[np.ndarray]:
    return [FAMILIES["pages"](seed + number) for number in range(count)]


def drawn(count: int, seed: int) -> list[np.ndarray]:
    return list(drawings(count, seed) > 127)


# What each prior restores, and how many of them.
PICTURES: Mapping[str, tuple[Callable[[int, int], list[np.ndarray]], int]] = {
    "conv-art": (drawn, 26),
    "conv-text": (pages, 6),
    "conv-mnist": (digits, 300),
}


def told(name: str, clean: Sequence[np.ndarray], damage: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The log-odds of white of the pixels that count, and whether they are white."""
    odds, truth = [], []
    for picture, seen in zip(clean, damaged(clean, damage, seed), strict=True):
        if seen.hidden.any():
            _, found = restore.complete(seen.ink, seen.hidden, model=name, return_solution=True)
        else:
            _, found = restore.denoise(seen.ink, p=seen.p, model=name, return_solution=True)
        counts = seen.hidden if seen.hidden.any() else ~seen.hidden
        odds.append(log_odds_of(found.means.reshape(picture.shape).astype(float))[counts])
        truth.append(picture[counts])
    return np.concatenate(odds), np.concatenate(truth)


def loss(odds: np.ndarray, white: np.ndarray) -> float:
    return 1000 * float(np.logaddexp(0, np.where(white, -odds, odds)).mean() / np.log(2))


def error(odds: np.ndarray, white: np.ndarray) -> float:
    return calibration(torch.from_numpy(probability_of(odds)), torch.from_numpy(white))[0]


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("models", nargs="*", choices=(*PICTURES, []), help="[all]")
    parser.add_argument("--seed", type=int, default=900, help="of pictures and damage [%(default)s]")
    asked = parser.parse_args()
    head("prior", "damage", "loss", "at temperature 1", "calibration error", "at temperature 1", left=("damage",))
    for name in asked.models or PICTURES:
        draw, count = PICTURES[name]
        temperature, clean = zoo.describe(zoo.find(name)).temperature, draw(count, asked.seed)
        for damage in LEVELS:
            odds, white = told(name, clean, damage, asked.seed)
            both = (odds, temperature * odds)
            losses, errors = ([of(each, white) for each in both] for of in (loss, error))
            row(
                f"{name}, {temperature:g}",
                damage,
                *(f"{each:.1f}" for each in losses),
                *(f"{each:.4f}" for each in errors),
            )


if __name__ == "__main__":
    main()
