"""Look into an ONNX file before onnxruntime loads it. Protobuf is read by hand, without onnx.

A graph is a program. Only the operations that restoring needs are allowed: nothing that reads files, draws random
numbers, decodes pictures or calls functions of its own.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

from restore.errors import ModelError, reason, shown
from restore.inference.onnx.seal import check_seal
from restore.zoo.limits import FILE

# The operations that today's exports consist of, and those that other versions of the exporter use for the same code.
_NAMES = """
    Abs Add And AveragePool BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast CastLike Ceil Clip Concat Constant
    ConstantOfShape Conv ConvTranspose CumSum Div Equal Erf Exp Expand Flatten Floor Gather GatherElements GatherND
    Gemm Greater GreaterOrEqual Identity IsInf IsNaN Less LessOrEqual Log LogSoftmax Loop MatMul Max Min Mod Mul Neg
    NonZero Not Or Pad Pow Range Reciprocal ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean
    ReduceMin ReduceProd ReduceSum ReduceSumSquare Reshape Round ScatterElements ScatterND Shape Sigmoid Sign Size
    Slice Softmax Softplus Split Sqrt Squeeze Sub Sum Tanh Tile TopK Transpose Trilu Unsqueeze Where Xor
"""
OPERATIONS = frozenset(_NAMES.split())

# The most nodes of a graph with all its loops. Published graphs have up to 1,000.
NODES = 20_000

# Fields by their numbers in onnx.proto.
_GRAPH, _FUNCTIONS, _METADATA = 7, 25, 14  # of a model
_NODE = 1  # of a graph
_OPERATION, _ATTRIBUTE, _DOMAIN = 4, 5, 7  # of a node
_BODY, _BODIES = 6, 11  # of an attribute

_Field = tuple[int, int | memoryview]


def read_checked(path: Path) -> bytes:
    """Read an ONNX file and check it.

    Raises:
            ModelError: if it is damaged, too large, or holds other operations than those known here.
    """
    where = shown(path)
    try:
        # Opening something else than a file, such as a pipe, may block.
        state = path.stat()
        if not stat.S_ISREG(state.st_mode) or state.st_size > FILE:
            raise ValueError(f"it is no file, or larger than {FILE} bytes")
        content = path.read_bytes()
    except (OSError, ValueError) as fault:
        raise ModelError(f"{where}: cannot be read ({reason(fault)}); get the file again") from fault
    check_seal(content, where)
    check_parts(content, where)
    return content


def check_parts(content: bytes, where: str) -> None:
    """Refuse a file that is not an ONNX model, or holds other operations than those known here.

    Raises:
        ModelError: if so; `where` names the file in the message.
    """
    try:
        model = list(_fields(memoryview(content)))
        if any(number == _FUNCTIONS for number, _ in model):
            raise ValueError("it has functions of its own")
        keys = [str(_last(value, 1), "utf-8") for number, value in model if number == _METADATA]
        if len(set(keys)) < len(keys):
            raise ValueError("a key of its metadata is there twice")
        nodes = 0
        for number, value in model:
            if number == _GRAPH:
                for node in _nodes(_message(value)):
                    nodes += 1
                    _check_node(node)
                    if nodes > NODES:
                        raise ValueError(f"it has more than {NODES} operations")
        if not nodes:
            raise ValueError("it has no operations")
    except (ValueError, RecursionError) as fault:
        raise ModelError(f"{where}: is no graph that can be run ({reason(fault)}); get the file again") from fault


def _check_node(node: memoryview) -> None:
    name, domain = (str(_last(node, number), "utf-8") for number in (_OPERATION, _DOMAIN))
    if domain not in ("", "ai.onnx") or name not in OPERATIONS:
        raise ValueError(f"the operation {domain + '.' * bool(domain)}{name} is not known here")


def _nodes(graph: memoryview) -> Iterator[memoryview]:
    """The nodes of a graph, and of the loops among them."""
    for number, value in _fields(graph):
        if number == _NODE:
            node = _message(value)
            yield node
            for part, attribute in _fields(node):
                if part == _ATTRIBUTE:
                    for kind, body in _fields(_message(attribute)):
                        if kind in (_BODY, _BODIES):
                            yield from _nodes(_message(body))


def _last(message: int | memoryview, number: int) -> memoryview:
    """The bytes of the last field of this number, which is the one that counts; empty if there is none."""
    found = memoryview(b"")
    for other, value in _fields(_message(message)):
        found = _message(value) if other == number else found
    return found


def _message(value: int | memoryview) -> memoryview:
    if isinstance(value, int):
        raise ValueError("a number in place of a message")
    return value


def _fields(data: memoryview) -> Iterator[_Field]:
    """The fields of a message by number: integers, or bytes that may be messages themselves."""
    place = 0
    while place < len(data):
        key, place = _varint(data, place)
        width = {1: 8, 5: 4}.get(key & 7, 0)
        if key & 7 == 0:
            number, place = _varint(data, place)
            yield key >> 3, number
            continue
        if key & 7 == 2:
            width, place = _varint(data, place)
        if (not width and key & 7 != 2) or place + width > len(data):
            raise ValueError("it is no message of protobuf, or truncated")
        yield key >> 3, data[place : place + width]
        place += width


def _varint(data: memoryview, place: int) -> tuple[int, int]:
    """Read a number and return where it ends: seven bits to a byte, lowest first; the eighth bit means more."""
    value = 0
    for index in range(10):
        if place + index >= len(data):
            break
        byte = data[place + index]
        value |= (byte & 127) << 7 * index
        if byte < 128:
            return value, place + index + 1
    raise ValueError("it is no message of protobuf, or truncated")
