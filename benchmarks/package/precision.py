"""Single against double precision: how far the means of published priors differ, and whether that costs pixels.

    python benchmarks/package/precision.py --n 50
    python benchmarks/package/precision.py --models tap-mnist-25 tap-mnist-50 tap-mnist-100 --tasks flip:0.3 --n 200

Columns: the largest and the median difference of a picture's means; the share of pictures that differ by more than FAR,
and of those that are also less likely in single precision, by .01 nats of log Z; the error in single precision, and by
how much it is larger in double (± the standard error): wrong pixels, or the root mean square error of grey levels, in
percent; CPU seconds of both. The mixture of photographs is left out: its answer takes no iteration.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import torch

from benchmarks.measures.script import command_line, head, row
from restore.channels import Task, parse_task
from restore.data import load
from restore.data.sets import NAMED_SETS
from restore.inference.torch_engine import Engine
from restore.solvers import Solution
from training.data import drawings

MODELS = Path(__file__).parents[2] / "models"
FAR = 1e-3
# Seed of the drawings, and of the damage.
SEED = 1


def pictures(engine: Engine, count: int) -> torch.Tensor:
    """Pictures for a prior, (count, D): test images of the set it was trained on, or the middle of drawings."""
    header = engine.header
    if header.data in NAMED_SETS:
        grey = load(header.data, split="test").images[:count]
    else:
        top, left = ((drawings.SIDE - side) // 2 for side in header.image_shape)
        grey = drawings.drawings(count, SEED)[:, top:-top, left:-left]
    return torch.from_numpy(header.as_known(grey / 255)).flatten(1)


def tasks(engine: Engine, texts: list[str] | None) -> list[Task]:
    header = engine.header
    if header.task:
        return [parse_task(header.task, "unknown" if header.task.startswith("patch") else None)]
    noise = ["noise:0.1", "noise:0.3"] if header.grey else ["flip:0.1", "flip:0.3"]
    return [parse_task(text, grey=header.grey) for text in texts or (*noise, f"patch:{3 * header.image_shape[0] // 7}")]


def in_double(engine: Engine) -> Engine:
    trained, double = engine.trained, torch.float64
    grey = trained.grey_pixels
    if grey is not None:
        grey = grey.with_parameters({name: value.to(double) for name, value in grey.parameters.items()})
    machine, means = trained.machine.to(double), trained.pixel_means.to(double)
    return replace(engine, trained=replace(trained, machine=machine, pixel_means=means, grey_pixels=grey))


def timed(engine: Engine, damaged: torch.Tensor, channel: object) -> tuple[Solution, float]:
    started = time.process_time()
    return engine.restore(damaged, channel), time.process_time() - started  # type: ignore[arg-type]


def compared(engine: Engine, task: Task, clean: torch.Tensor) -> tuple[object, ...]:
    header = engine.header
    damaged, damage = task.damage(clean, header.image_shape, torch.Generator().manual_seed(SEED))
    known = None if header.task else damage.channel(header.grey)
    single, seconds = timed(engine, damaged, known)
    double, longer = timed(in_double(engine), damaged.double(), known)
    apart = (single.means[0] - double.means[0]).abs().amax(1)
    lower = (single.log_partition < double.log_partition - 0.01) & (apart > FAR)
    if header.grey:
        wrong = [(found.means[0] - clean).square().mean(1).sqrt() for found in (single, double)]
    else:
        wrong = [((found.means[0] > 0.5) != (clean > 0.5)).double().mean(1) for found in (single, double)]
    more = 100 * (wrong[1] - wrong[0])
    shares = f"{(apart > FAR).double().mean():.1%}", f"{lower.double().mean():.1%}"
    errors = f"{100 * wrong[0].mean():.3f}", f"{more.mean():.4f} ± {more.std() / len(more) ** 0.5:.4f}"
    differences = f"{apart.max():.1e}", f"{apart.median():.1e}"
    return header.name, task, *differences, *shares, *errors, f"{seconds:.1f}", f"{longer:.1f}"


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--models", nargs="+", default=sorted(path.name for path in MODELS.iterdir()))
    parser.add_argument("--tasks", nargs="+", help="damage to undo [two levels of noise, and a hole]")
    parser.add_argument("--n", type=int, default=50, help="pictures per prior [%(default)s]")
    chosen = parser.parse_args()
    columns = ("largest", "median", "apart", "and likelier", "error, %", "double, %", "s", "s, double")
    head("prior", "damage", *columns, left=("damage",))
    for name in chosen.models:
        engine = Engine.load(str(MODELS / name))
        if engine.header.components:
            continue
        clean = pictures(engine, chosen.n)
        for task in tasks(engine, chosen.tasks):
            row(*compared(engine, task, clean))


if __name__ == "__main__":
    main()
