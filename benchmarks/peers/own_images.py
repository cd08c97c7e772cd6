"""Priors that a user trains in a few minutes, against the best simple filter on the same images.

    python benchmarks/peers/own_images.py [--minutes 3] [--sets glyphs-1000 ...] [--method tap] [--processor]

Each prior learns with the defaults of `restore train`, or by a method, one after the other. It restores other images of
the same kind, with 10 % and with 20 % of their pixels inverted, or under Gaussian noise of .2 for grey ones. Filters
are tuned on further images for each level.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont

import restore
from benchmarks.filters.binary import FILTERS
from benchmarks.filters.denoisers import DENOISERS, tuned
from benchmarks.measures.scoring import inverted, least, wrong
from benchmarks.measures.script import command_line, head, row
from restore.channels import Damage, GaussianNoise
from restore.data import load
from restore.evaluation.metrics import psnr
from training.data import pages
from training.data.text import families_to_learn_from

FLIPS, SIGMA = (0.1, 0.2), 0.2

# Images to score by, and to tune filters on; of pages, which are large, fewer.
SCORED, TUNED, PAGES = 300, 100, 10
PAGE = (240, 320)

# Data sets of grey images.
GREY = ("cbcl",)

FILTERED = {name: FILTERS[name] for name in ("median", "total variation", "Ising, mean field")}


class Kind(NamedTuple):
    """Images of one kind, (N, H, W), bits or grey values in [0, 1]: to learn from, to tune filters on, to score by."""

    learnt: np.ndarray
    tuned: np.ndarray
    scored: np.ndarray


def glyphs(count: int, seed: int) -> Kind:
    """Letters and figures of 32x32 pixels; no glyph is drawn twice."""
    draw = np.random.default_rng(seed)
    faces = [face for family in families_to_learn_from() for face in family]
    signs = [chr(code) for code in range(33, 127)]
    pairs = draw.permutation(len(faces) * len(signs))[: count + TUNED + SCORED]

    def glyph(face: str, sign: str) -> np.ndarray:
        font = ImageFont.truetype(face, 26, layout_engine=ImageFont.Layout.BASIC)
        sheet = Image.new("L", (32, 32))
        ImageDraw.Draw(sheet).text((16, 16), sign, fill=255, font=font, anchor="mm")
        return np.asarray(sheet) > 127

    drawn = np.stack([glyph(str(faces[pair // len(signs)]), signs[pair % len(signs)]) for pair in pairs])
    return Kind(*np.split(drawn, [count, count + TUNED]))


def of_set(name: str, count: int, seed: int) -> Kind:
    """Images of a data set: to learn from and to tune on from its training images, to score by from its test images."""
    images, others = (load(name, split=split).images for split in ("train", "test"))
    first, scored = (np.random.default_rng(seed).permutation(len(each)) for each in (images, others))
    parts = images[first[:count]], images[first[count : count + TUNED]], others[scored[:SCORED]]
    return Kind(*(part / 255 if name in GREY else part > 127 for part in parts))


def of_pages(count: int, seed: int) -> Kind:
    drawn = np.stack(pages.pages(families_to_learn_from(), count + 2 * PAGES, seed, PAGE)) > 127
    return Kind(*np.split(drawn, [count, count + PAGES]))


SETS: dict[str, Callable[[int], Kind]] = {
    "glyphs-1000": lambda seed: glyphs(1000, seed),
    **{f"silhouettes-{n}": lambda seed, n=n: of_set("caltech101-silhouettes", n, seed) for n in (100, 300, 3000)},
    **{f"digits-{n}": lambda seed, n=n: of_set("mnist", n, seed) for n in (100, 1000)},
    "pages-60": lambda seed: of_pages(60, seed),
    "faces-200": lambda seed: of_set("cbcl", 200, seed),
}


def scored_flips(prior: restore.Restorer, kind: Kind, p: float, seed: int) -> tuple[float, float, str]:
    """The share of wrong pixels of the prior and of the best filter, and which that is."""
    clean = list(kind.scored)
    sought, seen = inverted(list(kind.tuned), p, seed), inverted(clean, p, seed + 1)
    loss = wrong(clean, seen)
    found = [
        (loss([candidate.repair(each, setting) for each in seen]), name)
        for name, candidate in FILTERED.items()
        for setting in [least(candidate, sought, wrong(kind.tuned, sought))[1]]
    ]
    ours = prior.denoise([each.ink for each in seen], p=p, force=True)
    return loss(list(ours)), *min(found)


def scored_noise(prior: restore.Restorer, kind: Kind, seed: int) -> tuple[float, float, str]:
    """The mean PSNR of the prior and of the best filter, in dB, and which that is."""
    shape, draw = kind.scored.shape[1:], torch.Generator().manual_seed(seed + 1)
    sought, clean = (torch.from_numpy(part).flatten(1) for part in (kind.tuned, kind.scored))
    seen, damage = GaussianNoise(SIGMA).corrupt(clean, draw), Damage(sigma=SIGMA)
    found = [
        (float(psnr(clean, tuned(name, sought, SIGMA, shape, seed).restore(seen, damage)).mean()), name)
        for name in DENOISERS
    ]
    ours = prior.denoise(seen.reshape(-1, *shape).numpy(), sigma=SIGMA, force=True)
    return float(psnr(clean, torch.from_numpy(ours).flatten(1).double()).mean()), *max(found)


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--minutes", type=float, default=3.0, help="for each prior [%(default)s]")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS), help="[all]", metavar="SET")
    parser.add_argument("--method", default="auto", help="as of `restore train` [%(default)s]")
    parser.add_argument("--hidden", type=int, help="hidden units, or features [by the images]")
    parser.add_argument(
        "--processor", action="store_true", help="count processor time, on one thread: for busy machines"
    )
    parser.add_argument("--seed", type=int, default=0, help="of images, training and damage [%(default)s]")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    if chosen.processor:
        # Before training is loaded, whose clock this is.
        time.monotonic = time.process_time
        torch.set_num_threads(1)
    head("images", "minutes", "damage", "prior", "best filter", "prior against it", left=("damage", "best filter"))
    for name in chosen.sets:
        kind = SETS[name](chosen.seed)
        started, settings = time.monotonic(), {"method": chosen.method, "hidden": chosen.hidden}
        prior = restore.train(kind.learnt, minutes=chosen.minutes, seed=chosen.seed, device="cpu", **settings)
        minutes = f"{(time.monotonic() - started) / 60:.1f}"
        if prior.description.grey:
            ours, theirs, best = scored_noise(prior, kind, chosen.seed)
            row(
                name,
                minutes,
                f"noise {SIGMA}",
                f"{ours:.2f} dB",
                f"{theirs:.2f} dB, {best}",
                f"{ours - theirs:+.2f} dB",
            )
            continue
        for p in FLIPS:
            ours, theirs, best = scored_flips(prior, kind, p, chosen.seed)
            said = f"{ours / theirs - 1:+.0%}"
            row(name, minutes, f"flips {p}", f"{ours:.2%}", f"{theirs:.2%}, {best}", said)


if __name__ == "__main__":
    main()
