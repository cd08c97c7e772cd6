"""The study of growth: which recipes belong to it, what it measures, and its table and figure."""

from __future__ import annotations

import json
import shutil
import struct
from dataclasses import asdict, replace
from pathlib import Path

import growth as study
import numpy as np
import pytest
from growth import GROWN, RANDOM, TUNED, Point
from harness import TRAINING, Asked, read

from restore.errors import InputError
from restore.learning.recipe.recipe import read_recipe
from restore.learning.rules.frank_wolfe import FrankWolfe


def point(method: str, hidden: int, likelihood: float, **changed: object) -> Point:
    facts = {"error": 0.074, "data": "mnist", "name": "x", "minutes": 1.25, "effective": 40.2}
    interval = (likelihood - 0.5, likelihood + 0.25)
    facts |= {"weights": f"{method} {hidden} {likelihood}", "recipe": "abc"} | changed
    return Point(method=method, hidden=hidden, likelihood=likelihood, interval=interval, **facts)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("fw-mnist", (GROWN, "mnist")),
        ("fw-caltech-700", (GROWN, "caltech")),
        ("cd-fw-mnist", (TUNED, "mnist")),
        ("cd-fw-caltech-200", (TUNED, "caltech")),
        ("cd-mnist-599-3", (RANDOM, "mnist")),
        ("cd-mnist", None),
        ("tap-mnist", None),
        ("fw-omniglot", None),
        ("crbm-cd10-mnist-flip10", None),
    ],
)
def test_names_tell_the_method_and_the_data(name: str, kind: tuple[str, str] | None) -> None:
    assert study.kind_of(name) == kind


def test_the_recipes_compare_like_with_like() -> None:
    paths = (TRAINING / "recipes").rglob("*.toml")
    recipes = {path.stem: read_recipe(path) for path in paths if study.kind_of(path.stem)}
    assert sum(name.startswith("cd-mnist-599-") for name in recipes) == 5
    for name, recipe in recipes.items():
        tuned = recipes["cd-fw-mnist" if "mnist" in name else "cd-fw-caltech"]
        assert recipe.data == tuned.data
        if not recipe.in_rounds:
            assert (recipe.learner, recipe.optimizer) == (tuned.learner, tuned.optimizer)
            # Random starts never have fewer epochs than what goes on from growth.
            assert recipe.training.epochs >= tuned.training.epochs or recipe.prior.grows
    assert len({recipes[f"cd-mnist-599-{seed}"].seed for seed in range(5)}) == 5


def test_the_table() -> None:
    points = [
        point(RANDOM, 200, -101.0, name="cd-mnist-200-0", error=None),
        point(GROWN, 100, -131.256),
        point(GROWN, 200, -117.3),
        point(TUNED, 200, -95.5),
        point(GROWN, 20, -190.0, data="caltech"),
    ]
    text = study.as_tables(points, {"mnist": 200})
    first, second = text.split("Caltech-101 Silhouettes:")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in first.splitlines() if "... " in line]
    assert [row[:2] for row in rows] == [
        ["100", GROWN],
        ["200 (stopped here)", GROWN],
        ["200", TUNED],
        ["200", RANDOM],
    ]
    assert rows[0][2:] == ["-131.26", "-131.76 ... -131.01", "40", "7.40", "1.2"]
    assert rows[3][5] == "-"
    assert "| 20 | FW | -190.00 |" in second


def test_a_record_reads_back(tmp_path: Path) -> None:
    points = [point(GROWN, 100, -131.256), point(TUNED, 200, -95.5, error=None)]
    path = tmp_path / "growth.json"

    def known(n: int) -> list[study.Point]:
        return read(path, {"seed": 3, "n": n}, points=Point)["points"]

    path.write_text(json.dumps({"seed": 3, "n": 5, "points": [asdict(point) for point in points]}))
    assert known(5) == points
    with pytest.raises(InputError, match="holds the study with n 5, not 6; remove it"):
        known(6)
    for text in ("{", "[]", '{"points": []}', '{"seed": 3, "n": 5, "points": [{"name": "x"}]}'):
        path.write_text(text)
        with pytest.raises(InputError, match="not the record of this study"):
            known(5)
    assert read(tmp_path / "missing.json", {"seed": 3}, points=Point) == {"points": []}


