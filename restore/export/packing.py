"""Pack a traced graph into the bytes of a file: names, metadata, and where the tensors are.

A file either contains its tensors, or lies next to a weights file and refers to the tensors there, so that weights
are stored once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import onnx
from onnx import external_data_helper, helper

from restore.errors import UsageError, shown
from restore.export.graph import DOT, IR_VERSION, trace
from restore.inference.onnx.contract import SHARED, GraphFacts, sealed
from restore.registry import SOLVERS
from restore.zoo import WEIGHTS, light_ground, read

# Starts per image for which the batch of a solver's graph is chosen.
TYPICAL_STARTS = 16
# Typical number of starts of an image if only weak evidence has several.
FEW_STARTS = 4


def standalone(folder: Path, *, float16: bool = False, field: bool = False) -> bytes:
    """Export a prior with its solver as one file.

    Args:
        folder: the prior's folder, see `restore.zoo.find`.
        float16: store matrices in half precision; the graph still computes in single precision.
        field: leave out the channel: the input is the log-odds that each pixel is 1, 0 where nothing is known.

    Raises:
        ModelError: if the prior is damaged.
        UsageError: if `field` is set for a prior that is conditional or grey, whose channel cannot be left out; or if
            the prior's solver factorises matrices, which graphs cannot.
    """
    return sealed(_packed(folder, float16=float16, field=field).SerializeToString())


def beside_weights(folder: Path) -> bytes:
    """Export a prior with its solver for its own folder, with the tensors left in the weights file.

    Raises:
        ModelError: if the prior is damaged.
    """
    model = _packed(folder, float16=False, field=False)
    places = _places((folder / WEIGHTS).read_bytes())
    for tensor in model.graph.initializer:
        if tensor.name in places:
            offset, length = places[tensor.name]
            external_data_helper.set_external_data(tensor, WEIGHTS, offset, length)
            tensor.ClearField("raw_data")
    return sealed(model.SerializeToString())


def _packed(folder: Path, *, float16: bool, field: bool) -> onnx.ModelProto:
    prior, stored = read(folder)
    header = prior.description
    observation = header.kind.observation(header)
    if field and observation != "flips and mask":
        raise UsageError(f"{shown(header.name)} takes no field of log-odds; export it with its channel")
    solver = SOLVERS[header.inference.solver]
    if not solver.graph_batch:
        raise UsageError(
            f"no graph can hold {header.inference.solver}, which factorises matrices; keep to torch", header.name
        )
    if float16:
        stored = {
            name: value.half() if value.is_floating_point() and value.dim() == 2 else value
            for name, value in stored.items()
        }
    digest = hashlib.sha256((folder / WEIGHTS).read_bytes()).hexdigest()
    # With few starts per image, more images share a matrix product.
    starts = FEW_STARTS if header.inference.clear else header.inference.starts
    at_once = solver.graph_batch * max(1, TYPICAL_STARTS // (starts or TYPICAL_STARTS))
    facts = GraphFacts(
        header, "field" if field else observation, light_ground(stored["pixel_means"].numpy()), digest, at_once
    )
    model = trace(facts, stored)
    model.ir_version = IR_VERSION
    model.producer_name, model.producer_version = "restore", ""
    _rename(model.graph, {tensor.name: tensor.name.replace(DOT, ".") for tensor in model.graph.initializer})
    for graph in _graphs(model.graph):
        _strip(graph)
    if header.kind.any_size:
        _name_sizes(model.graph)
    _free(model, ("p", "sigma", "mask"), ("1" if facts.channel == SHARED else "images", "height", "width"))
    del model.metadata_props[:]
    helper.set_model_props(model, facts.to_metadata())
    return model


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """A graph and the bodies of its loops."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from _graphs(attribute.g)


def _rename(graph: onnx.GraphProto, names: dict[str, str]) -> None:
    """Rename tensors, also in the bodies of loops."""
    for tensor in graph.initializer:
        tensor.name = names.get(tensor.name, tensor.name)
    for part in _graphs(graph):
        for node in part.node:
            node.input[:] = [names.get(name, name) for name in node.input]
        for value in part.output:
            value.name = names.get(value.name, value.name)


def _strip(graph: onnx.GraphProto) -> None:
    """Remove the exporter's notes on our source code, and sizes that hold for its example only."""
    del graph.value_info[:], graph.metadata_props[:]
    graph.doc_string = ""
    for item in (*graph.node, *graph.input, *graph.output, *graph.initializer):
        del item.metadata_props[:]
        item.doc_string = ""


def _free(model: onnx.ModelProto, names: tuple[str, ...], letters: tuple[str, ...]) -> None:
    """Let each size of these inputs be the image's or 1. One called "1" stays 1."""
    for value in model.graph.input:
        if value.name in names:
            for size, letter in zip(value.type.tensor_type.shape.dim, letters, strict=True):
                if letter != "1":
                    size.dim_param = f"{value.name}_{letter}"


def _name_sizes(graph: onnx.GraphProto) -> None:
    """Name the sizes of images, where all are free; the exporter numbers them."""
    (image,) = (value.type.tensor_type.shape.dim for value in graph.input if value.name in ("image", "field"))
    names = {size.dim_param: name for size, name in zip(image, ("images", "height", "width"), strict=True)}
    for value in (*graph.input, *graph.output):
        for size in value.type.tensor_type.shape.dim:
            if size.dim_param:
                size.dim_param = names.get(size.dim_param, "units")


def _places(content: bytes) -> dict[str, tuple[int, int]]:
    """Offset and length of each tensor's bytes in a safetensors file."""
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    spans = {name: facts["data_offsets"] for name, facts in header.items() if name != "__metadata__"}
    return {name: (start + first, last - first) for name, (first, last) in spans.items()}
