"""What `restore denoise` without options does to pictures that it has never seen: clean ones, and after flips.

    python benchmarks/choices/no_harm.py --seeds 501 502 --processes 2 --sheet sheet.png
    python benchmarks/choices/no_harm.py --only "graph paper" music --damage clean 0.1

Each picture of `pictures/all_kinds.py` is given to the command as it is, after each pixel was inverted with probability
.03 or .1, drawn independently, and with marks of `training/data/marks.py` over it. A clean picture may come back as it
was, or lose at most .3 % of its pixels. A damaged one must not come back with more wrong pixels than it had. Grey
levels count as wrong where they are off by more than 16 of 255, so that a threshold cannot cut a grey picture silently.
In the table *helped* are damaged pictures that came back with fewer wrong pixels, *alone* those that came back with as
many; `--list` has a row for each input, and `--by-kind` one for each kind.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product, repeat
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from benchmarks.measures.script import command_line, head, row
from benchmarks.pictures.all_kinds import PICTURES, picture
from training.data.marks import MARKS

# What pictures are given as: as they are, with flips, or with marks of a kind.
DAMAGE = ("clean", "0.03", "0.1", "specks", "dots", "border")
STRENGTH = 2

# The share of a clean picture that may change, and by how much a grey level may be off, of 1.
CHANGED, OFF = 0.003, 16 / 255

CLEAN = ("ok", "harmed")
DAMAGED = ("helped", "alone", "harmed")

# Of the sheet of pictures, in pixels.
CELL, GAP = 256, 6


@dataclass(frozen=True)
class Outcome:
    """What became of a picture.

    Attributes:
        name, damage: the picture, and what befell it, one of `DAMAGE` or the probability of flips.
        seed: of both.
        code: exit code of the command.
        before, after: shares of wrong pixels; `after` is of the input where the command wrote nothing.
        seconds: processor time.
        said: last line of what the command said.
    """

    name: str
    damage: str
    seed: int
    code: int
    before: float
    after: float
    seconds: float
    said: str

    @property
    def verdict(self) -> str:
        if self.damage == "clean":
            return "harmed" if self.after > CHANGED else "ok"
        return "harmed" if self.after > self.before else "helped" if self.after < self.before else "alone"


def damaged(name: str, p: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A picture (H, W) in [0, 1], and the same with each pixel inverted with probability p."""
    truth = np.asarray(picture(name, seed), np.float64)
    flipped = np.random.default_rng([round(1000 * p) + 1000 * seed, *name.encode()]).random(truth.shape) < p
    return truth, np.where(flipped, 1 - truth, truth)


