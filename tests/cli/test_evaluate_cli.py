"""`restore evaluate`: likelihoods from the command line, and options that exclude each other."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from commands import Run
from grey_priors import grey_prior, saved_grey
from machines import random_rbm, repelling

from restore import zoo
from restore.evaluation.likelihoods.tap import tap_likelihood
from restore.priors import ConditionalRBM
from restore.priors.exact import log_likelihood
from restore.zoo.description import Description
from restore.zoo.inference import Inference

SHAPE = (4, 5)


def saved(folder: Path, conditional: bool = False) -> str:
    machine = random_rbm(20, 6, scale=0.3, dtype=torch.float32)
    inference = Inference(modes=0, starts=0 if conditional else 1, solver="mean_field" if conditional else "tap")
    about = Description("tiny", SHAPE, 6, 127, "nothing", "none", inference=inference)
    if conditional:
        about = Description(
            "tiny", SHAPE, 6, 127, "nothing", "none", inference=inference, family="crbm", task="flip:0.1"
        )
    prior = ConditionalRBM(machine, torch.zeros(20, 20), torch.zeros(6, 20)) if conditional else machine
    zoo.save(folder, zoo.TrainedPrior(about, prior, torch.full((20,), 0.5), torch.zeros(0, 3, dtype=torch.uint8)), "#")
    return str(folder)


@pytest.fixture
def model(tmp_path: Path) -> str:
    return saved(tmp_path / "tiny")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.npy"
    np.save(path, np.random.default_rng(0).random((30, *SHAPE)) < 0.4)
    return path


def test_likelihoods(run: Run, model: str, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    images = torch.from_numpy(np.load(data).reshape(30, 20)[:25]).float()
    truth = float(log_likelihood(zoo.load(Path(model)).machine, images).mean())
    words = ("evaluate", model, "--data", data, "--n", 25, "--json", "--likelihood")
    kinds = {
        "exact": (),
        "ais": ("--schedule", "linear:300", "--runs", 50),
        "tap": ("--starts", 10),
        "pseudo": ("--pixels", 7),
    }
    for kind, options in kinds.items():
        assert run(*words, kind, *options) == 0
        found = json.loads(capsys.readouterr().out)
        assert (found["kind"], found["n"]) == (kind, 25)
        if kind != "pseudo":
            assert found["mean"] == pytest.approx(truth, abs={"exact": 1e-4, "ais": 0.1, "tap": 0.1}[kind])
        # The defaults of the papers are for larger machines and take longer.
        if kind != "ais":
            assert run(*words, kind, "--quiet") == 0
            assert capsys.readouterr().err == ""


def test_a_likelihood_for_people(run: Run, model: str, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("evaluate", model, "--data", data, "--likelihood", "ais", "--runs", 4, "--schedule", "linear:60")
    assert run(*words) == 0
    told = capsys.readouterr()
    assert "nats per image" in told.out and "95% interval" in told.out
    assert "annealing 59/59" in told.err


def test_a_seed_repeats_what_is_drawn(run: Run, model: str, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def mean(kind: str, seed: int) -> float:
        options = ("--schedule", "linear:10") if kind == "ais" else ("--pixels", 3)
        assert run("evaluate", model, "--data", data, "--likelihood", kind, *options, "--seed", seed, "--json") == 0
        return json.loads(capsys.readouterr().out)["mean"]

    for kind in ("ais", "pseudo"):
        assert mean(kind, 1) == mean(kind, 1) != mean(kind, 2)


def test_poor_weights_are_said(run: Run, tmp_path: Path, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = saved(tmp_path / "tiny")
    trained = zoo.load(Path(model))
    strong = trained.machine.with_parameters({name: 15 * value for name, value in trained.machine.parameters.items()})
    zoo.save(Path(model), zoo.TrainedPrior(trained.description, strong, trained.pixel_means, trained.modes), "#")
    words = ("evaluate", model, "--data", data, "--likelihood", "ais", "--schedule", "linear:2")
    assert run(*words, "--json") == 0
    told = capsys.readouterr()
    assert "more temperatures" in told.err
    assert "more temperatures" in json.loads(told.out)["warnings"][0]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ((), "one of"),
        (("--task", "flip:0.1", "--likelihood", "exact"), "one of"),
        (("--likelihood", "exact", "--runs", 5), "--likelihood ais"),
        (("--likelihood", "ais", "--pixels", 5), "--likelihood pseudo"),
        (("--likelihood", "pseudo", "--starts", 5), "--likelihood tap"),
        (("--task", "flip:0.1", "--schedule", "s-dcp"), "--likelihood ais"),
        (("--likelihood", "ais", "--schedule", "linear:1"), "at least 2 temperatures"),
        (("--likelihood", "ais", "--schedule", "no-such"), "salakhutdinov"),
        (("--likelihood", "ais", "--runs", 1), "at least 2"),
        (("--likelihood", "pseudo", "--pixels", 0), "at least 1"),
        (("--likelihood", "pseudo", "--pixels", 21), "1 to 20 pixels"),
        (("--likelihood", "exact", "--mask", "known"), "--task"),
        (("--likelihood", "exact", "--soft"), "--task"),
        (("--likelihood", "nothing"), "nothing"),
        (("--likelihood", "exact", "--n", 0), "--n"),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else None,
)
def test_usage(
    options: tuple[object, ...], says: str, run: Run, model: str, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("evaluate", model, "--data", data, *options) == 2
    told = capsys.readouterr()
    assert says in told.err and told.err.count("\n") == 1
    assert told.out == ""


def test_priors_without_likelihood(run: Run, tmp_path: Path, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    conditional = saved(tmp_path / "conditional", conditional=True)
    for kind in ("exact", "ais", "tap", "pseudo"):
        assert run("evaluate", conditional, "--data", data, "--likelihood", kind) == 4
        assert "no likelihood of images" in capsys.readouterr().err
    assert run("evaluate", "median", "--data", data, "--likelihood", "exact") == 4


@pytest.mark.parametrize("deeper", [(), (3,)], ids=["grey", "grey and deep"])
def test_any_units_have_a_tap_likelihood_only(
    deeper: tuple[int, ...], run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prior = grey_prior(shape=SHAPE, deeper=deeper)
    grey, data = np.random.default_rng(0).integers(0, 256, (30, *SHAPE), dtype=np.uint8), tmp_path / "grey.npy"
    np.save(data, np.where(grey < 90, 0, grey).astype(np.uint8))
    words = ("evaluate", saved_grey(tmp_path, prior), "--data", data, "--likelihood")
    assert run(*words, "tap", "--starts", 5, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    images = torch.from_numpy(np.load(data)).flatten(1) / 255
    assert told["mean"] == pytest.approx(tap_likelihood(prior.machine, images, images[:5]).mean, abs=1e-3)
    for kind in ("exact", "ais", "pseudo"):
        assert run(*words, kind) == 4
        said = capsys.readouterr().err
        assert f"no {kind} likelihood of such a prior" in said and said.count("\n") == 1


@pytest.mark.thorough
def test_a_prior_has_a_tap_likelihood_where_its_own_damping_settles(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Undamped, two further tries with half the step each do not do for units that repel each other this much."""
    machine, start = repelling(strength=2.0)
    np.save(tmp_path / "data.npy", np.random.default_rng(0).random((30, *SHAPE)) < 0.4)
    for damping, code in ((0.9, 0), (0.0, 4)):
        about = Description(
            "tiny",
            SHAPE,
            0,
            127,
            "nothing",
            "none",
            family="fvbm",
            inference=Inference(modes=0, starts=1, damping=damping),
        )
        folder = tmp_path / f"damped-{damping}"
        zoo.save(folder, zoo.TrainedPrior(about, machine, start[0], torch.zeros(0, 3, dtype=torch.uint8)), "#")
        words = ("--data", tmp_path / "data.npy", "--likelihood", "tap", "--starts", 5, "--json")
        assert run("evaluate", folder, *words) == code
        told = capsys.readouterr()
        if code:
            assert (
                "none of 5 starts led to a TAP solution (5 reached the iteration limit" in told.err
                and told.err.count("\n") == 1
            )
        else:
            assert json.loads(told.out)["solutions"] == 1


def test_images_of_another_size(run: Run, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "other.npy", np.random.default_rng(0).random((30, 4, 4)))
    assert run("evaluate", model, "--data", tmp_path / "other.npy", "--likelihood", "exact") == 4
    assert "do not fit" in capsys.readouterr().err
