"""Priors on disk: round trips, names, and what damaged files get (rows 38 and 41-44 of the table of bad inputs)."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from grey_priors import SPIKED, TRUNCATED, grey_prior
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from machines import random_rbm, seeded
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from restore import zoo
from restore.errors import ModelError, OutputError, TrainingError
from restore.priors import RBM, ConditionalRBM
from restore.priors.bits import pack
from restore.zoo import (
    CARD,
    PREFERRED_BINARY,
    PREFERRED_GREY,
    PREFERRED_SILHOUETTES,
    WEIGHTS,
    TrainedPrior,
    candidates,
    describe,
    find,
    folders,
    load,
    save,
)
from restore.zoo.description import FORMAT, Description, Inference

pytestmark = pytest.mark.usefixtures("quick_disk")


def prior_of(name: str = "small", shape: tuple[int, int] = (3, 5), hidden: int = 4, modes: int = 6) -> TrainedPrior:
    pixels = shape[0] * shape[1]
    return TrainedPrior(
        Description(name, shape, hidden, 127, "made up", "tap", "0123", Inference(modes=modes, starts=3, tol=1e-5)),
        random_rbm(pixels, hidden, dtype=torch.float32),
        torch.rand(pixels, generator=seeded(1)) * 0.8 + 0.1,
        pack(torch.bernoulli(torch.full((modes, pixels), 0.5), generator=seeded(2))),
    )


def conditional_prior(name: str = "small") -> TrainedPrior:
    """A conditional prior; its inputs, unlike its weights, are exact in half precision."""
    plain = prior_of(name, modes=0)
    draw = torch.randn(15 + 4, 15, generator=seeded(3)).half().float()
    about = replace(
        plain.description,
        family="crbm",
        task="patch:2:0.5",
        inference=Inference("mixed_product", 9, 1e-3, 0.0, modes=0, starts=0),
    )
    assert isinstance(plain.machine, RBM)
    return replace(plain, description=about, machine=ConditionalRBM(plain.machine, draw[:15], draw[15:]))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save(tmp_path / "small", prior_of(), "# small\n")
    return tmp_path / "small"


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Empty folders for published and for user-trained priors."""
    monkeypatch.setattr(zoo.search, "published_folder", lambda: tmp_path / "published")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    return tmp_path / "published", tmp_path / "home" / "restore" / "models"


def same(first: TrainedPrior, second: TrainedPrior) -> bool:
    tensors = [
        {**prior.machine.parameters, "pixel_means": prior.pixel_means, "modes": prior.modes}
        for prior in (first, second)
    ]
    return first.description == second.description and all(
        torch.equal(value, tensors[1][name]) and value.dtype == tensors[1][name].dtype
        for name, value in tensors[0].items()
    )


# --- round trips ---


@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(1, 5), st.integers(1, 5), st.integers(1, 4), st.integers(0, 9))
def test_round_trip(tmp_path: Path, height: int, width: int, hidden: int, modes: int) -> None:
    prior = prior_of(shape=(height, width), hidden=hidden, modes=modes)
    save(tmp_path / "again", prior, "card")
    assert same(load(tmp_path / "again"), prior)
    assert describe(tmp_path / "again") == prior.description
    assert (tmp_path / "again" / CARD).read_text() == "card"


def test_the_same_prior_is_the_same_file(tmp_path: Path) -> None:
    for number in range(5):
        save(tmp_path / str(number), prior_of(), "card")
    assert len({(tmp_path / str(number) / WEIGHTS).read_bytes() for number in range(5)}) == 1


def test_a_graph_of_other_weights_does_not_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "again"
    save(folder, prior_of(), "card")
    (folder / zoo.GRAPH).write_bytes(b"a graph")

    def full(path: Path, content: bytes, error: type[Exception]) -> None:
        raise error("no space left")

    with monkeypatch.context() as patch, pytest.raises(OutputError):
        patch.setattr(zoo.store, "write_atomically", full)
        save(folder, prior_of(), "card")
    assert (folder / zoo.GRAPH).read_bytes() == b"a graph"
    save(folder, prior_of(), "card")
    assert not (folder / zoo.GRAPH).exists()


def test_round_trip_of_a_conditional_prior(tmp_path: Path) -> None:
    prior = conditional_prior()
    save(tmp_path / "again", prior, "card")
    found = load(tmp_path / "again")
    assert isinstance(found.machine, ConditionalRBM)
    assert same(found, prior)
    about = describe(tmp_path / "again")
    assert about == prior.description
    assert (about.conditional, about.task, about.inference.starts) == (True, "patch:2:0.5", 0)
    stored = load_file(tmp_path / "again" / WEIGHTS)
    assert {stored[f"inputs.{layer}"].dtype for layer in (0, 1)} == {torch.float16}


