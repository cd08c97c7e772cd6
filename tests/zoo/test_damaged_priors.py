"""What damaged or absurd files of priors get: one line that names the file, before anything is computed."""

from __future__ import annotations

import json
import os
import pickle
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from exports import GENERAL, Header, Tensors, conditional_prior, inference, prior_of, refused, reheaded, rewritten
from safetensors.torch import load_file, save_file
from torch import Tensor

from restore import zoo
from restore.errors import ModelError
from restore.inference.onnx.contract import read_intact
from restore.zoo import GRAPH, WEIGHTS, describe, limits, load, save
from restore.zoo.description import NEWEST


def refused_prior(folder: Path, subject: str = "") -> None:
    """Loading raises one line that begins with the file and names the subject: a tensor, a key or a limit."""
    with pytest.raises(ModelError) as caught:
        load(folder)
    assert caught.value.subject == str(folder / WEIGHTS) and subject in refused(lambda: load(folder))


def without(name: str) -> Callable[[Tensors], Tensors]:
    return lambda tensors: {key: value for key, value in tensors.items() if key != name}


def replaced(name: str, change: Callable[[Tensor], Tensor]) -> Callable[[Tensors], Tensors]:
    return lambda tensors: tensors | {name: change(tensors[name])}


def filled(value: float) -> Callable[[Tensor], Tensor]:
    def change(tensor: Tensor) -> Tensor:
        tensor = tensor.clone()
        tensor.view(-1)[1] = value
        return tensor

    return change


pytestmark = pytest.mark.usefixtures("quick_disk")

# ------------------------------------------------------------------------------------------------------- bytes

BYTES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "truncated-in-header": lambda data: data[:100],
    "truncated-in-tensors": lambda data: data[:-1],
    "padded": lambda data: data + bytes(100),
    "header-of-absurd-size": lambda data: struct.pack("<Q", 2**63) + data[8:],
    "header-beyond-the-file": lambda data: struct.pack("<Q", 90_000_000) + data[8:],
    "header-not-json": lambda data: data[:8] + b"}" + data[9:],
    "text": lambda data: b"these are no weights, whatever the name says\n",
    "zip": lambda data: b"PK\x03\x04" + data[4:],
}


@pytest.mark.parametrize("change", BYTES.values(), ids=BYTES)
def test_damaged_files(change: Callable[[bytes], bytes], folder: Path) -> None:
    path = folder / WEIGHTS
    path.write_bytes(change(path.read_bytes()))
    refused_prior(folder)
    refused(lambda: describe(folder))


