"""The records of benchmarks: what pages show and claim is in them, and what a script prints becomes one."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from benchmarks import harness
from benchmarks.harness import MARKED, PAGES, RECORDS, ROOT, Table
from benchmarks.measures.script import head, row
from benchmarks.package import constants
from restore.errors import InputError

KNOWN = harness.records()

# Claims that pages make in rows of their own: the rows of records that have the figures.
Rows = dict[str, tuple[tuple[str, str], ...]]
CLAIMS: dict[str, Rows] = {
    "README.md": {
        "page, 10 % flipped": (("what_for", "page of print"),),
        "42 old pages in grey": tuple(
            ("real_pages-left_out", row) for row in ("restore", "Otsu", "closing and dividing")
        ),
        "code, 10 % flipped": (("what_for", "square modules, as in a QR code"),),
        "OCR, 5 % flipped": tuple(
            ("ocr", row) for row in ("OCRmyPDF", "with `--clean`", "with `--restore-model conv-text`")
        ),
    },
    "docs/ocr.md": {
        f"OCRmyPDF {row}".strip(): (("ocr", row or "OCRmyPDF"),)
        for row in ("", "with `--clean`", "with `--restore-model conv-text`")
    }
    | {
        "as they are": (("ocr_grey", "as they are"),),
        "with `--restore-model auto`": (("ocr_grey", "`restore --soft`, as the plugin"),),
    },
}

# Figures in sentences of pages, and the record that has them.
SENTENCES = [
    ("benchmarks/README.md", r"goes through: (\d+) in (\d+) files [^,]+, (\d+) in (\d+) without", "path_length"),
    (
        "benchmarks/README.md",
        r"leaves less wrong in \*\*(\d+), (\d+), (\d+), (\d+) and (\d+) of (\d+)\*\* cases",
        "elsewhere",
    ),
    ("docs/what-for.md", r"F is ([\d.]+); the best threshold has ([\d.]+)\n", "real_pages-left_out"),
]

# A benchmark as short as can be.
SCRIPT = """
print("three digits")
print("| | wrong, % |\\n| --- | ---: |")
print("| `restore` | 1.50 |", flush=True)
print("| as it is | |\\n")
"""
PRINTED = (Table(("", "wrong, %"), "lr", (("`restore`", "1.50"), ("as it is", ""))),)


def marked(page: str) -> list[tuple[str, str]]:
    """The name of each record that a page shows, and the number of the table."""
    return [(mark[2], mark[3] or "") for mark in MARKED.finditer((ROOT / page).read_text(encoding="utf-8"))]


def has(cells: list[str], figure: str) -> bool:
    """Whether one of the numbers in some cells is this figure, when rounded to as many digits."""
    digits = len(figure.partition(".")[2])
    numbers = (float(number) for cell in cells for number in re.findall(r"\d+\.?\d*", cell))
    return any(f"{number:.{digits}f}" == figure for number in numbers)


@pytest.mark.parametrize("page", PAGES)
def test_tables_on_pages_are_those_of_the_records(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert marked(page)
    assert harness.with_tables(text) == text, "write the tables anew with `python benchmarks/harness.py --tables`"


def test_every_table_of_a_record_is_shown_once() -> None:
    shown = Counter(mark for page in PAGES for mark in marked(page))
    expected = Counter[tuple[str, str]]()
    for name, record in KNOWN.items():
        if (name, "") in shown or len(record.tables) == 1:
            expected[name, ""] += 1
        else:
            expected.update((name, str(number + 1)) for number in range(len(record.tables)))
    assert shown == expected


@pytest.mark.parametrize("name", KNOWN)
def test_a_record_says_how_its_figures_came_about(name: str) -> None:
    record = KNOWN[name]
    assert record.tables or record.said
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", record.date) and re.fullmatch(r"[0-9a-f]{10}", record.commit)
    assert record.machine and record.source == harness.RUN and record.scripts
    for table in record.tables:
        assert {len(row) for row in (table.columns, table.align, *table.rows)} == {len(table.columns)}
    for command in record.commands:
        assert (ROOT / "benchmarks" / harness.script_of(command)).is_file()
    assert (RECORDS / f"{name}.json").read_text(encoding="utf-8").count("\n") <= 102


def test_scripts_that_constants_name_are_in_choices() -> None:
    code = "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "restore").rglob("*.py")))
    named = set(re.findall(r"benchmarks/(\w+)/\w+\.py", code))
    named |= {one.script.split("/")[1] for one in constants.constants() if one.script.startswith("benchmarks/")}
    assert named == {"choices"}


@pytest.mark.parametrize(("page", "claim"), [(page, claim) for page, rows in CLAIMS.items() for claim in rows])
def test_figures_that_are_claimed_are_in_records(page: str, claim: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    (line,) = (line for line in text.splitlines() if line.startswith(f"| {claim} |"))
    measured = list[str]()
    for name, first in CLAIMS[page][claim]:
        rows = [row for table in KNOWN[name].tables for row in table.rows if row[0] == first]
        assert rows, (name, first)
        measured += [cell for row in rows for cell in row[1:]]
    figures = re.findall(r"\d+\.\d+", line.removeprefix(f"| {claim} |"))
    assert len(figures) == 3 and not [figure for figure in figures if not has(measured, figure)]


@pytest.mark.parametrize(("page", "sentence", "name"), SENTENCES, ids=[name for *_, name in SENTENCES])
def test_figures_in_sentences_are_in_records(page: str, sentence: str, name: str) -> None:
    record = KNOWN[name]
    cells = [*record.said, *(cell for table in record.tables for row in table.rows for cell in row)]
    (stated,) = re.finditer(sentence, (ROOT / page).read_text(encoding="utf-8"))
    assert not [figure for figure in stated.groups() if not has(cells, figure)]


def test_every_row_of_figures_at_the_head_of_the_readme_is_a_claim() -> None:
    head = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Start")[0]
    table = head[head.index("| wrong pixels") :].split("\n\n")[0]
    rows = [line.split("|")[1].strip() for line in table.splitlines()]
    assert rows[2:] == list(CLAIMS["README.md"])


def test_what_a_script_prints_becomes_a_record(tmp_path: Path) -> None:
    script = tmp_path / "some.py"
    script.write_text(SCRIPT)
    record = harness.measured((str(script),), "at most 2")
    assert record.tables == PRINTED and record.said == ("three digits",) and record.aim == "at most 2"
    assert record.state == "measured"
    kept = tmp_path / "some.json"
    harness.write(kept, record)
    assert harness.read(kept) == record
    assert '["`restore`", "1.50"]' in kept.read_text(encoding="utf-8")
    script.write_text(f"{SCRIPT}# changed\n")
    assert harness.read(kept).state == "changed since"


def test_a_script_that_fails_makes_no_record(tmp_path: Path) -> None:
    script = tmp_path / "some.py"
    script.write_text("raise SystemExit(3)")
    with pytest.raises(InputError, match=r"some\.py"):
        harness.measured((str(script),))


def test_what_benchmarks_print_are_tables(capsys: pytest.CaptureFixture[str]) -> None:
    head("", "damage", "wrong, %", left=("damage",))
    row("`restore`", "flips", f"{1.5:.2f}")
    head("second")
    (first, second), said = harness.printed(capsys.readouterr().out.splitlines())
    assert first == Table(("", "damage", "wrong, %"), "llr", (("`restore`", "flips", "1.50"),))
    assert second == Table(("second",), "l", ()) and not said


@pytest.mark.thorough
def test_a_benchmark_is_measured() -> None:
    record = harness.measured(("package/tap_step.py --repeats 1 --threads 1",))
    (table,) = record.tables
    assert table.columns == ("", "ms", "ratio") and table.rows[-1][0::2] == ("its four products", "1.00")
    assert record.state == "measured" and record.commit and "cores" in record.machine
