"""Binary pictures of seven families, repaired without options and by tuned filters; wrong pixels in %, as a table.

    python benchmarks/choices/families.py --pictures 5 --validation 2

Nothing is told to `restore.denoise`, and only the mask to `restore.complete`. Each filter has the setting that leaves
least wrong on validation pictures of the family, at the same damage; it is told p. A tenth of a picture lies in known
8x8 holes, and only hidden pixels are scored there. Codes need segno, line art needs what `pictures/line_art.py` says,
and BM3D is left out where it is not installed.
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
from benchmarks.filters.binary import FILTERS, MORE, Candidate, Seen
from benchmarks.measures.scoring import HOLES, holed, inverted, least, wrong
from benchmarks.measures.script import command_line, head, row
from benchmarks.pictures.kinds import FAMILIES
from restore.errors import NotRestored
from restore.learning.run.card import machine_facts

FLIPS = (0.05, 0.1, 0.2)


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


def family(name: str, asked: argparse.Namespace, candidates: Mapping[str, Candidate]) -> list[bool]:
    """Print the rows of a family; return for each whether no filter leaves less wrong."""
    validation, clean = drawn(name, asked)
    met = []
    for damage in asked.damages:
        known, seen = damaged(validation, damage, asked.first), damaged(clean, damage, asked.first + 1)
        kept = filtered(candidates, validation, known, clean, seen, asked.runs)
        shares = {other: float(np.mean(each)) for other, each in kept.items()}
        started = time.process_time()
        found, priors = zip(*map(without_options, seen), strict=True)
        seconds = (time.process_time() - started) / len(seen)
        best = min(shares, key=lambda other: shares[other])
        ours = wrong(clean, seen)(found)
        met.append(ours <= shares[best])
        row(
            name,
            damage,
            f"{100 * ours:.3f}",
            f"{100 * shares[best]:.3f}",
            best,
            ratio(ours, shares[best]),
            counted(priors),
            f"{seconds:.1f}",
        )
    return met


def ratio(ours: float, other: float) -> str:
    return f"{ours / other:.2f}" if other else "-"


def table(asked: argparse.Namespace, candidates: Mapping[str, Candidate]) -> None:
    """Print a row for each family and damage, and in how many of them nothing else leaves less wrong."""
    columns = ("family", "damage", "without options", "best filter", "which", "ratio", "restored with", "CPU seconds")
    head(*columns, left=("damage", "which", "restored with"))
    met = [cell for name in asked.families for cell in family(name, asked, candidates)]
    print(f"\nwithout options at most the best filter: {sum(met)} of {len(met)} cells")


def counted(names: Sequence[str]) -> str:
    return ", ".join(f"{names.count(name)} {name}" for name in dict.fromkeys(names))


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--pictures", type=int, default=3, help="of each family [%(default)s]")
    parser.add_argument("--validation", type=int, default=2, help="other pictures, to tune filters on [%(default)s]")
    parser.add_argument("--families", nargs="+", default=[*FAMILIES], choices=[*FAMILIES], help="[all]")
    damages = [*map(str, FLIPS), HOLES]
    parser.add_argument("--damages", nargs="+", default=damages, choices=damages, help="[all]")
    parser.add_argument("--first", type=int, default=0, help="number of the first picture, and seed [%(default)s]")
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="keeps the filters' results")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    print(machine_facts())
    candidates = FILTERS | MORE
    if find_spec("bm3d") is None:
        del candidates["BM3D"]
    table(asked, candidates)


if __name__ == "__main__":
    main()