class Trap:
    """Unpickling this makes a file."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return open, (self.path, "w")


@pytest.mark.parametrize("dump", [lambda trap, path: path.write_bytes(pickle.dumps(trap)), torch.save])
def test_pickles_are_not_opened(dump: Callable[[Any, Path], object], folder: Path) -> None:
    dump(Trap(str(folder / "sprung")), folder / WEIGHTS)
    refused_prior(folder)
    assert not (folder / "sprung").exists()


def test_what_is_no_file_is_not_waited_for(folder: Path) -> None:
    reads: dict[str, Callable[[], object]] = {
        WEIGHTS: lambda: describe(folder),
        GRAPH: lambda: read_intact(folder / GRAPH),
        zoo.CARD: lambda: zoo.card_of(folder),
    }
    makes: tuple[Callable[[Path], object], ...] = (os.mkfifo, Path.mkdir, lambda path: path.symlink_to("/dev/zero"))
    for name, read in reads.items():
        (folder / name).unlink(missing_ok=True)
        for make in makes:
            make(folder / name)
            assert str(folder / name) in refused(read)
            (folder / name).rmdir() if (folder / name).is_dir() else (folder / name).unlink()
    refused(lambda: describe(folder))
    assert zoo.card_of(folder) == ""


# ------------------------------------------------------------------------------------------------------ tensors

TENSORS: dict[str, tuple[Callable[[Tensors], Tensors], str]] = {
    "missing-weights": (without("weights.0"), "weights.0"),
    "missing-modes": (without("modes"), "modes"),
    "missing-means": (without("pixel_means"), "pixel_means"),
    "extra": (lambda tensors: tensors | {"extra": torch.zeros(2)}, "extra"),
    "none": (lambda tensors: {}, "modes, pixel_means"),
    "transposed": (replaced("weights.0", lambda t: t.T.contiguous()), "weights.0"),
    "short-bias": (replaced("units.1.bias", lambda t: t[:-1]), "units.1.bias"),
    "flat": (replaced("weights.0", torch.flatten), "weights.0"),
    "fewer-modes": (replaced("modes", lambda t: t[:-1]), "modes"),
    "integer-weights": (replaced("weights.0", lambda t: t.to(torch.int8)), "weights.0"),
    "modes-as-numbers": (replaced("modes", lambda t: t.float()), "modes"),
    "nan-weight": (replaced("weights.0", filled(float("nan"))), "weights.0"),
    "infinite-bias": (replaced("units.0.bias", filled(float("inf"))), "units.0.bias"),
    "infinite-in-single-precision": (replaced("units.0.bias", lambda t: filled(1e300)(t.double())), "units.0.bias"),
    "nan-mean": (replaced("pixel_means", filled(float("nan"))), "pixel_means"),
    "mean-of-one": (replaced("pixel_means", filled(1.0)), "pixel_means"),
    "negative-mean": (replaced("pixel_means", filled(-0.1)), "pixel_means"),
}


@pytest.mark.parametrize(("change", "name"), TENSORS.values(), ids=TENSORS)
def test_wrong_tensors(change: Callable[[Tensors], Tensors], name: str, folder: Path) -> None:
    rewritten(folder, change)
    refused_prior(folder, name)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *(("spiked", name) for name in ("pointwise.presence", "pointwise.bias", "units.0.quadratic")),
        *(("conditional", name) for name in ("inputs.0", "inputs.1")),
    ],
)
def test_wrong_tensors_of_grey_and_conditional_priors(kind: str, name: str, tmp_path: Path) -> None:
    for change in (without(name), replaced(name, lambda t: t[:-1]), replaced(name, filled(float("nan")))):
        save(tmp_path / "odd", conditional_prior() if kind == "conditional" else GENERAL[kind](), "")
        rewritten(tmp_path / "odd", change)
        refused_prior(tmp_path / "odd", name)


@pytest.mark.parametrize("kind", ["F8_E4M3", "F8_E5M2", "BF16", "I8", "BOOL"])
def test_tensors_of_types_that_numpy_or_torch_does_not_know(kind: str, folder: Path) -> None:
    def change(header: Header) -> None:
        # As long as before: weights are stored in 32 bits.
        rows, columns = header["weights.0"]["shape"]
        header["weights.0"] |= {"dtype": kind, "shape": [rows, columns * (2 if kind == "BF16" else 4)]}

    reheaded(folder, change)
    assert "weights.0" in refused(lambda: describe(folder))


# ------------------------------------------------------------------------------------------------------ headers

SHAPES = '[3,5 15 "35" [3,5,1] [] [-3,-5] [3.7,5] [Infinity,5]'
# Values of a field that are wrong; None leaves it out.
FIELDS: dict[str, tuple[str | None, ...]] = {
    "format_version": (None, "one", "-1"),
    "name": (None,),
    "colour": ("true",),
    "\x1b[31m\n": ("1",),
    "data": ("x" * (limits.TEXT + 1),),
    "image_shape": (None, *SHAPES.split(), "[" * 4000),
    "hidden": ('"4"', "true", "0", "1000000"),
    "threshold": ('"127"', "300"),
    "auto": ("-1",),
    "temperature": ("0", "-1.2", "NaN", "1e6", '"1.2"'),
    "family": ("dbm", "crbm"),
    "task": ("flip:0.1",),
    "visible": ("gaussian",),
    "hidden_type": ("potts",),
    "inference": ("[]", '{"speed": 3}', '{"solver": "magic"}', '{"solver": ["tap"]}'),
}
# The changes of a header, and what the message names.
HEADERS: dict[str, tuple[Mapping[str, str | None], str]] = {
    f"{name}-{value}"[:60]: ({name: value}, "") for name, values in FIELDS.items() for value in values
}
HEADERS |= {
    "other-shape": ({"image_shape": "[1000, 1000]"}, ""),
    "unknown-task": ({"family": "crbm", "task": "blur:2"}, ""),
    "newer": ({"format_version": str(NEWEST + 1), "invented": "later"}, str(NEWEST + 1)),
    "newer-setting": (inference(ceiling="3.0"), "update the package"),
    "starts": (inference(starts="2147483647"), "starts"),
    "starts-of-large-images": (
        {"image_shape": "[1000, 1000]"} | inference(modes="1000", starts="1000"),
        "1000 starts of 1000000 pixels",
    ),
    "starts-a-text": (inference(starts='"3"'), "starts"),
    "true-for-one": (inference(starts="true"), "starts"),
    "modes": (inference(modes="1000000000"), "modes"),
    "modes-beyond-the-file": (inference(modes="99999"), "modes"),
    "iterations": (inference(max_iter="2147483647"), "max_iter"),
    "iterations-fraction": (inference(max_iter="2.5"), "max_iter"),
    "tolerance": (inference(tol="1e999"), "tol"),
    "tolerance-not-a-number": (inference(tol="NaN"), "tol"),
    "trust-beyond-floats": (inference(trust="1" + "0" * 400), ""),
    "damping": (inference(damping="1.5"), "damping"),
    "damping-negative": (inference(damping="-1e300"), "damping"),
    "pixels": ({"image_shape": "[2000000, 1]"}, str(limits.WIDEST)),
    "hidden": ({"hidden": str(2**40)}, str(limits.WIDEST)),
}


@pytest.mark.parametrize(("header", "subject"), HEADERS.values(), ids=HEADERS)
def test_damaged_headers_are_refused_from_the_header_alone(
    header: Mapping[str, str | None], subject: str, folder: Path
) -> None:
    describe(folder)
    rewritten(folder, **header)
    refused_prior(folder, subject)
    assert subject in refused(lambda: describe(folder))


GENERAL_HEADERS: dict[str, tuple[str, dict[str, str]]] = {
    "deep-without-layers": ("spiked", {"family": "deep"}),
    "layers-without-deep": ("deep", {"family": "rbm"}),
    "layers-of-none": ("deep", {"deeper": "[3, 0]"}),
    "layers-fractions": ("deep", {"deeper": "[3.5, 2]"}),
    "layers-other-sizes": ("deep", {"deeper": "[2, 3]"}),
    "layers-without-end": ("deep", {"deeper": json.dumps([1] * limits.LAYERS)}),
    "grey-conditional": ("spiked", {"family": "crbm", "task": "flip:0.1"}),
    "grey-fully-visible": ("spiked", {"family": "fvbm", "hidden": "0"}),
    "grey-as-binary": ("spiked", {"visible": "bernoulli"}),
    "spiked-as-truncated": ("spiked", {"visible": "truncated-gaussian"}),
    "gaussian-as-binary": ("gaussian", {"hidden_type": "bernoulli"}),
    "visible-without-bounds": ("gaussian", {"visible": "gaussian"}),
    "products": ("spiked", {"inference": '{"solver": "sum_product", "modes": 0, "starts": 0, "damping": 0.0}'}),
    "modes": ("spiked", inference(modes="3", starts="2")),
    "grey-temperature": ("spiked", {"temperature": "1.2"}),
}


@pytest.mark.parametrize(("name", "header"), GENERAL_HEADERS.values(), ids=GENERAL_HEADERS)
def test_damaged_headers_of_grey_and_deep_priors(name: str, header: dict[str, str], tmp_path: Path) -> None:
    save(tmp_path / "odd", GENERAL[name](), "")
    rewritten(tmp_path / "odd", **header)
    refused_prior(tmp_path / "odd")


@pytest.mark.parametrize(
    "change",
    [
        lambda old: '{"a": ' * 100_000,
        lambda old: old["modes"].update(shape=[2**62, 4]),
        lambda old: old["modes"].update(data_offsets=[0, 8]),
        lambda old: old["__metadata__"].update({"\x1b[2J": "x" * 999}),
    ],
    ids=["deep", "overflow", "overlap", "escape"],
)
def test_damaged_headers_of_safetensors(change: Callable[[Header], str | None], folder: Path) -> None:
    reheaded(folder, change)
    refused(lambda: describe(folder))


def test_a_header_without_a_task(folder: Path) -> None:
    rewritten(folder, task=None)
    assert describe(folder) == prior_of().description


@pytest.mark.parametrize("metadata", [None, {"format": "pt"}])
def test_a_safetensors_file_of_someone_else(metadata: dict[str, str] | None, folder: Path) -> None:
    save_file({"weight": torch.zeros(3)}, folder / WEIGHTS, metadata)
    refused_prior(folder)


def test_doubles_are_read(folder: Path) -> None:
    rewritten(folder, replaced("units.0.bias", lambda t: t.double()))
    assert load_file(folder / WEIGHTS)["units.0.bias"].dtype == torch.float64
    assert load(folder).pixel_means.dtype == torch.float32
