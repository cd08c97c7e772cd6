"""By how much independent pixels explain images better than priors do, and which images are refused for it.

    python benchmarks/explained.py [--pages 8] [--faces 200] [--seed 400]

The margins of `restore.inference.explained` rest on these figures: `OFF_BEYOND` has to lie above what text is behind
under the prior of text, and below what other pages are behind under a prior that does not know them. The sample of a
page decides. Letters are in fonts that priors learn from, for margins are chosen by them. Where a figure is negative
the prior is ahead.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from unet import families_to_learn_from

import restore
from restore.channels import GaussianNoise
from restore.data import load
from restore.inference.damage import Damage
from restore.inference.explained import FORGIVEN, OFF_BEYOND, Observed, independent
from restore.inference.pictures import PictureEngine, PictureSolver, restore_pictures
from restore.inference.windows.choosing.sampling import sample_of
from training.data.pages import HEIGHT, WIDTH, page

FLIPS = (0.05, 0.1, 0.2, 0.3)
SIGMAS = (0.1, 0.2)

# Pixels between marks on a page.
GAP = 4


@dataclass(frozen=True)
class Found:
    """How far a prior is behind independent pixels about an image, in nats per pixel, and whether it is refused."""

    behind: float
    refused: bool


def compared(engine: PictureSolver, pictures: Sequence[np.ndarray], damage: Damage) -> list[Found]:
    """Judge images of the prior's size as `restore denoise` does: as told, and under the noise that is forgiven."""
    about = engine.description
    leads = []
    refused = np.zeros(len(pictures), bool)
    for told in (damage.with_at_least(FORGIVEN, about), damage):
        restored, marginals = restore_pictures(engine, pictures, told)
        seen = Observed(np.stack(pictures), told)
        assert marginals.evidence is not None  # these priors are not conditional
        lead = independent(about, seen) - (marginals.evidence - engine.log_partition)
        leads.append(lead / seen.visible.sum((1, 2)))
        refused = np.array([one.shortfall > 0 for one in restored])
    return [Found(*one) for one in zip(np.nanmin(leads, axis=0), refused, strict=True)]


def sampled(engine: PictureEngine, pixels: np.ndarray, damage: Damage) -> Found:
    """Judge a page by its sample."""
    sample = sample_of(pixels, damage).stacked(engine)
    (found,) = compared(sample.stack, [sample.grey], sample.damaged(damage))
    return found


def text(count: int, seed: int) -> Iterator[np.ndarray]:
    """Pages of text."""
    families = families_to_learn_from()
    for number in range(count):
        yield (page(families, seed, number) > 127).astype(float)


def marks(name: str) -> Callable[[int, int], Iterator[np.ndarray]]:
    """Pages on which images of a named set are scattered in rows."""

    def pages(count: int, seed: int) -> Iterator[np.ndarray]:
        images = load(name, split="test").images > 127
        cell = images.shape[1] + GAP, images.shape[2] + GAP
        rows, columns = HEIGHT // cell[0], WIDTH // cell[1]
        draw = np.random.default_rng(seed)
        for _ in range(count):
            chosen = images[draw.integers(0, len(images), rows * columns)]
            padded = np.pad(chosen, ((0, 0), (0, GAP), (0, GAP))).reshape(rows, columns, *cell)
            yield padded.swapaxes(1, 2).reshape(rows * cell[0], columns * cell[1]).astype(float)

    return pages


def modules(count: int, seed: int) -> Iterator[np.ndarray]:
    """Pages of squares of 5x5 pixels, each black or white at random, as in a QR code."""
    draw = np.random.default_rng(seed)
    for _ in range(count):
        yield draw.integers(0, 2, (HEIGHT // 5, WIDTH // 5)).repeat(5, 0).repeat(5, 1).astype(float)


def row(prior: str, images: str, damage: str, found: list[Found]) -> None:
    """Print a row of the table."""
    behind = [each.behind for each in found]
    low, middle, high = (f"{value:.4f}" for value in (np.min(behind), np.median(behind), np.max(behind)))
    refused = 100 * np.mean([each.refused for each in found])
    print(f"| `{prior}` | {images} | {damage} | {len(found)} | {low} | {middle} | {high} | {refused:.0f} |", flush=True)


def of_pages(prior: str, images: str, draw: Callable[[int, int], Iterator[np.ndarray]], count: int, seed: int) -> None:
    """Rows of a prior and a kind of pages, one for each share of inverted pixels."""
    engine = restore.load(prior).engine
    clean = list(draw(count, seed))
    for p in FLIPS:
        dice = np.random.default_rng(seed)
        damaged = [np.abs(each - (dice.random(each.shape) < p)) for each in clean]
        row(prior, images, f"flip {p:g}", [sampled(engine, each, Damage(p)) for each in damaged])


def of_faces(prior: str, count: int, seed: int) -> None:
    """Rows of a prior of faces, one for each level of noise."""
    engine = restore.load(prior).engine
    faces = load("cbcl", split="test").images[:count] / 255
    for sigma in SIGMAS:
        noisy = GaussianNoise(sigma).corrupt(faces, np.random.default_rng(seed))
        row(prior, "faces", f"noise {sigma:g}", compared(engine, list(noisy), Damage(sigma=sigma)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=8, help="of each kind [%(default)s]")
    parser.add_argument("--faces", type=int, default=200, help="[%(default)s]")
    parser.add_argument("--seed", type=int, default=400, help="of pages and damage [%(default)s]")
    asked = parser.parse_args()
    # Of images that a prior does not explain.
    warnings.simplefilter("ignore")
    print(f"OFF_BEYOND is {OFF_BEYOND} nats per pixel.\n")
    print("| prior | images | damage | number | least behind, nats per pixel | median | most | refused, % |")
    print("| --- | --- | --- | ---: | ---: | ---: | ---: | ---: |")
    if asked.pages:
        shapes = marks("shapes")
        kinds = {"text": text, "shapes": shapes, "digits": marks("mnist"), "modules": modules}
        for images, draw in kinds.items():
            of_pages("tap-text", images, draw, asked.pages, asked.seed)
        for images, draw in {"text": text, "shapes": shapes}.items():
            of_pages("tap-mnist", images, draw, asked.pages, asked.seed)
    if asked.faces:
        of_faces("tap-cbcl", asked.faces, asked.seed)


if __name__ == "__main__":
    main()
