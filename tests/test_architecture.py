"""Imports point one way, files and functions are small, and a name means one thing."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import restore
from restore.cli.command import EXTRAS

PACKAGE = Path(restore.__file__).parent

# Every room of the package and the rooms it may import, each of them listed further up: so no circle can form.
ROOMS: dict[str, str] = {
    "errors": "",
    "signals": "",
    "buckets": "errors",
    "files": "errors buckets",
    "sizes": "errors",
    "console": "errors",
    "tracing": "",
    "status": "",
    "fields": "",
    "components": "",
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
        "errors signals components fields status registry families channels files sizes units images priors zoo solvers"
    ),
    "torch": "errors channels registry priors zoo solvers",
    "export": "errors files data fields status registry families channels zoo solvers inference",
    "app": "errors status registry channels files images data zoo inference",
    "evaluation": "errors console status sizes channels units priors zoo solvers inference",
    "learning": (
        "errors console fields status registry families channels couplings files sizes units priors data zoo "
        "solvers inference export evaluation"
    ),
    "api": "errors console status registry channels sizes images data zoo inference learning",
    "ocrmypdf_plugin": "errors channels images zoo inference",
    "sklearn": "errors console families registry priors zoo solvers evaluation learning",
    "__init__": "errors api",
    "cli": (
        "errors signals status registry channels console buckets files sizes images data zoo inference app "
        "evaluation export learning"
    ),
    "__main__": "cli",
}

# Rooms without which nothing is restored: a plain install, without extras, has all that they import, but torch.
PLAIN = {"images", "inference", "api", "cli", "channels", "components", "files"}

# What is no part of the package: data it produces and consumes, and what is written about it.
OUTSIDE = {"training", "models", "tests", "benchmarks", "assets", "docs"}

# The most lines of a file, and the most files of a folder.
LINES, FILES = 530, 15

# The most branches of functions that decide what becomes of a picture.
BRANCHES_DECIDING = 12

# What a reader can hold in mind: branches of a function, names that it sets beside its parameters, syntax nodes of a
# line. How many functions and lines have more, which may only fall, and the most that any of them has.
BRANCHES, NAMES, NODES = 15, 15, 25
BRANCHED, MOST_BRANCHES = 0, 15
NAMED, MOST_NAMES = 16, 42
DENSE, MOST_NODES = 17, 39
# Assignments of several values of different forms to several names at once.
MIXED = 40

# The most rules by which a picture comes back as it was; and the most numbers that decide what becomes of it: their
# limits, and what is tuned where that is decided.
MOST_RULES, MOST_NUMBERS = 9, 40

# Constants that are the same kind of thing in several modules, such as a logger or the files of a data set.
SHARED_NAMES = {"EXAMPLE", "TYPE_CHECKING", "_LOG", "_MIRRORS", "_SEED", "_SIDE", "_TEST", "_TRAIN"}


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


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")


def test_a_plain_install_restores() -> None:
    """A picture must not need a library of an extra on its way; torch is asked for where a prior has no graph."""
    extras = {library for library in EXTRAS if library != "torch"}
    for path in files():
        if path.relative_to(PACKAGE).parts[0].removesuffix(".py") in PLAIN:
            named = {module.partition(".")[0] for module in imported(path)}
            assert not named & extras, f"{path} imports {named & extras}"


def imported_files(path: Path, modules: Collection[str]) -> Iterator[str]:
    """The modules that a file imports, or imports from; those of names that are modules themselves."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from (name if name in modules else str(node.module) for name in names)


def test_no_files_import_each_other_in_a_circle() -> None:
    """Not even within functions, or for types alone."""
    modules = {module_of(path): path for path in files()}
    TopologicalSorter({name: set(imported_files(path, modules)) for name, path in modules.items()}).prepare()


def test_one_function_writes_sizes_so_that_they_have_one_order() -> None:
    assert [place for path in files() for place in by_hand(path)] == []


