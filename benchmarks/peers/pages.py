"""Pages of printed text repaired: by a prior, by filters, and by a U-Net; wrong pixels in %, as a Markdown table.

    python benchmarks/peers/pages.py --model conv-text --pages 4 --seed 100 --unet-minutes 5

Pages of 600x800 pixels are drawn by seed in fonts that no prior learns from (Debian's fonts-liberation and
fonts-freefont-ttf); the network learns from pages in other fonts. Each filter has the setting that leaves least wrong,
chosen knowing the truth, anew for every column. Known 8x8 holes hide a tenth of a page, and only hidden pixels are
scored there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch

import restore
from benchmarks.filters import unet
from benchmarks.filters.binary import FILTERS, Candidate, Seen
from benchmarks.measures.scoring import HOLES, holed, inverted, least, wrong
from benchmarks.measures.script import command_line, head, row
from restore.api import Restorer
from restore.learning.run.card import machine_facts
from training.data.pages import HEIGHT, WIDTH, page
from training.data.text import families_for_tests

FLIPS = (0.05, 0.1, 0.2, 0.3)


def with_prior(prior: Restorer) -> Candidate:
    """A prior as a way to repair pages."""

    def repair(seen: Seen, _: float) -> np.ndarray:
        if seen.hidden.any():
            return prior.complete(seen.ink, seen.hidden, p=seen.p or None)
        return prior.denoise(seen.ink, p=seen.p)

    return Candidate(repair)


def wrong_pixels(candidates: Mapping[str, Candidate], clean: Sequence[np.ndarray], seed: int) -> None:
    """Print the table of wrong pixels."""
    columns = {f"flip {p:g}": inverted(clean, p, seed) for p in FLIPS} | {HOLES: holed(clean, seed)}
    head("", *columns, "settings", left=("settings",))
    for name, candidate in candidates.items():
        cells, settings = [], []
        for column, seen in columns.items():
            able = candidate.holes if column == HOLES else candidate.flips
            share, setting, _ = least(candidate, seen, wrong(clean, seen)) if able else (np.nan, np.nan, [])
            cells.append(f"{100 * share:.3f}" if able else "-")
            settings.append(f"{setting:g}" if able else "-")
        row(name, *cells, ", ".join(settings) if len(candidate.settings) > 1 else "")


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument(
        "--model", default="conv-text", help="name or folder of a prior; none for filters [%(default)s]"
    )
    parser.add_argument("--pages", type=int, default=4, help="how many [%(default)s]")
    parser.add_argument(
        "--shape", type=int, nargs=2, default=[HEIGHT, WIDTH], help="of a page, multiples of 4 [800 600]"
    )
    parser.add_argument("--seed", type=int, default=100, help="of the pages and of their damage [%(default)s]")
    parser.add_argument("--unet-minutes", type=float, default=5.0, help="of processor time; 0 for none [%(default)s]")
    parser.add_argument("--unet", type=Path, default=Path("runs"), help="folder that keeps the network [%(default)s]")
    parser.add_argument("--threads", type=int, default=1, help="of torch [%(default)s]")
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    candidates = dict(FILTERS)
    if asked.unet_minutes:
        network = unet.kept(asked.unet, "pages", lambda: unet.printed(0), asked.unet_minutes, seed=0)
        size = sum(weights.numel() for weights in network.parameters())
        candidates[f"U-Net, {size} weights, {asked.unet_minutes:g} minutes"] = Candidate(network.repair)
    if asked.model != "none":
        candidates[f"`{Path(asked.model).name}`"] = with_prior(restore.load(asked.model))
    families, shape = families_for_tests(), (asked.shape[0], asked.shape[1])
    print(f"{asked.pages} pages, seed {asked.seed}; {machine_facts()}")
    clean = [page(families, asked.seed, number, shape) > 127 for number in range(asked.pages)]
    wrong_pixels(candidates, clean, asked.seed)


if __name__ == "__main__":
    main()
