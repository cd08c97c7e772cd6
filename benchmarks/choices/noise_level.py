"""Precision and cost of estimated noise levels: `--p auto` and `--sigma auto` on test images.

python benchmarks/choices/noise_level.py
python benchmarks/choices/noise_level.py --model ppca-cbcl --data cbcl
"""

from __future__ import annotations

import time

import numpy as np

from benchmarks.measures.script import command_line, head, row
from restore.channels.damage import Damage, Observed
from restore.data import load
from restore.inference.engine import PictureEngine
from restore.inference.open import Engines, open_engine
from restore.inference.options import Options
from restore.inference.restore import restore
from restore.inference.restored import Restored

FLIPS, SPREADS = (0.05, 0.1, 0.2, 0.3), (0.05, 0.1, 0.2, 0.3)


def timed(engine: PictureEngine, noisy: np.ndarray, damage: Damage) -> tuple[list[Restored], float]:
    """Restored images, and the processor seconds that it took."""
    options = Options(force=True)
    started = time.process_time()
    found = restore([Observed(each, damage) for each in noisy], options, Engines(options, only=engine))
    return found, time.process_time() - started


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--model", default="tap-mnist", help="name or folder of a prior [%(default)s]")
    parser.add_argument("--data", default="mnist", help="whose test images are damaged [%(default)s]")
    parser.add_argument("--n", type=int, default=200, help="how many of them [%(default)s]")
    parser.add_argument("--seed", type=int, default=0, help="of the damage [%(default)s]")
    parser.add_argument("--levels", type=float, nargs="+", help="true levels [flips, or of grey priors spreads]")
    chosen = parser.parse_args()
    engine = open_engine(chosen.model)
    header = engine.header
    name, levels = ("sigma", SPREADS) if header.grey else ("p", FLIPS)
    clean = header.as_known(load(chosen.data, split="test").images[: chosen.n] / 255).astype(np.float64)
    print(f"{header.name}, {engine.backend}, {len(clean)} test images of {chosen.data}, seed {chosen.seed}")
    head(
        f"`{header.name}`, {name}",
        "median estimate",
        "quartiles",
        "median error",
        "CPU seconds",
        "CPU seconds, given it",
    )
    for level in chosen.levels or levels:
        draw = np.random.default_rng(chosen.seed)
        if header.grey:
            noisy = clean + draw.normal(0, level, clean.shape)
        else:
            noisy = np.where(draw.random(clean.shape) < level, 1 - clean, clean)
        _, given = timed(engine, noisy, Damage.of(**{name: level}))
        answers, finding = timed(engine, noisy, Damage.of(**{name: "auto"}))
        found = np.array([each.level.value for each in answers])
        low, middle, high = np.quantile(found, [0.25, 0.5, 0.75])
        error = np.median(np.abs(found - level))
        estimate = (f"{middle:.3f}", f"{low:.3f} to {high:.3f}", f"{error:.3f}")
        row(f"{level:g}", *estimate, f"{finding:.2f}", f"{given:.2f}")


if __name__ == "__main__":
    main()
