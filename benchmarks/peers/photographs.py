"""Photographs under Gaussian noise, restored by `em-photographs` and by tuned denoisers; PSNR in dB, as a table.

    python benchmarks/peers/photographs.py

The photographs are those of the test split of `photographs`, grey and whole, the noise is not clipped, and every method
is told sigma. Denoisers have the parameters that are best, at this sigma, on tiles of photographs that the prior has
learnt from. BM3D (PyPI) has none; it is left out where it is not installed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np
import torch

import restore
from benchmarks.filters.denoisers import DENOISERS, Denoiser, tuned
from benchmarks.measures.script import command_line, head, row
from restore.channels import Damage
from restore.learning.run.card import machine_facts
from training.data.photographs import PHOTOGRAPHS_OF, images, photograph

SIGMAS = (0.1, 0.2)
PRIOR = "em-photographs"


def psnr(found: np.ndarray, truth: np.ndarray) -> float:
    return float(-10 * np.log10(np.mean((found.clip(0, 1) - truth) ** 2)))


def methods(sigma: float, tiles: torch.Tensor, side: int) -> dict[str, Callable[[np.ndarray], np.ndarray]]:
    """What maps a noisy image (H, W) to a restored one, by name."""

    def by(found: Denoiser) -> Callable[[np.ndarray], np.ndarray]:
        def restored(image: np.ndarray) -> np.ndarray:
            height, width = image.shape
            whole = Denoiser(found.name, (height, width), found.parameters)
            flat = torch.from_numpy(image.reshape(1, -1))
            return whole.restore(flat, Damage(sigma=sigma)).numpy().reshape(image.shape)

        return restored

    prior = restore.load(PRIOR, engine="onnx")
    known = {PRIOR: lambda image: prior.denoise(image, sigma=sigma)}
    known |= {name: by(tuned(name, tiles, sigma, (side, side), seed=0)) for name in DENOISERS}
    if find_spec("bm3d") is not None:
        import bm3d

        known["BM3D"] = lambda image: bm3d.bm3d(image, sigma)
    return known


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--tiles", type=int, default=6, help="to tune denoisers on [%(default)s]")
    parser.add_argument("--side", type=int, default=64, help="of these tiles, in pixels [%(default)s]")
    asked = parser.parse_args()
    print(machine_facts())
    every = images("train")
    # From all photographs, a corner of each tile.
    chosen = every[np.linspace(0, len(every) - 1, asked.tiles).astype(int), -asked.side :, -asked.side :]
    tiles = torch.from_numpy(chosen.reshape(asked.tiles, -1) / np.float32(255))
    head("", "sigma", *(name.split(".")[0] for name in PHOTOGRAPHS_OF["test"]), "mean", "seconds")
    for sigma in SIGMAS:
        for name, method in methods(sigma, tiles, asked.side).items():
            found, seconds = [], 0.0
            for file in PHOTOGRAPHS_OF["test"]:
                truth = photograph(file) / 255
                noisy = truth + sigma * np.random.default_rng(0).standard_normal(truth.shape)
                began = time.process_time()
                found.append(psnr(method(noisy), truth))
                seconds += time.process_time() - began
            cells = [f"{value:.2f}" for value in (*found, float(np.mean(found)))]
            row(name, f"{sigma:g}", *cells, f"{seconds / len(found):.1f}")


if __name__ == "__main__":
    main()
