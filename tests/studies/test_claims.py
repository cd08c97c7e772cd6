"""The table of the papers' claims: complete, and every figure in it is that of a record."""

from __future__ import annotations

import re

from harness import TRAINING

ROOT = TRAINING.parent
NUMBERS = {"F": 14, "D": 19, "C": 21, "B": 7, "T": 25}

# A measured decimal has a digit before its point; a setting, such as a rate of .05, has none.
MEASURED = re.compile(r"(?<![\w.])-?\d[\d,]*\.\d+(?:e-?\d+)?")


def rows() -> dict[str, list[str]]:
    """The cells after the first of every row, by that one."""
    lines = [line for line in (TRAINING / "claims.md").read_text().splitlines() if re.match(r"\| [A-Z]\d", line)]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return {first: rest for first, *rest in cells}


def test_every_claim_has_a_row_and_no_cell_is_empty() -> None:
    found = rows()
    assert list(found) == [f"{paper}{number}" for paper, last in NUMBERS.items() for number in range(1, last + 1)]
    for name, cells in found.items():
        assert len(cells) == 5 and all(cells), name


def test_a_verdict_says_why_or_what_a_run_would_cost() -> None:
    for name, (_, _, verdict, trials, command) in rows().items():
        assert re.match(r"[RPNX]\b|not (run|decided): [\d.]+ h$", verdict), name
        if re.search(r"\b[NX]\b", verdict):
            assert "cause untested" in verdict or ": " in verdict, f"{name}: say the tested cause, or that none is"
        assert re.fullmatch(r"-|\d+", trials), name
        for script in re.findall(r"`(\w+\.py)", command):
            assert (TRAINING / "studies" / script).is_file(), name
        for path in re.findall(r"(?:tests|benchmarks|training)/[\w/.-]+", command):
            assert (ROOT / path).exists(), f"{name}: {path}"
        for path, test in re.findall(r"(tests/[\w/.-]+)::(\w+)", command):
            assert f"def {test}(" in (ROOT / path).read_text(), f"{name}: {test}"


def test_figures_are_those_of_the_records() -> None:
    import claims  # computes them all

    assert set(claims.FIGURES) <= set(rows())
    for name, (_, ours, *_) in rows().items():
        figures = claims.FIGURES.get(name, [])
        for figure in figures:
            assert re.search(rf"(?<![\d.]){re.escape(figure)}(?![\d.]*\d)", ours), f"{name}: {figure} is missing"
        assert set(MEASURED.findall(ours)) <= set(figures), name
