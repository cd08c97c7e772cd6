"""The script of a probe: what it writes, along a run too."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from priors import random_conditional, saved_prior
from probe import drawn, priors_of, probe

from restore import zoo
from restore.errors import InputError, ModelError, OutputError

pytest.importorskip("sklearn")
pytest.importorskip("matplotlib")
SHAPE = (5, 4)
PICTURES = {"solutions.png", "free-energy.png", "isomap.png", "receptive-fields.png"}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return saved_prior(tmp_path, SHAPE)


@pytest.fixture
def data(tmp_path: Path) -> str:
    return images(tmp_path / "data.npy", 12)


def images(path: Path, count: int, shape: tuple[int, int] = SHAPE) -> str:
    np.save(path, np.random.default_rng(0).integers(0, 256, (count, *shape), dtype=np.uint8))
    return str(path)


@pytest.mark.thorough
def test_pictures_and_numbers(model: Path, data: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "out"
    probe(str(model), data, n=10, seed=3, output=target)
    assert "solution" in capsys.readouterr().out
    found = json.loads((target / "probe.json").read_text())
    assert {path.name for path in target.iterdir()} == PICTURES | {"probe.json"}
    for name in PICTURES:
        with Image.open(target / name) as picture:
            # Something is drawn in it.
            assert len(np.unique(np.asarray(picture.convert("L")))) > 10
    assert (found["starts"], found["settings"]["n"], found["settings"]["seed"]) == (10, 10, 3)
    assert found["converged"] == sum(found["basins"]) == 10 and found["solutions"] == len(found["free_energies"])
    assert found["free_energy"] == pytest.approx(np.mean(found["free_energies"]))
    with pytest.raises(OutputError):
        probe(str(model), data, output=target)


def test_a_seed_draws_the_starts_as_the_prior_knows_pixels(model: Path, data: str) -> None:
    header, levels = zoo.describe(model), np.load(data).reshape(12, 20)
    binary = drawn(data, "train", 12, None, header, 0)
    grey = drawn(data, "train", 12, None, replace(header, visible="truncated-gaussian"), 0)
    assert {tuple(row) for row in binary.tolist()} == {tuple(row) for row in (levels > 127).astype(float).tolist()}
    assert {tuple(row) for row in grey.tolist()} == {
        tuple(row) for row in (levels.astype(np.float32) / np.float32(255)).tolist()
    }
    four = [drawn(data, "train", 4, None, header, seed).tolist() for seed in (0, 0, 1)]
    assert four[0] == four[1] != four[2]


def test_what_cannot_be_probed(model: Path, data: str, tmp_path: Path) -> None:
    header = zoo.describe(model)
    with pytest.raises(InputError):
        drawn(images(tmp_path / "one.npy", 1), "test", 5, None, header, 0)
    with pytest.raises(ModelError):
        drawn(images(tmp_path / "large.npy", 5, (6, 6)), "train", 5, None, header, 0)
    with pytest.raises(ModelError):
        priors_of("tap-mnits")
    zoo.save(tmp_path / "seer", random_conditional(SHAPE), "")
    with pytest.raises(ModelError):
        probe(str(tmp_path / "seer"), data, output=tmp_path / "out")