def spoilt(name: str, damage: str, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A picture, and the same with damage: flips of a probability, or marks of a kind in the colour of its ink."""
    if damage not in MARKS:
        return damaged(name, 0.0 if damage == "clean" else float(damage), seed)
    truth = np.asarray(picture(name, seed), np.float64)
    ink = truth < 0.5 if truth.mean() >= 0.5 else truth > 0.5
    seen, _ = MARKS[damage](ink, np.random.default_rng([seed, *name.encode()]), STRENGTH)
    return truth, np.where(seen == ink, truth, np.rint(1 - truth))


def wrong(found: np.ndarray, truth: np.ndarray) -> float:
    return float((np.abs(found - truth) > OFF).mean())


def saved(values: np.ndarray, path: Path) -> None:
    """Write a picture: with one bit a pixel if it is black and white."""
    levels = np.rint(255 * values).astype(np.uint8)
    two = set(np.unique(levels)) <= {0, 255}
    Image.fromarray(levels > 127 if two else levels).save(path)


def command(*words: str) -> tuple[int, str]:
    """Run `restore` in this process; return its exit code and what it said."""
    from restore.cli import main

    said, before = io.StringIO(), sys.argv
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    sys.argv = ["restore", *words]
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            main()
        code = 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
    finally:
        sys.argv = before
        for number, handler in handlers.items():
            signal.signal(number, handler)
    return code, said.getvalue()


def outcome(
    name: str, damage: str, seed: int = 0, options: Sequence[str] = ()
) -> tuple[Outcome, np.ndarray, np.ndarray]:
    """Damage a picture and give it to the command; what became of it, what it was given, and what it gave back."""
    truth, seen = spoilt(name, damage, seed)
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "seen.png", Path(folder) / "found.png"
        saved(seen, source)
        started = time.process_time()
        code, said = command("denoise", str(source), "-o", str(target), *options)
        seconds = time.process_time() - started
        found = seen
        if code == 0:
            found = np.asarray(Image.open(target).convert("L")) / 255
    lines = said.replace(folder, "").strip().splitlines()
    made = Outcome(
        name, damage, seed, code, wrong(seen, truth), wrong(found, truth), seconds, lines[-1] if lines else ""
    )
    return made, seen, found


def kind(name: str) -> str:
    return name.split(",", maxsplit=1)[0]


def share(value: float) -> str:
    return f"{100 * value:.2f}"


def each(outcomes: Sequence[Outcome]) -> None:
    """A row for each input."""
    head(
        "picture", "seed", "damage", "wrong before, %", "wrong after, %", "exit", "verdict", "CPU s", left=("verdict",)
    )
    for one in outcomes:
        figures = (str(one.seed), one.damage, share(one.before), share(one.after), str(one.code))
        row(one.name, *figures, one.verdict, f"{one.seconds:.1f}")


def totals(outcomes: Sequence[Outcome], what: str, of: Callable[[Outcome], str]) -> None:
    """A row for each of what outcomes are of, and for all."""
    head(what, *(f"clean {verdict}" for verdict in CLEAN), *DAMAGED, "wrong before, %", "wrong after, %")
    for name in [*dict.fromkeys(map(of, outcomes)), "all"]:
        own = [one for one in outcomes if name in ("all", of(one))]
        verdicts = Counter((one.damage == "clean", one.verdict) for one in own)
        counts = [verdicts[True, verdict] for verdict in CLEAN] + [verdicts[False, verdict] for verdict in DAMAGED]
        means = (share(float(np.mean([getattr(one, when) for one in own]))) for when in ("before", "after"))
        row(name, *map(str, counts), *means)


def faults(outcomes: Sequence[Outcome]) -> None:
    """A line for each picture that was harmed, or with which the command failed."""
    for one in outcomes:
        if one.code or one.verdict == "harmed":
            figures = f"{share(one.before)} % to {share(one.after)} %, exit code {one.code}"
            print(f"{one.name}, {one.damage}, seed {one.seed}: {one.verdict}, {figures}: {one.said}")


def sheet(made: Sequence[tuple[Outcome, np.ndarray, np.ndarray]]) -> Image.Image:
    """What went in, and beside it what came out; two pairs a row, harm in red."""
    width, height = 4 * (CELL + GAP), -(-len(made) // 2) * (CELL + 20)
    paper = Image.new("RGB", (width, height), (200, 200, 200))
    ink = ImageDraw.Draw(paper)
    for place, (one, seen, found) in enumerate(made):
        left, top = place % 2 * 2 * (CELL + GAP), place // 2 * (CELL + 20)
        line = f"{one.name}, {one.damage}: {share(one.before)} % to {share(one.after)} %, {one.verdict}"
        ink.text((left, top + 3), line, (200, 0, 0) if one.verdict == "harmed" else (0, 0, 0))
        for column, values in enumerate((seen, found)):
            part = Image.fromarray(np.rint(255 * values[:CELL, :CELL]).astype(np.uint8))
            paper.paste(part, (left + column * (CELL + GAP), top + 18))
    return paper


def alone() -> None:
    """Leave the other processors to the other processes; must be told before onnxruntime loads."""
    os.environ["OMP_NUM_THREADS"] = "1"


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--only", nargs="+", metavar="KIND", help="kinds or names of pictures [all]")
    parser.add_argument("--kinds", action="store_true", help="print their names and exit")
    parser.add_argument("--damage", nargs="+", default=DAMAGE, help="clean, flips, or kinds of marks [%(default)s]")
    parser.add_argument("--options", nargs="+", default=(), help="of the command, such as --options=--force [none]")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], help="of what is drawn at random [%(default)s]")
    parser.add_argument("--processes", type=int, default=1, help="how many at a time [%(default)s]")
    parser.add_argument("--list", action="store_true", help="a row for each input")
    parser.add_argument("--by-kind", action="store_true", help="a row for each kind, not for each damage")
    parser.add_argument("--sheet", type=Path, metavar="FILE.png", help="draw what went in and came out")
    asked = parser.parse_args()
    names = [name for name in PICTURES if not asked.only or {name, kind(name)} & set(asked.only)]
    if asked.kinds:
        print("\n".join(names))
        return
    if not names:
        parser.error(f"--only: no such kind; take some of {', '.join(dict.fromkeys(map(kind, PICTURES)))}")
    inputs = list(product(names, asked.damage, asked.seeds))
    alone()
    with ProcessPoolExecutor(asked.processes, initializer=alone) as pool:
        made = list(pool.map(outcome, *zip(*inputs, strict=True), repeat(asked.options)))
    outcomes = [one for one, _, _ in made]
    if asked.list:
        each(outcomes)
    totals(outcomes, *(("kind", lambda one: kind(one.name)) if asked.by_kind else ("damage", lambda one: one.damage)))
    faults(outcomes)
    if asked.sheet:
        sheet(made).save(asked.sheet)


if __name__ == "__main__":
    main()
