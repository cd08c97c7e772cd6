"""Damaged digits restored by priors and by a U-Net that learnt from the same damage, side by side in one run.

    python benchmarks/peers/digits.py [--model tap-mnist --model conv-mnist] [--unet-minutes 15] [--n 1000]

The digits are MNIST's (RESTORE_DATA): the network learns from the training set, all are scored on the first `--n` test
images. Both are told the same: the log-odds of each pixel, and which pixels are hidden. The damage of the first table
is that of the recipe `conv-mnist`, from which the network learns; that of the second was drawn by none. Calibration
is the expected calibration error of the probability of white, in 15 bins. Times are processor time of one thread.
"""

from __future__ import annotations

import time
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

import restore
from benchmarks.filters.unet import STRONGEST, UNet, course_for, stored, trained
from benchmarks.measures.script import command_line, head, row
from benchmarks.measures.timing import on_processors
from restore.channels import BitFlip, Damage, parse_task
from restore.data import Split, load
from restore.evaluation.metrics import matthews
from restore.learning.run.card import machine_facts

RECIPE = Path(__file__).parents[2] / "training" / "recipes" / "conv-mnist.toml"
SIDE = 28
SHAPE = (SIDE, SIDE)

# Two thirds as many weights as a prior of 500 hidden units has.
WIDTH, BATCH = 24, 100

BINS = 15
SEED = 7


@dataclass(frozen=True)
class Damaged:
    """Digits (N, D), damaged and not, and what everyone knows of the damage."""

    clean: Tensor
    seen: Tensor
    damage: Damage


# The probabilities of white (N, D) that a restorer finds.
Repair = Callable[[Damaged], Tensor]


def drawn(clean: Tensor, task: str) -> Damaged:
    return Damaged(clean, *parse_task(task).damage(clean, SHAPE, torch.Generator().manual_seed(SEED)))


def through(clean: Tensor, p: float | Tensor, hidden: Tensor | None = None) -> Damaged:
    """Digits with flips, and pixels (N, D) that are hidden."""
    seen = BitFlip(p).corrupt(clean, torch.Generator().manual_seed(SEED))
    level = p if isinstance(p, float) else p.reshape(-1, *SHAPE).numpy()
    if hidden is None:
        return Damaged(clean, seen, Damage(level))
    damage = Damage(level or None, hidden=hidden.reshape(-1, *SHAPE).numpy())
    return Damaged(clean, torch.where(hidden, 0.0, seen), damage)


def discs(count: int, draw: torch.Generator) -> Tensor:
    """Masks (count, D) of three discs each, of radius 2 to 4, known to hide what is under them."""
    place = torch.arange(SIDE, dtype=torch.float32)
    centre = torch.rand(count, 3, 2, 1, 1, generator=draw) * SIDE
    radius = 2 + 2 * torch.rand(count, 3, 1, 1, generator=draw)
    far = (place[:, None] - centre[:, :, 0]) ** 2 + (place - centre[:, :, 1]) ** 2
    return (far <= radius**2).any(1).flatten(1)


def lines(count: int, draw: torch.Generator) -> Tensor:
    """Masks (count, D) of three straight lines each across the image, two pixels wide."""
    place = torch.arange(SIDE, dtype=torch.float32)
    angle = torch.rand(count, 3, 1, 1, generator=draw) * torch.pi
    shift = (torch.rand(count, 3, 1, 1, generator=draw) - 0.5) * SIDE * 0.7
    across, down = place - SIDE / 2, (place - SIDE / 2)[:, None]
    return ((across * angle.cos() + down * angle.sin() - shift).abs() <= 1).any(1).flatten(1)


def foreign(clean: Tensor) -> dict[str, Damaged]:
    """Damage that nobody learnt from."""
    draw = torch.Generator().manual_seed(SEED)
    each = torch.rand(clean.shape, generator=draw) * 0.5
    return {
        "own p per pixel": through(clean, each),
        "discs": through(clean, 0.0, discs(len(clean), draw)),
        "lines": through(clean, 0.0, lines(len(clean), draw)),
        "lines, flip .1": through(clean, 0.1, lines(len(clean), draw)),
    }


def mask_of(damaged: Damaged) -> Tensor:
    return torch.as_tensor(damaged.damage.hidden).flatten(1)


def evidence(damaged: Damaged) -> Tensor:
    """The network's two channels, (N, 2, H, W): log-odds, and hidden pixels."""
    odds = damaged.damage.channel(grey=False).evidence(damaged.seen).linear.expand_as(damaged.seen)
    hidden = torch.zeros_like(odds) if damaged.damage.hidden is None else mask_of(damaged)
    both = torch.stack([odds.clamp(-STRONGEST, STRONGEST) / STRONGEST, hidden.float()], 1)
    return both.reshape(-1, 2, *SHAPE)


