"""List every number that the package sets by name, with what it is, the script that chose it, and when.

    python benchmarks/package/constants.py

Writes `docs/constants.md` from the modules themselves. A constant is a name in capitals that a module sets to a number,
or to a tuple of numbers. The comment above it describes it; a script in backticks there is the one that chose its
value. The date is that of the last change of its line, from git.
"""

from __future__ import annotations

import ast
import functools
import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "constants.md"

CAPITALS = re.compile(r"_?[A-Z][A-Z0-9_]*")
SCRIPT = re.compile(r"`((?:benchmarks|training|assets)/[\w/]+\.py)(?: [^`]*)?`")
ROW = re.compile(r"^\| `(\w+)` \| `([^`]+)` \|", re.MULTILINE)

# The constants that nobody chose for the results. What is not named here counts as tuned.
KINDS = {
    # By a file's format, a protocol, a definition, a publication, or what a kernel's source or a data set is.
    "fixed": """
        api/kinds.py _CHANNELS
        app/faults.py GONE
        channels/drawing.py HIDDEN_SHARE PARTS
        channels/noise.py WIDTH
        channels/values.py MOST_LOG_ODDS
        channels/views.py VIEWS ODDS_VIEWS
        data/sets/caltech101_silhouettes.py _SIDE _SEED
        data/sets/cbcl.py _SIDE
        data/sets/omniglot.py _DRAWINGS _SEED _SIDE _SHOWN_SIDE
        data/sets/shapes.py _SIDE _RADII TRAINED TESTED _DRAWS _SEED
        evaluation/likelihoods/ais.py _SALAKHUTDINOV
        export/bundle.py FORMAT
        export/graph.py OPSET IR_VERSION
        images/colours.py MIDDLE
        images/outputs.py STDIN STDOUT
        images/pdf.py DPI PAGE_SIDES
        images/picture.py HALF_LEVEL
        images/tiff.py _FAX
        images/tones.py INK_LEVEL PAPER_LEVEL SCALE
        inference/decision/notes.py LEAST_WRITTEN
        inference/onnx/contract.py VERSION _DIGITS
        inference/onnx/engine.py FATAL_ONLY
        inference/restored.py UNEQUAL
        inference/scans/sheet.py ROUNDED MEDIAN
        learning/optimizers.py NEWTON_SCHULZ NEWTON_SCHULZ_STEPS
        learning/rules/mixture.py FLATTEST
        learning/run/report.py SEED
        priors/bits.py BIT_VALUES
        priors/mixture.py CENTRE
        priors/page.py TINY BLOCK
        solvers/messages/belief_propagation.py KERNEL_HIDDEN_UNITS
        solvers/messages/bp_kernel.py ROW_MULTIPLE LANES
        solvers/messages/bp_triton.py ODDS_EXPONENT
        zoo/description.py NEWEST
        zoo/structure.py LARGEST_INTEGER
    """,
    # What goes beyond is refused, cut off, or comes later; what does not is as it would be without the limit.
    "limit": """
        api/given.py FARTHEST_OF_ALL
        app/server.py HEADING LINGERING
        app/faults.py SENDING
        app/workers.py AGAIN
        app/worker.py LOOK GRACE
        cli/serve.py MOST_PIXELS QUEUE TIMEOUT
        console.py PLAIN_SECONDS
        data/archives.py MAX_MEMBERS MAX_MEMBER_BYTES MAX_ARCHIVE_BYTES
        data/gathering.py MAX_PIXELS FEWEST
        errors.py NAMES_LISTED REASON
        evaluation/likelihoods/exact.py MAX_SUMMED
        files.py ABANDONED
        images/pdf.py SECONDS PAGE_BYTES
        images/metadata.py _PROFILE_BYTES
        images/reading.py _SET _MOST_SCANS
        images/tiff.py MOST_PAGES MOST_ENTRIES MOST_STRIPS
        inference/marks/dots.py MOST_DOTS PATTERNS
        inference/marks/specks.py STEPS
        inference/notebook.py SHOWN SHOWN_OF_MANY
        learning/recipe/recipe.py MAX_BYTES
        sizes.py DEFAULT_MAX_PIXELS
        solvers/messages/bp_kernel.py LARGEST_WEIGHT LARGEST_FIELD
        solvers/starts.py MOST_IMAGES
        zoo/limits.py FILE CARD_BYTES TEXT WIDEST LAYERS MODES MOST_STARTS DISTANCES ITERATIONS COLDEST HOTTEST OVERLAP
        zoo/limits.py IMAGES_AT_ONCE FINITE
    """,
    # How work is divided: time and memory depend on it, and the results by rounding at most.
    "speed": """
        api/given.py PORTION_PIXELS
        cli/batch/run.py FILE_THREADS READ_AHEAD CHUNK_PICTURES CHUNK_PIXELS
        data/dataset.py VALUES_AT_ONCE
        data/variations.py PIXELS_AT_ONCE
        evaluation/likelihoods/exact.py CHUNK_EXPONENT
        export/graph.py FREE_SHAPE FOLDED
        export/packing.py TYPICAL_STARTS FEW_STARTS
        inference/onnx/engine.py SMALL_BATCH LARGE_BATCH
        inference/case.py SMALL_PICTURE
        inference/marks/pieces.py COARSER
        inference/marks/streaks.py ROWS_TOGETHER
        inference/marks/witness.py AT_ONCE
        inference/restore.py PICTURES_AT_ONCE
        images/writing.py ROWS_WRITTEN
        inference/restored.py STRIP
        inference/tiles/blend.py HALF_PRECISION_PIXELS
        inference/tiles/blocks.py TILES
        inference/torch_engine.py ARRAYS_PER_ROW MANY_HIDDEN
        learning/course.py VALIDATION_BATCH PAGES_AT_ONCE
        learning/finish.py CHAINS SWEEPS_PER_LOOK
        learning/gradients/pseudo_likelihood.py CODED
        learning/rules/bslm.py SWEEP_BLOCK NARROWEST
        learning/rules/frank_wolfe.py STATES_AT_ONCE
        learning/rules/mixture.py PATCHES_AT_ONCE
        solvers/adaptive_tap.py COUPLINGS SQUARES
        solvers/loop.py ASKED
        solvers/messages/belief_propagation.py ARRAYS_PER_IMAGE
        solvers/messages/bp_triton.py EDGES HIDDEN SPANS BUSY
        solvers/messages/relaxed_bp.py RELAXED_ARRAYS
        solvers/parts.py CACHED
        solvers/update_triton.py UNITS_PER_PROGRAM
        units/truncated_gaussian.py INTEGRATED
    """,
}

