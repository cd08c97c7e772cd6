"""The scripts of studies at their smallest: each trains what is missing once, and writes its record and tables."""

from __future__ import annotations

import importlib
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import adaptive
import denoising
import likelihoods
import numpy as np
import one_digit
import pytest
import torch
from harness import Asked, checksum, main, section
from likelihood import likelihood
from oracle import log_likelihood
from priors import grey_prior, random_conditional, random_prior, saved_grey, saved_prior

from restore import zoo
from restore.data import load
from restore.errors import InputError, ModelError, UsageError
from restore.inference.torch_engine import Engine
from restore.learning.gradients.statistics import by_adaptive_tap, clamped, difference

pytest.importorskip("matplotlib")

SHAPE = (4, 5)

RECIPE = """
name = "NAME"
storage = "float32"
[data]
source = "bars-and-stripes"
[prior]
hidden = 4
weight_scale = 0.1
[learner]
method = "tap"
iterations = 2
damping = 0.5
LEARNER
[training]
epochs = 3
batch = 10
[inference]
modes = 0
starts = 1
"""


def small_adaptive(root: Path, patch: pytest.MonkeyPatch) -> None:
    for name, learner in {"adaptive-tap-2": "", "adaptive-adatap-2": 'fixed_point = "adaptive_tap"'}.items():
        (root / "recipes" / f"{name}.toml").write_text(RECIPE.replace("NAME", name).replace("LEARNER", learner))


def small_dcp(root: Path, patch: pytest.MonkeyPatch) -> None:
    import dcp
    import dcp_large as large
    import dcp_small as small
    import harness

    for module, constants in {
        small: {"EPOCHS": 6, "EVERY": 2, "TRIALS": {1: 2, 2: 1}},
        large: {"HIDDEN": 5, "RUNS": 50, "SCHEDULE": "linear:400"},
        dcp: {"ALGORITHMS": ("CD", "CS-DCP")},
    }.items():
        for name, value in constants.items():
            patch.setattr(module, name, value)
    plan = large.Plan("mnist", "CS-DCP", 0.05, 4, every=2, batch=20)
    few = {"3": (replace(plan, every=1), replace(plan, algorithm="CD")), "7b": (replace(plan, images=40),)}
    patch.setattr(large, "plans", lambda: few)
    grey = np.random.default_rng(0).integers(0, 256, (60, 4, 4), dtype=np.uint8)
    for module in (dcp, harness):
        patch.setattr(module, "load", lambda name, **_: replace(load("shifting-bar"), images=grey, name=name))