def idx(path: Path, values: np.ndarray) -> None:
    path.write_bytes(struct.pack(f">BBBB{values.ndim}I", 0, 0, 8, values.ndim, *values.shape) + values.tobytes())


RECIPE = """
name = "NAME"
[data]
source = "SOURCE"
validation = 10
[prior]
hidden = HIDDEN
[learner]
LEARNER
[inference]
modes = 0
starts = 1
"""


@pytest.mark.thorough
def test_what_is_missing_is_trained_and_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study, "SCHEDULE", "linear:50")
    monkeypatch.setattr(study, "SIZES", (20, 40))
    for constant, value in {"samples": 100, "overlap": 0.01, "away_every": 100}.items():
        monkeypatch.setattr(FrankWolfe, constant, value)
    draw = np.random.default_rng(0)
    # Halves that are on or off together, and some noise: there is something to learn, also for a unit more.
    images = np.repeat(draw.random((60, 4, 2)) < 0.5, 2, 2) ^ (draw.random((60, 4, 4)) < 0.05)
    images = 255 * images.astype(np.uint8)
    idx(tmp_path / "mine-images-idx3-ubyte", images)
    idx(tmp_path / "mine-labels-idx1-ubyte", (images[:, 0, 0] > 0).astype(np.uint8))
    asked = Asked(tmp_path, runs=tmp_path / "runs", priors=tmp_path / "priors")
    asked.recipes.mkdir()
    (asked.root / "log.md").write_text("before\n<!-- growth: begin -->\nold\n<!-- growth: end -->\nafter\n")
    learners = {
        "fw-mnist": ("23", 'method = "frank_wolfe"\npenalty = 1e-4'),
        "cd-fw-mnist": (
            '"auto"',
            'method = "contrastive"\n[training]\nepochs = 2\n[growth]\nunits = 3\npenalty = 1e-4',
        ),
        "cd-mnist-3-0": ("3", 'method = "contrastive"\n[training]\nepochs = 3'),
    }
    for name, (hidden, learner) in learners.items():
        text = RECIPE.replace("SOURCE", str(tmp_path / "mine-images-idx3-ubyte")).replace("NAME", name)
        (asked.recipes / f"{name}.toml").write_text(text.replace("HIDDEN", hidden).replace("LEARNER", learner))
    training, path = replace(asked, train_missing=True), asked.records / "growth.json"
    with pytest.raises(InputError, match="give --train"):
        study.study(asked)
    study.study(training)
    points = json.loads(path.read_text())["points"]
    found = {(each["name"], each["method"]) for each in points}
    assert found == {("fw-mnist", GROWN), ("cd-fw-mnist", TUNED), ("cd-mnist-3-0", RANDOM)}
    sizes = sorted(each["hidden"] for each in points if each["name"] == "fw-mnist")
    # What was kept on the way is measured beside what came out, if growth went that far.
    assert sizes in ([20, 23], [sizes[-1]])
    assert all(each["likelihood"] < 0 and 0 <= each["error"] < 1 and each["minutes"] > 0 for each in points)
    readme = (asked.root / "log.md").read_text()
    assert readme.startswith("before") and "old" not in readme and TUNED in readme
    # What was measured is not measured again.
    monkeypatch.setattr(study, "likelihood_of", lambda *_: pytest.fail("measured again"))
    study.study(asked)
    # Nor is it trained again where its priors are gone.
    shutil.rmtree(asked.runs)
    shutil.rmtree(asked.priors)
    study.study(training)
    assert json.loads(path.read_text())["points"] == points
    assert (asked.root / "log.md").read_text() == readme
