"""Write the headers of all published priors anew: in their weights files, graphs, cards and records.

A header has the digest of its recipe, which covers all settings, so it changes when a setting is added or removed, and
when a default changes that a recipe then writes out; and facts that follow from the tensors, such as the share of
white. Run this only if every recipe still trains the same prior:

    python training/restamp.py

Tensors stay as they are, byte for byte: their checksum is compared and printed. Graphs are not traced again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
from onnx import helper

from restore import zoo
from restore.files import write_atomically
from restore.inference.onnx.contract import SIZE, GraphFacts, read_intact, sealed
from restore.learning.recipe.recipe import read_recipe
from restore.learning.run.outcome import share_of_white
from restore.zoo.description import Description
from restore.zoo.store import in_order

TRAINING = Path(__file__).parent

# By which an entry of a record names its recipe.
NAMES = ("name", "run")


def restamp(folder: Path, digest: str) -> dict[str, str]:
    """Bring the files of a prior up to date.

    Returns:
        Every hexadecimal number that was replaced, and by what: the digest, and the checksum of the weights file.
    """
    weights, graph, card = (folder / name for name in (zoo.WEIGHTS, zoo.GRAPH, zoo.CARD))
    before, prior = weights.read_bytes(), zoo.load(folder)
    old, white = prior.description.recipe, share_of_white(prior.description, prior.pixel_means)
    header = replace(prior.description, recipe=digest, white=white)
    after = before if header == prior.description else with_header(before, header)
    assert payload(after) == payload(before), f"{weights}: tensors would change"
    found = {old: digest, _sha256(before): _sha256(after)}
    contents = {card: zoo.with_facts(zoo.card_of(folder).replace(old[:16], digest[:16], 1), header).encode()}
    if after != before:
        contents[weights] = after
        contents[graph] = moved(read_intact(graph), header, _sha256(after), len(after) - len(before))
    for path, content in contents.items():
        write_atomically(path, content)
    assert payload(weights.read_bytes()) == payload(before), f"{weights}: tensors have changed"
    return found


def payload(content: bytes) -> str:
    """SHA-256 of the tensors of a safetensors file, header left out."""
    return _sha256(content[8 + int.from_bytes(content[:8], "little") :])


def with_header(content: bytes, header: Description) -> bytes:
    """A safetensors file with another header."""
    start = 8 + int.from_bytes(content[:8], "little")
    table = json.dumps(json.loads(content[8:start]) | {"__metadata__": header.to_header()}).encode()
    return in_order(len(table).to_bytes(8, "little") + table + content[start:])


def moved(graph: bytes, header: Description, weights: str, shift: int) -> bytes:
    """A graph for a weights file with another header and checksum, in which tensors begin `shift` bytes later."""
    model = onnx.load_model_from_string(graph[: len(graph) - SIZE])
    for tensor in model.graph.initializer:
        for entry in tensor.external_data:
            if entry.key == "offset":
                entry.value = str(int(entry.value) + shift)
    facts = GraphFacts.from_metadata({entry.key: entry.value for entry in model.metadata_props}, header.name)
    del model.metadata_props[:]
    helper.set_model_props(model, replace(facts, header=header, weights=weights).to_metadata())
    return sealed(model.SerializeToString())


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
