"""Binary pictures of seven families, repaired without options and by tuned filters; wrong pixels in %, as a table.

    python benchmarks/choices/families.py --pictures 5 --validation 2 --unet-minutes 55
    python benchmarks/choices/families.py --choices conv-art conv-text
    python benchmarks/choices/families.py --recognised 5

Nothing is told to `restore.denoise`, and only the mask to `restore.complete`. Each filter has the setting that leaves
least wrong on validation pictures of the family, at the same damage; it is told p. A tenth of a picture lies in known
8x8 holes, and only hidden pixels are scored there. `--unet-minutes` also holds `conv-art`, told the level, against a
network that is told it too and has learnt from `drawings` as well, for so many minutes of processor time. `--choices`
gives each picture to each of some priors, told as little. `--recognised` counts pictures, and images of noise, that are
refused. Codes need segno, line art needs what `pictures/line_art.py` says, and BM3D is left out where it is not
installed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import time
import warnings
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch

import restore
from benchmarks.filters import unet
from benchmarks.filters.binary import FILTERS, MORE, Candidate, Seen
from benchmarks.measures.scoring import HOLES, holed, inverted, least, wrong
from benchmarks.measures.script import command_line, head, row
from benchmarks.pictures.kinds import FAMILIES
from restore.errors import NotRestored
from restore.learning.run.card import machine_facts
from training.data.drawings import drawings

FLIPS = (0.05, 0.1, 0.2)

# What has learnt from drawings, and how many a network learns from.
PRIOR, DRAWN = "conv-art", 2400


def without_options(seen: Seen) -> tuple[np.ndarray, str]:
    """The picture repaired, or as it is if it is refused; and the prior."""
    try:
        if seen.hidden.any():
            found, solution = restore.complete(seen.ink, seen.hidden, return_solution=True, strict=True)
        else:
            found, solution = restore.denoise(seen.ink, return_solution=True, strict=True)
    except NotRestored:
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


def filtered(
    candidates: Mapping[str, Candidate],
    validation: Sequence[np.ndarray],
    known: Sequence[Seen],
    clean: Sequence[np.ndarray],
    seen: Sequence[Seen],
    folder: Path,
) -> dict[str, list[float]]:
    """What each filter leaves wrong of each picture; kept in a file, as it stays so and BM3D takes most of the time."""
    pictures = [one.ink.tobytes() + one.hidden.tobytes() for one in (*known, *seen)]
    path = folder / f"filters-{hashlib.sha256(b''.join(pictures)).hexdigest()[:16]}.json"
    shares: dict[str, list[float]] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    missing = {name: each for name, each in candidates.items() if name not in shares}
    for name, each in tuned(missing, validation, known).items():
        found = [each.repair(one, each.settings[0]) for one in seen]
        shares[name] = wrong_of_each(clean, seen, found)
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(shares), "utf-8")
    return {name: shares[name] for name in candidates if name in shares}


def wrong_of_each(clean: Sequence[np.ndarray], seen: Sequence[Seen], found: Sequence[np.ndarray]) -> list[float]:
    """As `wrong`, of each picture."""
    return [wrong([truth], [one])([ours]) for truth, one, ours in zip(clean, seen, found, strict=True)]


def damaged(clean: Sequence[np.ndarray], damage: str, seed: int) -> list[Seen]:
    return holed(clean, seed) if damage == HOLES else inverted(clean, float(damage), seed)


def drawn(name: str, asked: argparse.Namespace) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The pictures of a family to tune filters on, and those to repair."""
    clean = [FAMILIES[name](asked.first + number) for number in range(asked.validation + asked.pictures)]
    return clean[: asked.validation], clean[asked.validation :]


def with_prior(prior: str, seen: Seen, p: float | None) -> np.ndarray:
    """The picture repaired by one prior, whether or not it recognises the picture."""
    if seen.hidden.any():
        return restore.complete(seen.ink, seen.hidden, prior, p, force=True)
    return restore.denoise(seen.ink, prior, p, force=True)


def family(
    name: str, asked: argparse.Namespace, candidates: Mapping[str, Candidate], network: unet.UNet | None
) -> list[tuple[float, float, float, float]]:
    """Print the rows of a family; return shares without options, with the best filter, a prior and a network."""
    validation, clean = drawn(name, asked)
    found = []
    for damage in asked.damages:
        known, seen = damaged(validation, damage, asked.first), damaged(clean, damage, asked.first + 1)
        loss = wrong(clean, seen)
        kept = filtered(candidates, validation, known, clean, seen, asked.runs)
        shares = {other: float(np.mean(each)) for other, each in kept.items()}
        started = time.process_time()
        ours, priors = zip(*map(without_options, seen), strict=True)
        seconds = (time.process_time() - started) / len(seen)
        best = min(shares, key=lambda other: shares[other])
        cells = [loss(ours), shares[best]]
        if network is not None:
            cells += [
                loss([with_prior(PRIOR, one, None if damage == HOLES else one.p) for one in seen]),
                loss([network.repair(one, 0.0) for one in seen]),
            ]
        found.append((*cells, *[np.nan] * (4 - len(cells))))
        row(
            name,
            damage,
            f"{100 * cells[0]:.3f}",
            f"{100 * cells[1]:.3f}",
            best,
            ratio(cells[0], cells[1]),
            *([f"{100 * cells[2]:.3f}", f"{100 * cells[3]:.3f}", ratio(cells[2], cells[3])] if network else []),
            counted(priors),
            f"{seconds:.1f}",
        )
    return found


