"""Restoring without torch: everything but training, evaluating and exporting works, and those say what to install."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from processes import HANG

ROOT = Path(__file__).parents[2]
ASSETS = ROOT / "assets"

# What an installation without the extra does not have.
MISSING = ("torch", "scipy", "skimage", "sklearn", "matplotlib", "onnx", "onnxscript", "onnx_ir", "ml_dtypes")

# Neither to be imported nor to be found.
BLOCK = f"import sys; sys.modules.update(dict.fromkeys({MISSING}))"


def python(code: str, *words: object, where: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", f"{BLOCK}; {code}", *map(str, words)]
    environment = os.environ | {"XDG_DATA_HOME": str(where)}
    return subprocess.run(
        command, cwd=where, env=environment, capture_output=True, text=True, timeout=HANG, check=False
    )


def done(found: subprocess.CompletedProcess[str]) -> str:
    assert found.returncode == 0, found.stderr
    return found.stdout


def test_starting_loads_nothing_that_talks_to_the_web(tmp_path: Path) -> None:
    # It takes a tenth of the time of a start.
    code = "import restore.cli.batch.run, sys; print({'http.client', 'ssl', 'email'} & {*sys.modules})"
    assert done(python(code, where=tmp_path)).strip() == "set()"


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


NEEDED = [
    (["train", ROOT / "training" / "recipes" / "tap-mnist-25.toml", "-o", "mine"], "torch"),
    (["evaluate", "tap-mnist", "--data", ASSETS, "--task", "flip:0.1"], "torch"),
    (["evaluate", "tap-mnist", "--card"], "torch"),
    (["export", "tap-mnist"], "onnx"),
    (["export", "tap-mnist", "--no-channel", "-o", "x.onnx"], "onnx"),
    *(
        (["denoise", ASSETS / "digit-noisy.png", "--p", "0.1", "-o", "x.png", *option], "torch")
        for option in (["--engine", "torch"], ["--device", "quantum"], ["--max-memory", "1G"])
    ),
]

# Runs commands in children of one process, each in a folder of its own, with its exit code and streams in files.
FORKED = """
import json, os, numpy, PIL.Image, typer
from restore.cli import command, main
for number, words in enumerate(json.loads(sys.argv[1])):
    if not (child := os.fork()):
        os.mkdir(str(number))
        sys.stdout, sys.stderr = (open(f"{number}.{name}", "w") for name in ("out", "err"))
        os.chdir(str(number))
        sys.argv = ["restore", *words]
        try:
            main()
        except SystemExit as ended:
            sys.stdout.close(), sys.stderr.close()
            os._exit(ended.code or 0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


WORKING = [
    ["models", "--json"],
    ["info", "tap-mnist"],
    ["import", "--help"],
    ["app", "--help"],
    ["serve", "--help"],
    ["corrupt", ASSETS / "digit.png", "--task", "patch:8", "-o", "x.png"],
    ["denoise", ASSETS / "digit-noisy.png", "--p", "0.1", "-o", "x.png", "--json"],
    ["denoise", ASSETS / "digit-patched.png", "--model", "crbm-bp-mnist-patch12", "--engine", "onnx", "-o", "x.png"],
    ["complete", ASSETS / "digit-torn.png", "--mask", ASSETS / "digit-hole.png", "-o", "x.png"],
]
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no forks")


def forked(commands: Iterable[Iterable[object]], where: Path) -> list[str]:
    """The exit codes of commands, each run in a folder of its own."""
    words = json.dumps([list(map(str, words)) for words in commands])
    return done(python(FORKED, words, where=where)).split()


@forks
def test_what_trains_nothing_works(tmp_path: Path) -> None:
    assert forked(WORKING, tmp_path) == ["0"] * len(WORKING)
    for number, words in enumerate(WORKING):
        assert (tmp_path / str(number) / "x.png").exists() == ("x.png" in words)


@forks
def test_what_needs_torch_says_so(tmp_path: Path) -> None:
    assert forked((words for words, _ in NEEDED), tmp_path) == ["2"] * len(NEEDED)
    for number, (_, library) in enumerate(NEEDED):
        said = (tmp_path / f"{number}.err").read_text()
        assert (tmp_path / f"{number}.out").read_text() == "" and len(said.splitlines()) == 1
        assert f"needs {library}; " in said and '"restore-prior[torch]"' in said
        assert not list((tmp_path / str(number)).iterdir())
