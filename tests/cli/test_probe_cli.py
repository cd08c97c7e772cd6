"""`restore probe` from the command line: what it writes and prints, along a run too, and its answer to bad input."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from commands import Run
from PIL import Image
from priors import random_conditional, random_prior, saved_prior

from restore import zoo
from restore.cli.probe import _drawn
from restore.cli.scoring.source import Source
from restore.data import binarise, load
from restore.learning.pipeline import epoch_folder, train
from restore.learning.recipes.recipe import read_recipe
from restore.learning.run.session import Session
from restore.priors import FullyVisible

pytest.importorskip("sklearn")
pytest.importorskip("matplotlib")
SHAPE = (5, 4)
PICTURES = {"solutions.png", "free-energy.png", "isomap.png", "receptive-fields.png"}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return saved_prior(tmp_path, SHAPE)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return images(tmp_path / "data.npy", 12)


def images(path: Path, count: int, shape: tuple[int, int] = SHAPE) -> Path:
    np.save(path, np.random.default_rng(0).integers(0, 256, (count, *shape), dtype=np.uint8))
    return path


@pytest.mark.thorough
def test_pictures_and_numbers(
    run: Run, model: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "out"
    assert run("probe", model, "--data", data, "--n", 10, "--seed", 3, "-o", target, "--json") == 0
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert found == json.loads((target / "probe.json").read_text())
    assert {path.name for path in target.iterdir()} == PICTURES | {"probe.json"}
    for name in PICTURES:
        with Image.open(target / name) as picture:
            assert picture.format == "PNG" and min(picture.size) > 100
            # Something is drawn in it.
            assert len(np.unique(np.asarray(picture.convert("L")))) > 10
    assert (found["starts"], found["settings"]["n"], found["settings"]["seed"]) == (10, 10, 3)
    assert found["converged"] == sum(found["basins"]) == 10 and found["solutions"] == len(found["free_energies"])
    assert found["free_energy"] == pytest.approx(np.mean(found["free_energies"]))
    assert len(found["receptive_fields"]["activity"]) == 5 and "epochs" not in found
    assert "10 starts that converge cannot tell" in printed.err


@pytest.mark.thorough
def test_the_seed_draws_the_starts(
    run: Run, model: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def energies(seed: int) -> list[float]:
        words = ("--n", 4, "--seed", seed, "-o", tmp_path / "out", "--overwrite", "--json", "--quiet")
        assert run("probe", model, "--data", data, *words) == 0
        printed = capsys.readouterr()
        assert printed.err == ""
        return json.loads(printed.out)["receptive_fields"]["activity"]

    assert energies(0) == energies(0) != energies(1)


def test_text_for_people(
    run: Run, model: Path, data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(model.parent)
    assert run("probe", model, "--data", data) == 0
    printed = capsys.readouterr()
    assert "solution" in printed.out and "free energy" in printed.out
    assert f"written to {model.name}-probe" in printed.out
    assert "has 12 images, fewer than 1000" in printed.err
    assert (model.parent / f"{model.name}-probe" / "probe.json").exists()


def test_grey_priors_see_grey_levels(model: Path, data: Path) -> None:
    source, about = Source(str(data), "train", 12, None, None, quiet=True), zoo.describe(model)
    levels = np.load(data).reshape(12, 20)
    binary, grey = _drawn(source, about, 0), _drawn(source, replace(about, visible="truncated-gaussian"), 0)
    assert {tuple(row) for row in binary.tolist()} == {tuple(row) for row in (levels > 127).astype(float).tolist()}
    assert {tuple(row) for row in grey.tolist()} == {
        tuple(row) for row in (levels.astype(np.float32) / np.float32(255)).tolist()
    }


def kept(folder: Path, epochs: tuple[int, ...]) -> Path:
    """A run folder with priors of some epochs, their weights growing."""
    for epoch in epochs:
        prior = random_prior(SHAPE, modes=0)
        grown = {n: v * epoch if n.startswith("weights") else v for n, v in prior.machine.parameters.items()}
        inference = replace(prior.description.inference, starts=1)
        about = replace(prior.description, name=f"random-epoch-{epoch}", inference=inference)
        machine = prior.machine.with_parameters(grown)
        zoo.save(epoch_folder(folder, epoch), replace(prior, description=about, machine=machine), "")
    return folder


@pytest.mark.thorough
def test_along_a_run(run: Run, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, target = kept(tmp_path / "run", (1, 3, 10)), tmp_path / "out"
    assert run("probe", folder, "--data", data, "-o", target, "--json", "--quiet") == 0
    found = json.loads(capsys.readouterr().out)
    assert [entry["epoch"] for entry in found["epochs"]] == [1, 3, 10]
    last = found["epochs"][-1]
    assert {name: found[name] for name in last} == last and found["model"] == "random-epoch-10"
    assert found["epochs"][0]["solutions"] == 1
    assert {path.name for path in target.iterdir()} == PICTURES | {"probe.json", "epochs.png"}
    assert run("probe", folder, "--data", data, "-o", target, "--overwrite") == 0
    assert capsys.readouterr().out.count("free energy") == 3


@pytest.mark.thorough
def test_a_run_of_train_every(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = tmp_path / "tiny.toml"
    recipe.write_text(
        'name = "tiny"\nseed = 0\n[data]\nsource = "bars-and-stripes"\n[prior]\nhidden = 4\n'
        '[learner]\nmethod = "tap"\nsolutions = 4\niterations = 3\n'
        '[optimizer]\nname = "sgd"\nrate = 0.05\n[training]\nepochs = 2\nbatch = 7\n'
        "[inference]\nmodes = 0\nstarts = 1\n"
    )
    patterns = torch.from_numpy(binarise(load("bars-and-stripes").images))
    train(read_recipe(recipe), patterns, (3, 3), Session(tmp_path / "run", ""), every=1)
    assert run("probe", tmp_path / "run", "--data", "bars-and-stripes", "-o", tmp_path / "out", "--json") == 0
    assert [entry["epoch"] for entry in json.loads(capsys.readouterr().out)["epochs"]] == [1, 2]


def test_what_is_there_stays(
    run: Run, model: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "out"
    target.mkdir()
    (target / "isomap.png").write_text("mine")
    (target / "notes.txt").write_text("mine")
    assert run("probe", model, "--data", data, "-o", target) == 5
    assert "isomap.png: exists already" in capsys.readouterr().err
    assert {path.name for path in target.iterdir()} == {"isomap.png", "notes.txt"}
    # Two images span no plane: the map of an earlier probe is not left beside the pictures of this one.
    assert run("probe", model, "--data", data, "-o", target, "--n", 2, "--overwrite") == 0
    assert "no isomap.png" in capsys.readouterr().err
    assert {path.name for path in target.iterdir()} == PICTURES - {"isomap.png"} | {"probe.json", "notes.txt"}


def test_without_hidden_units(run: Run, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prior = random_prior(SHAPE, modes=0)
    about = replace(
        prior.description, family="fvbm", hidden=0, inference=replace(prior.description.inference, starts=1)
    )
    zoo.save(
        tmp_path / "dense",
        replace(prior, description=about, machine=FullyVisible.binary(torch.zeros(20, 20), torch.zeros(20))),
        "",
    )
    assert run("probe", tmp_path / "dense", "--data", data, "-o", tmp_path / "out") == 0
    assert "no receptive-fields.png: the prior has no hidden units" in capsys.readouterr().err
    assert {path.name for path in (tmp_path / "out").iterdir()} == PICTURES - {"receptive-fields.png"} | {"probe.json"}


def bad(run: Run, capsys: pytest.CaptureFixture[str], code: int, says: str, target: Path, *words: object) -> None:
    assert run("probe", *words, "-o", target) == code
    said = capsys.readouterr().err
    assert says in said and "Traceback" not in said
    assert not target.exists()


def test_bad_images(run: Run, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "out"
    one = images(tmp_path / "one.npy", 1)
    bad(run, capsys, 7, "at least two", target, model, "--data", one)
    bad(run, capsys, 3, "one image; a probe compares", target, model, "--data", one, "--split", "test")
    bad(run, capsys, 7, "empty", target, model, "--data", images(tmp_path / "none.npy", 0))
    bad(run, capsys, 4, "do not fit", target, model, "--data", images(tmp_path / "large.npy", 5, (6, 6)))
    bad(run, capsys, 3, "neither a path nor a known data set", target, model, "--data", tmp_path / "nothing")
    bad(run, capsys, 2, "--n must be at least 2", target, model, "--data", one, "--n", 1)


def test_bad_models_and_places(run: Run, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target, model = tmp_path / "out", saved_prior(tmp_path, SHAPE)
    conditional = tmp_path / "seer"
    zoo.save(conditional, random_conditional(SHAPE), "")
    bad(run, capsys, 4, "no TAP solutions", target, conditional, "--data", data)
    bad(run, capsys, 4, "there is no such model", target, "tap-mnits", "--data", data)
    (tmp_path / "run").mkdir()
    bad(run, capsys, 4, "train with --every", target, tmp_path / "run", "--data", data)
    bad(run, capsys, 2, "no such device", target, model, "--data", data, "--device", "cuda:9")
    bad(run, capsys, 5, "not an existing folder", tmp_path / "no" / "out", model, "--data", data)


@pytest.mark.parametrize(("library", "extra"), [("sklearn.manifold", "features"), ("matplotlib.figure", "plots")])
def test_missing_libraries_are_named_before_any_work(
    library: str,
    extra: str,
    run: Run,
    data: Path,
    model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    bad(run, capsys, 2, f"restore-prior[{extra}]", tmp_path / "out", model, "--data", data)
