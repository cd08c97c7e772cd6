"""The scripts of studies at their smallest: each trains what is missing once, and writes its record and tables."""

from __future__ import annotations

import importlib
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import adaptive
import numpy as np
import pytest
import torch
from classification import classification
from harness import Asked, checksum, main, section
from likelihood import likelihood
from oracle import log_likelihood
from priors import grey_prior, random_conditional, random_prior, saved_grey

from restore import zoo
from restore.data import load
from restore.errors import InputError, ModelError, UsageError
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


def test_features_tell_classes_apart_and_their_errors_are_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = np.arange(90) % 3
    rows = np.arange(SHAPE[0]) == labels[:, None]
    images = (255 * np.broadcast_to(rows[:, :, None], (90, *SHAPE))).astype(np.uint8)
    head = b"".join(size.to_bytes(4, "big") for size in images.shape)
    data = tmp_path / "rows-images-idx3-ubyte"
    data.write_bytes(b"\0\0\x08\x03" + head + images.tobytes())
    (tmp_path / "rows-labels-idx1-ubyte").write_bytes(
        b"\0\0\x08\x01" + head[:4] + np.where(np.arange(90) < 80, labels, (labels + 1) % 3).astype(np.uint8).tobytes()
    )
    record = tmp_path / "kept" / "record.json"
    for name in ("mine", "other"):
        zoo.save(tmp_path / name, random_prior(SHAPE, modes=0, name=name), "# mine\n")
        classification(str(tmp_path / name), str(data), n=80, record=record)
    classification(str(tmp_path / "mine"), str(data), n=60, record=record)
    assert "by 60 training images" in capsys.readouterr().out
    kept = {entry["name"]: entry for entry in json.loads(record.read_text())["priors"]}
    assert (kept["mine"]["images"], kept["other"]["images"]) == (60, 80)
    # The classes of the last ten images, of which no fit knows, are wrong; there is no split, so all are judged.
    assert [entry["wrong"] for entry in kept.values()] == [pytest.approx(1 / 9)] * 2
    assert kept["mine"]["weights"] == checksum(tmp_path / "mine")