def ratio(ours: float, other: float) -> str:
    return f"{ours / other:.2f}" if other else "-"


def table(asked: argparse.Namespace, candidates: Mapping[str, Candidate], network: unet.UNet | None) -> None:
    """Print a row for each family and damage, and in how many of them nothing else leaves less wrong."""
    told = (f"`{PRIOR}`, told", "U-Net, told", "ratio") if network else ()
    columns = ("family", "damage", "without options", "best filter", "which", "ratio", *told)
    head(*columns, "restored with", "CPU seconds", left=("damage", "which", "restored with"))
    cells = [cell for name in asked.families for cell in family(name, asked, candidates, network)]
    print(f"\nwithout options at most the best filter: {sum(a <= b for a, b, _, _ in cells)} of {len(cells)} cells")
    if network:
        print(f"`{PRIOR}` at most the network: {sum(a <= b for _, _, a, b in cells)} of {len(cells)} cells")


def choices(asked: argparse.Namespace) -> None:
    """Print what each prior leaves wrong beside the one chosen, and beside the best one of each picture."""
    names = asked.choices
    columns = ("family", "damage", "without options", *names, "best of each", "ratio", "chosen", "best")
    head(*columns, left=("damage", "chosen", "best"))
    for name in asked.families:
        _, clean = drawn(name, asked)
        for damage in asked.damages:
            seen = damaged(clean, damage, asked.first + 1)
            ours, priors = zip(*map(without_options, seen), strict=True)
            own = np.array(wrong_of_each(clean, seen, ours))
            by_prior = [wrong_of_each(clean, seen, [with_prior(prior, one, None) for one in seen]) for prior in names]
            each = np.array(by_prior).T
            least_wrong = np.minimum(each.min(1), own)
            winners = [
                prior if mine <= shares.min() else names[int(shares.argmin())]
                for prior, mine, shares in zip(priors, own, each, strict=True)
            ]
            row(
                name,
                damage,
                *(f"{100 * share:.3f}" for share in (own.mean(), *each.mean(0), least_wrong.mean())),
                ratio(own.mean(), least_wrong.mean()),
                counted(priors),
                counted(winners),
            )


def counted(names: Sequence[str]) -> str:
    return ", ".join(f"{names.count(name)} {name}" for name in dict.fromkeys(names))


def noise(number: int) -> np.ndarray:
    """Independent pixels, a tenth to a half of them white: no prior should recognise it."""
    draw = np.random.default_rng(number)
    return draw.random((128, 128)) < 0.1 * (1 + number % 5)


def refused(count: int) -> None:
    """Print how many pictures of each family, and of noise, are refused."""
    head("", *(f"flip {p:g}" for p in FLIPS))
    for name, draw in (FAMILIES | {"noise": noise}).items():
        clean = [draw(number) for number in range(count)]
        cells = [sum(without_options(one)[1] == "refused" for one in inverted(clean, p, 0)) for p in FLIPS]
        row(name, *(f"{cell} of {count}" for cell in cells))


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--pictures", type=int, default=3, help="of each family [%(default)s]")
    parser.add_argument("--validation", type=int, default=2, help="other pictures, to tune filters on [%(default)s]")
    parser.add_argument("--families", nargs="+", default=[*FAMILIES], choices=[*FAMILIES], help="[all]")
    damages = [*map(str, FLIPS), HOLES]
    parser.add_argument("--damages", nargs="+", default=damages, choices=damages, help="[all]")
    parser.add_argument("--first", type=int, default=0, help="number of the first picture, and seed [%(default)s]")
    parser.add_argument("--choices", nargs="+", metavar="PRIOR", help="hold the prior chosen against each of these")
    parser.add_argument("--recognised", type=int, default=0, help="count refusals among so many of each family")
    parser.add_argument("--unet-minutes", type=float, default=0.0, help="of processor time, for a network")
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="keeps the network and filters' results")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    print(machine_facts())
    if asked.recognised:
        refused(asked.recognised)
        return
    if asked.choices:
        choices(asked)
        return
    network = None
    if asked.unet_minutes:
        network = unet.kept(asked.runs, "drawings", lambda: drawings(DRAWN, seed=5) > 127, asked.unet_minutes, seed=0)
    candidates = FILTERS | MORE
    if find_spec("bm3d") is None:
        del candidates["BM3D"]
    table(asked, candidates, network)


if __name__ == "__main__":
    main()