GENERAL: dict[str, Callable[[], TrainedPrior]] = {
    "spiked": lambda: grey_prior(SPIKED, shape=(3, 5)),
    "gaussian": lambda: grey_prior(TRUNCATED, "gaussian", shape=(3, 5)),
    "deep": lambda: grey_prior(SPIKED, "gauss-bernoulli", shape=(3, 5), deeper=(3, 2)),
    "deep-binary": lambda: grey_prior(deeper=(3,), shape=(3, 5), visible="bernoulli"),
}


@pytest.mark.parametrize("make", GENERAL.values(), ids=GENERAL)
def test_round_trip_of_grey_and_deep_priors(make: Callable[[], TrainedPrior], tmp_path: Path) -> None:
    prior = make()
    save(tmp_path / "again", prior, "card")
    found, about = load(tmp_path / "again"), prior.description
    assert same(found, prior) and type(found.machine) is type(prior.machine)
    assert [type(layer) for layer in found.machine.layers] == [type(layer) for layer in prior.machine.layers]
    assert (found.grey_pixels is None) == (not about.grey)
    if prior.grey_pixels is not None and found.grey_pixels is not None:
        for name, value in prior.grey_pixels.parameters.items():
            assert torch.equal(found.grey_pixels.parameters[name], value)
    with safe_open(tmp_path / "again" / WEIGHTS, framework="numpy") as stored:
        assert stored.metadata()["format_version"] == str(FORMAT) == "2"


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


def test_weights_that_half_precision_holds_take_half_the_room_and_stay_exact(tmp_path: Path) -> None:
    full = prior_of()
    rounded = replace(
        full,
        machine=full.machine.with_parameters(
            full.machine.parameters | {"weights.0": full.machine.weights.half().float()}
        ),
    )
    for name, prior, kind in (("full", full, torch.float32), ("rounded", rounded, torch.float16)):
        save(tmp_path / name, prior, "")
        assert load_file(tmp_path / name / WEIGHTS)["weights.0"].dtype == kind
        assert same(load(tmp_path / name), prior)
    # A weight beyond the range of half precision is not rounded to infinity.
    large = replace(
        full,
        machine=full.machine.with_parameters(
            full.machine.parameters | {"weights.0": torch.full_like(full.machine.weights, 2.0**17)}
        ),
    )
    save(tmp_path / "large", large, "")
    assert same(load(tmp_path / "large"), large)


def test_the_header_is_readable_without_the_weights(folder: Path) -> None:
    with safe_open(folder / WEIGHTS, framework="numpy") as stored:
        header = stored.metadata()
    # The first format has all that a binary prior in two layers needs, so that older versions read it.
    assert header["format_version"] == "1" and "deeper" not in header
    assert header["family"] == "rbm"
    assert json.loads(header["image_shape"]) == [3, 5]
    assert all(isinstance(value, str) for value in header.values())


def test_saving_again_replaces(folder: Path) -> None:
    other = replace(prior_of(), description=replace(prior_of().description, threshold=99))
    save(folder, other, "new")
    assert load(folder).description.threshold == 99
    assert sorted(path.name for path in folder.iterdir()) == [CARD, WEIGHTS]


@pytest.mark.parametrize("error", [OutputError, TrainingError])
def test_places_that_cannot_be_written(error: type[Exception], folder: Path) -> None:
    before = (folder / WEIGHTS).read_bytes()
    with pytest.raises(error, match="cannot be made"):
        save(folder / CARD / "below", prior_of(), "", error)
    (folder / "taken" / WEIGHTS).mkdir(parents=True)
    with pytest.raises(error, match="cannot be written"):
        save(folder / "taken", prior_of(), "", error)
    assert (folder / WEIGHTS).read_bytes() == before


def test_a_full_disk_leaves_the_old_prior(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    def full(descriptor: int) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match="No space left on device"):
        save(folder, prior_of(hidden=2), "new")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


# --- names ---


def test_priors_are_found_by_name_folder_or_file(places: tuple[Path, Path], tmp_path: Path) -> None:
    published, own = places
    save(published / "one", prior_of("one"), "")
    save(published / "both", prior_of("both"), "")
    save(own / "both", prior_of("both"), "")
    save(own / "two", prior_of("two"), "")
    save(tmp_path / "elsewhere", prior_of("elsewhere"), "")
    (published / "no-prior").mkdir()
    assert [path.name for path in folders()] == ["both", "one", "two"]
    assert find("one") == published / "one"
    assert find("both") == published / "both"
    assert find("two") == own / "two"
    assert find(str(tmp_path / "elsewhere")) == tmp_path / "elsewhere"
    assert find(str(tmp_path / "elsewhere" / WEIGHTS)) == tmp_path / "elsewhere"


