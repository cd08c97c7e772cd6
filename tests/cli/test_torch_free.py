"""Restoring without torch: everything but training, evaluating and exporting works, and those say what to install."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from waiting import HANG

ROOT = Path(__file__).parents[2]
ASSETS = ROOT / "assets"

# What an installation without the extra does not have.
MISSING = ("torch", "scipy", "skimage", "sklearn", "matplotlib", "onnx", "onnxscript", "onnx_ir", "ml_dtypes")

# Neither to be imported nor to be found.
BLOCK = f"import sys; sys.modules.update(dict.fromkeys({MISSING}))"

RESTORED = [
    ("digit-noisy.png", ["--model", "tap-mnist", "--p", "0.1"]),
    ("digit-noisy.png", ["--p", "0.1"]),
    ("digit-very-noisy.png", ["--model", "tap-mnist-100", "--p", "0.3", "--engine", "onnx"]),
    ("digit-patched.png", ["--model", "crbm-bp-mnist-patch12"]),
    ("digit-noisy.png", ["--model", "crbm-bp-mnist-flip10"]),
]


def python(code: str, *words: object, where: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", f"{BLOCK}; {code}", *map(str, words)]
    environment = os.environ | {"XDG_DATA_HOME": str(where)}
    return subprocess.run(
        command, cwd=where, env=environment, capture_output=True, text=True, timeout=HANG, check=False
    )


def restore(*words: object, where: Path) -> subprocess.CompletedProcess[str]:
    return python("from restore.cli import main; main()", *words, where=where)


def done(found: subprocess.CompletedProcess[str]) -> str:
    assert found.returncode == 0, found.stderr
    return found.stdout


def ink(path: Path) -> np.ndarray:
    return np.asarray(Image.open(path)) > 127


@pytest.mark.parametrize(("name", "words"), RESTORED, ids=[" ".join(words) for _, words in RESTORED])
def test_denoise(name: str, words: list[str], tmp_path: Path) -> None:
    out = done(restore("denoise", ASSETS / name, "-o", "out.png", "--json", *words, where=tmp_path))
    record = json.loads(out)
    assert record["engine"] == "onnx" and record["iterations"] >= 1
    damaged = (ink(ASSETS / name) != ink(ASSETS / "digit.png")).sum()
    assert (ink(tmp_path / "out.png") != ink(ASSETS / "digit.png")).sum() < damaged


@pytest.mark.thorough
def test_the_python_interface(tmp_path: Path) -> None:
    code = f"""
import numpy as np, restore
from PIL import Image
image = np.asarray(Image.open({str(ASSETS / "digit-noisy.png")!r}))
hole = np.asarray(Image.open({str(ASSETS / "digit-hole.png")!r})) > 0
clean, marginals = restore.denoise(image, "tap-mnist", 0.1, return_solution=True)
assert type(clean) is np.ndarray and clean.dtype == np.uint8 and clean.shape == (28, 28)
assert type(marginals.means) is np.ndarray and marginals.means.shape == (28, 28) and marginals.status == 0
whole = restore.complete(image, hole)
assert (whole[~hole] == image[~hole]).all()
batch = np.stack([image / 255] * 20)
seer = restore.load("crbm-bp-mnist-flip10")
assert seer.denoise(batch).shape == batch.shape and seer.engine.backend == "onnx"
assert restore.denoise(batch, "tap-mnist-25", np.full((28, 28), 0.1)).dtype == np.float64
assert "tap-mnist" in restore.list_models()
for remedy, call in {{
    '"restore-prior[torch]"': lambda: restore.load("tap-mnist", engine="torch"),
    "onnxruntime-gpu": lambda: restore.load("tap-mnist", "cuda"),
}}.items():
    try:
        call()
    except restore.UsageError as fault:
        assert remedy in str(fault)
    else:
        raise SystemExit("no fault")
assert not {{name for name in sys.modules if sys.modules[name] and name.split(".")[0] in {MISSING}}}
"""
    script = tmp_path / "script.py"
    script.write_text(code)
    done(python(f"exec(open({str(script)!r}).read())", where=tmp_path))


@pytest.mark.parametrize(
    ("words", "library"),
    [
        (["train", ROOT / "training" / "recipes" / "tap-mnist-25.toml", "-o", "mine"], "torch"),
        (["evaluate", "tap-mnist", "--data", ASSETS, "--task", "flip:0.1"], "torch"),
        (["evaluate", "tap-mnist", "--card"], "torch"),
        (["export", "tap-mnist"], "onnx"),
        (["export", "tap-mnist", "--no-channel", "-o", "x.onnx"], "onnx"),
        (["denoise", ASSETS / "digit-noisy.png", "--p", "0.1", "-o", "x.png", "--engine", "torch"], "torch"),
        (["denoise", ASSETS / "digit-noisy.png", "--p", "0.1", "-o", "x.png", "--device", "quantum"], "torch"),
        (["denoise", ASSETS / "digit-noisy.png", "--p", "0.1", "-o", "x.png", "--max-memory", "1G"], "torch"),
    ],
    ids=lambda value: " ".join(map(str, value[:2])) if isinstance(value, list) else value,
)
def test_what_needs_torch_says_so(words: list[object], library: str, tmp_path: Path) -> None:
    found = restore(*words, where=tmp_path)
    assert (found.returncode, found.stdout) == (2, "")
    assert len(found.stderr.splitlines()) == 1
    assert f"needs {library}; " in found.stderr and '"restore-prior[torch]"' in found.stderr
    assert not list(tmp_path.iterdir())
