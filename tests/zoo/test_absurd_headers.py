"""Absurd numbers, texts and types in the header of a prior: refused from the header alone (rows 41-44 and 67)."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from odd_priors import PUBLISHED, Header, inference, refused, rewritten
from priors import random_deep_prior, random_prior

from restore import zoo
from restore.app import assembly
from restore.errors import UsageError
from restore.inference.onnx.seal import read_intact
from restore.zoo import GRAPH, WEIGHTS, limits
from restore.zoo.description import Description
from restore.zoo.inference import Inference

pytestmark = pytest.mark.usefixtures("quick_disk")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    zoo.save(tmp_path / "odd", random_prior(), "# odd\n")
    return tmp_path / "odd"


ABSURD: dict[str, tuple[dict[str, str], str]] = {
    "starts": (inference(starts="2147483647"), f"starts must lie in 0 ... {limits.STARTS}"),
    "starts-of-large-images": (
        {"image_shape": "[1000, 1000]"} | inference(modes="1000", starts="1000"),
        "1000 starts of 1000000 pixels take too much memory",
    ),
    "modes": (inference(modes="1000000000"), f"modes must lie in 0 ... {limits.MODES}"),
    "modes-beyond-the-file": (inference(modes="99999"), "of wrong shape: modes"),
    "iterations": (inference(max_iter="2147483647"), f"max_iter must lie in 1 ... {limits.ITERATIONS}"),
    "tolerance": (inference(tol="1e999"), "tol is inf"),
    "tolerance-infinite": (inference(tol="Infinity"), "tol is inf"),
    "trust-not-a-number": (inference(trust="NaN"), "trust is nan"),
    "trust-beyond-floats": (inference(trust="1" + "0" * 400), "too large"),
    "damping-negative": (inference(damping="-1e300"), "damping"),
    "true-for-one": (inference(starts="true"), "starts is True"),
    "pixels": ({"image_shape": "[2000000, 1]"}, f"layers of {limits.UNITS} units"),
    "pixels-beyond-the-file": ({"image_shape": "[1000, 1000]"}, "of wrong shape: modes, pixel_means, units.0.bias"),
    "pixels-without-end": ({"image_shape": "[" + "9" * 5000 + ", 1]"}, ""),
    "hidden": ({"hidden": str(2**40)}, f"layers of {limits.UNITS} units"),
    "hidden-beyond-the-file": ({"hidden": "1000000"}, "of wrong shape: units.1.bias, weights.0"),
    "version-without-end": ({"format_version": "9" * 5000}, ""),
    "version-negative": ({"format_version": "-1"}, "format -1"),
    "long-text": ({"data": "x" * (limits.TEXT + 1)}, f"a text of more than {limits.TEXT} characters"),
    "long-name": ({"method": "y" * 500_000}, f"a text of more than {limits.TEXT} characters"),
    "escape-in-a-key": ({"\x1b[31m\n": "1"}, r"\x1b[31m"),
    "nested": ({"deeper": "[" * 4000}, ""),
}


@pytest.mark.parametrize(("header", "says"), ABSURD.values(), ids=[f"67-{name}" for name in ABSURD])
def test_absurd_headers(header: dict[str, str], says: str, folder: Path) -> None:
    zoo.describe(folder)
    rewritten(folder, lambda old: old["__metadata__"].update(header))
    assert says in refused(lambda: zoo.describe(folder))
    refused(lambda: zoo.load(folder))


def test_67_layers_without_end(tmp_path: Path) -> None:
    zoo.save(tmp_path / "deep", random_deep_prior(), "")
    deeper = json.dumps([1] * limits.LAYERS)
    rewritten(tmp_path / "deep", lambda old: old["__metadata__"].update(deeper=deeper))
    assert f"at most {limits.LAYERS} layers" in refused(lambda: zoo.describe(tmp_path / "deep"))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda old: '{"a": ' * 100_000, ""),
        (lambda old: old["modes"].update(shape=[2**62, 4]), ""),
        (lambda old: old["modes"].update(data_offsets=[0, 8]), "offset"),
        (lambda old: old["__metadata__"].update({"\x1b[2J": "x" * 999}), ""),
    ],
    ids=["nested", "overflow", "overlap", "escape"],
)
def test_41_headers_of_weights_files(change: Callable[[Header], str | None], says: str, folder: Path) -> None:
    rewritten(folder, change)
    assert says in refused(lambda: zoo.describe(folder))


@pytest.mark.parametrize("kind", ["F8_E4M3", "F8_E5M2", "BF16", "I8", "BOOL"])
def test_67_tensors_of_types_that_priors_do_not_have(kind: str, folder: Path) -> None:
    def change(header: Header) -> None:
        # As long as before: twice as many numbers of half the size, or other ones of the same.
        half = header["weights.0"]["dtype"] == "F32"
        header["weights.0"]["dtype"] = kind
        if kind != "BF16" or half:
            rows, columns = header["weights.0"]["shape"]
            header["weights.0"]["shape"] = [rows, columns * (2 if kind == "BF16" else 4 if half else 2)]

    rewritten(folder, change)
    assert "weights.0" in refused(lambda: zoo.describe(folder))


@pytest.mark.parametrize("kind", ["BF16", "F8_E4M3"])
def test_67_means_of_a_type_that_numpy_does_not_know_never_stop_the_page(kind: str, tmp_path: Path) -> None:
    sound, odd = tmp_path / "sound", tmp_path / "odd"
    for place in (sound, odd):
        shutil.copytree(PUBLISHED / "tap-mnist-25", place)

    def change(header: Header) -> None:
        means = header["pixel_means"]
        means |= {"dtype": kind, "shape": [784 * (2 if kind == "BF16" else 4)]}

    rewritten(odd, change)
    with pytest.warns(UserWarning, match="odd") as told:
        assert list(assembly.usable([sound, odd])) == [sound]
    assert len(told) == 1


def test_41_what_is_no_file_is_never_waited_for(folder: Path) -> None:
    for name, read in ((WEIGHTS, lambda path: zoo.describe(path.parent)), (GRAPH, read_intact)):
        (folder / name).unlink(missing_ok=True)
        os.mkfifo(folder / name)
        assert "it is no file" in refused(lambda read=read, name=name: read(folder / name))  # type: ignore[misc]


def test_44_weights_that_are_finite_in_double_precision_only(folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    metadata, tensors = zoo.describe(folder).to_header(), load_file(folder / WEIGHTS)
    tensors["units.0.bias"] = tensors["units.0.bias"].double()
    save_file(tensors, folder / WEIGHTS, metadata)
    zoo.load(folder)
    tensors["units.0.bias"][0] = 1e300
    save_file(tensors, folder / WEIGHTS, metadata)
    assert "units.0.bias holds NaN or infinite" in refused(lambda: zoo.load(folder))


def test_bounds_hold_for_recipes_too() -> None:
    for settings in ({"starts": 10**4}, {"max_iter": 10**7}, {"modes": 10**6}, {"tol": float("inf")}):
        with pytest.raises(UsageError, match=next(iter(settings))):
            Inference(**settings)  # type: ignore[arg-type]


def test_published_priors_are_far_within_the_bounds() -> None:
    for place in PUBLISHED.glob(f"*/{WEIGHTS}"):
        about = zoo.describe(place.parent)
        used = about.inference
        # A convolutional prior has so many hidden units at every place of any image.
        sizes = (about.pixels, about.hidden) if about.kind.any_size else about.sizes
        assert max(sizes) < limits.UNITS / 100 and used.max_iter < limits.ITERATIONS / 100
        assert used.starts < limits.STARTS / 10 and used.modes < limits.MODES / 10
        assert Description.from_header(about.to_header(), "here") == about
