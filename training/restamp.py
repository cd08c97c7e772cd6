"""Give every published prior the digest that its recipe has now: in its weights file, its graph, its card and records.

The facts at the head of each card are written anew from the header of its prior.

A digest covers all settings of a recipe, so it changes when a setting is added or removed, and when a default changes
that a recipe then writes out. Run this only if every recipe still trains the same prior:

    python training/restamp.py

Tensors stay as they are, byte for byte: their checksum is compared and printed. Graphs are not traced again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from restore import zoo
from restore.files import write_atomically
from restore.inference.onnx.contract import SIZE, read_intact, sealed
from restore.learning.recipe.recipe import read_recipe

TRAINING = Path(__file__).parent

# By which an entry of a record names its recipe.
NAMES = ("name", "run")


def restamp(folder: Path, digest: str) -> dict[str, str]:
    """Bring the files of a prior up to date.

    Returns:
        Every hexadecimal number that was replaced, and by what: the digest, and the checksum of the weights file.
    """
    weights, graph, card = (folder / name for name in (zoo.WEIGHTS, zoo.GRAPH, zoo.CARD))
    before, old = weights.read_bytes(), zoo.describe(folder).recipe
    # Digests are of one length: tensors stay where graphs expect them.
    after = before.replace(old.encode(), digest.encode(), 1)
    assert payload(after) == payload(before), f"{weights}: tensors would change"
    found = {old: digest, _sha256(before): _sha256(after)}
    contents = {
        weights: after,
        graph: resealed(read_intact(graph), found),
        card: zoo.with_facts(zoo.card_of(folder).replace(old[:16], digest[:16], 1), zoo.describe(folder)).encode(),
    }
    for path, content in contents.items():
        write_atomically(path, content)
    assert payload(weights.read_bytes()) == payload(before), f"{weights}: tensors have changed"
    return found


def payload(content: bytes) -> str:
    """SHA-256 of the tensors of a safetensors file, header left out."""
    return _sha256(content[8 + int.from_bytes(content[:8], "little") :])


def resealed(graph: bytes, found: Mapping[str, str]) -> bytes:
    """A graph with some texts replaced by others of the same length, under a new checksum."""
    body = graph[: len(graph) - SIZE]
    for old, new in found.items():
        body = body.replace(old.encode(), new.encode())
    return sealed(body)


def outdated(record: Any, digests: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The digests in a record of a study, each with that which its recipe has now."""
    if isinstance(record, list):
        for entry in record:
            yield from outdated(entry, digests)
    if isinstance(record, dict):
        yield from outdated(list(record.values()), digests)
        names = [record[key] for key in NAMES if record.get(key) in digests]
        if names and "recipe" in record:
            yield record["recipe"], digests[names[0]]


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def main() -> None:
    """Restamp all published priors, and all records."""
    digests = {path.stem: read_recipe(path).digest for path in TRAINING.rglob("*.toml")}
    found: dict[str, str] = {}
    for folder in zoo.folders():
        if folder.parent == zoo.published_folder():
            found |= restamp(folder, digests.get(folder.name, zoo.describe(folder).recipe))
            print(f"{folder.name:28} tensors {payload((folder / zoo.WEIGHTS).read_bytes())}")
    for path in sorted(TRAINING.rglob("*.json")):
        text = path.read_text("utf-8")
        for old, new in (found | dict(outdated(json.loads(text), digests))).items():
            text = text.replace(old, new)
        write_atomically(path, text.encode())


if __name__ == "__main__":
    main()
