"""Files that are no graphs of ours, or not what they say, are refused."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from exports import SHAPE, Exported, images, resealed
from onnx import external_data_helper

from restore.channels.damage import Damage
from restore.errors import ModelError
from restore.export import packing
from restore.inference.onnx.engine import OnnxEngine
from restore.zoo import GRAPH, WEIGHTS
from restore.zoo.description import NEWEST

# From the bytes of a file to bytes that are no graph: each has a wrong checksum, or none.
RUINS: dict[str, Callable[[bytes], bytes]] = {
    "text": lambda content: b"solver\n" * 100,
    "empty": lambda content: b"",
    "truncated-by-a-byte": lambda content: content[:-1],
}


def referring(folder: Path, **entries: str | None) -> None:
    """Change where the first tensor of a graph is said to lie."""
    model = onnx.load(folder / GRAPH, load_external_data=False)
    tensor = next(item for item in model.graph.initializer if external_data_helper.uses_external_data(item))
    where = {entry.key: entry.value for entry in tensor.external_data} | entries
    del tensor.external_data[:]
    for key, value in where.items():
        if value is not None:
            tensor.external_data.add(key=key, value=value)
    (folder / GRAPH).write_bytes(resealed(model))


def climbing(folder: Path) -> None:
    shutil.copy(folder / WEIGHTS, folder.parent / "x")
    referring(folder, location="../x")


def linked(folder: Path) -> None:
    shutil.copy(folder / WEIGHTS, folder.parent / "x")
    (folder / "link").symlink_to(folder.parent / "x")
    referring(folder, location="link")


def flipped(folder: Path) -> None:
    content = bytearray((folder / WEIGHTS).read_bytes())
    content[-1] ^= 1
    (folder / WEIGHTS).write_bytes(content)


# What is done to a folder whose graph refers to the weights beside it.
OUTSIDE: dict[str, Callable[[Path], None]] = {
    "climbing": climbing,
    "link": linked,
    "missing": lambda folder: referring(folder, location="nowhere"),
    "folder": lambda folder: referring(folder, location="."),
    "device": lambda folder: referring(folder, location="/dev/zero"),
    "offset-beyond": lambda folder: referring(folder, offset=str(10**9)),
    "offset-negative": lambda folder: referring(folder, offset="-8"),
    "offset-no-number": lambda folder: referring(folder, offset="here"),
    "offset-overflow": lambda folder: referring(folder, offset=str(2**63 - 1)),
    "length": lambda folder: referring(folder, length="4"),
    "flipped-bit": flipped,
}


# ------------------------------------------------------------------------------------- files that are refused

Change = Callable[[onnx.ModelProto], None]


def prop(key: str, value: str | None) -> Change:
    def change(model: onnx.ModelProto) -> None:
        kept = {entry.key: entry.value for entry in model.metadata_props} | ({} if value is None else {key: value})
        if value is None:
            del kept[key]
        del model.metadata_props[:]
        onnx.helper.set_model_props(model, kept)

    return change


def renamed(old: str, new: str) -> Change:
    def change(model: onnx.ModelProto) -> None:
        packing._rename(model.graph, {old: new})
        for value in (*model.graph.input, *model.graph.output):
            value.name = new if value.name == old else value.name
        for node in model.graph.node:
            node.output[:] = [new if name == old else name for name in node.output]

    return change


def without_output(name: str) -> Change:
    def change(model: onnx.ModelProto) -> None:
        kept = [value for value in model.graph.output if value.name != name]
        del model.graph.output[:]
        model.graph.output.extend(kept)

    return change


def foreign(model: onnx.ModelProto) -> None:
    value = onnx.helper.make_tensor_value_info("image", onnx.TensorProto.FLOAT, ["images", *SHAPE])
    other = onnx.helper.make_tensor_value_info("restored", onnx.TensorProto.FLOAT, ["images", *SHAPE])
    node = onnx.helper.make_node("Identity", ["image"], ["restored"])
    model.CopyFrom(
        onnx.helper.make_model(onnx.helper.make_graph([node], "g", [value], [other]), ir_version=8,
                               opset_imports=[onnx.helper.make_opsetid("", 18)])
    )  # fmt: skip


def foreign_with_our_metadata(model: onnx.ModelProto) -> None:
    kept = {entry.key: entry.value for entry in model.metadata_props}
    foreign(model)
    onnx.helper.set_model_props(model, kept)


def other_input(kind: int, *sizes: int | str) -> Change:
    def change(model: onnx.ModelProto) -> None:
        (image,) = [value for value in model.graph.input if value.name == "image"]
        image.CopyFrom(onnx.helper.make_tensor_value_info("image", kind, sizes))
        cast = onnx.helper.make_node("Cast", ["image"], ["image_cast"], to=onnx.TensorProto.FLOAT)
        shape = onnx.helper.make_node("Constant", [], ["image_shape"], value_ints=[-1, *SHAPE])
        reshape = onnx.helper.make_node("Reshape", ["image_cast", "image_shape"], ["image_inner"])
        packing._rename(model.graph, {"image": "image_inner"})
        nodes = [cast, shape, reshape, *model.graph.node]
        del model.graph.node[:]
        model.graph.node.extend(nodes)

    return change


def other_output(model: onnx.ModelProto) -> None:
    renamed("iterations", "iterations_inner")(model)
    without_output("iterations_inner")(model)
    node = onnx.helper.make_node("Cast", ["iterations_inner"], ["iterations"], to=onnx.TensorProto.FLOAT)
    model.graph.node.append(node)
    model.graph.output.append(onnx.helper.make_tensor_value_info("iterations", onnx.TensorProto.FLOAT, ["images"]))


def fails_late(model: onnx.ModelProto) -> None:
    """Sound as far as anyone can tell before it runs."""
    renamed("residual", "residual_inner")(model)
    without_output("residual_inner")(model)
    index = onnx.helper.make_node("Constant", [], ["far"], value_ints=[10**6])
    row = onnx.helper.make_node("Gather", ["residual_inner", "far"], ["far_row"])
    model.graph.node.extend([index, row, onnx.helper.make_node("Add", ["residual_inner", "far_row"], ["residual"])])
    model.graph.output.append(onnx.helper.make_tensor_value_info("residual", onnx.TensorProto.FLOAT, ["images"]))


FLOAT, DOUBLE = onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE
# Each with the inputs or outputs that are not as promised.
CHANGED: dict[str, tuple[Change, str]] = {
    "foreign": (foreign, ""),
    "foreign-with-our-metadata": (foreign_with_our_metadata, "converged"),
    "renamed-input": (renamed("p", "probability"), "p, probability"),
    "renamed-output": (renamed("converged", "done"), "converged, done"),
    "missing-output": (without_output("residual"), "residual"),
    "other-rank": (other_input(FLOAT, "images", 35), "image"),
    "other-shape": (other_input(FLOAT, "images", 7, 5), "image"),
    "fixed-batch": (other_input(FLOAT, 1, *SHAPE), "image"),
    "other-type": (other_input(DOUBLE, "images", *SHAPE), "image"),
    "other-output-type": (other_output, "iterations"),
    "shape-in-metadata": (prop("image_shape", "[7, 5]"), "image, means"),
    "hidden-in-metadata": (prop("hidden", "99"), "means.1, variances.1"),
    "channel-in-metadata": (prop("channel", "field"), "field, image"),
    "newer-graph": (prop("graph_version", "3"), ""),
    "newer-format": (prop("format_version", str(NEWEST + 1)), ""),
    "version-not-a-number": (prop("graph_version", "one"), ""),
    "no-graph-version": (prop("graph_version", None), ""),
    "no-format-version": (prop("format_version", None), ""),
    "unknown-key": (prop("colour", "true"), ""),
    "inference-no-json": (prop("inference", '{"solver": "tap"'), ""),
    "inference-nested": (prop("inference", "[" * 50_000), ""),
    "inference-out-of-range": (prop("inference", '{"max_iter": 0}'), ""),
    "shape-no-list": (prop("image_shape", "35"), ""),
    "unknown-channel": (prop("channel", "telepathy"), ""),
    "unknown-polarity": (prop("polarity", "grey on grey"), ""),
    "no-images-at-once": (prop("images_at_once", "0"), ""),
    **{
        f"no-{key}": (prop(key, None), "")
        for key in ("channel", "polarity", "weights_sha256", "images_at_once", "name", "image_shape", "hidden")
    },
}


def changed(case: Exported, *changes: Change) -> bytes:
    """The file after changes, under a new checksum."""
    model = copy.deepcopy(case.model)
    for change in changes:
        change(model)
    return resealed(model)


def refused(place: Path, capfd: pytest.CaptureFixture[str], subject: str = "") -> None:
    with pytest.raises(ModelError) as caught:
        OnnxEngine.load(place)
    said = str(caught.value)
    assert "\n" not in said and place.name in said and subject in said
    assert capfd.readouterr() == ("", "")


@pytest.mark.thorough
@pytest.mark.parametrize(("change", "subject"), CHANGED.values(), ids=CHANGED)
def test_graphs_that_are_not_what_they_say(
    change: Change, subject: str, exported: Callable[[str], Exported], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "odd.onnx"
    path.write_bytes(changed(exported("mean_field"), change))
    refused(path, capfd, subject)


@pytest.mark.thorough
def test_a_graph_that_fails_while_it_runs(
    exported: Callable[[str], Exported], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "odd.onnx"
    path.write_bytes(changed(exported("mean_field"), fails_late))
    engine = OnnxEngine.load(path)
    with pytest.raises(ModelError) as caught:
        engine.solve(images(2), Damage(0.1))
    assert "\n" not in str(caught.value)
    assert capfd.readouterr() == ("", "")


@pytest.mark.thorough
@pytest.mark.parametrize("ruin", RUINS.values(), ids=RUINS)
def test_files_that_are_no_graphs(
    ruin: Callable[[bytes], bytes],
    exported: Callable[[str], Exported],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "odd.onnx"
    path.write_bytes(ruin(exported("mean_field").path.read_bytes()))
    refused(path, capfd)


@pytest.mark.parametrize("place", [0.1, 0.5, 0.9])
def test_a_flipped_bit_anywhere_in_a_graph(place: float, beside: Path, capfd: pytest.CaptureFixture[str]) -> None:
    content = bytearray((beside / GRAPH).read_bytes())
    content[int(place * len(content))] ^= 4
    (beside / GRAPH).write_bytes(content)
    refused(beside, capfd)


@pytest.mark.thorough
def test_a_graph_that_another_program_wrote_again(
    exported: Callable[[str], Exported], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path, case = tmp_path / "again.onnx", exported("tap")
    model = copy.deepcopy(case.model)
    onnx.helper.set_model_props(model, {entry.key: entry.value for entry in model.metadata_props} | {"added": "later"})
    path.write_bytes(model.SerializeToString())
    refused(path, capfd)
    # Without a change it is the same file.
    path.write_bytes(case.model.SerializeToString())
    assert OnnxEngine.load(path).facts == case.facts
    # Nor is one that was read and sealed again.
    path.write_bytes(changed(case))
    assert OnnxEngine.load(path).facts == case.facts


@pytest.mark.parametrize("ruin", OUTSIDE.values(), ids=OUTSIDE)
def test_tensors_that_lie_elsewhere_or_were_changed(
    ruin: Callable[[Path], None], beside: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    OnnxEngine.load(beside)
    ruin(beside)
    refused(beside, capfd)
    # Named by its file it is the same graph.
    with pytest.raises(ModelError) as caught:
        OnnxEngine.load(beside / GRAPH)
    assert "\n" not in str(caught.value)
    assert capfd.readouterr() == ("", "")
