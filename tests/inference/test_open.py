"""The choice of an engine: what starts at once is taken where it will do, and what is missing is named."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import torch
from priors import saved_prior
from waiting import HANG

import restore
from restore import zoo
from restore.errors import ModelError, UsageError
from restore.inference import opening as engines
from restore.inference.open import Choice, open_engine
from restore.inference.torch_engine import Engine


@pytest.fixture
def plain(tmp_path: Path) -> str:
    """The folder of a prior without a graph."""
    return str(saved_prior(tmp_path))


@pytest.fixture
def exported(plain: str) -> str:
    """The folder of a prior with a graph, which nobody here reads."""
    (Path(plain) / zoo.GRAPH).write_bytes(b"")
    return plain


@pytest.fixture(autouse=True)
def runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that stands for the one on onnxruntime."""

    class OnnxEngine:
        name = "onnx"

        @classmethod
        def load(cls, folder: Path) -> OnnxEngine:
            assert (folder / zoo.WEIGHTS).exists()
            return cls()

    module = ModuleType("restore.inference.onnx.engine")
    module.OnnxEngine = OnnxEngine  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Call with the names of libraries to have everything else installed."""

    def call(*missing: str) -> None:
        monkeypatch.setattr(engines, "_installed", lambda library: library not in missing)

    call()
    return call


pytestmark = pytest.mark.usefixtures("without")


@pytest.mark.parametrize("device", ["auto", "cpu"])
def test_a_graph_is_taken_where_it_will_do(exported: str, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert open_engine(exported, "auto", device).name == "onnx"
    assert open_engine(exported, "onnx", device).name == "onnx"
    assert open_engine(exported, "torch", device).name == "torch"
    assert restore.load(exported, device).engine.name == "onnx"
    assert restore.load(exported, device, engine="torch").engine.name == "torch"


def test_torch_does_what_the_graph_cannot(plain: str, without: Callable[..., None]) -> None:
    assert open_engine(plain).name == "torch"
    (Path(plain) / zoo.GRAPH).write_bytes(b"")
    assert open_engine(plain, max_memory=10**6).name == "torch"
    with pytest.raises(UsageError, match="warp: there is no such device"):
        open_engine(plain, device="warp")
    without("onnxruntime")
    assert open_engine(plain, device="cpu").name == "torch"


def test_who_has_loaded_torch_and_has_cuda_gets_it(exported: str, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[tuple[str, str]] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(Engine, "load", lambda model, device, max_memory: chosen.append((model, device)))
    open_engine(exported)
    assert chosen == [(exported, "auto")]
    assert open_engine(exported, device="cpu").name == "onnx"
    monkeypatch.delitem(sys.modules, "torch")
    assert open_engine(exported).name == "onnx"


@pytest.mark.parametrize(
    ("engine", "device", "max_memory", "says"),
    [
        ("onnx", "cuda", None, '^device cuda: .* give engine="torch"'),
        ("onnx", "auto", 10**9, '^max_memory: .* give engine="torch"'),
        ("tensorflow", "auto", None, "auto, onnx, torch"),
        ("auto", "auto", "2G", "number of bytes"),
        ("auto", "auto", 0.5, "number of bytes"),
        ("auto", "auto", 0, "number of bytes"),
    ],
)
def test_what_cannot_be_had_is_a_fault_of_usage(
    exported: str, engine: Choice, device: str, max_memory: int | None, says: str
) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        restore.load(exported, device, max_memory, engine)
    assert "\n" not in str(caught.value)


def test_a_prior_without_a_graph_needs_torch(plain: str) -> None:
    with pytest.raises(ModelError, match=r"has no solver\.onnx .* --engine torch"):
        open_engine(plain, "onnx")


def test_what_is_not_installed_is_named(exported: str, without: Callable[..., None]) -> None:
    without("onnxruntime")
    with pytest.raises(UsageError, match="pip install onnxruntime"):
        open_engine(exported, "onnx")
    without("torch")
    assert open_engine(exported, device="cpu").name == "onnx"
    for engine, device, max_memory, culprit in (
        ("torch", "auto", None, "random-12x10"),
        ("auto", "cuda", None, "--device cuda"),
        ("auto", "quantum", None, "--device quantum"),
        ("auto", "auto", 10**9, "--max-memory"),
    ):
        with pytest.raises(UsageError, match=rf"{culprit}: needs torch; pip install 'restore-prior\[torch\]'"):
            open_engine(exported, engine, device, max_memory)  # type: ignore[arg-type]


@pytest.mark.parametrize("words", [[], ["--device", "cuda:9"]], ids=["no-graph", "37-device"])
def test_the_command_line_without_torch_says_what_to_install(plain: str, words: list[str]) -> None:
    asset = Path(__file__).parents[2] / "assets" / "digit-noisy.png"
    code = "import sys; sys.modules['torch'] = None; from restore.cli import main; main()"
    command = [sys.executable, "-c", code, "denoise", str(asset), "--model", plain, "--p", "0.1", "-o", "-", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG, check=False)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.endswith("needs torch; pip install 'restore-prior[torch]'\n")
    assert len(done.stderr.splitlines()) == 1
