"""Measure what has no record, keep records as JSON, and write the tables of the pages from them.

    python benchmarks/harness.py               which benchmarks have a record, and which have changed since
    python benchmarks/harness.py bp tap_step   measure these anew
    python benchmarks/harness.py --missing     measure all that have no record; some take hours
    python benchmarks/harness.py --tables      write the tables of the pages anew

A benchmark is a script in `peers/`, `choices/` or `package/` that prints tables in Markdown. Its record, in `records/`,
has what its commands printed, and where and when. A new record has one command, its script without options; others are
written into the file.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

from restore.errors import InputError
from restore.files import write_atomically
from restore.learning.run.card import machine_facts
from restore.zoo.structure import structure

ROOT = Path(__file__).resolve().parents[1]
RECORDS = ROOT / "benchmarks" / "records"

# The folders of benchmarks, and what in them needs no record: it writes a page of its own, or compares two versions.
ROOMS = ("peers", "choices", "package")
OTHERS = {"package/constants.py", "package/gpu.py", "package/unchanged.py"}

# The pages with tables of records, and the mark of such tables: all of a record, or the one with a number.
PAGES = ("benchmarks/README.md", "benchmarks/priors.md", "docs/what-for.md")
MARKED = re.compile(r"(?<=<!-- )(record ([\w-]+)(?: (\d+))?)(: begin -->\n).*?(?=<!-- \1: end -->)", re.DOTALL)

RUN = "run"


@dataclass(frozen=True)
class Table:
    """A table as it is shown.

    Attributes:
        columns: the heads.
        align: for each column, "l" for left and "r" for right.
        rows: the cells, as they were printed.
    """

    columns: tuple[str, ...]
    align: str
    rows: tuple[tuple[str, ...], ...]

    def markdown(self) -> str:
        """The table in Markdown."""
        ruler = ["---:" if side == "r" else "---" for side in self.align]
        lines = (f"| {' | '.join(cells)} |" for cells in (self.columns, ruler, *self.rows))
        return "\n".join(line.replace("|  |", "| |").replace("|  |", "| |") for line in lines) + "\n"


@dataclass(frozen=True)
class Record:
    """What a benchmark has measured.

    Attributes:
        commands: scripts below `benchmarks/`, each with its options.
        source: how the figures came about, always RUN.
        date, commit: when, as year-month-day, and of which version.
        machine: processor, cores, load, threads and torch.
        tables: what the commands printed as tables, in order.
        said: the other lines that they printed.
        aim: what was aimed at, if anything.
        scripts: a checksum of each script that was run.
    """

    commands: tuple[str, ...]
    source: str
    date: str
    commit: str
    machine: str
    tables: tuple[Table, ...]
    said: tuple[str, ...] = ()
    aim: str = ""
    scripts: tuple[str, ...] = ()

    @property
    def state(self) -> str:
        """Whether the figures are those of the scripts as they are now."""
        return "measured" if self.scripts == checksums(self.commands) else "changed since"


def script_of(command: str) -> str:
    return command.split()[0]


def checksums(commands: Iterable[str]) -> tuple[str, ...]:
    """One for each script, in the order of commands."""
    files = dict.fromkeys(map(script_of, commands))
    return tuple(hashlib.sha256((ROOT / "benchmarks" / file).read_bytes()).hexdigest()[:16] for file in files)


def records() -> dict[str, Record]:
    """All records, by name."""
    return {path.stem: read(path) for path in sorted(RECORDS.glob("*.json"))}


def read(path: Path) -> Record:
    """The record in a file."""
    return structure(Record, json.loads(path.read_text(encoding="utf-8")))


def write(path: Path, record: Record) -> None:
    """Keep a record, with each row of its tables in one line."""
    text = json.dumps(asdict(record), indent=1, ensure_ascii=False)
    text = re.sub(r"\[\s+(\"[^][]*\")\s+\]", lambda row: "[" + re.sub(r"\n\s+", " ", row[1]) + "]", text)
    write_atomically(path, f"{text}\n".encode())


def printed(lines: Iterable[str]) -> tuple[tuple[Table, ...], tuple[str, ...]]:
    """The tables in what was printed, and the other lines."""
    tables, said = list[Table](), list[str]()
    for is_table, group in groupby(lines, lambda line: line.startswith("|")):
        if not is_table:
            said += filter(None, map(str.strip, group))
            continue
        columns, ruler, *rows = (tuple(cell.strip() for cell in line.strip().strip("|").split("|")) for line in group)
        tables.append(Table(columns, "".join("r" if side.endswith(":") else "l" for side in ruler), tuple(rows)))
    return tuple(tables), tuple(said)


def measured(commands: tuple[str, ...], aim: str = "") -> Record:
    """Run commands one after the other, and make a record of what they print."""
    lines, before = list[str](), checksums(commands)
    for command in commands:
        script, *options = shlex.split(command)
        words = [sys.executable, str(ROOT / "benchmarks" / script), *options]
        with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) as running:
            assert running.stdout is not None
            for line in running.stdout:
                print(line, end="", flush=True)
                lines.append(line)
        if running.returncode:
            raise InputError(f"{command}: ended with exit code {running.returncode}; no record was written")
    commit = subprocess.run(["git", "rev-parse", "--short=10", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout
    load = ""
    if sys.platform != "win32":
        load = f" at a load of {os.getloadavg()[0]:.1f}"
    machine = f"{os.cpu_count()} cores{load}, {machine_facts()}"
    now = datetime.now(UTC).date().isoformat()
    return Record(commands, RUN, now, commit.strip(), machine, *printed(lines), aim, before)


def unmeasured(known: Iterable[Record]) -> list[str]:
    """The benchmarks that no record is of, as commands without options."""
    scripts = {f"{room}/{path.name}" for room in ROOMS for path in (ROOT / "benchmarks" / room).glob("*.py")}
    return sorted(scripts - OTHERS - {script_of(command) for record in known for command in record.commands})


def with_tables(text: str) -> str:
    """A page with the tables of the records between its marks."""

    def anew(mark: re.Match[str]) -> str:
        tables = read(RECORDS / f"{mark[2]}.json").tables
        chosen = tables if mark[3] is None else tables[int(mark[3]) - 1 :][:1]
        return mark[1] + mark[4] + "\n".join(table.markdown() for table in chosen)

    return MARKED.sub(anew, text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="a record, or a script without its ending")
    parser.add_argument("--missing", action="store_true", help="measure all that have no record")
    parser.add_argument("--tables", action="store_true", help="write the tables of the pages anew")
    asked = parser.parse_args()
    known = records()
    missing = {Path(script).stem: (script,) for script in unmeasured(known.values())}
    commands = {name: record.commands for name, record in known.items() if record.commands} | missing
    if unknown := set(asked.names) - set(commands):
        parser.error(f"{', '.join(sorted(unknown))}: no such benchmark; take some of {', '.join(sorted(commands))}")
    chosen = [*asked.names, *(missing if asked.missing else ())]
    for name in chosen:
        write(RECORDS / f"{name}.json", measured(commands[name], known[name].aim if name in known else ""))
    if asked.tables:
        for page in PAGES:
            text = (ROOT / page).read_text(encoding="utf-8")
            write_atomically(ROOT / page, with_tables(text).encode())
    if not chosen and not asked.tables:
        rows = [(name, one.state, one.date, "; ".join(one.commands)) for name, one in known.items()]
        rows += [(name, "missing", "", command) for name, (command,) in missing.items()]
        print(Table(("name", "state", "date", "commands"), "llll", tuple(rows)).markdown(), end="")


if __name__ == "__main__":
    main()
