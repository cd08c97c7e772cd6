"""Exported graphs from the command line: made, used, and refused."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import Run
from exports import SHAPE, Exported, images, kinds, resealed
from onnx import numpy_helper
from PIL import Image
from priors import random_prior

import restore
from restore import zoo
from restore.export import packing
from restore.zoo import GRAPH, WEIGHTS
from restore.zoo.made import made_here

DIGIT = Path(__file__).parents[2] / "assets" / "digit-noisy.png"


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    path = tmp_path / "image.png"
    Image.fromarray(np.uint8(255 * images(1)[0])).save(path)
    return path


def fault(capfd: pytest.CaptureFixture[str]) -> str:
    """The one line that was said, on stderr, when a command failed."""
    out, said = capfd.readouterr()
    assert out == "" and len(said.splitlines()) == 1 and said.startswith("restore: ")
    return said


def test_denoise_with_what_is_no_graph(
    beside: Path, run: Run, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ("denoise", DIGIT, "--model", beside, "-o", tmp_path / "out.png", "--engine")
    (beside / GRAPH).write_bytes(b"none")
    for engine in ("onnx", "auto"):
        assert run(*words, engine) == 4
        assert GRAPH in fault(capfd)
    assert not (tmp_path / "out.png").exists()
    # The weights are sound, and torch needs nothing else.
    assert run(*words, "torch") == 0


@pytest.mark.thorough
@pytest.mark.parametrize(
    "words",
    ["mixed", "no/such.onnx", "{} --engine torch", "{} --device quantum"],
    ids=["name", "file", "torch", "device"],
)
def test_denoise_without_a_model_that_will_do(
    words: str, exported: Callable[[str], Exported], run: Run, picture: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    model, *options = words.format(exported("tap").path).split()
    assert run("denoise", picture, "--p", 0.1, "--model", model, *options) == 4
    assert model in fault(capfd)
    assert not picture.with_name("image.restored.png").exists()


@pytest.mark.thorough
def test_an_exported_file_is_a_model(
    exported: Callable[[str], Exported], run: Run, picture: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    case = exported("tap")
    batch = np.asarray(Image.open(picture))
    expected = restore.load(case.folder, engine="torch", device="cpu").denoise(batch, 0.1)
    loaded = restore.load(case.path)
    assert loaded.engine.backend == "onnx" and loaded.description == case.header
    assert (loaded.denoise(batch, 0.1) == expected).all()
    assert (restore.denoise(batch, case.path, 0.1) == expected).all()
    assert run("denoise", picture, "--model", case.path, "--p", 0.1, "--json") == 0
    assert json.loads(capfd.readouterr().out)["engine"] == "onnx"
    assert (np.asarray(Image.open(picture.with_name("image.restored.png"))) == expected).all()
    assert run("evaluate", case.path, "--data", picture.parent, "--task", "flip:0.1") == 4
    assert str(case.path) in fault(capfd)


@pytest.mark.parametrize("name", kinds(["tap", "field", "sum"]))
def test_info_of_an_exported_file(
    name: str, exported: Callable[[str], Exported], run: Run, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run("info", exported(name).path) == 0
    assert json.loads(capfd.readouterr().out)["name"] == name


@pytest.mark.thorough
def test_a_prior_that_diverges_is_told_of_in_json(
    exported: Callable[[str], Exported], tmp_path: Path, run: Run, picture: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Said in JSON that every reader takes, and on stderr."""
    case = exported("tap")
    model = copy.deepcopy(case.model)
    for tensor in model.graph.initializer:
        if tensor.name == "weights.0":
            wild = 1e38 * np.sign(numpy_helper.to_array(tensor))
            tensor.CopyFrom(numpy_helper.from_array(wild.astype(np.float32), tensor.name))
    path = tmp_path / "wild.onnx"
    path.write_bytes(resealed(model))
    target = tmp_path / "wild.png"
    for options in ((), ("--soft",)):
        words = ("denoise", picture, "--model", path, "--p", 0.1, "--json", "-o", target, *options)
        assert run(*words, "--strict") == 4
        out, said = capfd.readouterr()
        assert "diverged" in json.loads(out, parse_constant=pytest.fail)["error"]
        assert "diverged" in said
        assert not target.exists()
        assert run(*words) == 0
        out, said = capfd.readouterr()
        assert json.loads(out, parse_constant=pytest.fail)["status"] == "diverged" and "not sure" in said
        assert target.read_bytes() == picture.read_bytes()
        target.unlink()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Path, dict[str, bool]]]:
    """Exports are notes of what would be exported."""
    asked: list[tuple[Path, dict[str, bool]]] = []

    def noted(folder: Path, **options: bool) -> bytes:
        asked.append((folder, options))
        return b"a graph"

    monkeypatch.setattr(packing, "standalone", noted)
    monkeypatch.setattr(packing, "beside_weights", noted)
    return asked


