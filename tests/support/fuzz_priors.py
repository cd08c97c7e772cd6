"""Priors changed at random, each restored with in a process of its own that has little memory and time.

    python tests/support/fuzz_priors.py FOLDER weights 1000 [SEED]

FOLDER holds a prior with its graph. It is started as a program of its own, for processes are forked here, which is
safe only while there is one thread. A line of JSON per case goes to stdout.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

# More than a case may take: of memory beyond what the libraries take themselves, in bytes; of a processor, in seconds;
# and of time, which a busy machine stretches, where a case waits for something that never comes.
MEMORY = 1 << 30
SECONDS = 20
PATIENCE = 600

# Numbers at which programs fail.
EDGES = (0, 1, 2, 3, 7, 8, 127, 128, 255, 256, 2**15, 2**16, 2**24, 2**31 - 1, 2**31, 2**32, 2**62, 2**63 - 1)
WORDS = (
    "null",
    "true",
    "NaN",
    "Infinity",
    "-Infinity",
    "1e999",
    "1e308",
    "-1",
    "[]",
    "{}",
    '""',
    '"\\ud800"',
    '"\\u001b"',
)


TYPES = ("BOOL", "U8", "I64", "F4", "F6_E2M3", "F8_E5M2", "F8_E4M3", "F8_E8M0", "BF16", "F16", "F32", "F64", "C64", "X")


@dataclass(frozen=True)
class Outcome:
    """What became of a case: "refused", "restored", or the name of a fault; and how much memory it took, in bytes."""

    case: int
    outcome: str
    detail: str
    memory: int


# ------------------------------------------------------------------------------------------------------- changes


def changed_bytes(content: bytes, draw: random.Random) -> bytes:
    """Some bytes are other ones, are gone, or are there twice."""
    data = bytearray(content)
    for _ in range(draw.choice((1, 1, 2, 4, 16))):
        place = draw.randrange(len(data) + 1)
        span = min(len(data) - place, draw.choice((1, 1, 4, 8, 64, 1000)))
        match draw.randrange(6):
            case 0 if place < len(data):
                data[place] ^= 1 << draw.randrange(8)
            case 1 if place < len(data):
                data[place] = draw.choice((0, 1, 127, 128, 255))
            case 2:
                width = draw.choice((1, 2, 4, 8))
                data[place : place + width] = (draw.choice(EDGES) % 256**width).to_bytes(width, "little")
            case 3:
                del data[place : place + span]
            case 4:
                data[place:place] = data[place : place + span]
            case 5:
                data[place:place] = draw.randbytes(span)
    return bytes(data)


def changed_json(value: Any, draw: random.Random) -> Any:
    """A value somewhere in a tree is another one."""
    if isinstance(value, str) and value[:1] in "[{0123456789" and value:
        try:
            return json.dumps(changed_json(json.loads(value), draw))
        except ValueError:
            return value
    if isinstance(value, dict) and value and draw.random() < 0.95:
        key = draw.choice(sorted(value))
        match draw.randrange(12):
            case 0:
                return {name: part for name, part in value.items() if name != key}
            case 1:
                return value | {draw.choice(("", "x", "\x1b[31m", key + "\n")): value[key]}
            case _:
                return value | {key: changed_json(value[key], draw)}
    if isinstance(value, list) and value and draw.random() < 0.8:
        index = draw.randrange(len(value))
        return [*value[:index], changed_json(value[index], draw), *value[index + 1 :]]
    return draw.choice(
        (*EDGES, -1, 0.5, 1e-300, 1e300, 10**400, None, True, "", "x" * 5000, [], {}, [[[0]]], *WORDS, float("nan"))
    )


def changed_header(content: bytes, draw: random.Random) -> bytes:
    """What a safetensors file says of itself is something else."""
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    for _ in range(draw.choice((1, 1, 2))):
        if not isinstance(header.get("__metadata__"), dict):
            break
        facts = changed_json(header["__metadata__"], draw) if draw.random() < 0.7 else None
        if isinstance(facts, dict):
            texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in facts.items()}
            header |= {"__metadata__": texts}
        else:
            header = {name: changed_json(part, draw) if draw.random() < 0.2 else part for name, part in header.items()}
        if draw.random() < 0.1:
            part = header[draw.choice([name for name in header if name != "__metadata__"])]
            if isinstance(part, dict):
                part["dtype"] = draw.choice(TYPES)
    text = json.dumps(header)
    if draw.random() < 0.1:
        text = text.replace("{", '{"family": "rbm", ' if draw.random() < 0.5 else '{"x": ' + "[" * 100_000, 1)
    new = text.encode("utf-8", "surrogatepass")
    return len(new).to_bytes(8, "little") + new + content[start:]


def changed_graph(content: bytes, draw: random.Random) -> bytes:
    """A field of an ONNX file, wherever it is, is another one."""
    import onnx
    from onnx import numpy_helper

    model = onnx.load_model_from_string(content)
    for _ in range(draw.choice((1, 1, 2))):
        graphs = list(_graphs(model.graph))
        graph = draw.choice(graphs)
        names = [name for part in graphs for node in part.node for name in node.output]
        match draw.randrange(8):
            case 0 | 1 | 2:
                inside = [tensor for tensor in model.graph.initializer if tensor.HasField("raw_data")]
                tensor = draw.choice(inside)
                values = numpy_helper.to_array(tensor).copy()
                if values.size:
                    info = draw.choice((*EDGES, -1, -2))
                    with np.errstate(all="ignore"):
                        values.flat[draw.randrange(values.size)] = np.array(info).astype(values.dtype)
                tensor.raw_data = values.tobytes()
            case 3:
                tensor = draw.choice(model.graph.initializer)
                sizes = [*tensor.dims]
                sizes[draw.randrange(len(sizes) + 1) :] = [draw.choice(EDGES)]
                tensor.dims[:] = sizes
            case 4:
                node = draw.choice(graph.node)
                if node.input:
                    node.input[draw.randrange(len(node.input))] = draw.choice((*names, "", "max_iter", "weights.0"))
            case 5:
                kinds = sorted({part.op_type for one in graphs for part in one.node})
                draw.choice(graph.node).op_type = draw.choice((*kinds, "If", "Scan", "Tile", "Conv", "RandomNormal"))
            case 6:
                with_attributes = [node for node in graph.node if node.attribute]
                if with_attributes:
                    attribute = draw.choice(draw.choice(with_attributes).attribute)
                    attribute.i = draw.choice((*EDGES, -1))
            case 7:
                outside = [tensor for tensor in model.graph.initializer if tensor.external_data]
                if outside:
                    entry = draw.choice(draw.choice(outside).external_data)
                    entry.value = draw.choice(
                        (*map(str, EDGES), "-1", "../weights.safetensors", "/dev/zero", "card.md", "")
                    )
    return model.SerializeToString()


def changed_metadata(content: bytes, draw: random.Random) -> bytes:
    """What an ONNX file says of itself is something else."""
    import onnx

    model = onnx.load_model_from_string(content)
    facts: Any = changed_json({entry.key: entry.value for entry in model.metadata_props}, draw)
    del model.metadata_props[:]
    if isinstance(facts, dict):
        for key, value in facts.items():
            text = value if isinstance(value, str) else json.dumps(value)
            model.metadata_props.add(key=key, value=text.encode("utf-8", "replace").decode())
    made = model.SerializeToString()
    return made.replace(b"tap", b"\xff\xfe\x00", 1) if draw.random() < 0.1 else made


def _graphs(graph: Any) -> Iterator[Any]:
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _graphs(attribute.g)


Change = Callable[[bytes, random.Random], bytes]

# What is changed, by the name of a target: the file, and how.
TARGETS: dict[str, tuple[str, tuple[Change, ...]]] = {
    "weights": ("weights.safetensors", (changed_header, changed_header, changed_bytes)),
    "graph": ("solver.onnx", (changed_graph, changed_graph, changed_bytes)),
    "metadata": ("solver.onnx", (changed_metadata,)),
    "card": ("card.md", (changed_bytes,)),
}


# --------------------------------------------------------------------------------------------------------- cases


def use(folder: Path, target: str) -> None:
    """All that is done with a prior of one's own; raises RestoreError where it is refused.

    Raises:
        AssertionError: if an answer is no number, and does not say so.
    """
    import torch

    from restore import zoo
    from restore.app import assembly
    from restore.inference.onnx.engine import OnnxEngine
    from restore.inference.torch_engine import Engine

    about = zoo.describe(folder)
    assembly.facts(folder)
    if target == "weights":
        trained = zoo.load(folder)
        short = replace(about, inference=replace(about.inference, max_iter=min(50, about.inference.max_iter)))
        _restore(Engine.of(replace(trained, description=short), torch.device("cpu")))
        # The graph was made for other weights.
        return
    if target == "card":
        from restore.cli.models import info

        info(str(folder))
    engine = OnnxEngine.load(folder)
    inference = replace(engine.description.inference, max_iter=min(50, engine.description.inference.max_iter))
    _restore(replace(engine, description=replace(engine.description, inference=inference)))


def _restore(engine: Any) -> None:
    from restore.inference.damage import Damage

    about = engine.description
    image = (np.random.default_rng(0).random((1, *about.image_shape)) < 0.4).astype(np.float64)
    damage = Damage() if about.task else Damage(0.1, 0.1 if about.grey else None)
    found, _ = engine.marginals(image, damage)
    assert np.isfinite(found.means[0]).all() or (found.status == 2).all(), "an answer that is no number"


def attempt(folder: Path, target: str, content: bytes) -> tuple[str, str]:
    from restore.errors import RestoreError
    from restore.inference.onnx.seal import sealed

    name = TARGETS[target][0]
    # Else a change would be noticed by the checksum, and no other check would be tried.
    (folder / name).write_bytes(sealed(content) if name == "solver.onnx" else content)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            use(folder, target)
    except RestoreError as fault:
        text = str(fault)
        sound = text.isprintable() and len(text) < 2000
        return ("refused", text) if sound else ("unprintable", text[:300])
    except BaseException as fault:
        return type(fault).__name__, str(fault)[:300]
    return "restored", ""


def forked(case: int, folder: Path, target: str, content: bytes, room: Path) -> Outcome:
    """The outcome of a case, found by a process of its own."""
    place = room / "case"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(folder, place)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 1)
        os.dup2(null, 2)
        limit = _memory("VmSize") + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        signal.alarm(PATIENCE)
        os.write(writing, json.dumps(attempt(place, target, content)).encode())
        os._exit(0)
    os.close(writing)
    before = _memory("VmRSS")
    with os.fdopen(reading, "rb") as stream:
        said = stream.read()
    _, status, used = os.wait4(child, 0)
    grown = max(0, used.ru_maxrss * 1024 - before)
    if os.WIFSIGNALED(status):
        return Outcome(case, signal.Signals(os.WTERMSIG(status)).name, "", grown)
    outcome, detail = json.loads(said)
    return Outcome(case, outcome, detail, grown)


def _memory(key: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith(f"{key}:"))
    return int(line.split()[1]) * 1024


def cases(folder: Path, target: str, count: int, seed: int = 0) -> Iterator[Outcome]:
    """The outcomes of changing a file of a prior in so many ways; the same ones for the same seed."""
    name, changes = TARGETS[target]
    content = (folder / name).read_bytes()
    if name == "solver.onnx":
        from restore.inference.onnx.seal import SIZE

        content = content[:-SIZE]
    # All libraries are there before the first fork.
    attempt(
        Path(shutil.copytree(folder, Path(tempfile.mkdtemp()) / "whole")), "card", (folder / "card.md").read_bytes()
    )
    attempt(Path(shutil.copytree(folder, Path(tempfile.mkdtemp()) / "whole")), target, content)
    with tempfile.TemporaryDirectory() as room:
        for case in range(count):
            draw = random.Random(f"{target} {seed} {case}")
            yield forked(case, folder, target, draw.choice(changes)(content, draw), Path(room))


if __name__ == "__main__":
    where, target, count, *rest = sys.argv[1:]
    for outcome in cases(Path(where), target, int(count), int(rest[0]) if rest else 0):
        print(json.dumps(asdict(outcome)), flush=True)
