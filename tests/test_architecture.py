"""Imports point one way, and what needs no torch does not load it."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import HANG

import restore

PACKAGE = Path(restore.__file__).parent
ASSETS = Path(__file__).parent.parent / "assets"

# Every room of the package and the rooms it may import, each of them listed further up: so no circle can form.
ROOMS: dict[str, str] = {
    "errors": "",
    "buckets": "errors",
    "files": "errors buckets",
    "sizes": "errors",
    "console": "errors",
    "devices": "errors",
    "tracing": "",
    "status": "",
    "fields": "",
    "registry": "",
    "channels": "errors fields registry sizes tracing",
    "couplings": "tracing",
    "units": "errors fields registry tracing",
    "images": "errors buckets files sizes",
    "data": "errors sizes images",
    "priors": "errors fields tracing channels couplings units",
    "families": "errors registry fields channels couplings units priors",
    "zoo": "errors registry families channels couplings files sizes units priors",
    "solvers": "errors fields status registry tracing couplings units priors zoo",
    "inference": (
        "errors fields status registry families channels devices files sizes units images priors zoo solvers"
    ),
    "torch": "errors channels registry priors zoo solvers",
    "export": "errors files data fields status registry families channels zoo solvers inference",
    "app": "errors status registry channels files images data zoo inference",
    "evaluation": "errors console status sizes channels units priors zoo solvers inference",
    "learning": (
        "errors console fields status registry families channels couplings files sizes units priors data zoo "
        "solvers inference export evaluation"
    ),
    "api": "errors console status registry channels devices sizes images data zoo inference learning",
    "ocrmypdf_plugin": "errors channels images zoo inference",
    "sklearn": "errors console families registry priors zoo solvers evaluation learning",
    "__init__": "errors api",
    "cli": (
        "errors status registry channels console devices buckets files sizes images data zoo inference app "
        "evaluation export learning"
    ),
    "__main__": "cli",
}

# What is no part of the package: data it produces and consumes, and what is written about it.
OUTSIDE = {"training", "models", "tests", "benchmarks", "assets", "docs"}

# The most lines of a file, and the most files of a folder.
LINES, FILES = 530, 15

# At most as many lines in all of the package's modules: a check against growth. Density is worse than length.
TOTAL = 30_415

# The files that decide what becomes of a picture, and the most branches of their functions; the most branches of any
# function of the package, and how many functions have more than `BRANCHES`.
DECIDING = (
    "case",
    "choose",
    "painting",
    "restore",
    "restored",
    "score",
    "candidates",
    "decision/",
    "rivals/",
    "scans/",
)
BRANCHES_DECIDING, BRANCHES, MOST_BRANCHES, BRANCHED = 12, 15, 31, 22

# The most rules by which a picture comes back as it was.
MOST_RULES = 12

# Constants that are the same kind of thing in several modules, such as a logger or the files of a data set.
SHARED_NAMES = {"EXAMPLE", "TYPE_CHECKING", "_LOG", "_MIRRORS", "_SEED", "_SIDE", "_TEST", "_TRAIN"}

# Libraries too slow to load for a command that computes nothing.
HEAVY = {"torch", "sklearn", "skimage", "scipy", "matplotlib"}


def imported(path: Path) -> Iterator[str]:
    """Full names of the modules a file imports anywhere in it, in functions and for type checkers too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute here"
            # `from restore import zoo` imports restore.zoo.
            yield from (f"restore.{alias.name}" for alias in node.names) if node.module == "restore" else [node.module]


def by_hand(path: Path) -> Iterator[str]:
    """Sizes that an f-string puts together from two different values, such as f"{width}x{height}"."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        parts = node.values if isinstance(node, ast.JoinedStr) else ()
        for one, between, two in zip(parts, parts[1:], parts[2:], strict=False):
            if isinstance(between, ast.Constant) and between.value == "x" and ast.dump(one) != ast.dump(two):
                yield f"{path}:{node.lineno}"


def room_of(module: str) -> str:
    return module.split(".")[1]


def files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def test_the_table_names_every_room_and_has_no_circles() -> None:
    assert {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in files()} == set(ROOMS)
    above: set[str] = set()
    for room, allowed in ROOMS.items():
        assert set(allowed.split()) <= above, f"{room} may import only rooms listed above it"
        above.add(room)


def test_imports_point_one_way() -> None:
    for path in files():
        room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        modules = set(imported(path))
        rooms = {room_of(module) for module in modules if module.startswith("restore.")} - {room}
        assert rooms <= set(ROOMS[room].split()), f"{path}: {room} may import {ROOMS[room] or 'no other room'}"
        assert not {module.split(".")[0] for module in modules} & OUTSIDE, path


def test_one_function_writes_sizes_so_that_they_have_one_order() -> None:
    assert [place for path in files() for place in by_hand(path)] == []


def test_files_and_folders_are_small() -> None:
    folders = {path.parent for path in files()}
    for folder in folders:
        ideas = [path for path in folder.glob("*.py") if path.name != "__init__.py"]
        assert len(ideas) <= FILES, f"{folder} holds {len(ideas)} files; group what belongs together"
    for path in files():
        assert len(path.read_text().splitlines()) <= LINES, f"{path} has more than {LINES} lines; split it by idea"


def test_the_package_does_not_grow() -> None:
    """Whoever adds a feature shortens something else, or says in the commit why not."""
    total = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files())
    assert total <= TOTAL, f"restore/ has {total} lines, {total - TOTAL} more than TOTAL allows"


BRANCHING = (
    ast.If,
    ast.For,
    ast.While,
    ast.IfExp,
    ast.BoolOp,
    ast.Try,
    ast.ExceptHandler,
    ast.comprehension,
    ast.match_case,
    ast.With,
)


def branches(path: Path) -> Iterator[tuple[str, int]]:
    """How many branches each function of a file has, with those within it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inside = sum(isinstance(part, BRANCHING) for part in ast.walk(node))
            yield f"{path.relative_to(PACKAGE)}: {node.name}", inside