# The files of restore/inference/ that decide what becomes of a picture.
DECIDING = (
    "case",
    "choose",
    "painting",
    "restore",
    "restored",
    "score",
    "crops",
    "candidates",
    "decision/",
    "rivals/",
    "scans/",
)

OPENING = """# Constants

Every number that `restore/` sets by name: {total} in {files} files.

- {fixed} are **fixed** by a format, a definition or a publication;
- {limit} are **limits**: results below them do not depend on them;
- {speed} divide work, for **speed** and memory;
- {tuned} are **tuned**: results depend on them. {chosen} of these name the script that chose them.

This page is generated: `python benchmarks/package/constants.py` writes it anew, and a test compares it with the code.
"""


@dataclass(frozen=True)
class Constant:
    """A number with a name.

    Attributes:
        file: the module, below the root.
        line: where it is set, from 1.
        name: in capitals.
        value: as the module writes it.
        comment: what it is, with its unit; empty if nothing is said.
        shared: True if the comment is that of the constant before it.
    """

    file: str
    line: int
    name: str
    value: str
    comment: str
    shared: bool = False

    @property
    def kind(self) -> str:
        """A key of `KINDS`, or tuned."""
        return kinds().get((self.file, self.name), "tuned")

    @property
    def script(self) -> str:
        """The script that chose the value; empty if the comment names none."""
        named = SCRIPT.search(self.comment)
        return named[1] if named else ""


@functools.cache
def kinds() -> dict[tuple[str, str], str]:
    """The kind of each constant that is not tuned, by file and name."""
    lines = [(kind, line.split()) for kind, text in KINDS.items() for line in text.strip().splitlines()]
    return {(f"restore/{file}", name): kind for kind, (file, *names) in lines for name in names}


def is_number(node: ast.expr) -> bool:
    """True for numbers, sums and products of numbers, and tuples of them."""
    match node:
        case ast.Constant(value=int() | float()):
            return not isinstance(node.value, bool)
        case ast.UnaryOp(operand=operand):
            return is_number(operand)
        case ast.BinOp(left=left, right=right):
            return is_number(left) and is_number(right)
        case ast.Tuple(elts=elements):
            return bool(elements) and all(map(is_number, elements))
        case ast.Call(func=function, args=[value], keywords=[]):  # a number that Triton compiles in
            return ast.unparse(function) == "tl.constexpr" and is_number(value)
    return False


