"""What damaged files of priors get (rows 41-44 of the table of bad inputs)."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file
from stored import GENERAL, Tensors, conditional_prior, filled, prior_of, refused, replaced, rewritten, without

from restore.errors import ModelError
from restore.zoo import WEIGHTS, describe, load, save
from restore.zoo.description import FORMAT
from restore.zoo.inference import Inference

pytestmark = pytest.mark.usefixtures("quick_disk")

BROKEN: dict[str, tuple[str, dict[str, str]]] = {
    "deep-without-layers": ("spiked", {"family": "deep"}),
    "layers-without-deep": ("deep", {"family": "rbm"}),
    "layers-of-none": ("deep", {"deeper": "[3, 0]"}),
    "layers-no-list": ("deep", {"deeper": "3"}),
    "layers-fractions": ("deep", {"deeper": "[3.5, 2]"}),
    "layers-of-texts": ("deep", {"deeper": '["3", "2"]'}),
    "layers-other-sizes": ("deep", {"deeper": "[2, 3]"}),
    "grey-conditional": ("spiked", {"family": "crbm", "task": "flip:0.1"}),
    "grey-fully-visible": ("spiked", {"family": "fvbm", "hidden": "0"}),
    "grey-as-binary": ("spiked", {"visible": "bernoulli"}),
    "spiked-as-truncated": ("spiked", {"visible": "truncated-gaussian"}),
    "gaussian-as-binary": ("gaussian", {"hidden_type": "bernoulli"}),
    "visible-without-bounds": ("gaussian", {"visible": "gaussian"}),
    "products": ("spiked", {"inference": '{"solver": "sum_product", "modes": 0, "starts": 0, "damping": 0.0}'}),
    "modes": ("spiked", {"inference": '{"modes": 3, "starts": 2}'}),
}


@pytest.mark.parametrize(("name", "header"), BROKEN.values(), ids=[f"44-{name}" for name in BROKEN])
def test_damaged_headers_of_grey_and_deep_priors(name: str, header: dict[str, str], tmp_path: Path) -> None:
    save(tmp_path / "odd", GENERAL[name](), "")
    rewritten(tmp_path / "odd", **header)
    with pytest.raises(ModelError, match=r"description is damaged|missing, extra or of wrong shape"):
        load(tmp_path / "odd")


@pytest.mark.parametrize("name", ["pointwise.presence", "pointwise.bias", "units.0.quadratic", "units.0.presence"])
def test_43_tensors_of_grey_priors(name: str, tmp_path: Path) -> None:
    for change, says in (
        (without(name), name),
        (replaced(name, lambda t: t[:-1]), name),
        (replaced(name, filled(float("nan"))), f"{name} holds NaN"),
    ):
        save(tmp_path / "odd", GENERAL["spiked"](), "")
        rewritten(tmp_path / "odd", change)
        refused(tmp_path / "odd", says)


@pytest.mark.parametrize("name", ["inputs.0", "inputs.1"])
def test_43_inputs_of_conditional_priors(name: str, tmp_path: Path) -> None:
    save(tmp_path / "odd", conditional_prior(), "")
    for change in (without(name), replaced(name, lambda t: t[:-1])):
        rewritten(tmp_path / "odd", change)
        refused(tmp_path / "odd", name)
        save(tmp_path / "odd", conditional_prior(), "")
    rewritten(tmp_path / "odd", replaced(name, filled(float("nan"))))
    refused(tmp_path / "odd", f"{name} holds NaN")
    # A machine that knows nothing of the observed image has no inputs.
    save(tmp_path / "plain", prior_of(), "")
    rewritten(tmp_path / "plain", family="crbm", task="flip:0.1")
    refused(tmp_path / "plain", "starts")
    own_start = replace(prior_of().description, inference=Inference(modes=0, starts=0))
    save(tmp_path / "plain", replace(prior_of(modes=0), description=own_start), "")
    rewritten(tmp_path / "plain", family="crbm", task="flip:0.1")
    refused(tmp_path / "plain", "inputs.0, inputs.1")


def test_headers_written_before_there_were_tasks(folder: Path) -> None:
    rewritten(folder, task=None)
    assert describe(folder) == prior_of().description


class Trap:
    """Unpickling this makes a file."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return open, (self.path, "w")


