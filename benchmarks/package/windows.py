"""What it costs to restore an image in windows: digits that are cut by them.

    python benchmarks/package/windows.py [--seed 300] [--pairs 100]

Pairs of MNIST test digits side by side, with 10 % of their pixels inverted.
"""

from __future__ import annotations

import warnings

import numpy as np

import restore
from benchmarks.measures.script import command_line, head, row
from restore.data import load

P = 0.1


def inverted(clean: np.ndarray, seed: int) -> np.ndarray:
    return clean ^ (np.random.default_rng(seed).random(clean.shape) < P)


def on_digits(model: str, pairs: int, seed: int) -> None:
    """Print the share of wrong pixels of digits alone, and of pairs side by side."""
    prior = restore.load(model)
    digits = load("mnist", split="test").images[: 2 * pairs] > prior.description.threshold
    observed = inverted(digits, seed)
    alone = prior.denoise(observed, P, force=True) != digits
    together = [prior.denoise(pair, P, force=True) for pair in side_by_side(observed)]
    wrong = np.stack(together) != side_by_side(digits)
    print(f"{model}, {pairs} pairs of digits, seed {seed}")
    head("wrong pixels, %", "digits alone", "pairs side by side")
    row(f"flip {P:g}", f"{100 * alone.mean():.3f}", f"{100 * wrong.mean():.3f}")


def side_by_side(digits: np.ndarray) -> np.ndarray:
    """Pairs of images (N, H, W): (N / 2, H, 2 W)."""
    return np.concatenate([digits[::2], digits[1::2]], axis=2)


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--pairs", type=int, default=100, help="of digits [%(default)s]")
    parser.add_argument("--seed", type=int, default=300, help="of damage [%(default)s]")
    asked = parser.parse_args()
    # Of images that a prior does not explain.
    warnings.simplefilter("ignore")
    on_digits("tap-mnist", asked.pairs, asked.seed)


if __name__ == "__main__":
    main()