def test_functions_can_be_reviewed() -> None:
    """Lower the limits with every function that is made simpler."""
    found = [each for path in files() for each in branches(path)]
    assert max(count for _, count in found) <= MOST_BRANCHES
    assert sum(count > BRANCHES for _, count in found) <= BRANCHED, sorted(each for each in found if each[1] > BRANCHES)
    room = "inference/"
    deciding = [each for each in found if each[0].startswith(tuple(f"{room}{name}" for name in DECIDING))]
    assert len(deciding) > 100
    assert not [each for each in deciding if each[1] > BRANCHES_DECIDING]


def test_few_rules_decide() -> None:
    from restore.inference.decision.rules import RULES

    assert len(RULES) <= MOST_RULES


def constants(path: Path) -> Iterator[str]:
    """Names in capitals that a module sets."""
    for statement in ast.parse(path.read_text(encoding="utf-8")).body:
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        nodes = [node for target in targets if target for node in ast.walk(target)]
        yield from (node.id for node in nodes if isinstance(node, ast.Name) and len(node.id) > 1 and node.id.isupper())


def test_a_constant_means_one_thing() -> None:
    modules = Counter(name for path in files() for name in set(constants(path)))
    assert {name for name, count in modules.items() if count > 1} == SHARED_NAMES, "say in the name what it is"


def test_the_loop_knows_no_physics() -> None:
    modules = {module for module in imported(PACKAGE / "solvers" / "loop.py") if module.startswith("restore")}
    assert modules == {"restore.errors", "restore.status", "restore.tracing"}
    for file in ("status.py", "solvers/solution.py"):
        assert not [module for module in imported(PACKAGE / file) if module.startswith("restore")]


def test_every_warning_is_of_one_class() -> None:
    for path in files():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "warn":
                assert "RestoreWarning" in map(ast.unparse, node.args), f"{path}:{node.lineno}"


def heavy_after(code: str, *arguments: str) -> set[str]:
    """The heavy libraries a fresh interpreter has loaded after some code, which must end with exit code 0."""
    report = f"import atexit, sys; atexit.register(lambda: print(*sorted({HEAVY} & set(sys.modules)), file=sys.stderr))"
    command = [sys.executable, "-c", f"{report}; {code}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG)
    assert done.returncode == 0, done.stderr
    return HEAVY & set(done.stderr.split())


# Runs one command after the other in one process, and ends with the first code that is not 0.
COMMANDS = """
from restore.cli import main
for words in eval(sys.argv.pop()):
    sys.argv[1:] = words
    try:
        main()
    except SystemExit as ended:
        if ended.code:
            raise
    if {HEAVY} & set(sys.modules):
        sys.exit(f"{{words}} loads {{ {HEAVY} & set(sys.modules) }}")
"""


def test_importing_what_pictures_need_loads_no_torch() -> None:
    modules = ("restore.api", "restore.inference.restore", "restore.api.kinds", "restore.channels")
    assert not heavy_after(f"import restore, {', '.join(modules)}, restore.inference.open")


def test_commands_that_train_nothing_load_no_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(ASSETS / "digit.png", tmp_path)
    commands = [
        ["--help"],
        ["denoise", "--help"],
        ["train", "--help"],
        ["import", "--help"],
        ["app", "--help"],
        ["serve", "--help"],
        ["models"],
        ["models", "--json"],
        ["info", "tap-mnist"],
        ["info", "tap-mnist", "--json"],
        ["corrupt", "digit.png", "--task", "patch:8", "-o", "corrupt.png"],
        ["denoise", "digit.png", "--model", "crbm-bp-mnist-flip10", "-o", "denoise.png"],
        ["complete", "digit.png", "--mask", "digit.png", "--model", "tap-mnist", "-o", "complete.png"],
    ]
    assert not heavy_after(COMMANDS.format(HEAVY=HEAVY), repr(commands))
    assert all(Path(words[-1]).exists() for words in commands if "-o" in words)


@pytest.mark.thorough
def test_the_check_sees_torch_where_it_is_loaded() -> None:
    assert "torch" in heavy_after("import restore.fields")
