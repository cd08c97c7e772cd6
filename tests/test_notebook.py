"""The notebook of the examples: its cells run one after the other in one namespace, as in a notebook."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from processes import HANG

ROOT = Path(__file__).parents[1]
NOTEBOOK = ROOT / "examples" / "notebook.ipynb"


def cells(kind: str) -> list[str]:
    return [
        "".join(cell["source"])
        for cell in json.loads(NOTEBOOK.read_text("utf-8"))["cells"]
        if cell["cell_type"] == kind
    ]


def run(code: str, names: dict[str, Any]) -> str | None:
    """Run a cell as IPython does: `!` starts a command, and the last expression is shown, as HTML."""
    lines = []
    for line in code.splitlines():
        if line.startswith("!"):
            words = line[1:].split()
            assert words[0] == "restore"
            subprocess.run([sys.executable, "-m", *words], check=True, capture_output=True, timeout=HANG)
        elif not line.startswith("%pip install"):
            lines.append(line)
    tree = ast.parse("\n".join(lines))
    shown = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, NOTEBOOK.name, "exec"), names)
    if shown is None:
        return None
    value = eval(compile(ast.Expression(shown.value), NOTEBOOK.name, "eval"), names)
    return value._repr_html_() if value is not None else None


def test_it_is_a_notebook_without_outputs() -> None:
    """In the fourth format, whose cells have names, as Jupyter, Colab and GitHub read it."""
    whole = json.loads(NOTEBOOK.read_text("utf-8"))
    assert (whole["nbformat"], whole["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in whole["cells"]}) == len(whole["cells"])
    for cell in whole["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None
    assert any("examples/notebook.ipynb" in text for text in cells("markdown"))
    assert cells("code")[0].startswith('%pip install -q "restore-prior[')


@pytest.mark.thorough
def test_its_cells_run_and_show_what_they_promise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
    names: dict[str, Any] = {}
    shown = [html for code in cells("code") if (html := run(code.replace("minutes=0.5", "epochs=4"), names))]
    assert len(shown) == 6 and all('alt="before"' in html for html in shown)
    assert "conv-text" in shown[1] and "expected to be wrong" in shown[2]
    wrong = {name: np.mean(names[name] != names["test"]) for name in ("noisy", "tidy", "own")}
    assert wrong["tidy"] < wrong["noisy"] / 2 and wrong["own"] < 0.8 * wrong["noisy"]
    hole = np.asarray(names["filled"].observed.damage.hidden)
    assert 0 < len(names["doubtful"]) < hole.sum() and all(hole[tuple(pixel)] for pixel in names["doubtful"])
