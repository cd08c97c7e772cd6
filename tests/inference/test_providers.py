"""Devices of onnxruntime: the one that was asked for is used, or named with the build that knows it."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from commands import QUICK, Run, fault, image
from refusals import refused

from restore import zoo
from restore.channels.damage import Damage
from restore.errors import UsageError
from restore.inference import threads
from restore.inference.onnx.engine import CPU, PROVIDERS, OnnxEngine, Provider, providers

HERE = onnxruntime.get_available_providers()


@pytest.mark.parametrize("device", [name for name, provider in PROVIDERS.items() if provider.name not in HERE])
def test_a_device_that_is_not_there_is_named_with_the_build_that_has_it(
    device: str, run: Run, tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    source = image(tmp_path_factory.mktemp("images"))
    words = ("--model", QUICK, "--p", 0.1, "--engine", "onnx", "--device", device)
    assert run("denoise", source, *words) == 2
    said = fault(capsys)
    assert f"--device {device}" in said and PROVIDERS[device].package in said
    assert [path.name for path in source.parent.iterdir()] == [source.name]


@pytest.mark.parametrize("device", ["cuda:", "cuda:x", "cuda:-1", "coreml:0", "directml:1:2"])
def test_a_number_is_a_number(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        onnxruntime, "get_available_providers", lambda: [provider.name for provider in PROVIDERS.values()]
    )
    with refused(UsageError, device):
        providers(device)
    assert providers("cuda:3") == [(PROVIDERS["cuda"].name, {"device_id": "3"}), (CPU, {})]
    assert providers("auto") == providers("cpu") == [(CPU, {})]


def test_a_build_that_finds_no_device_is_a_fault_of_usage(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with CUDA whose libraries are missing: onnxruntime goes on without it, and says so in its own way."""
    if PROVIDERS["cuda"].name in HERE:
        pytest.skip("this onnxruntime has CUDA")
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: [PROVIDERS["cuda"].name])
    with pytest.raises(UsageError) as caught, pytest.warns(UserWarning, match="not in available provider names"):
        OnnxEngine.load(zoo.find(QUICK), "cuda")
    assert "cuda" in str(caught.value)


@pytest.mark.thorough
def test_another_provider_gives_the_same_answer_one_batch_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider for a service far away is in every build; it leaves all operations to the processor."""
    name = "AzureExecutionProvider"
    if name not in HERE:
        pytest.skip("this onnxruntime has no second provider")
    monkeypatch.setitem(PROVIDERS, "far", Provider(name, ""))
    here, there = OnnxEngine.load(zoo.find(QUICK)), OnnxEngine.load(zoo.find(QUICK), "far:0")
    assert here.session.get_providers() == [CPU] and there.session.get_providers() == [name, CPU]
    picture, damage = np.random.default_rng(0).integers(0, 2, (40, 28, 28)).astype(float), Damage(0.1)
    expected = here.solve(picture, damage)
    monkeypatch.delattr(threads, "run_all")
    posterior = there.solve(picture, damage)
    np.testing.assert_allclose(posterior.means, expected.means, atol=1e-4)
    np.testing.assert_allclose(posterior.inversion, expected.inversion, atol=1e-4)
