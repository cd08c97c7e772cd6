"""Check that restorations are the same to the bit: hashes of the results of every prior in models/ on some images.

python benchmarks/package/unchanged.py --record before.json
python benchmarks/package/unchanged.py --compare before.json --models tap-mnist ppca-cbcl
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

MODELS = Path(__file__).parents[2] / "models"
ENGINES = ("onnx", "torch")


def drawings(shape: tuple[int, int]) -> np.ndarray:
    """Three light drawings on a dark ground, (3, H, W) in [0, 1]: a ring, a cross, and a soft blob."""
    down, right = np.meshgrid(*(np.linspace(-1, 1, size) for size in shape), indexing="ij")
    off = np.hypot(down, right)
    ring = np.abs(off - 0.5) < 0.13
    cross = (np.minimum(np.abs(down), np.abs(right - 0.1)) < 0.1) & (off < 0.75)
    return np.stack([ring, cross, np.exp(-4 * (down + 0.1) ** 2 - 6 * right**2)]).astype(np.float64)


def settings(shape: tuple[int, int], grey: bool, conditional: bool) -> Iterator[tuple[str, np.ndarray, dict[str, Any]]]:
    """Yield restorations: a name, the damaged images (N, H, W), and the keyword arguments that describe the damage."""
    draw = np.random.default_rng(0)
    clean = drawings(shape)
    ink = (clean > 0.5).astype(np.float64)
    flipped = np.where(draw.random(clean.shape) < 0.1, 1 - ink, ink)
    noisy = (clean + draw.normal(0, 0.1, clean.shape)).clip(0, 1)
    salted = np.where(draw.random(clean.shape) < 0.1, draw.random(clean.shape) < 0.5, clean)
    rates = draw.uniform(0, 0.3, shape)
    rates[:2] = (0.0,), (0.5,)
    mask = np.zeros(clean.shape, bool)
    mask[:, shape[0] // 3 : shape[0] // 2, shape[1] // 4 : -shape[1] // 4] = True
    larger = np.kron(flipped, np.ones((2, 2)))
    if conditional:
        yield "as it is", flipped, {}
        yield "inverted", 1 - flipped, {"invert": True}
        return
    for p in (0.0, 0.1, 0.3) if not grey else (0.1,):
        yield f"p {p:g}", salted if grey else flipped, {"p": p}
    yield "p per pixel", salted if grey else flipped, {"p": rates}
    # One image where noise levels are found, as it is solved several times.
    yield "p auto", (salted if grey else flipped)[:1], {"p": "auto"}
    yield "mask", clean if grey else ink, {"mask": mask}
    yield "mask and p", salted if grey else flipped, {"mask": mask, "p": 0.1}
    yield "mask and p, inverted", 1 - (salted if grey else flipped), {"mask": mask, "p": 0.1, "invert": True}
    if grey:
        for sigma in (0.005, 0.1):
            yield f"sigma {sigma:g}", noisy, {"sigma": sigma}
        yield "sigma auto", noisy[:1], {"sigma": "auto"}
        yield "sigma auto and p", noisy[1:2], {"sigma": "auto", "p": 0.05}
        yield "mask and sigma", noisy, {"mask": mask, "sigma": 0.1}
        yield "mask, sigma and p per pixel", noisy, {"mask": mask, "sigma": 0.1, "p": rates}
    else:
        yield "mask and p auto, inverted", 1 - flipped[1:2], {"mask": mask[:1], "p": "auto", "invert": True}
        yield "inverted", 1 - flipped, {"p": 0.1, "invert": True}
        yield "resized", larger, {"p": 0.1, "fit": "resize"}


def digest(*values: np.ndarray | None) -> str:
    """A hash of arrays, their types and shapes."""
    found = hashlib.sha256()
    for value in values:
        held = np.ascontiguousarray(np.zeros(0) if value is None else value)
        found.update(f"{held.dtype.str}{held.shape}".encode() + held.tobytes())
    return found.hexdigest()[:24]


def hashes(name: str, engine: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the hash of each restoration with a prior and an engine."""
    import restore

    prior = restore.load(MODELS / name, "cpu", engine=engine)
    header = prior.description
    for setting, images, told in settings(header.image_shape, header.grey, bool(header.task)):
        told = {"force": True, "return_solution": True} | told
        try:
            image, found = prior.complete(images, **told) if "mask" in told else prior.denoise(images, **told)
        except restore.UsageError:  # damage that the prior does not know
            yield f"{name}, {engine}, {setting}", "refused"
            continue
        estimated = [each.value for each in found.level or () if each.estimated]
        levels = np.array(estimated, np.float64) if estimated else None
        status = np.asarray(found.status, int)  # not the addresses of its values
        parts = (found.means, found.deviations, found.iterations, found.residual, status)
        yield f"{name}, {engine}, {setting}", digest(image, *parts, levels)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--record", type=Path, metavar="FILE", help="write the hashes")
    what.add_argument("--compare", type=Path, metavar="FILE", help="compare with those of a file")
    parser.add_argument("--models", nargs="+", help="names of some of the priors [all]")
    parser.add_argument("--engines", nargs="+", default=ENGINES, choices=ENGINES, help="which engines [both]")
    chosen = parser.parse_args()
    # The number of threads changes the last bits of sums. It must be set before torch and onnxruntime load.
    os.environ["OMP_NUM_THREADS"] = "1"
    warnings.simplefilter("ignore")
    before: dict[str, str] = json.loads(chosen.compare.read_text()) if chosen.compare else {}
    found: dict[str, str] = {}
    changed = 0
    for name in chosen.models or sorted(folder.name for folder in MODELS.iterdir() if folder.is_dir()):
        for engine in chosen.engines:
            for key, value in hashes(name, engine):
                found[key] = value
                if chosen.compare and before.get(key) != value:
                    changed += 1
                    print(f"{key}: {'changed' if key in before else 'is not in the file'}", flush=True)
    if chosen.record:
        chosen.record.write_text(json.dumps(found, indent=1) + "\n")
        print(f"{len(found)} restorations recorded")
    else:
        print(f"{len(found)} restorations, {changed} of them changed")
        sys.exit(changed > 0)


if __name__ == "__main__":
    main()