def numbers_of(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """The constants that a statement sets, and their values."""
    match statement:
        case (
            ast.Assign(targets=[ast.Name(id=name)], value=value)
            | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
        ):
            pairs = [(name, value)]
        case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
            pairs = [(ast.unparse(one), value) for one, value in zip(names, values, strict=True)]
        case _:
            pairs = []
    yield from ((name, value) for name, value in pairs if CAPITALS.fullmatch(name) and is_number(value))


def constants_of(path: Path) -> list[Constant]:
    """The constants of a module, in order.

    The description of one is the comment behind it, or else the one above it. Constants in consecutive lines share the
    comment above the first.
    """
    text, file = path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix()
    lines, listed = text.splitlines(), list[Constant]()
    previous, next_line = "", 0  # the comment of the last constant, and the line after it
    for statement in ast.parse(text).body:
        if not (numbers := list(numbers_of(statement))):
            continue
        assert statement.end_lineno is not None
        comment, behind = above(lines, statement.lineno - 1), lines[statement.end_lineno - 1].partition("  # ")[2]
        inherited = not comment and statement.lineno == next_line
        comment = previous if inherited else comment
        for number, (name, value) in enumerate(numbers):
            shared = bool(comment) and not behind and (inherited or number > 0)
            written = as_written(value, lines)
            listed.append(Constant(file, statement.lineno, name, written, behind or comment, shared))
        previous, next_line = comment, statement.end_lineno + 1
    return listed


def as_written(node: ast.expr, lines: list[str]) -> str:
    """An expression as its line has it, such as 2**24; over several lines, in one line."""
    if node.end_lineno != node.lineno:
        return ast.unparse(node)
    return lines[node.lineno - 1].encode()[node.col_offset : node.end_col_offset].decode()


def above(lines: list[str], index: int) -> str:
    """The comment directly above a line, counted from 0; empty if there is none."""
    start = index
    while start > 0 and lines[start - 1].startswith("#"):
        start -= 1
    return " ".join(line.removeprefix("#").strip() for line in lines[start:index])


def constants() -> list[Constant]:
    """All constants of the package, by file."""
    return [constant for path in sorted((ROOT / "restore").rglob("*.py")) for constant in constants_of(path)]


def deciding() -> list[Constant]:
    """The tuned ones that decide what becomes of a picture."""
    return _tuned(DECIDING)


def in_marks() -> list[Constant]:
    """The tuned ones that find marks."""
    return _tuned(("marks/",))


def _tuned(places: Sequence[str]) -> list[Constant]:
    files = tuple(f"restore/inference/{name}" for name in places)
    return [constant for constant in constants() if constant.kind == "tuned" and constant.file.startswith(files)]


def dates_of(file: str) -> list[str]:
    """When each line of a file was last changed: year, month and day."""
    command = ["git", "blame", "-w", "-M", "-C", "--line-porcelain", file]
    blamed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    seconds = re.findall(r"^author-time (\d+)$", blamed, re.MULTILINE)
    return [datetime.fromtimestamp(int(one), UTC).date().isoformat() for one in seconds]


def page() -> str:
    """The page, with a table for each file."""
    listed = constants()
    files = {file: list(group) for file, group in groupby(listed, lambda constant: constant.file)}
    counts = Counter(constant.kind for constant in listed)
    chosen = sum(bool(constant.script) for constant in listed)
    parts = [OPENING.format(total=len(listed), files=len(files), chosen=chosen, **counts).strip()]
    for file, group in files.items():
        dates = dates_of(file)
        rows = ["| constant | value | kind | what it is, and its unit | chosen by | date |", "| --- " * 6 + "|"]
        for constant in group:
            script = f"`{constant.script}`" if constant.script else ""
            text = "as above" if constant.shared else cell(constant.comment)
            date = dates[constant.line - 1]
            rows.append(f"| `{constant.name}` | `{constant.value}` | {constant.kind} | {text} | {script} | {date} |")
        parts += [f"## {file}", "\n".join(rows)]
    return "\n\n".join(parts) + "\n"


def cell(text: str) -> str:
    """A comment as a cell of a table, outside of backticks without any markup of its own."""
    pieces = text.replace("|", "\\|").split("`")
    pieces[::2] = [re.sub(r"([*_\[\]])", r"\\\1", piece).replace("<", "&lt;") for piece in pieces[::2]]
    return "`".join(pieces)


def listed_on_page() -> set[tuple[str, str, str]]:
    """What the page has: file, name and value of each constant."""
    sections = re.split(r"^## (\S+)\n", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return {
        (file, name, value)
        for file, section in zip(sections[::2], sections[1::2], strict=True)
        for name, value in ROW.findall(section)
    }


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")
    listed = constants()
    silent = [constant for constant in listed if not constant.comment]
    print(f"{PAGE.relative_to(ROOT)}: {len(listed)} constants; {len(silent)} have no comment:")
    for constant in silent:
        print(f"{constant.file}:{constant.line}: {constant.name} = {constant.value}")


if __name__ == "__main__":
    main()
