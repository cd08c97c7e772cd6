"""Precision and cost of estimated noise levels: `--p auto` and `--sigma auto` on test images.

python benchmarks/noise_level.py
python benchmarks/noise_level.py --model ppca-cbcl --data cbcl
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from restore.data import load
from restore.inference.damage import Damage
from restore.inference.open import open_engine
from restore.inference.pictures import restore_pictures

FLIPS, SPREADS = (0.05, 0.1, 0.2, 0.3), (0.05, 0.1, 0.2, 0.3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="tap-mnist", help="name or folder of a prior [%(default)s]")
    parser.add_argument("--data", default="mnist", help="whose test images are damaged [%(default)s]")
    parser.add_argument("--n", type=int, default=200, help="how many of them [%(default)s]")
    parser.add_argument("--seed", type=int, default=0, help="of the damage [%(default)s]")
    parser.add_argument("--levels", type=float, nargs="+", help="true levels [flips, or of grey priors spreads]")
    chosen = parser.parse_args()
    engine = open_engine(chosen.model)
    about = engine.description
    name, levels = ("sigma", SPREADS) if about.grey else ("p", FLIPS)
    clean = about.as_known(load(chosen.data, split="test").images[: chosen.n] / 255).astype(np.float64)
    print(f"{about.name}, {engine.name}, {len(clean)} test images of {chosen.data}, seed {chosen.seed}")
    print(f"| {name} | median estimate | quartiles | median error | seconds, each of the levels | seconds, given it |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: |")
    for level in chosen.levels or levels:
        draw = np.random.default_rng(chosen.seed)
        if about.grey:
            noisy = clean + draw.normal(0, level, clean.shape)
        else:
            noisy = np.where(draw.random(clean.shape) < level, 1 - clean, clean)
        started = time.perf_counter()
        restore_pictures(engine, list(noisy), Damage.of(**{name: level}))  # type: ignore[arg-type]
        given = time.perf_counter() - started
        started = time.perf_counter()
        _, found = restore_pictures(engine, list(noisy), Damage.of(**{name: "auto"}))  # type: ignore[arg-type]
        assert found.noise is not None
        # The last restoration is kept.
        each = (time.perf_counter() - started) / (len(found.noise.tried) + 1)
        low, middle, high = np.quantile(found.noise.chosen, [0.25, 0.5, 0.75])
        error = np.median(np.abs(found.noise.chosen - level))
        row = f"| {level:g} | {middle:.3f} | {low:.3f} to {high:.3f} | {error:.3f} | {each:.2f} | {given:.2f} |"
        print(row, flush=True)


if __name__ == "__main__":
    main()
