"""What it costs to restore an image in windows: errors near the borders of windows, and digits that are cut by them.

    python benchmarks/windows.py [--pages 2] [--seed 300] [--pairs 100]

Pages of 600x800 pixels in fonts that no prior learns from, and pairs of MNIST test digits side by side, all with 10 %
of their pixels inverted. Aim: near borders at most 1.1 times as many wrong pixels as elsewhere.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

import restore
from restore.data import load
from restore.inference.tiles.grid import Axis, Cover
from restore.zoo.description import Description
from training.data.pages import page
from training.data.text import families_for_tests

P = 0.1
NEAR = 2
AIM = 1.1


def near_borders(axis: Axis) -> np.ndarray:
    """Which pixels of an axis lie within `NEAR` of where a window begins or ends, inside the image."""
    begins = np.arange(axis.count) * axis.stride - axis.before
    borders = np.concatenate([begins, begins + axis.window])
    inside = borders[(borders > 0) & (borders < axis.size)]
    # The border b lies between the pixels b - 1 and b.
    away = np.arange(axis.size)[:, None] + 0.5 - inside
    return (np.abs(away) < NEAR).any(1)


def seams(shape: tuple[int, int], header: Description) -> np.ndarray:
    """Which pixels of an image lie near a border, along either axis."""
    cover = Cover.of(shape, header.image_shape, header.tiling.overlap)
    return near_borders(cover.down)[:, None] | near_borders(cover.across)


def inverted(clean: np.ndarray, seed: int) -> np.ndarray:
    return clean ^ (np.random.default_rng(seed).random(clean.shape) < P)


def on_pages(model: str, count: int, seed: int) -> None:
    """Print the share of wrong pixels near borders, and elsewhere."""
    prior, families = restore.load(model), families_for_tests()
    clean = np.stack([page(families, seed, number) > 127 for number in range(count)])
    observed = inverted(clean, seed)
    wrong = np.stack([prior.denoise(each, P) for each in observed]) != clean
    near = seams(clean.shape[1:], prior.description)
    here, there = wrong[:, near].mean(), wrong[:, ~near].mean()
    print(f"{model}, {count} pages, seed {seed}: {100 * wrong.mean():.3f} % wrong;")
    print(f"  {100 * here:.3f} % within {NEAR} pixels of borders, {100 * there:.3f} % elsewhere;", end=" ")
    print(f"ratio {here / there:.3f}, aim: at most {AIM}", flush=True)


def on_digits(model: str, pairs: int, seed: int) -> None:
    """Print the share of wrong pixels of digits alone, and of pairs side by side."""
    prior = restore.load(model)
    digits = load("mnist", split="test").images[: 2 * pairs] > prior.description.threshold
    observed = inverted(digits, seed)
    alone = prior.denoise(observed, P, force=True) != digits
    together = [prior.denoise(pair, P, force=True) for pair in side_by_side(observed)]
    wrong = np.stack(together) != side_by_side(digits)
    print(f"{model}, {pairs} pairs of digits, seed {seed}: {100 * alone.mean():.3f} % of the digits alone are wrong,")
    print(f"  {100 * wrong.mean():.3f} % of pairs of them side by side")


def side_by_side(digits: np.ndarray) -> np.ndarray:
    """Pairs of images (N, H, W): (N / 2, H, 2 W)."""
    return np.concatenate([digits[::2], digits[1::2]], axis=2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=2, help="[%(default)s]")
    parser.add_argument("--pairs", type=int, default=100, help="of digits [%(default)s]")
    parser.add_argument("--seed", type=int, default=300, help="of pages and damage [%(default)s]")
    asked = parser.parse_args()
    # Of images that a prior does not explain.
    warnings.simplefilter("ignore")
    if asked.pages:
        on_pages("tap-text", asked.pages, asked.seed)
    if asked.pairs:
        on_digits("tap-mnist", asked.pairs, asked.seed)


if __name__ == "__main__":
    main()
