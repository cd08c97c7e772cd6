"""Graphs that hold what none of ours does are refused, and one bad prior never stops the others."""

from __future__ import annotations

import copy
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from exports import inference, refused, reheaded, resealed
from PIL import Image

import restore
from restore import zoo
from restore.channels.damage import Damage
from restore.inference.onnx import contract as seal
from restore.inference.onnx.engine import OnnxEngine
from restore.status import Status
from restore.zoo import GRAPH, WEIGHTS, published_folder

PUBLISHED = published_folder()


pytestmark = pytest.mark.usefixtures("quick_disk")

# --------------------------------------------------------------------------------------------------------- graphs


@pytest.fixture(scope="module")
def graph() -> onnx.ModelProto:
    return onnx.load(PUBLISHED / "tap-mnist-25" / GRAPH, load_external_data=False)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A copy of a published prior."""
    return Path(shutil.copytree(PUBLISHED / "tap-mnist-25", tmp_path / "copy"))


def metadata(key: str, value: str) -> Callable[[onnx.ModelProto], None]:
    def change(model: onnx.ModelProto) -> None:
        (entry,) = (entry for entry in model.metadata_props if entry.key == key)
        entry.value = value

    return change


def operation(op_type: str) -> Callable[[onnx.ModelProto], None]:
    def change(model: onnx.ModelProto) -> None:
        next(node for node in model.graph.node if node.op_type == "Mul").op_type = op_type

    return change


GRAPHS: dict[str, Callable[[onnx.ModelProto], None]] = {
    "images-at-once": metadata("images_at_once", str(2**31)),
    "images-without-end": metadata("images_at_once", "9" * 5000),
    "starts": metadata("inference", inference(starts="2147483647")["inference"]),
    "pixels": metadata("image_shape", "[1000000000, 1000000000]"),
    "unknown-operation": operation("PyOp"),
    "operation-that-reads": operation("ReadFile"),
}


@pytest.mark.parametrize("change", GRAPHS.values(), ids=GRAPHS)
def test_graphs_that_hold_what_none_of_ours_does(
    change: Callable[[onnx.ModelProto], None], graph: onnx.ModelProto, place: Path
) -> None:
    model = copy.deepcopy(graph)
    OnnxEngine.load(place)
    change(model)
    (place / GRAPH).write_bytes(resealed(model))
    assert str(place / GRAPH) in refused(lambda: OnnxEngine.load(place))


@pytest.mark.parametrize("old", [b"channel", b"light on dark"])
def test_metadata_that_are_no_utf8(old: bytes, graph: onnx.ModelProto, place: Path) -> None:
    body = resealed(copy.deepcopy(graph))[: -seal.SIZE].replace(old, b"\xff" * len(old))
    (place / GRAPH).write_bytes(seal.sealed(body))
    assert str(place / GRAPH) in refused(lambda: OnnxEngine.load(place))


def replaced_output(name: str, operation: str, *operands: str) -> Callable[[onnx.ModelProto], None]:
    """An output is computed from itself and constants."""

    def change(model: onnx.ModelProto) -> None:
        for node in model.graph.node:
            node.output[:] = ["inner" if value == name else value for value in node.output]
            node.input[:] = ["inner" if value == name else value for value in node.input]
        nothing = onnx.helper.make_node("Constant", [], ["nothing"], value_float=float("nan"))
        model.graph.node.extend([nothing, onnx.helper.make_node(operation, ["inner", *operands], [name])])

    return change


def altered(change: Callable[[onnx.ModelProto], None], graph: onnx.ModelProto, place: Path) -> OnnxEngine:
    model = copy.deepcopy(graph)
    change(model)
    (place / GRAPH).write_bytes(resealed(model))
    return OnnxEngine.load(place)


def test_answers_of_another_shape_are_refused(graph: onnx.ModelProto, place: Path) -> None:
    def change(model: onnx.ModelProto) -> None:
        replaced_output("residual", "Concat", "inner")(model)
        model.graph.node[-1].attribute.add(name="axis", type=onnx.AttributeProto.INT, i=0)

    engine = altered(change, graph, place)
    assert "residual" in refused(lambda: engine.solve(np.zeros((2, 28, 28)), Damage(0.1)))


@pytest.mark.parametrize("name", ["means", "means.1", "residual"])
def test_a_value_that_is_no_number_is_a_picture_that_diverged(name: str, graph: onnx.ModelProto, place: Path) -> None:
    """And no damaged file, which would stop the other pictures of a batch."""
    engine = altered(replaced_output(name, "Add", "nothing"), graph, place)
    solution = engine.solve(np.zeros((2, 28, 28)), Damage(0.1))
    assert (solution.status == Status.DIVERGED).all() and np.isnan(solution.means).all()


@pytest.mark.thorough
def test_loading_a_graph_computes_nothing(graph: onnx.ModelProto, place: Path) -> None:
    """A constant of 400 MB, which takes a dozen bytes to ask for, is not made before anybody runs the graph."""
    model = copy.deepcopy(graph)
    one = onnx.helper.make_node("Constant", [], ["one"], value_float=1.0)
    sizes = onnx.helper.make_node("Constant", [], ["sizes"], value_ints=[10**8])
    many = onnx.helper.make_node("Expand", ["one", "sizes"], ["nothing"])
    replaced_output("residual", "Add", "sum")(model)
    made, last = model.graph.node.pop(), model.graph.node.pop()
    assert last.op_type == "Constant"
    total = onnx.helper.make_node("ReduceSum", ["nothing"], ["sum"], keepdims=0)
    model.graph.node.extend([one, sizes, many, total, made])
    before = memory_of_loading(place)
    (place / GRAPH).write_bytes(resealed(model))
    # What the libraries take themselves is a fifth of it.
    assert memory_of_loading(place) < 2 * before


def memory_of_loading(place: Path) -> int:
    """The most memory that a process of its own takes, in units of the system."""
    code = (
        "import resource, sys; from pathlib import Path; from restore.inference.onnx.engine import OnnxEngine; "
        "OnnxEngine.load(Path(sys.argv[1])); print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    return int(subprocess.run([sys.executable, "-c", code, place], capture_output=True, check=True).stdout)


# --------------------------------------------------------------------------- one bad prior does not stop the others


def no_header(place: Path) -> None:
    reheaded(place, lambda old: old["__metadata__"].update(inference(starts="2147483647")))


def no_graph(place: Path) -> None:
    (place / GRAPH).write_bytes(b"no graph")


def other_weights(place: Path) -> None:
    content = bytearray((place / WEIGHTS).read_bytes())
    content[-1] ^= 1
    (place / WEIGHTS).write_bytes(content)


def no_answer(place: Path) -> None:
    model = onnx.load(place / GRAPH, load_external_data=False)
    replaced_output("means.1", "Add", "nothing")(model)
    (place / GRAPH).write_bytes(resealed(model))


@pytest.mark.thorough
@pytest.mark.parametrize("ruin", [no_header, no_graph, other_weights, no_answer])
def test_one_bad_prior_never_stops_auto_for_the_others(
    ruin: Callable[[Path], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    run: Callable[..., int],
    capfd: pytest.CaptureFixture[str],
) -> None:
    own = tmp_path / "published"
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    # Of a user's own priors no graph is run unless they are named.
    monkeypatch.setattr(zoo.search, "published_folder", lambda: own)
    for name in ("bad", "good"):
        shutil.copytree(PUBLISHED / "tap-mnist", own / name)
    ruin(own / "bad")
    zoo.leave_out.cache_clear()
    image = np.asarray(Image.open(PUBLISHED.parent / "assets" / "digit-noisy.png").convert("L"))
    with pytest.warns(UserWarning) as told:
        restored = restore.denoise(image, p=0.1)
    assert sum("left out" in str(warning.message) for warning in told) == 1
    alone = restore.load("good")
    assert (restored == alone.denoise(image, p=0.1)).all()
    # On the command line of several images there is one line on it.
    for number in range(2):
        Image.fromarray(image).save(tmp_path / f"{number}.png")
    zoo.leave_out.cache_clear()
    capfd.readouterr()
    assert run("denoise", tmp_path / "0.png", tmp_path / "1.png", "--p", 0.1, "--json") == 0
    out, said = capfd.readouterr()
    assert [json.loads(line)["model"] for line in out.splitlines()] == [zoo.describe(own / "good").name] * 2
    assert said.count("left out") == 1 and said.count("restore: ") == 1
    assert str(own / "bad") in said or ruin is no_answer
    assert run("models") == 0
    assert "good" in capfd.readouterr().out
    # With none left it is an error.
    shutil.rmtree(own / "good")
    refused(lambda: restore.denoise(image, p=0.1, strict=True))
