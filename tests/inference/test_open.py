"""Opening priors: the engine that starts at once is taken where it will do, and what is missing is named."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from priors import saved_prior
from refusals import refused

from restore import zoo
from restore.channels.damage import Damage, Observed
from restore.errors import ModelError, UsageError
from restore.inference import open as room
from restore.inference.onnx.engine import PROVIDERS, OnnxEngine, providers
from restore.inference.open import Engines, open_engine
from restore.inference.options import Options
from restore.inference.torch_engine import Engine
from restore.zoo.made import remember


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

    class Loaded:
        backend = "onnx"

    def load(path: Path, device: str) -> Loaded:
        assert path.suffix == ".onnx" or (path / zoo.WEIGHTS).exists()
        providers(device)
        return Loaded()

    monkeypatch.setattr(OnnxEngine, "load", load)


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Call with the names of libraries to have everything else installed."""

    def call(*missing: str) -> None:
        monkeypatch.setattr(room, "find_spec", lambda library: None if library in missing else library)

    call()
    return call


pytestmark = pytest.mark.usefixtures("without")


@pytest.mark.parametrize("device", ["auto", "cpu"])
def test_a_graph_is_taken_where_it_will_do(exported: str, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert open_engine(exported, "auto", device).backend == "onnx"
    assert open_engine(exported, "onnx", device).backend == "onnx"
    assert open_engine(exported, "torch", device).backend == "torch"


def test_torch_does_what_the_graph_cannot(plain: str, without: Callable[..., None]) -> None:
    assert open_engine(plain).backend == "torch"
    (Path(plain) / zoo.GRAPH).write_bytes(b"")
    assert open_engine(plain, max_memory=10**6).backend == "torch"
    with refused(UsageError, "warp"):
        open_engine(plain, device="warp")


def test_a_gpu_restores_only_if_it_is_named(exported: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(Engine, "of", lambda trained, device, limit: device.type)
    assert open_engine(exported).backend == open_engine(exported, device="cpu").backend == "onnx"
    assert [open_engine(exported, "torch", device) for device in ("auto", "cpu", "cuda")] == ["cpu", "cpu", "cuda"]
    assert open_engine(exported, device="cuda") == "cuda"
    (Path(exported) / zoo.GRAPH).unlink()
    assert open_engine(exported) == "cpu"


@pytest.mark.parametrize(
    ("engine", "device", "max_memory", "subject"),
    [
        ("onnx", "warp", None, "warp"),
        ("torch", "coreml", None, "coreml"),
        ("auto", "coreml", 10**9, "coreml"),
        ("onnx", "auto", 10**9, "max_memory"),
        ("tensorflow", "auto", None, "tensorflow"),
        ("auto", "auto", "2G", "2G"),
        ("auto", "auto", 0.5, "0.5"),
        ("auto", "auto", 0, "0"),
    ],
)
def test_what_cannot_be_had_is_a_fault_of_usage(
    exported: str, engine: Any, device: str, max_memory: Any, subject: str
) -> None:
    with refused(UsageError, subject):
        open_engine(exported, engine, device, max_memory)


def test_a_prior_without_a_graph_needs_torch_and_a_graph_by_itself_onnxruntime(plain: str, tmp_path: Path) -> None:
    alone = tmp_path / "alone.onnx"
    alone.write_bytes(b"")
    unsuitable: list[dict[str, Any]] = [{"engine": "torch"}, {"device": "warp"}, {"max_memory": 10**9}]
    for model, options in ((plain, {"engine": "onnx"}), *((str(alone), options) for options in unsuitable)):
        with refused(ModelError, model):
            open_engine(model, **options)
    with pytest.raises(ModelError):
        open_engine(str(tmp_path / "missing.onnx"))


def test_what_is_not_installed_is_named(exported: str, without: Callable[..., None]) -> None:
    without("torch")
    assert open_engine(exported, device="cpu").backend == "onnx"
    for engine, device, max_memory, culprit in (
        ("torch", "auto", None, "random-12x10"),
        ("auto", "quantum", None, "quantum"),
        ("auto", "auto", 10**9, "max_memory"),
    ):
        with refused(UsageError, culprit, "restore-prior[torch]"):
            open_engine(exported, engine, device, max_memory)  # type: ignore[arg-type]


@pytest.fixture
def any_build(monkeypatch: pytest.MonkeyPatch) -> None:
    """An onnxruntime that says it was built for every device."""
    monkeypatch.setattr(
        "onnxruntime.get_available_providers", lambda: [provider.name for provider in PROVIDERS.values()]
    )


@pytest.mark.usefixtures("any_build")
def test_onnxruntime_has_devices_that_torch_lacks_and_cuda_where_torch_is_missing(
    exported: str, tmp_path: Path, without: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Engine, "load", lambda model, device, max_memory: Engine)
    alone = tmp_path / "alone.onnx"
    alone.write_bytes(b"")
    for device in PROVIDERS:
        assert open_engine(exported, "onnx", device).backend == open_engine(str(alone), device=device).backend == "onnx"
        assert open_engine(exported, "auto", device).backend == ("torch" if device == "cuda" else "onnx")
    assert open_engine(exported, device="cuda:1").backend == "torch"
    without("torch")
    assert open_engine(exported, device="cuda:1").backend == "onnx"


# --- the priors of a run ---


PICTURE = Observed(np.zeros((10, 12)), Damage(0.1))


def test_a_named_prior_is_opened_once_and_is_the_only_one(plain: str, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []
    monkeypatch.setattr(room, "open_engine", lambda name, *rest: opened.append(name) or Engine.load(name, "cpu"))
    engines = Engines(Options(model=plain))
    assert engines.named and len(engines.for_picture(PICTURE)) == 1
    assert engines.for_picture(PICTURE) == engines.for_picture(PICTURE) and opened == [plain]


def test_an_engine_that_is_open_takes_the_place_of_a_name(plain: str) -> None:
    only = Engine.load(plain, "cpu")
    engines = Engines(Options(), only=only)
    assert engines.named and engines.for_picture(PICTURE) == (only,)
    (other,) = Engines(Options(solver="mean_field"), only=only).for_picture(PICTURE)
    assert other.header.inference.solver == "mean_field"


def test_of_several_priors_one_that_cannot_be_opened_is_left_out(plain: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "candidates", lambda shape, grey, fit: ("no-such-prior", plain))
    engines = Engines(Options())
    assert not engines.named
    with pytest.warns(UserWarning) as warned:
        (opened,) = engines.for_picture(PICTURE)
    assert len(warned) == 1 and "no-such-prior" in str(warned[0].message) and opened.header.name == Path(plain).name
    monkeypatch.setattr(room, "candidates", lambda shape, grey, fit: ("no-such-prior",))
    for given, name in ((engines, "no-such-prior"), (Engines(Options(model="nor-this")), "nor-this")):
        with refused(ModelError, name):
            given.for_picture(PICTURE)


def test_a_graph_of_a_prior_that_nobody_named_is_run_only_if_it_is_published_or_made_here(
    exported: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without: Callable[..., None]
) -> None:
    """It is a program, and a loop in it may never end."""
    monkeypatch.setattr("restore.zoo.made.data_folder", lambda: tmp_path / "home")
    monkeypatch.setattr("restore.zoo.made.user_folder", lambda: Path(exported).parent)

    def engine(name: str, **options: Any) -> str:
        monkeypatch.setattr(room, "candidates", lambda shape, grey, fit: (name,))
        (opened,) = Engines(Options(**options)).for_picture(PICTURE)
        return opened.backend

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert engine("tap-mnist-25") == "onnx" == engine(exported, model=exported)
    assert engine(exported) == "torch" == engine(exported, engine="onnx")
    graph = Path(exported) / zoo.GRAPH
    remember(Path(exported))
    assert engine(exported) == "onnx" and engine(exported, engine="torch") == "torch"
    graph.write_bytes(b"another one")
    assert engine(exported) == "torch"
    without("torch")
    with pytest.raises(ModelError):
        engine(exported)
    assert engine(exported, model=exported) == "onnx"


@pytest.mark.parametrize("graph", [True, False], ids=["foreign-graph", "no-graph"])
def test_torch_is_not_loaded_for_a_prior_that_nobody_named(
    graph: bool, plain: str, monkeypatch: pytest.MonkeyPatch, without: Callable[..., None]
) -> None:
    monkeypatch.setattr(room, "candidates", lambda shape, grey, fit: ("tap-mnist-25", plain))
    monkeypatch.setattr(room, "_able", lambda opened, damage: opened)
    if graph:
        (Path(plain) / zoo.GRAPH).write_bytes(b"")
    assert len(Engines(Options()).for_picture(PICTURE)) == 2
    monkeypatch.delitem(sys.modules, "torch")
    zoo.leave_out.cache_clear()
    with pytest.warns(UserWarning) as warned:
        (opened,) = Engines(Options()).for_picture(PICTURE)
    # The line names the prior, and the command that makes a graph of it, over another if there is one.
    (line,) = (str(warning.message) for warning in warned)
    command = f"restore export {Path(plain).name} --beside" + " --overwrite" * graph
    assert opened.backend == "onnx" and f"`{command}`" in line and "torch" not in sys.modules
    # Whoever asks for torch waits for it.
    monkeypatch.setattr(room, "open_engine", lambda name, engine, *more: engine)
    assert Engines(Options(engine="torch")).for_picture(PICTURE) == ("torch", "torch")
