"""docs/onnx.md and its examples: other programs restore with an exported file, as the page says, as Python does."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from exports import resealed
from PIL import Image
from processes import HANG

from restore import zoo
from restore.inference.onnx import contract as seal
from restore.inference.onnx.contract import OBSERVED, GraphFacts
from restore.inference.onnx.engine import OnnxEngine

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGE = (DOCS / "onnx.md").read_text()
PRIOR = ROOT / "models" / "tap-mnist-25"
P = 0.1


@dataclass(frozen=True)
class Case:
    """An exported prior, a damaged image, and what onnxruntime makes of it in Python."""

    model: Path
    picture: Path
    facts: GraphFacts
    found: dict[str, np.ndarray]

    @property
    def pixels(self) -> np.ndarray:
        return np.uint8(255) * self.found["restored"][0].astype(np.uint8)

    @property
    def ending(self) -> str:
        return f"iterations {self.found['iterations'][0]}, converged {str(self.found['converged'][0]).lower()}\n"


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    folder = tmp_path_factory.mktemp("exported")
    model, picture = folder / "model.onnx", folder / "damaged.pgm"
    # What `restore export` makes of the prior, without the time that takes: the published graph, its tensors inside.
    model.write_bytes(resealed(onnx.load(PRIOR / zoo.GRAPH)))
    with Image.open(ROOT / "assets" / "digit-noisy.png") as image:
        image.save(picture)
        grey = np.asarray(image, np.float32)[None] / 255
    engine = OnnxEngine.load(model)
    told = {"image": grey, "p": np.full((1, 1, 1), P, np.float32), "mask": np.zeros((1, 1, 1), bool)}
    return Case(model, picture, engine.facts, engine.run(engine.header, told))


def run(*command: str | Path, where: Path, seconds: float = 120) -> str:
    """Standard output of a command that must succeed."""
    done = subprocess.run(command, cwd=where, capture_output=True, text=True, timeout=seconds)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_python_of_the_page_restores(case: Case, tmp_path: Path) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S)
    shutil.copy(case.model, tmp_path / "tap-mnist.onnx")
    with Image.open(case.picture) as image:
        np.save(tmp_path / "damaged.npy", np.asarray(image))
    said = run(sys.executable, "-c", code, where=tmp_path)
    assert said.startswith(f"iterations {case.found['iterations'][0]}, ") and said.endswith("converged True\n")
    assert np.array_equal(np.load(tmp_path / "restored.npy"), case.found["restored"][0])


def restore_in_node(case: Case, modules: Path, where: Path) -> None:
    """Run the example with the packages of a node_modules folder, and compare."""
    # Imports are looked up from where the script lies.
    (where / "node_modules").symlink_to(modules)
    script = (DOCS / "restore.mjs").read_text()
    assert len(script.splitlines()) <= 30
    note = 'await writeFile("means.json", JSON.stringify(Array.from(found.means.data)));\n'
    (where / "restore.mjs").write_text(script + note)
    said = run("node", "restore.mjs", case.model, case.picture, "restored.pgm", str(P), where=where)
    assert said == case.ending
    means = np.array(json.loads((where / "means.json").read_text()))
    assert np.abs(means - case.found["means"].ravel()).max() < 1e-5
    with Image.open(where / "restored.pgm") as image:
        assert np.array_equal(np.asarray(image), case.pixels)


def node_modules() -> Path | None:
    """A folder that holds onnxruntime-web already."""
    known = [os.environ.get("RESTORE_NODE_MODULES", ""), *os.environ.get("NODE_PATH", "").split(os.pathsep)]
    if shutil.which("npm"):
        done = subprocess.run(["npm", "root", "--global"], capture_output=True, text=True, timeout=HANG)
        known.append(done.stdout.strip())
    folders = (Path(folder).resolve() for folder in known if folder)
    return next((folder for folder in folders if (folder / "onnxruntime-web").is_dir()), None)


needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")


@pytest.mark.thorough
@needs_node
def test_node_restores(case: Case, tmp_path: Path) -> None:
    modules = node_modules()
    if modules is None:
        pytest.skip("needs onnxruntime-web: set RESTORE_NODE_MODULES to a node_modules folder that holds it")
    restore_in_node(case, modules, tmp_path)


def headers() -> Path | None:
    """Where the headers of onnxruntime lie."""
    known = [
        os.environ.get("RESTORE_ONNXRUNTIME_INCLUDE", ""),
        "/usr/include/onnxruntime",
        "/usr/local/include/onnxruntime",
    ]
    folders = (Path(folder).resolve() for folder in known if folder)
    return next((folder for folder in folders if (folder / "onnxruntime_cxx_api.h").is_file()), None)


def test_cpp_restores(case: Case, tmp_path: Path) -> None:
    """Built with the headers that are there and the library of the Python package."""
    include = headers()
    if include is None or shutil.which("g++") is None:
        pytest.skip("needs g++ and onnxruntime's headers: set RESTORE_ONNXRUNTIME_INCLUDE to their folder")
    (version,) = re.findall(r"#define ORT_API_VERSION (\d+)", (include / "onnxruntime_c_api.h").read_text())
    if int(version) > int(onnxruntime.__version__.split(".")[1]):
        pytest.skip(f"{include}: is for onnxruntime 1.{version}, newer than the installed {onnxruntime.__version__}")
    library = next((Path(onnxruntime.__file__).parent / "capi").glob("libonnxruntime.so.1.*"), None)
    if library is None:
        pytest.skip("the Python package has no libonnxruntime.so to link with")
    (tmp_path / "libonnxruntime.so.1").symlink_to(library)
    (command,) = re.findall(r"^// +(g\+\+ .*)$", (DOCS / "restore.cpp").read_text(), re.M)
    shutil.copy(DOCS / "restore.cpp", tmp_path)
    given = f"INCLUDE={shlex.quote(str(include))} LIB={shlex.quote(str(tmp_path))}"
    run("bash", "-c", f"{given}; {command} -Wall -Wextra -Werror", where=tmp_path)
    said = run(tmp_path / "restore", case.model, case.picture, "restored.pgm", str(P), where=tmp_path)
    assert said == case.ending
    with Image.open(tmp_path / "restored.pgm") as image:
        assert np.array_equal(np.asarray(image), case.pixels)


def table(heading: str) -> dict[str, list[str]]:
    """The rows of the first table below a heading of the page, by what their first cell has in backquotes."""
    (section,) = re.findall(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S)
    (first, *_) = re.findall(r"(?:^\|.*\n)+", section, re.M)
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in first.splitlines()[2:]]
    return {cells[0].strip("` |"): cells[1:] for cells in rows}


def test_the_page_lists_what_a_graph_has(case: Case) -> None:
    listed = table("Inputs")
    graphs = [replace(case.facts, channel=channel).interface(case.facts.header)[0] for channel in OBSERVED]
    promised = {name: (kind, len(shape)) for inputs in graphs for name, (kind, shape) in inputs.items()}
    types = {"float32": "tensor(float)", "float64": "tensor(double)", "int64": "tensor(int64)", "bool": "tensor(bool)"}
    ranks = {name: 0 if shape == "scalar" else len(shape.split(",")) for name, (_, shape, _) in listed.items()}
    assert {name: (types[cells[0]], ranks[name]) for name, cells in listed.items()} == promised
    outputs = table("Outputs")
    assert list(outputs) == list(case.facts.interface(case.facts.header)[1])
    session = onnxruntime.InferenceSession(case.model)
    for node in session.get_outputs():
        kind, shape, _ = outputs[node.name]
        assert (types[kind], len(shape.split(","))) == (node.type, len(node.shape)), node.name
    # Without what other families alone have, and what the file says of itself.
    listed = table("Metadata")
    elsewhere = {key for key, (meaning,) in listed.items() if meaning.startswith("for `")}
    assert set(listed) - elsewhere - {seal.KEY} == case.facts.to_metadata().keys()


@pytest.mark.parametrize("channel", OBSERVED)
def test_the_page_says_which_inputs_go_with_a_channel(channel: str) -> None:
    (row,) = re.findall(rf"^\| `{channel}` \|.*\| (`\w+`(?:, `\w+`)*) \|$", PAGE, re.M)
    assert tuple(re.findall(r"`(\w+)`", row)) == OBSERVED[channel]  # type: ignore[index]