@pytest.fixture
def plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a prior, below the working directory."""
    monkeypatch.chdir(tmp_path)
    zoo.save(tmp_path / "models" / "plain", random_prior(SHAPE), "# plain\n")
    return tmp_path / "models" / "plain"


def test_export_names_the_file_after_the_prior(
    run: Run, plain: Path, quick: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("export", "models/plain") == 0
    assert (tmp_path / "plain.onnx").read_bytes() == b"a graph"
    assert run("export", plain / WEIGHTS, "-o", "other.onnx", "--float16") == 0
    assert run("export", plain, "-o", "fields.onnx", "--no-channel") == 0
    monkeypatch.chdir(plain)
    assert run("export", ".") == 0 and (plain / "plain.onnx").exists()
    asked = [(options["float16"], options["field"]) for _, options in quick]
    assert asked == [(False, False), (True, False), (False, True), (False, False)]


def test_export_beside_the_weights(
    run: Run, plain: Path, quick: list[Any], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("restore.zoo.made.data_folder", lambda: plain.parent / "home")
    assert run("export", plain, "--beside") == 0 and not made_here(plain)
    (plain / GRAPH).unlink()
    # Where `auto` looks for priors it is noted.
    monkeypatch.setattr("restore.zoo.made.user_folder", lambda: plain.parent)
    quick.clear()
    capfd.readouterr()
    assert run("export", plain, "--beside") == 0 and made_here(plain)
    assert (plain / GRAPH).read_bytes() == b"a graph" and quick == [(plain, {})]
    # What was written is named, and pipes stay empty.
    out, said = capfd.readouterr()
    assert out == "" and len(said.splitlines()) == 1 and str(plain / GRAPH) in said
    assert run("export", plain, "--beside") == 5
    assert GRAPH in fault(capfd)
    assert run("export", plain, "--beside", "--overwrite") == 0


@pytest.mark.thorough
@pytest.mark.parametrize("force", [[], ["--overwrite"]], ids=["", "overwrite"])
def test_export_refuses_before_it_works(
    force: list[str],
    exported: Callable[[str], Exported],
    run: Run,
    plain: Path,
    quick: list[Any],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "there.onnx").write_bytes(b"before")
    (tmp_path / "folder.onnx").mkdir()
    (tmp_path / "dangling.onnx").symlink_to("nowhere")
    before = (plain / WEIGHTS).read_bytes()
    wrong: list[tuple[int, list[object]]] = [
        (4, ["nobody"]),
        (4, [exported("tap").path]),
        (2, [plain, "--beside", "-o", "x.onnx"]),
        (2, [plain, "--beside", "--float16"]),
        (2, [plain, "--beside", "--no-channel"]),
        (2, [plain, "-o", "-"]),
        (5, [plain, "-o", "models"]),
        (5, [plain, "-o", "folder.onnx"]),
        (2, [plain, "-o", "new/"]),
        (2, [plain, "-o", plain / WEIGHTS]),
        (5, [plain, "-o", "nowhere/x.onnx"]),
        (5, [plain, "-o", "x" * 300 + ".onnx"]),
        *((5, [plain, "-o", name]) for name in ("there.onnx", "dangling.onnx") if not force),
    ]
    for code, words in wrong:
        assert run("export", *words, *force) == code, words
        fault(capfd)
    assert (tmp_path / "there.onnx").read_bytes() == b"before" and (plain / WEIGHTS).read_bytes() == before
    assert not [path for path in tmp_path.rglob("*") if path.name.startswith(".restore-")]
