"""What each rule of `restore/inference/decision/rules.py` is worth: leave out one at a time.

    [RESTORE_DATA=DATA] python benchmarks/choices/rules.py --seeds 101 102 103 [--grey] [--facts FACTS.jsonl]

Pictures of `pictures/all_kinds.py`, as they are and after flips, are restored by all priors without a rule, and all
facts are kept; then the rules are left out one at a time, on paper, of whole pictures. *Part by part* they are restored
by all rules, which leave parts of some as they were. *Harmed* are clean pictures of which more than .3 % changed, and
damaged ones that came back with more wrong pixels; *helped* are damaged ones with fewer. With `--grey`
there are pages, which are harmed if they have more wrong pixels than by Otsu's threshold, and photographs and small
pictures in several greys, which are harmed wherever they are cut to black and white. The last table halves and doubles
the limits.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import json
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.choices import two_tones
from benchmarks.choices.no_harm import CHANGED, damaged
from benchmarks.choices.no_harm import wrong as share_wrong
from benchmarks.measures.script import command_line, head, row
from benchmarks.pictures.all_kinds import PICTURES
from restore.channels.damage import Damage, Observed
from restore.images.picture import Picture
from restore.images.tones import Tones, counted
from restore.inference.decision import rules
from restore.inference.decision.facts import Facts
from restore.inference.decision.rules import Rule
from restore.inference.open import Engines
from restore.inference.options import Options
from restore.inference.restore import restore
from training.data.sources import real_pages

FLIPS = (0.0, 0.01, 0.03, 0.1, 0.3)


@dataclass(frozen=True)
class Input:
    """A picture that was restored without a rule.

    Attributes:
        kind, name: what it shows.
        p: the flips that it had.
        before, after: shares of wrong pixels.
        facts: what was measured.
    """

    kind: str
    name: str
    p: float
    before: float
    after: float
    facts: dict[str, float]

    def harmed(self) -> bool:
        if self.kind == "drawing" and not self.p:
            return self.after > CHANGED
        return self.after > self.before + 1e-12

    def helped(self) -> bool:
        return self.after < self.before - 1e-12


def found(
    levels: np.ndarray, engines: Engines, hidden: np.ndarray | None = None
) -> tuple[np.ndarray, dict[str, float]]:
    """What a picture of 0 to 255 comes back as, in [0, 1], and all facts."""
    (answer,) = restore([Observed(Picture(levels), Damage(hidden=hidden))], Options(), engines)
    where = np.ones(levels.shape, bool) if answer.replaced is None else answer.replaced
    values = np.rint(255 * np.asarray(answer.estimate, float).clip(0, 1)) / 255
    return np.where(where, values, levels / 255), answer.facts.measured


def drawings(seeds: Iterable[int], engines: Engines) -> Iterator[Input]:
    for seed in seeds:
        for name in PICTURES:
            for p in FLIPS:
                truth, seen = damaged(name, p, seed)
                levels = np.rint(255 * seen).astype(np.uint8)
                after, facts = found(levels, engines)
                yield Input("drawing", name, p, share_wrong(levels / 255, truth), share_wrong(after, truth), facts)


def middles(data: Path, side: int = 360) -> Iterator[tuple[str, np.ndarray, np.ndarray, np.ndarray]]:
    """The middle of each page that has a truth: its name, its levels, where it is paper, and by Otsu's threshold."""
    for _, name, whole, truth in real_pages(data):
        top, left = (max(0, (size - side) // 2) for size in whole.shape)
        levels, paper = (values[top : top + side, left : left + side] for values in (whole, truth))
        yield name, levels, paper, levels > Tones.of(counted(levels)).threshold


def pages(engines: Engines) -> Iterator[Input]:
    if "RESTORE_DATA" not in os.environ:
        raise SystemExit("set RESTORE_DATA to the folder that holds dibco/ and pages/")
    for name, levels, paper, cut in middles(Path(os.environ["RESTORE_DATA"])):
        after, facts = found(levels, engines)
        wrong = float(np.mean((after > after.mean()) != paper))
        yield Input("page", name, 0.0, float(np.mean(cut != paper)), wrong, facts)


def photographs(engines: Engines) -> Iterator[Input]:
    from benchmarks.choices.page_limits import photographs as parts

    for name, grey in parts():
        levels = np.rint(255 * grey).astype(np.uint8)
        after, facts = found(levels, engines)
        yield Input("photograph", name, 0.0, 0.0, float(np.mean(np.abs(after - levels / 255) > 16 / 255)), facts)


def small(engines: Engines) -> Iterator[Input]:
    """Faces, parts of photographs and maps in several greys, all small: harmed where they are cut."""
    for name, images in two_tones.sources(Path(os.environ["RESTORE_DATA"])).items():
        if name in two_tones.GREY:
            for levels in images():
                after, facts = found(levels, engines)
                changed = float(np.mean(np.abs(after - levels / 255) > 16 / 255))
                yield Input("small grey", name, 0.0, 0.0, changed, facts)


def refused(one: Input, table: Iterable[Rule]) -> bool:
    facts = Facts(**one.facts)
    return any(rule.holds(facts) for rule in table)


def tally(inputs: list[Input], table: Iterable[Rule]) -> list[int]:
    """How many are harmed, helped, and come back as they came."""
    kept = [refused(one, table) for one in inputs]
    pairs = list(zip(inputs, kept, strict=True))
    return [
        sum(one.harmed() and not left for one, left in pairs),
        sum(one.helped() and not left for one, left in pairs),
        sum(kept),
    ]


def _ended(inputs: list[Input]) -> list[int]:
    """How many are harmed, helped, and have as many wrong pixels as before."""
    harmed, helped = (sum(map(verdict, inputs)) for verdict in (Input.harmed, Input.helped))
    return [harmed, helped, sum(one.after == one.before for one in inputs)]


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--seeds", nargs="*", type=int, default=[101, 102, 103], help="[%(default)s]")
    parser.add_argument("--grey", action="store_true", help="pages, photographs and small grey pictures, too")
    parser.add_argument("--facts", type=Path, help="keep what was measured here, or read it if it is there")
    parser.add_argument("--on-paper", action="store_true", help="without what users get, part by part")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    inputs = _measured(chosen.seeds, chosen.grey, chosen.facts, ())
    kinds = list(dict.fromkeys(one.kind for one in inputs))
    head("rules", *(f"{kind}s {what}" for kind in kinds for what in ("harmed", "helped", "as they came")))

    def line(name: str, table: list[Rule]) -> None:
        counts = [tally([one for one in inputs if one.kind == kind], table) for kind in kinds]
        row(name, *(count for of_kind in counts for count in of_kind))

    every = list(rules.RULES)
    line("none", [])
    line("all", every)
    if not chosen.on_paper:
        ended = _ended(_measured(chosen.seeds, False, None, rules.RULES))
        row("all, part by part", *ended, *["-"] * (3 * len(kinds) - 3))
    for rule in every:
        line(f"without {rule.status} by {rule.fact}", [other for other in every if other is not rule])
    print()
    head("limit", *(f"{kind}s {what}" for kind in kinds for what in ("harmed", "helped", "as they came")))
    for rule in every:
        for factor in (0.5, 0.8, 1.25, 2.0):
            moved = rule._replace(limit=rule.limit * factor)
            line(
                f"{rule.status} by {rule.fact}: {moved.limit:.3g}",
                [moved if other is rule else other for other in every],
            )


def _measured(seeds: list[int], grey: bool, kept: Path | None, table: tuple[Rule, ...]) -> list[Input]:
    """The pictures restored by a table of rules; read from a file if they were kept there."""
    if kept is not None and kept.exists():
        return [Input(**json.loads(line)) for line in kept.read_text().splitlines()]
    engines, before = Engines(Options()), rules.RULES
    made: list[Input] = []
    sources: list[Callable[[], Iterator[Any]]] = [lambda: drawings(seeds, engines)]
    sources += [lambda: pages(engines), lambda: photographs(engines), lambda: small(engines)] if grey else []
    rules.RULES = table
    try:
        for source in sources:
            for one in source():
                made.append(one)
                if kept is not None:
                    with kept.open("a") as file:
                        file.write(json.dumps(asdict(one)) + "\n")
    finally:
        rules.RULES = before
    return made


if __name__ == "__main__":
    main()
