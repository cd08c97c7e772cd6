"""What each tuned number is worth that decides what becomes of a picture: halve it, double it, and see what changes.

    [RESTORE_DATA=DATA] python benchmarks/choices/tuned.py --seed 801 --only LOST BLANK
    python benchmarks/choices/tuned.py --marks

The numbers are those that `docs/constants.md` calls tuned, in the files that decide (`DECIDING` of
`benchmarks/package/constants.py`), or with --marks in those that find marks. Half of each, and its double, is written
into a copy of the package, which then restores pictures of `pictures/all_kinds.py`: as they came, after flips, and
with holes; a page too large to be solved before it was looked at; and, with RESTORE_DATA, middles of pages, and
photographs. What concerns grey pages alone is tried on these alone. *Harmed* are clean pictures of which more than .3
% changed, and others with more wrong pixels than before, or than by Otsu's threshold; *helped* are those with fewer.
*Wrong* is the mean share of wrong pixels, and *time* the processor's, as a multiple of that of the numbers as they
are. Marks are drawn on pages in the fonts that priors learn from, and erased by the masks that are found; of clean
pictures what goes if specks, dots and borders are asked for, of content as small as dirt as scanned, too, and what
goes untold.
"""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from time import process_time
from typing import Literal, NamedTuple, get_args

import numpy as np

from benchmarks.measures.script import command_line, head, row
from benchmarks.package.constants import ROOT, Constant, deciding, in_marks, numbers_of

FACTORS = 0.5, 2.0

# The pictures that show what a number is worth: those it concerns.
Pictures = Literal["all", "grey", "marks"]

# What befalls drawings, in turn: flips of a probability, or holes of so many pixels a side.
FLIPS = 0.0, 0.01, 0.1, 0.3
HOLE = 9

# Of pages and photographs one of so many; and the side of the large page, in pixels.
EVERY = 8
LARGE = 1400


class Case(NamedTuple):
    """A picture as it was, and as it is, in [0, 1]; what is hidden; and what it has to be better than."""

    truth: np.ndarray
    seen: np.ndarray
    hidden: np.ndarray | None = None
    rival: np.ndarray | None = None


class Outcome(NamedTuple):
    """What became of a picture: the shares of wrong pixels, and the seconds it took."""

    before: float
    after: float
    changed: bool
    seconds: float

    @property
    def harmed(self) -> bool:
        from benchmarks.choices.no_harm import CHANGED

        return self.after > self.before + (CHANGED if self.before == 0 else 1e-12)

    @property
    def helped(self) -> bool:
        return self.after < self.before - 1e-12