def test_files_and_folders_are_small() -> None:
    folders = {path.parent for path in files()}
    for folder in folders:
        ideas = [path for path in folder.glob("*.py") if path.name != "__init__.py"]
        assert len(ideas) <= FILES, f"{folder} holds {len(ideas)} files; group what belongs together"
    for path in files():
        assert len(path.read_text().splitlines()) <= LINES, f"{path} has more than {LINES} lines; split it by idea"


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


def walked() -> Iterator[tuple[str, ast.AST]]:
    """Every syntax node of the package, with the file it is in."""
    for path in files():
        name = str(path.relative_to(PACKAGE))
        yield from ((name, node) for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def functions() -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    return ((f"{file}: {node.name}", node) for file, node in walked() if isinstance(node, FUNCTION))


FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)


def branches(function: ast.AST) -> int:
    """How many branches a function has, with those within it."""
    return sum(isinstance(part, BRANCHING) for part in ast.walk(function))


def names_set(function: ast.AST) -> int:
    """How many names a function sets, with those of functions within it, but for parameters."""
    parameters = {part.arg for part in ast.walk(function) if isinstance(part, ast.arg)}
    names = {part.id for part in ast.walk(function) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    return len(names - parameters)


def form(node: ast.expr) -> str:
    """The syntax of an expression, whatever its names and constants."""
    return " ".join(type(part).__name__ for part in ast.walk(node))


def mixed(node: ast.AST) -> bool:
    """True for `a, b = 1, f(x)`; False where values have one form, or a name that is set is read, as in a swap."""
    if not (
        isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple) and isinstance(node.targets[0], ast.Tuple)
    ):
        return False
    targets = {ast.unparse(target) for target in node.targets[0].elts}
    read = {ast.unparse(part) for part in ast.walk(node.value) if isinstance(part, ast.expr)}
    return len(set(map(form, node.value.elts))) > 1 and not targets & read


def over(limit: int, counts: dict[str, int]) -> tuple[int, int]:
    """How many are above a limit, and the most of any."""
    return sum(count > limit for count in counts.values()), max(counts.values())


def test_functions_can_be_reviewed() -> None:
    """Lower the limits with every function that is made simpler."""
    from benchmarks.package.constants import DECIDING

    counts = {f"{name}:{node.lineno}": branches(node) for name, node in functions()}
    assert over(BRANCHES, counts) == (BRANCHED, MOST_BRANCHES), {n: c for n, c in counts.items() if c > BRANCHES}
    names = {f"{name}:{node.lineno}": names_set(node) for name, node in functions()}
    assert over(NAMES, names) == (NAMED, MOST_NAMES), {n: c for n, c in names.items() if c > NAMES}
    places = tuple(f"inference/{name}" for name in DECIDING)
    deciding = [count for name, count in counts.items() if name.startswith(places)]
    assert len(deciding) > 100 and max(deciding) <= BRANCHES_DECIDING


def outside_texts(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all within it, but for parts of f-strings, about whose lines versions of Python disagree."""
    yield node
    if not isinstance(node, ast.JoinedStr):
        for part in ast.iter_child_nodes(node):
            yield from outside_texts(part)


def parts_of_lines() -> Counter[str]:
    """How many expressions and statements begin on each line."""
    trees = ((path.relative_to(PACKAGE), ast.parse(path.read_text(encoding="utf-8"))) for path in files())
    parts = ((name, node) for name, tree in trees for node in outside_texts(tree))
    return Counter(f"{name}:{node.lineno}" for name, node in parts if isinstance(node, ast.expr | ast.stmt))


def test_lines_can_be_read() -> None:
    """One assignment a line, and no line of very many parts."""
    nodes = parts_of_lines()
    assert over(NODES, nodes) == (DENSE, MOST_NODES), {line: count for line, count in nodes.items() if count > NODES}
    found = [f"{file}:{node.lineno}" for file, node in walked() if mixed(node)]
    assert len(found) == MIXED, found


def test_few_rules_and_numbers_decide() -> None:
    from benchmarks.package import constants
    from restore.inference.decision.rules import READ_BY_OTHERS, RULES

    assert len(RULES) <= MOST_RULES
    assert len(RULES) + len(READ_BY_OTHERS) + len(constants.deciding()) <= MOST_NUMBERS


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