def changed_bytes(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    return lambda path: path.write_bytes(change(path.read_bytes())) and None


def oversized_header(data: bytes) -> bytes:
    return struct.pack("<Q", 2**63) + data[8:]


def large_header(data: bytes) -> bytes:
    return struct.pack("<Q", 90_000_000) + data[8:]


BYTES: dict[str, Callable[[bytes], bytes]] = {
    "41-empty": lambda data: b"",
    "41-truncated-in-size": lambda data: data[:5],
    "41-truncated-in-header": lambda data: data[:100],
    "41-truncated-in-tensors": lambda data: data[:-1],
    "41-padded": lambda data: data + bytes(100),
    "41-oversized-header": oversized_header,
    "41-header-beyond-the-file": large_header,
    "41-header-of-no-size": lambda data: bytes(8) + data[8:],
    "41-header-not-json": lambda data: data[:8] + b"}" + data[9:],
    "41-text": lambda data: b"these are no weights, whatever the name says\n",
    "41-zip": lambda data: b"PK\x03\x04" + data[4:],
}


@pytest.mark.parametrize("change", BYTES.values(), ids=BYTES)
def test_damaged_files(change: Callable[[bytes], bytes], folder: Path) -> None:
    path = folder / WEIGHTS
    path.write_bytes(change(path.read_bytes()))
    refused(folder)
    with pytest.raises(ModelError):
        describe(folder)


@pytest.mark.parametrize("how", ["pickle", "torch"])
def test_42_pickles_are_not_opened(how: str, folder: Path) -> None:
    trap = folder / "sprung"
    if how == "pickle":
        (folder / WEIGHTS).write_bytes(pickle.dumps(Trap(str(trap))))
    else:
        torch.save({"weights.0": Trap(str(trap))}, folder / WEIGHTS)
    refused(folder)
    assert not trap.exists()


def test_41_not_a_file(folder: Path) -> None:
    (folder / WEIGHTS).unlink()
    refused(folder)
    (folder / WEIGHTS).mkdir()
    refused(folder)
    (folder / WEIGHTS).rmdir()
    (folder / WEIGHTS).symlink_to(folder / WEIGHTS)
    refused(folder)


TENSORS: dict[str, tuple[Callable[[Tensors], Tensors], str]] = {
    "43-missing-weights": (without("weights.0"), "weights.0"),
    "43-missing-modes": (without("modes"), "modes"),
    "43-missing-means": (without("pixel_means"), "pixel_means"),
    "43-extra": (lambda tensors: tensors | {"extra": torch.zeros(2)}, "extra"),
    "43-none": (lambda tensors: {}, "tensors missing"),
    "43-transposed": (replaced("weights.0", lambda t: t.T.contiguous()), "weights.0"),
    "43-short-bias": (replaced("units.1.bias", lambda t: t[:-1]), "units.1.bias"),
    "43-flat": (replaced("weights.0", torch.flatten), "weights.0"),
    "43-fewer-modes": (replaced("modes", lambda t: t[:-1]), "modes"),
    "43-integer-weights": (replaced("weights.0", lambda t: t.to(torch.int8)), "numbers of a wrong type in weights.0"),
    "43-modes-as-numbers": (replaced("modes", lambda t: t.float()), "numbers of a wrong type in modes"),
    "44-nan-weight": (replaced("weights.0", filled(float("nan"))), "weights.0 holds NaN"),
    "44-infinite-bias": (replaced("units.0.bias", filled(float("inf"))), "units.0.bias holds NaN or infinite"),
    "44-nan-mean": (replaced("pixel_means", filled(float("nan"))), "pixel_means holds NaN"),
    "44-mean-of-one": (replaced("pixel_means", filled(1.0)), "pixel_means holds values outside (0, 1)"),
    "44-negative-mean": (replaced("pixel_means", filled(-0.1)), "pixel_means holds values outside (0, 1)"),
}


@pytest.mark.parametrize(("change", "says"), TENSORS.values(), ids=TENSORS)
def test_wrong_tensors(change: Callable[[Tensors], Tensors], says: str, folder: Path) -> None:
    rewritten(folder, change)
    refused(folder, says)


HEADERS: dict[str, dict[str, str | None]] = {
    "no-version": {"format_version": None},
    "version-not-a-number": {"format_version": "one"},
    "no-name": {"name": None},
    "no-shape": {"image_shape": None},
    "no-inference": {"inference": None},
    "no-hidden": {"hidden": None},
    "unknown-field": {"colour": "true"},
    "shape-not-json": {"image_shape": "[3, 5"},
    "shape-a-number": {"image_shape": "15"},
    "shape-text": {"image_shape": '"35"'},
    "shape-of-texts": {"image_shape": '["3", "5"]'},
    "shape-of-three": {"image_shape": "[3, 5, 1]"},
    "shape-of-none": {"image_shape": "[]"},
    "shape-negative": {"image_shape": "[-3, -5]"},
    "shape-fraction": {"image_shape": "[3.7, 5]"},
    "shape-infinite": {"image_shape": "[Infinity, 5]"},
    "shape-nan": {"image_shape": "[NaN, 5]"},
    "shape-nested": {"image_shape": "[" * 50_000},
    "hidden-text": {"hidden": '"4"'},
    "hidden-true": {"hidden": "true"},
    "hidden-zero": {"hidden": "0"},
    "threshold-null": {"threshold": "null"},
    "threshold-text": {"threshold": '"127"'},
    "threshold-out-of-range": {"threshold": "300"},
    "other-family": {"family": "dbm"},
    "family-without-task": {"family": "crbm"},
    "family-with-empty-task": {"family": "crbm", "task": ""},
    "task-without-family": {"task": "flip:0.1"},
    "other-visible-units": {"visible": "gaussian"},
    "other-hidden-units": {"hidden_type": "potts"},
    "inference-a-list": {"inference": "[]"},
    "inference-null": {"inference": "null"},
    "inference-unknown-field": {"inference": '{"speed": 3}'},
    "inference-unknown-solver": {"inference": '{"solver": "magic"}'},
    "inference-solver-a-list": {"inference": '{"solver": ["tap"]}'},
    "inference-out-of-range": {"inference": '{"damping": 1.5}'},
    "inference-nan": {"inference": '{"tol": NaN}'},
    "inference-fraction": {"inference": '{"max_iter": 2.5}'},
    "inference-text": {"inference": '{"starts": "3"}'},
}


@pytest.mark.parametrize("header", HEADERS.values(), ids=[f"44-{name}" for name in HEADERS])
def test_damaged_headers(header: dict[str, str | None], folder: Path) -> None:
    rewritten(folder, **header)
    refused(folder)


def test_44_a_task_that_nobody_knows(folder: Path) -> None:
    rewritten(folder, family="crbm", task="blur:2")
    with pytest.raises(ModelError, match=r"'blur:2' is not a task"):
        describe(folder)
    with pytest.raises(ModelError):
        describe(folder)


def test_44_a_newer_format(folder: Path) -> None:
    rewritten(folder, format_version=str(FORMAT + 1), invented="later")
    refused(folder, f"written in format {FORMAT + 1}, this version reads {FORMAT}; update the package")


def test_41_a_safetensors_file_of_someone_else(folder: Path) -> None:
    save_file({"weight": torch.zeros(3)}, folder / WEIGHTS)
    refused(folder, "holds no prior of this package")
    save_file({"weight": torch.zeros(3)}, folder / WEIGHTS, {"format": "pt"})
    refused(folder, "holds no prior of this package")


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 10_000), st.integers(0, 7))
def test_any_flipped_bit_is_refused_or_harmless(tmp_path: Path, place: int, bit: int) -> None:
    folder = tmp_path / "fuzzed"
    save(folder, prior_of(), "")
    content = bytearray((folder / WEIGHTS).read_bytes())
    header = struct.unpack("<Q", content[:8])[0] + 8
    content[place % header] ^= 1 << bit
    (folder / WEIGHTS).write_bytes(content)
    try:
        load(folder)
    except ModelError as fault:
        assert "\n" not in str(fault)
