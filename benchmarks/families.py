"""Binary pictures of six families, repaired without options and by tuned filters; wrong pixels in %, as a table.

    python benchmarks/families.py --pictures 3 --validation 2
    python benchmarks/families.py --recognised 5
    python benchmarks/families.py --pictures 5 --unet-minutes 20

Nothing is told to `restore.denoise`, and only the mask to `restore.complete`. Each filter has the setting that leaves
least wrong on validation pictures of the family, at the same damage; it is told p. A tenth of a picture lies in known
8x8 holes, and only hidden pixels are scored there. `--recognised` counts pictures, and images of noise, that are
refused. `--unet-minutes` holds `conv-shapes`, told the level, against a network that has
learnt from `drawings`, too. Codes need segno, and BM3D is left out where it is not installed.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
import unet
from filters import FILTERS, MORE, Candidate, Seen
from kinds_of_pictures import FAMILIES
from scoring import HOLES, holed, inverted, least, row, wrong

import restore
from restore.errors import Foreign
from restore.learning.run.card import machine_facts
from training.data.drawings import drawings

FLIPS = (0.05, 0.1, 0.2)

# What has learnt from drawings, and how many a network learns from.
PRIOR, DRAWN = "conv-shapes", 2400


def without_options(seen: Seen) -> tuple[np.ndarray, str]:
    """The picture repaired, or as it is if it is refused; and the prior."""
    try:
        if seen.hidden.any():
            found, solution = restore.complete(seen.ink, seen.hidden, return_solution=True)
        else:
            found, solution = restore.denoise(seen.ink, return_solution=True)
    except Foreign:
        return seen.ink, "refused"
    return found, solution.model


def tuned(
    candidates: Mapping[str, Candidate], validation: Sequence[np.ndarray], seen: Sequence[Seen]
) -> dict[str, Candidate]:
    """Those that undo such damage, each with the setting that is best on validation pictures with it."""
    flips = not seen[0].hidden.any()
    able = {name: each for name, each in candidates.items() if (each.flips if flips else each.holes)}
    loss = wrong(validation, seen)
    return {name: Candidate(each.repair, (least(each, seen, loss)[1],)) for name, each in able.items()}


def family(name: str, asked: argparse.Namespace, candidates: Mapping[str, Candidate]) -> None:
    """Print the rows of a family."""
    clean = [FAMILIES[name](number) for number in range(asked.validation + asked.pictures)]
    validation, clean = clean[: asked.validation], clean[asked.validation :]
    for damage in asked.damages:
        known, seen = (
            holed(part, seed) if damage == HOLES else inverted(part, float(damage), seed)
            for seed, part in enumerate((validation, clean))
        )
        loss = wrong(clean, seen)
        shares = {
            other: loss([each.repair(one, each.settings[0]) for one in seen])
            for other, each in tuned(candidates, validation, known).items()
        }
        started = time.process_time()
        ours, priors = zip(*map(without_options, seen), strict=True)
        seconds = (time.process_time() - started) / len(seen)
        best = min(shares, key=lambda other: shares[other])
        share = loss(ours)
        row(
            name,
            damage,
            f"{100 * share:.3f}",
            f"{100 * shares[best]:.3f}",
            best,
            f"{share / shares[best]:.2f}" if shares[best] else "-",
            ", ".join(f"{priors.count(prior)} {prior}" for prior in dict.fromkeys(priors)),
            f"{seconds:.1f}",
        )


def beside_network(name: str, asked: argparse.Namespace, network: unet.UNet) -> None:
    """Print what a network and the prior make of a family that have both learnt from drawings, told the damage."""
    clean = [FAMILIES[name](number) for number in range(asked.validation, asked.validation + asked.pictures)]
    for damage in asked.damages:
        seen = holed(clean, 1) if damage == HOLES else inverted(clean, float(damage), 1)
        told = [
            restore.complete(each.ink, each.hidden, PRIOR, force=True)
            if damage == HOLES
            else restore.denoise(each.ink, PRIOR, each.p, force=True)
            for each in seen
        ]
        found = [[network.repair(each, 0.0) for each in seen], told]
        row(name, damage, *(f"{100 * wrong(clean, seen)(each):.3f}" for each in found))


def noise(number: int) -> np.ndarray:
    """Independent pixels, a tenth to a half of them white: no prior should recognise it."""
    draw = np.random.default_rng(number)
    return draw.random((128, 128)) < 0.1 * (1 + number % 5)


def refused(count: int) -> None:
    """Print how many pictures of each family, and of noise, are refused."""
    row("", *(f"flip {p:g}" for p in FLIPS))
    row("---", *["---:"] * len(FLIPS))
    for name, draw in (FAMILIES | {"noise": noise}).items():
        clean = [draw(number) for number in range(count)]
        cells = [sum(without_options(one)[1] == "refused" for one in inverted(clean, p, 0)) for p in FLIPS]
        row(name, *(f"{cell} of {count}" for cell in cells))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pictures", type=int, default=3, help="of each family [%(default)s]")
    parser.add_argument("--validation", type=int, default=2, help="other pictures, to tune filters on [%(default)s]")
    parser.add_argument("--families", nargs="+", default=[*FAMILIES], choices=[*FAMILIES], help="[all]")
    damages = [*map(str, FLIPS), HOLES]
    parser.add_argument("--damages", nargs="+", default=damages, choices=damages, help="[all]")
    parser.add_argument("--recognised", type=int, default=0, help="count refusals among so many of each family")
    parser.add_argument("--unet-minutes", type=float, default=0.0, help="of processor time, for a network")
    parser.add_argument("--unet", type=Path, default=Path("runs"), help="folder that keeps the network [%(default)s]")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    print(machine_facts())
    if asked.recognised:
        refused(asked.recognised)
        return
    if asked.unet_minutes:
        network = unet.kept(asked.unet, "drawings", lambda: drawings(DRAWN, seed=5) > 127, asked.unet_minutes, seed=0)
        row("family", "damage", "U-Net", PRIOR)
        row("---", "---", "---:", "---:")
        for name in asked.families:
            beside_network(name, asked, network)
        return
    candidates = FILTERS | MORE
    if find_spec("bm3d") is None:
        del candidates["BM3D"]
    row("family", "damage", "without options", "best filter", "which", "ratio", "restored with", "CPU seconds")
    row("---", "---", "---:", "---:", "---", "---:", "---", "---:")
    for name in asked.families:
        family(name, asked, candidates)


if __name__ == "__main__":
    main()
