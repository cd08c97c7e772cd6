"""What an exported file promises whoever runs it: names of inputs, and metadata. Needs neither torch nor onnx.

docs/onnx.md describes the inputs and outputs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from restore.errors import ModelError, reason, shown
from restore.families import OBSERVED, Observation
from restore.files import check_regular
from restore.zoo.description import Description
from restore.zoo.limits import FILE, IMAGES_AT_ONCE

# Raise this when inputs, outputs or their meaning change.
VERSION = 2

# Type in onnxruntime's words, and sizes; None for a free size.
Kind = tuple[str, tuple[int | None, ...]]
FLOAT = "tensor(float)"

# The observation of graphs that take images of one noise and one mask together.
SHARED: Observation = "one noise and mask"

POLARITIES = ("light on dark", "dark on light")


# The checksum at the end of a file, over all bytes before it: a file that was damaged is never run. It is appended as a
# last model property. Protobuf messages can be concatenated, so nothing of the graph is rewritten.
KEY = "file_sha256"

# As protobuf writes it: field 14 of a model, `metadata_props`, with `key` (1) and `value` (2), each with its length.
_DIGITS = 64
_ENTRY = b"\x0a%c%s\x12%c" % (len(KEY), KEY.encode(), _DIGITS)
_HEAD = b"\x72%c%s" % (len(_ENTRY) + _DIGITS, _ENTRY)
SIZE = len(_HEAD) + _DIGITS


@dataclass(frozen=True)
class GraphFacts:
    """The metadata of an exported file.

    Attributes:
        header: the prior's description.
        channel: what the graph takes as the observation, a key of `OBSERVED`.
        light_ground: True if the images are dark on light.
        weights: SHA-256 of the weights file that its tensors come from, hexadecimal.
        at_once: images to give it at a time; more are slower, as their state leaves the caches of a processor.
    """

    header: Description
    channel: Observation
    light_ground: bool
    weights: str
    at_once: int

    def interface(self, header: Description) -> tuple[dict[str, Kind], dict[str, Kind]]:
        """The inputs and the outputs of the graph by name, for a prior of some size."""
        free = (None, None, None)
        image: Kind = (FLOAT, (None, *header.image_shape))
        shared = (1, None, None) if self.channel == SHARED else free
        observed: dict[str, Kind] = {
            "image": image,
            "field": image,
            "p": (FLOAT, free),
            "sigma": (FLOAT, shared),
            "mask": ("tensor(bool)", shared),
        }
        inputs = {name: observed[name] for name in OBSERVED[self.channel]}
        inputs |= {"max_iter": ("tensor(int64)", ()), "tol": (FLOAT, ()), "damping": (FLOAT, ())}
        outputs = dict.fromkeys(("restored", "means", "variances"), image)
        # Of images of any size hidden units are many times as much as the images.
        for layer, size in enumerate(() if header.kind.any_size else header.sizes[1:], 1):
            outputs |= dict.fromkeys((f"means.{layer}", f"variances.{layer}"), (FLOAT, (None, size)))
        per_image: dict[str, Kind] = {
            "log_partition": ("tensor(double)", (None,)),
            "iterations": ("tensor(int64)", (None,)),
            "residual": (FLOAT, (None,)),
            "converged": ("tensor(bool)", (None,)),
            "inversion": (FLOAT, (None,)),
        }
        if not header.weighs:
            del per_image["log_partition"]
        if self.channel == "field":
            del per_image["inversion"]
        return inputs, outputs | per_image

    def to_metadata(self) -> dict[str, str]:
        """Model properties: the header of the weights file, and what only a graph has."""
        return self.header.to_header() | {
            "graph_version": str(VERSION),
            "channel": self.channel,
            "polarity": POLARITIES[self.light_ground],
            "weights_sha256": self.weights,
            "images_at_once": str(self.at_once),
        }

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, str], where: str) -> GraphFacts:
        """Read the model properties of a file; raises ModelError if it is none of our exports, or a newer one."""
        if "graph_version" not in metadata:
            raise ModelError("is no file of `restore export`; choose another model", where)
        try:
            # Checked first: the other properties of a newer version may be anything.
            if int(metadata["graph_version"]) > VERSION:
                raise ModelError("a newer kind of graph than this version runs; update the package", where)
            header = Description.from_header({key: metadata[key] for key in metadata if key not in _OWN}, where)
            channel, polarity = metadata["channel"], metadata["polarity"]
            at_once = int(metadata["images_at_once"])
            if channel not in OBSERVED or polarity not in POLARITIES or not 1 <= at_once <= IMAGES_AT_ONCE:
                raise ValueError(f"{channel}, {polarity}, {at_once}")
            light = polarity == POLARITIES[True]
            return cls(header, cast(Observation, channel), light, metadata["weights_sha256"], at_once)
        except (KeyError, ValueError) as fault:
            raise ModelError(f"its metadata are damaged ({reason(fault)}); export it again", where) from fault


_OWN = ("graph_version", "channel", "polarity", "weights_sha256", "images_at_once", KEY)


def sealed(content: bytes) -> bytes:
    """Append the checksum to a file's bytes."""
    return content + _HEAD + hashlib.sha256(content).hexdigest().encode()


def read_intact(path: Path) -> bytes:
    """Read an exported file; raises ModelError if it cannot be read, is too large, or its checksum is wrong."""
    where = shown(path)
    try:
        check_regular(path, FILE)
        content = path.read_bytes()
    except (OSError, ValueError) as fault:
        raise ModelError(f"cannot be read ({reason(fault)}); get the file again", where) from fault
    if sealed(content[:-SIZE]) != content:
        raise ModelError("is no file of `restore export`, or was damaged or changed since; export it again", where)
    return content