def drawings(seed: int) -> Iterator[Case]:
    from benchmarks.choices.no_harm import damaged
    from benchmarks.pictures.all_kinds import PICTURES, picture

    for number, name in enumerate(PICTURES):
        turn = (number + seed) % (len(FLIPS) + 1)
        truth, seen = damaged(name, FLIPS[turn] if turn < len(FLIPS) else 0.0, seed)
        if turn < len(FLIPS):
            yield Case(truth, seen)
        else:
            rows, columns = (-(-size // HOLE) for size in truth.shape)
            holes = np.random.default_rng(seed).random((rows, columns)) < 0.1
            hidden = holes.repeat(HOLE, 0).repeat(HOLE, 1)[: truth.shape[0], : truth.shape[1]]
            yield Case(truth, np.where(hidden, 0.5, seen), hidden)
    print_ = np.asarray(picture("print, small", seed)) > 0.5
    page = np.tile(print_, [-(-LARGE // size) for size in print_.shape])[:LARGE, :LARGE]
    for p in FLIPS[:2]:
        yield Case(page, page ^ (np.random.default_rng(seed).random(page.shape) < p))


def grey(data: Path) -> Iterator[Case]:
    from benchmarks.choices.page_limits import photographs
    from benchmarks.choices.rules import middles

    for _, levels, paper, cut in islice(middles(data), 0, None, EVERY):
        yield Case(paper, levels / 255, rival=cut)
    for _, levels in islice(photographs(), 0, None, EVERY):
        yield Case(levels, levels)


def outcome(case: Case, restored: np.ndarray, seconds: float) -> Outcome:
    from benchmarks.choices.no_harm import wrong

    before = wrong(np.asarray(case.seen if case.rival is None else case.rival, float), case.truth)
    return Outcome(before, wrong(restored, case.truth), bool((restored != case.seen).any()), seconds)


def with_marks(seed: int) -> Iterator[tuple[np.ndarray, np.ndarray, dict[str, str | int]]]:
    """Ink (H, W) without marks and with some, and what marks are asked for; nothing for what goes untold."""
    from benchmarks.peers.marks import ASKED, CLEAN, marked, pages_of
    from benchmarks.pictures import all_kinds
    from benchmarks.pictures.content import CONTENT
    from benchmarks.pictures.kinds import mask
    from training.data.marks import scanned
    from training.data.text import families_to_learn_from

    families = families_to_learn_from()
    pages, masks = pages_of(families, seed, 3), [~mask(number + seed) for number in range(2)]
    for number, (kind, how) in enumerate(ASKED.items()):
        clean = masks if kind in ("islands", "clusters") else [pages[number % 3], pages[number % 3 - 1]]
        for truth, seen in zip(clean, marked(clean, kind, 2, seed)[0], strict=True):
            yield truth, seen, how
    for name in (*CLEAN, *CONTENT):
        dice = np.random.default_rng([seed, len(name)])
        ink = CONTENT[name](families, dice) if name in CONTENT else ~(all_kinds.picture(name, seed) > 0.5)
        yield ink, ink, {"remove": "specks,dots,border"}
        if name in CONTENT:
            worn = scanned(ink, dice)
            yield worn, worn, {"remove": "specks,dots,border"}
            yield ink, ink, {}


def without_marks(seed: int, every: int) -> Iterator[Outcome]:
    """What is left wrong once the marks that are found are erased."""
    from restore.channels.damage import Damage, Observed
    from restore.inference.open import Engines
    from restore.inference.options import Options
    from restore.inference.restore import marks_in

    for truth, seen, how in [*with_marks(seed)][::every]:
        start, options = process_time(), Options(**how)
        found = marks_in(Observed((~seen).astype(np.float64), Damage()), options, Engines(options))
        taken = [mark.mask for mark in found if how or mark.sure]
        left = np.where(np.any([*taken, np.zeros_like(seen)], 0), seen.mean() > 0.5, seen)
        seconds = process_time() - start
        shares = (float((ink != truth).mean()) for ink in (seen, left))
        yield Outcome(*shares, bool((left != seen).any()), seconds)


def outcomes(seed: int, every: int, pictures: Pictures) -> Iterator[Outcome]:
    """What becomes of the pictures by the package that is imported."""
    if pictures == "marks":
        yield from without_marks(seed, every)
        return
    from benchmarks.choices.rules import found
    from restore.inference.open import Engines
    from restore.inference.options import Options

    warnings.simplefilter("ignore")
    engines = Engines(Options())
    data = os.environ.get("RESTORE_DATA")
    cases = [*([] if pictures == "grey" else drawings(seed)), *(grey(Path(data)) if data else [])]
    for case in cases[::every]:
        levels = np.rint(255 * np.asarray(case.seen, float)).astype(np.uint8)
        start = process_time()
        new, _ = found(levels, engines, case.hidden)
        yield outcome(case._replace(seen=levels / 255), new, process_time() - start)


def scaled(written: str, factor: float) -> str:
    """A number, or numbers, multiplied; whole ones stay whole, and 1 at least."""
    value = eval(written)  # sums and products of numbers, as `is_number` found
    several = value if isinstance(value, tuple) else (value,)
    new = [max(1, round(factor * one)) if isinstance(one, int) else factor * one for one in several]
    return repr(tuple(new)) if isinstance(value, tuple) else repr(new[0])


def write_scaled(constant: Constant, factor: float, folder: Path) -> None:
    """Write a multiple of a number into a copy of the package."""
    file = folder / constant.file
    text = file.read_text(encoding="utf-8")
    pairs = (pair for statement in ast.parse(text).body for pair in numbers_of(statement))
    node = next(node for name, node in pairs if name == constant.name)
    lines = text.splitlines(keepends=True)
    line = lines[node.lineno - 1]
    assert node.end_lineno == node.lineno
    lines[node.lineno - 1] = line[: node.col_offset] + scaled(constant.value, factor) + line[node.end_col_offset :]
    file.write_text("".join(lines), encoding="utf-8")


def measured(options: list[str], constant: Constant | None = None, factor: float = 1.0) -> list[Outcome]:
    """The outcomes in a process of its own, by the package with a number multiplied; none if it cannot run."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        shutil.copytree(ROOT / "restore", folder / "restore")
        (folder / "models").symlink_to(ROOT / "models")
        if constant is not None:
            write_scaled(constant, factor, folder)
        path = os.pathsep.join([str(folder), str(ROOT)])
        command = [sys.executable, __file__, *options]
        environment = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
    return [Outcome(*json.loads(line)) for line in done.stdout.splitlines()] if done.returncode == 0 else []


def cells(found: list[Outcome], usual: list[Outcome]) -> list[str]:
    if not found:
        return ["error"] * 5
    times = sum(one.seconds for one in found) / sum(one.seconds for one in usual)
    counts = [sum(one.harmed for one in found), sum(one.helped for one in found), sum(not one.changed for one in found)]
    return [*map(str, counts), f"{100 * np.mean([one.after for one in found]):.3f}", f"{times:.2f}"]


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--seed", type=int, default=801, help="of the pictures [%(default)s]")
    parser.add_argument("--every", type=int, default=1, help="of the pictures one of so many [%(default)s]")
    parser.add_argument("--only", nargs="+", help="numbers by name")
    parser.add_argument("--marks", action="store_true", help="numbers that find marks")
    parser.add_argument("--one", choices=get_args(Pictures), help="print the outcomes of the package as it is, as JSON")
    chosen = parser.parse_args()
    if chosen.one:
        for one in outcomes(chosen.seed, chosen.every, chosen.one):
            print(json.dumps(one), flush=True)
        return
    head("number", "value", "harmed", "helped", "kept", "wrong, %", "time")
    options = ["--seed", str(chosen.seed), "--every", str(chosen.every)]
    kinds: dict[Pictures, str] = (
        {"marks": "as they are"} if chosen.marks else {"all": "as they are", "grey": "of grey pages"}
    )
    usual = {}
    for pictures, name in kinds.items():
        usual[pictures] = measured([*options, "--one", pictures])
        row(name, "", *cells(usual[pictures], usual[pictures]))
    for constant in in_marks() if chosen.marks else deciding():
        if chosen.only is None or constant.name in chosen.only:
            pictures = "marks" if chosen.marks else "grey" if "/scans/" in constant.file else "all"
            for factor in FACTORS:
                found = measured([*options, "--one", pictures], constant, factor)
                row(constant.name, scaled(constant.value, factor), *cells(found, usual[pictures]))


if __name__ == "__main__":
    main()