def by_network(network: UNet) -> Repair:
    def repair(damaged: Damaged) -> Tensor:
        with torch.inference_mode():
            return torch.cat([network(part).sigmoid().flatten(1) for part in evidence(damaged).split(BATCH)])

    return repair


def by_prior(name: str) -> Repair:
    engine = restore.load(name, engine="onnx").engine

    def repair(damaged: Damaged) -> Tensor:
        damage = damaged.damage.mapped(np.asarray)
        found = engine.solve(damaged.seen.numpy().reshape(-1, *SHAPE), damage)
        return torch.from_numpy(found.means).flatten(1)

    return repair


def kept(folder: Path, clean: Tensor, tasks: list[str], minutes: float) -> UNet:
    """The network of so many minutes that is in this folder; otherwise one is trained and put there."""

    def learn() -> UNet:
        return trained(course_for(clean, SHAPE, tasks), 60 * minutes, seed=0, width=WIDTH, batch=BATCH)

    return stored(folder / f"unet-digits-{minutes:g}-minutes.safetensors", learn, WIDTH)


def calibration(white: Tensor, clean: Tensor) -> tuple[float, np.ndarray]:
    """The expected calibration error; and for each bin its mean probability, share of white, and share of pixels."""
    bins = (white * BINS).long().clamp(max=BINS - 1).flatten()

    def total(values: Tensor) -> Tensor:
        return torch.zeros(BINS, dtype=torch.float64).index_add(0, bins, values.flatten().double())

    count = total(torch.ones_like(white)).clamp_min(1e-9)
    told, true, share = total(white) / count, total(clean) / count, count / white.numel()
    return float(((told - true).abs() * share).sum()), torch.stack([told, true, share]).numpy()


def scores(repairs: Mapping[str, Repair], damaged: Mapping[str, Damaged]) -> None:
    """Print MCC; for holes without noise the share of wrong pixels, in %."""
    head("", *damaged)
    for name, repair in repairs.items():
        cells = []
        for each in damaged.values():
            white = (repair(each) > 0.5).to(each.clean)
            if each.damage.hidden is not None and each.damage.p is None:
                white = torch.where(mask_of(each), white, each.clean)
                cells.append(f"{100 * float((white != each.clean).float().mean()):.3f} %")
            else:
                cells.append(f"{float(matthews(each.clean, white).mean()):.4f}")
        row(name, *cells)


def plotted(curves: Mapping[str, np.ndarray], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.5, 4.5), layout="constrained")
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color="0.7")
    for name, (told, true, share) in curves.items():
        met = share > 1e-5
        axes.plot(told[met], true[met], "o-", markersize=3, label=name.replace("`", ""))
    axes.set(xlabel="probability of white", ylabel="share that is white", title="flip 0.3")
    axes.legend()
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--model", action="append", help="name or folder of a prior [tap-mnist, conv-mnist]")
    parser.add_argument("--n", type=int, default=1000, help="test images [%(default)s]")
    parser.add_argument("--unet-minutes", type=float, default=15.0, help="of processor time; 0 for none [%(default)s]")
    parser.add_argument("--unet", type=Path, default=Path("runs"), help="folder that keeps the network [%(default)s]")
    parser.add_argument("--plot", type=Path, help="write a reliability plot here")
    asked = parser.parse_args()
    on_processors(1)
    tasks = tomllib.loads(RECIPE.read_text())["learner"]["tasks"]

    def pixels(split: Split) -> Tensor:
        return torch.from_numpy(load("mnist", split=split).images > 127).flatten(1).float()

    clean = pixels("test")[: asked.n]
    repairs = {f"`{Path(name).name}`": by_prior(name) for name in asked.model or ["tap-mnist", "conv-mnist"]}
    if asked.unet_minutes:
        network = kept(asked.unet, pixels("train"), tasks, asked.unet_minutes)
        size = sum(weights.numel() for weights in network.parameters())
        repairs[f"U-Net, {size} weights, {asked.unet_minutes:g} minutes"] = by_network(network)
    print(f"{len(clean)} digits; {machine_facts()}")
    learnt = ("flip:0.05", "flip:0.1", "flip:0.2", "flip:0.3", "flip:0.4", "patch:8", "patch:12")
    scores(repairs, {task: drawn(clean, task) for task in learnt})
    scores(repairs, foreign(clean))
    head("", "images per CPU-second", "calibration error, flip .1", "flip .3")
    curves = {}
    for name, repair in repairs.items():
        weak, strong = drawn(clean, "flip:0.1"), drawn(clean, "flip:0.3")
        repair(Damaged(clean[:10], weak.seen[:10], weak.damage))
        began = time.process_time()
        white = repair(weak)
        speed = len(clean) / (time.process_time() - began)
        error, _ = calibration(white, clean)
        worse, curves[name] = calibration(repair(strong), clean)
        row(name, f"{speed:.0f}", f"{error:.5f}", f"{worse:.5f}")
    if asked.plot is not None:
        plotted(curves, asked.plot)


if __name__ == "__main__":
    main()