def test_no_folder_at_all(places: tuple[Path, Path]) -> None:
    assert list(folders()) == []


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("tap-mnst", "tap-mnst: there is no such model; did you mean tap-mnist"),
        ("zzz", "zzz: there is no such model; `restore models` lists them"),
        ("", "there is no such model"),
        ("no/such/folder", "no/such/folder: there is no such model"),
        ("a\nb", r"a\nb: there is no such model"),
        ("x" * 300, "there is no such model"),
        ("nul\0byte", "there is no such model"),
    ],
    ids=["38-near", "38-far", "38-empty", "38-path", "38-newline", "38-long", "38-nul"],
)
def test_unknown_models(name: str, says: str, places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    save(places[0] / "tap-mnist", prior_of("tap-mnist"), "")
    monkeypatch.chdir(places[0])
    with pytest.raises(ModelError) as caught:
        find(name)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_auto_takes_the_prior_that_knows_the_size(places: tuple[Path, Path]) -> None:
    published, own = places
    with pytest.raises(ModelError, match=r"no prior knows images of 5x3 pixels; train a prior on images of its size"):
        candidates((3, 5))
    for grey, name in ((False, PREFERRED_BINARY), (True, PREFERRED_GREY)):
        save(published / name, prior_of(name, (5, 7)), "")
        with pytest.raises(ModelError, match=rf"of 5x3 pixels; give --model {name} --fit resize"):
            candidates((3, 5), grey)
        with pytest.raises(ModelError, match=r"of 15x10 pixels; it is too large to resize, so cut windows of 7x5"):
            candidates((10, 15), grey)
        shutil.rmtree(published / name)
    save(own / "mine", prior_of("mine"), "")
    save(published / "square", prior_of("square", (4, 4)), "")
    assert candidates((3, 5)) == ("mine",)
    assert candidates((4, 4)) == ("square",)
    with pytest.raises(ModelError, match="no prior knows images of 3x5 pixels"):
        candidates((5, 3))
    # A conditional prior undoes one kind of damage, so it is only taken by name.
    save(own / "undo", conditional_prior("undo"), "")
    assert candidates((3, 5)) == ("mine",)
    save(published / "second", prior_of("second"), "")
    assert candidates((3, 5)) == ("second", "mine")
    # The variants of preferred priors are only taken by name too.
    for name in (PREFERRED_SILHOUETTES, PREFERRED_BINARY):
        save(published / name, prior_of(name), "")
        assert name in candidates((3, 5))
    assert candidates((3, 5)) == (PREFERRED_BINARY, PREFERRED_SILHOUETTES, "mine")


def test_auto_never_compares_probabilities_with_densities(places: tuple[Path, Path]) -> None:
    _, own = places
    for name, prior in (("ink", prior_of("ink")), ("grey", grey_prior(shape=(3, 5)))):
        save(own / name, prior, "")
    assert candidates((3, 5)) == ("ink",)
    assert candidates((3, 5), grey=True) == ("grey",)


def test_published_priors_can_be_described() -> None:
    for path in zoo.published_folder().glob(f"*/{WEIGHTS}"):
        assert describe(path.parent).name == path.parent.name


# --- damage ---


def refused(folder: Path, says: str = "") -> None:
    """Neither describing nor loading does anything but raise an error of one line that names the file."""
    with pytest.raises(ModelError) as caught:
        load(folder)
    text = str(caught.value)
    assert text.startswith(f"{folder / WEIGHTS}: ")
    assert says in text
    assert "\n" not in text
    assert caught.value.exit_code == 4


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


Tensors = dict[str, Tensor]


def rewritten(folder: Path, tensors: Callable[[Tensors], Tensors] = lambda t: t, **header: str | None) -> None:
    """Write the prior's file again with other tensors, or other header fields (None removes one)."""
    path = folder / WEIGHTS
    with safe_open(path, framework="numpy") as stored:
        old = stored.metadata()
    new = {key: value for key, value in (old | header).items() if value is not None}
    save_file({name: value.clone() for name, value in tensors(load_file(path)).items()}, path, new)


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
    with pytest.raises(ModelError, match=r"'blur:2' is no task"):
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


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
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


def test_messages_about_odd_places_fit_on_one_line(tmp_path: Path) -> None:
    odd = tmp_path / "a\nb[red]"
    save(odd, prior_of(), "")
    assert same(load(odd), prior_of())
    (odd / WEIGHTS).write_bytes(b"x")
    for read in (load, describe):
        with pytest.raises(ModelError) as caught:
            read(odd)
        assert "\n" not in str(caught.value)
        assert r"a\nb[red]" in str(caught.value)
