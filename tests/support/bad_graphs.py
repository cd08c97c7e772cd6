"""Ways to damage an exported graph, by row of the table of bad input."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
from onnx import external_data_helper
from priors import random_conditional

from restore import zoo
from restore.inference.onnx import contract as seal
from restore.zoo import GRAPH, WEIGHTS

# From the bytes of a file to bytes that are no graph.
RUINS: dict[str, Callable[[bytes], bytes]] = {
    "garbage": lambda content: np.random.default_rng(0).bytes(5000),
    "text": lambda content: b"solver\n" * 100,
    "empty": lambda content: b"",
    "truncated": lambda content: content[: len(content) // 2],
    "truncated-by-a-byte": lambda content: content[:-1],
    "pickle": lambda content: pickle.dumps({"weights": list(range(99))}),
    "zeros": lambda content: bytes(4096),
}


def resealed(model: onnx.ModelProto) -> bytes:
    """A changed file under a new checksum."""
    kept = [entry for entry in model.metadata_props if entry.key != seal.KEY]
    del model.metadata_props[:]
    model.metadata_props.extend(kept)
    return seal.sealed(model.SerializeToString())


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


def climbing_within(folder: Path) -> None:
    shutil.copy(folder / WEIGHTS, folder.parent / "x")
    (folder / "inner").mkdir()
    referring(folder, location="inner/../../x")


def absolute(folder: Path) -> None:
    shutil.copy(folder / WEIGHTS, folder.parent / "x")
    referring(folder, location=str(folder.parent / "x"))


def linked(folder: Path) -> None:
    shutil.copy(folder / WEIGHTS, folder.parent / "x")
    (folder / "link").symlink_to(folder.parent / "x")
    referring(folder, location="link")


def flipped(folder: Path) -> None:
    content = bytearray((folder / WEIGHTS).read_bytes())
    content[-1] ^= 1
    (folder / WEIGHTS).write_bytes(content)


def other_prior(folder: Path) -> None:
    header = zoo.describe(folder)
    other = random_conditional(header.image_shape)
    zoo.save(folder / "other", replace(other, description=header, pixel_means=other.pixel_means * 0.9), "")
    shutil.copy(folder / "other" / WEIGHTS, folder / WEIGHTS)


def content_changed(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def ruin(folder: Path) -> None:
        (folder / WEIGHTS).write_bytes(change((folder / WEIGHTS).read_bytes()))

    return ruin


# What is done to a folder whose graph refers to the weights beside it.
OUTSIDE: dict[str, Callable[[Path], None]] = {
    "44-climbing": climbing,
    "44-climbing-from-within": climbing_within,
    "44-absolute": absolute,
    "44-link": linked,
    "44-missing": lambda folder: referring(folder, location="nowhere"),
    "44-folder": lambda folder: referring(folder, location="."),
    "44-device": lambda folder: referring(folder, location="/dev/zero"),
    "44-offset-beyond": lambda folder: referring(folder, offset=str(10**9)),
    "44-offset-negative": lambda folder: referring(folder, offset="-8"),
    "44-offset-no-number": lambda folder: referring(folder, offset="here"),
    "44-offset-overflow": lambda folder: referring(folder, offset=str(2**63 - 1)),
    "44-length": lambda folder: referring(folder, length="4"),
    "40-other-prior": other_prior,
    "40-flipped-bit": flipped,
    "41-truncated": content_changed(lambda content: content[:-100]),
    "41-padded": content_changed(lambda content: content + bytes(100)),
    "41-empty": content_changed(lambda content: b""),
    "42-pickle": content_changed(lambda content: pickle.dumps([1.5] * 9999)),
}
