"""The benchmark of GPUs where there is none: it asks none, and a part that fails does not take the others with it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from benchmarks.package import gpu

QUESTIONS = "synchronize mem_get_info empty_cache get_device_name get_device_properties set_device"
ASKED = gpu.Asked(torch.device("cpu"), quick=True)


@pytest.fixture(autouse=True)
def no_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> Callable[..., None]:
        def asked(*arguments: object) -> None:
            raise AssertionError(f"{name} is asked of a GPU that is not there")

        return asked

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for name in QUESTIONS.split():
        monkeypatch.setattr(torch.cuda, name, absent(name))


def test_a_part_that_fails_says_so_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(asked: gpu.Asked) -> str:
        """It breaks."""
        raise RuntimeError("made up\nand more")

    parts = {"Broken": broken, "TAP": gpu.tap, "Short of memory": gpu.memory}
    monkeypatch.setattr(gpu, "PARTS", parts)
    monkeypatch.setattr(sys, "argv", ["gpu.py", "--quick", "--output", str(tmp_path / "page.md")])
    with pytest.raises(SystemExit) as ended:
        gpu.main()
    assert ended.value.code == "failed: Broken"
    text = (tmp_path / "page.md").read_text()
    assert "FAILED:" in text and "RuntimeError: made up\nand more\n" in text
    assert text.index("## Broken") < text.index("## TAP") < text.index("| TF32 |") < text.index("## Short of memory")


@pytest.mark.thorough
def test_every_part_runs_on_a_processor() -> None:
    text, failed = gpu.page(ASKED, gpu.PARTS)
    assert not failed, text
    assert "OTHER BITS" not in text and text.count("the same bits") == len(gpu.METHODS)