STUDIES: dict[str, tuple[Callable[[Path, pytest.MonkeyPatch], None], tuple[str, ...], dict[str, int]]] = {
    # One recipe of either method, from three starts.
    "adaptive": (small_adaptive, ("adaptive",), {"curves": 6}),
    # Two sets, twice: CD at four rates, CS-DCP at two; four learners without chains at two rates.
    "dcp": (small_dcp, ("dcp-small", "dcp-exact", "dcp-large"), {"small": 24, "exact": 8, "large": 3}),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", STUDIES)
def test_what_is_missing_is_trained_once_and_written(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_small, marks, parts = STUDIES[name]
    study, asked = importlib.import_module(name).study, Asked(tmp_path, runs=tmp_path / "runs", device="cpu")
    (tmp_path / "recipes").mkdir()
    make_small(tmp_path, monkeypatch)
    record, document = asked.records / f"{name}.json", tmp_path / "log.md"
    document.write_text("before\n" + "".join(f"<!-- {mark}: begin -->\nold\n<!-- {mark}: end -->\n" for mark in marks))
    with pytest.raises(InputError, match="--train"):
        study(asked)
    training = replace(asked, train_missing=True)
    study(training)
    written, text = record.read_bytes(), document.read_text()
    assert {part: len(json.loads(written)[part]) for part in parts} == parts
    assert text.startswith("before\n") and "old" not in text and text.count("\n| ") > 3
    # What the record has is not run again, even without its runs.
    shutil.rmtree(asked.runs)
    study(training)
    assert record.read_bytes() == written and document.read_text() == text and not asked.runs.exists()
    with pytest.raises(InputError, match=rf"{name}\.json: holds the study with "):
        study(replace(asked, n=7, seed=3))
    record.write_text("[]")
    with pytest.raises(InputError, match="not the record of this study"):
        study(asked)


@pytest.mark.parametrize(("words", "code"), [((), 2), (("--seed", "-1"), 2), (("--help",), 0)])
def test_a_script_reads_its_options_and_ends_with_an_exit_code(
    words: tuple[str, ...], code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def study(asked: Asked) -> None:
        """Look at nothing."""
        raise UsageError(f"seed {asked.seed} has no study; give another")

    monkeypatch.setattr("sys.argv", ["study.py", *words])
    with pytest.raises(SystemExit) as stopped:
        main(study)
    said = capsys.readouterr()
    assert stopped.value.code == code
    assert {(): "seed 0 has no study", ("--help",): "Look at nothing"}.get(words, "--seed") in said.out + said.err


def test_documents_keep_everything_but_the_section() -> None:
    document = "before\n<!-- x: begin -->\nold\n<!-- x: end -->\nafter\n"
    assert section(document, "x", "new") == "before\n<!-- x: begin -->\nnew\n<!-- x: end -->\nafter\n"
    assert section("no marks", "x", "new") == "no marks"


def test_a_prior_is_known_by_its_tensors_whatever_its_header_says(tmp_path: Path) -> None:
    prior = random_prior((4, 4))
    renamed = replace(prior, description=replace(prior.description, name="another", auto=3))
    for name, saved in {"one": prior, "renamed": renamed, "other": random_prior((4, 4), seed=1)}.items():
        zoo.save(tmp_path / name, saved, f"# {name}")
    assert (tmp_path / "one" / zoo.WEIGHTS).read_bytes() != (tmp_path / "renamed" / zoo.WEIGHTS).read_bytes()
    assert checksum(tmp_path / "one") == checksum(tmp_path / "renamed") != checksum(tmp_path / "other")


# --- scripts that measure one prior ---


@pytest.mark.thorough
def test_every_method_of_denoising_has_a_curve() -> None:
    engine = Engine.of(random_prior((12, 12)), torch.device("cpu"))
    truth = (torch.rand(6, 144, generator=torch.Generator().manual_seed(3)) < 0.4).float()
    curves = {curve.name: curve for curve in denoising.measured({"mine": engine}, truth, truth, (12, 12), seed=4)}
    neighbours = {"1-NN", "1-NN of 1,000", "1-NN of 10,000"}
    assert set(curves) == {"OPE", *neighbours, "mine, one start", "mine", "mine, from the clean image"}
    for name, curve in curves.items():
        assert len(curve.mcc) == len(denoising.PROBABILITIES)
        assert (curve.log_partition is None) == (name in {"OPE", *neighbours})
    # The training images hold the truth, which the nearest neighbour finds; without noise the prior keeps all pixels.
    assert curves["1-NN"].mcc[1].mean == 1 and curves["mine"].mcc[0].mean == 1
    along = likelihoods.along({3: engine, 7: engine}, truth, 0, "linear:20")
    assert along[3].likelihoods["tap"].mean == along[7].likelihoods["tap"].mean
    # The same prior twice has no order to compare.
    assert set(likelihoods.as_record(along, [], 6, 0)["rank_correlations"].values()) == {None}


def test_all_likelihoods_come_near_the_truth(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    images = np.random.default_rng(0).random((30, *SHAPE))
    np.save(tmp_path / "grey.npy", images)
    np.save(tmp_path / "binary.npy", images < 0.4)
    prior = random_prior(SHAPE, modes=0)
    zoo.save(tmp_path / "mine", prior, "# mine\n")
    likelihood(str(tmp_path / "mine"), str(tmp_path / "binary.npy"), n=25, schedule="linear:300")
    truth = float(log_likelihood(prior.machine, torch.from_numpy(images[:25] < 0.4).float().flatten(1)).mean())
    told = capsys.readouterr().out
    assert all(kind in told for kind in ("exact", "ais", "tap", "pseudo")) and f"{truth:.2f}" in told
    likelihood(str(saved_grey(tmp_path, grey_prior(shape=SHAPE))), str(tmp_path / "grey.npy"))
    assert "nats per image" in capsys.readouterr().out
    zoo.save(tmp_path / "seer", random_conditional(SHAPE), "")
    with pytest.raises(ModelError):
        likelihood(str(tmp_path / "seer"), str(tmp_path / "binary.npy"))


@pytest.mark.thorough
def test_a_probe_writes_its_pictures_and_numbers(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    from probe import drawn, probe

    model, data = saved_prior(tmp_path, SHAPE), str(tmp_path / "data.npy")
    np.save(data, np.random.default_rng(0).integers(0, 256, (12, *SHAPE), dtype=np.uint8))
    probe(str(model), data, n=10, seed=3, output=tmp_path / "out")
    found = json.loads((tmp_path / "out" / "probe.json").read_text())
    assert {path.stem for path in (tmp_path / "out").glob("*.png")} == {
        *("solutions", "free-energy", "isomap", "receptive-fields")
    }
    assert found["converged"] == sum(found["basins"]) == 10 and found["solutions"] == len(found["free_energies"])
    assert found["free_energy"] == pytest.approx(np.mean(found["free_energies"]))
    four = [drawn(data, "train", 4, None, zoo.describe(model), seed).tolist() for seed in (0, 0, 1)]
    assert four[0] == four[1] != four[2]


def test_ink_is_told_per_digit() -> None:
    digits = torch.tensor([[1.0, 1, 0, 0], [1, 1, 1, 1]]).repeat(1, 196)
    found = one_digit.ink_of("half", lambda observed, damage: digits * torch.tensor([[0.5], [1.0]]), digits, 0)
    assert (found.p, found.digits, found.mean, found.standard_error) == (0.4, 2, 0.75, 0.25)


def test_solutions_from_fields_without_an_image_are_those_of_any_batch() -> None:
    images = (torch.rand(30, 20, generator=torch.Generator().manual_seed(0)) < 0.4).float()
    machine = random_prior(SHAPE).machine
    for times in adaptive.STARTS.values():
        learner = adaptive.FromFields(fixed_point="adaptive_tap", damping=0.5, centring=False, times=times)
        generator = torch.Generator()
        state = learner.init(machine, images, generator)
        means, *_ = learner._start(machine, images, state, generator)
        bias = machine.layers[0].parameters["bias"]
        assert torch.allclose(means, torch.sigmoid((1 + times) * bias)[None])
        # One row stands for as many as the batch has.
        start = tuple(part.expand(30, -1) for part in learner._start(machine, images, state, generator))
        whole = difference(clamped(machine, images), by_adaptive_tap(learner.solver, machine, start).statistics)
        for name, value in learner.step(machine, images, state, generator).gradient.items():
            assert torch.allclose(value, whole[name], atol=1e-5), name
