"""Growing priors against fixed sizes: `--hidden auto` and fixed numbers of hidden units, for the same minutes.

    python benchmarks/choices/hidden_auto.py [--data caltech101-silhouettes] [--minutes 3] [--sizes 50 100 200 400 auto]
    python benchmarks/choices/hidden_auto.py --sizes 400 --epochs 71
    python benchmarks/choices/hidden_auto.py --minutes 1 --sizes 400 auto --processor

Each prior learns with the defaults of `restore train DATA --hidden N --minutes M`, one after the other, and restores
test images of the same data with 10 % and with 20 % of their pixels inverted. With epochs there is no limit of time.
"""

from __future__ import annotations

import time

import numpy as np
import torch

import restore
from benchmarks.measures.script import command_line, head, row
from restore.data import load

FLIPS = (0.1, 0.2)


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--data", default="caltech101-silhouettes", help="a data set with a test split [%(default)s]")
    parser.add_argument("--minutes", type=float, default=3.0, help="for each prior [%(default)s]")
    parser.add_argument("--epochs", type=int, help="for each prior, instead of minutes")
    parser.add_argument("--sizes", nargs="+", default=["50", "100", "200", "400", "auto"], help="[%(default)s]")
    parser.add_argument("--n", type=int, default=500, help="how many test images [%(default)s]")
    parser.add_argument("--seed", type=int, default=0, help="of training and of the damage [%(default)s]")
    parser.add_argument("--threads", type=int, default=1, help="[%(default)s]")
    parser.add_argument("--processor", action="store_true", help="count processor time: for busy machines")
    chosen = parser.parse_args()
    if chosen.processor:
        # Before training is loaded, whose clock this is.
        time.monotonic = time.process_time
    torch.set_num_threads(chosen.threads)
    clean = (load(chosen.data, split="test").images[: chosen.n] > 127).astype(np.float64)
    length = {"epochs": chosen.epochs} if chosen.epochs else {"minutes": chosen.minutes}
    said = ", ".join(f"{count:g} {unit} each" for unit, count in length.items())
    print(f"{chosen.data}, {len(clean)} test images, {said}, seed {chosen.seed}")
    head("asked for", "hidden units", "minutes", *(f"wrong pixels at flip {p:g}, %" for p in FLIPS))
    for size in chosen.sizes:
        hidden = "auto" if size == "auto" else int(size)
        started = time.monotonic()
        prior = restore.train(chosen.data, hidden=hidden, seed=chosen.seed, device="cpu", **length)
        minutes = (time.monotonic() - started) / 60
        wrong = []
        for p in FLIPS:
            flipped = np.random.default_rng(chosen.seed).random(clean.shape) < p
            restored = prior.denoise(np.abs(clean - flipped), p=p, force=True)
            wrong.append(f"{100 * np.mean(restored.round() != clean):.3f}")
        row(size, prior.description.hidden, f"{minutes:.1f}", *wrong)


if __name__ == "__main__":
    main()
