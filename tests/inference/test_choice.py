"""Which of several priors an image belongs to: by the evidence, which noise does not hide."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from machines import random_rbm
from PIL import Image
from priors import random_prior
from restore.inference.choice import restore_with_each

import restore
from restore import zoo
from restore.inference.damage import Damage
from restore.inference.onnx.engine import OnnxEngine
from restore.inference.torch_engine import Engine
from restore.priors.exact import binary_states, exact_moments
from restore.zoo import TrainedPrior, save
from restore.zoo.description import Description
from restore.zoo.inference import Inference

CPU = torch.device("cpu")
SHAPE = (3, 4)
ASSETS = Path(__file__).parents[2] / "assets"
PREFERRED = [zoo.PREFERRED_BINARY, "fw-caltech"]


def small(seed: int) -> TrainedPrior:
    """A prior that TAP solves well."""
    machine = random_rbm(12, 5, scale=0.3, seed=seed, dtype=torch.float32)
    about = Description(
        f"small-{seed}", SHAPE, 5, 127, "none", "none", inference=Inference(modes=0, starts=1, max_iter=500, tol=1e-6)
    )
    return TrainedPrior(about, machine, exact_moments(machine).visible, torch.zeros(0, 2, dtype=torch.uint8))


PRIORS = [small(seed) for seed in (1, 2, 3)]
ENGINES = [Engine.of(prior, CPU) for prior in PRIORS]
IMAGES = (np.random.default_rng(0).random((9, *SHAPE)) < 0.5).astype(float)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("p", [0.05, 0.3, "auto"])
def test_the_evidence_is_the_probability_of_the_image(p: Any, masked: bool) -> None:
    hidden = list((np.random.default_rng(1).random(IMAGES.shape) < 0.3) & masked)
    tried = restore_with_each(ENGINES, list(IMAGES), Damage.of(p, hidden=hidden))
    images, covered = IMAGES.reshape(9, 1, 12), np.stack(hidden).reshape(9, 1, 12)
    for prior, one in zip(PRIORS, tried, strict=True):
        states = binary_states(12, torch.zeros((), dtype=torch.float64))
        log_p = -prior.machine.to(torch.float64).free_energy(states)  # type: ignore[union-attr]
        log_p = (log_p - log_p.logsumexp(0)).numpy()
        noise = one.marginals.noise
        level = np.full((9, 1, 1), p) if noise is None else noise.chosen[:, None, None]
        likelihood = np.where(images == states.numpy(), np.log1p(-level), np.log(level))
        exact = np.logaddexp.reduce(log_p + np.where(covered, 0, likelihood).sum(2), axis=1)
        np.testing.assert_allclose(one.evidence, exact, atol=0.02)


def test_of_one_prior_alone_nothing_is_compared() -> None:
    (only,) = restore_with_each(ENGINES[:1], list(IMAGES), Damage.of(0.1))
    assert only.engine is ENGINES[0] and only.evidence.tolist() == [0] * 9


def test_a_prior_without_an_answer_is_never_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = torch.full((12, 5), torch.inf)
    machine = PRIORS[0].machine.with_parameters(PRIORS[0].machine.parameters | {"weights.0": weights})
    lost = Engine.of(TrainedPrior(PRIORS[0].description, machine, PRIORS[0].pixel_means, PRIORS[0].modes), CPU)
    tried = restore_with_each([lost, ENGINES[1]], list(IMAGES), Damage.of("auto"))
    assert (tried[0].evidence == -np.inf).all() and np.isfinite(tried[1].evidence).all()


def test_log_z_is_the_same_in_both_engines() -> None:
    graph = OnnxEngine.load(zoo.published_folder() / "pcd-mnist")
    assert graph.log_partition == pytest.approx(Engine.load("pcd-mnist", "cpu").log_partition, abs=0.01)


def noisy(name: str, p: float) -> np.ndarray:
    """A picture of the README under flips."""
    clean = np.asarray(Image.open(ASSETS / name).convert("L")) > 127
    return (clean ^ (np.random.default_rng(5).random(clean.shape) < p)).astype(float)


@pytest.fixture(scope="module")
def published() -> list[OnnxEngine]:
    return [OnnxEngine.load(zoo.published_folder() / name) for name in PREFERRED]


@pytest.mark.thorough
@pytest.mark.parametrize("p", [0.02, 0.2, 0.3])
def test_digits_and_silhouettes_are_told_apart_under_noise(p: float, published: list[OnnxEngine]) -> None:
    silhouette = Image.open(Path(restore.__file__).parent / "app" / "site" / "silhouette.png").convert("L")
    black = np.asarray(silhouette.resize((28, 28))) > 127
    flipped = (black ^ (np.random.default_rng(6).random((28, 28)) < p)).astype(float)
    digits, silhouettes = restore_with_each(published, [noisy("digit.png", p), flipped], Damage.of(p))
    gain = digits.evidence - silhouettes.evidence
    assert gain[0] > 30 and gain[1] < -30


# ---------------------------------------------------------------------------------------------------- for the users


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[TrainedPrior]:
    """Two priors of the user's own and of one size, one of which expects black images, the other white ones."""
    monkeypatch.setattr(zoo.search, "user_folder", lambda: tmp_path / "models")
    made = []
    for name, bias in (("dark", -2.0), ("light", 2.0)):
        prior = random_prior(SHAPE, modes=0, name=name)
        machine = prior.machine.with_parameters(prior.machine.parameters | {"units.0.bias": torch.full((12,), bias)})
        means = torch.full((12,), bias).sigmoid()
        made.append(TrainedPrior(prior.description, machine, means, prior.modes))
        save(tmp_path / "models" / name, made[-1], "")
    return made


@pytest.mark.parametrize("p", [0.1, "auto"])
def test_python_takes_the_prior_under_which_the_images_are_most_probable(own: list[TrainedPrior], p: Any) -> None:
    for white, name in ((0, "dark"), (1, "light")):
        images = np.full((3, *SHAPE), float(white))
        images[:, 0, 0] = 1 - white
        clean, found = restore.denoise(images, p=p, return_solution=True)
        assert found.model == name
        np.testing.assert_array_equal(clean, restore.denoise(images, name, p=p))
        assert restore.complete(images, images == 2 if p == "auto" else np.eye(3, 4) > 0, p=p).shape == images.shape


def test_the_summary_of_many_levels_says_how_many_lie_at_the_end(
    own: list[TrainedPrior], run: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Nothing that the dark prior expects, however much noise there is.
    for name, level in (("a.png", 0), ("b.png", 255), ("c.png", 255)):
        Image.fromarray(np.full(SHAPE, level, np.uint8)).save(tmp_path / name)
    images = [tmp_path / name for name in ("a.png", "b.png", "c.png")]
    assert run("denoise", *images, "--p", "auto", "--model", "dark", "-o", f"{tmp_path}/out/") == 0
    said = capsys.readouterr().err
    assert ", for 2 of them the largest that was tried)\n" in said and "3 of 3 images: p = " in said


def test_the_command_line_takes_one_for_each_image(
    own: list[TrainedPrior], run: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, level in (("a.png", 0), ("b.png", 255)):
        Image.fromarray(np.full(SHAPE, level, np.uint8)).save(tmp_path / name)
    words = ("denoise", tmp_path / "a.png", tmp_path / "b.png", "--p", "auto", "--json", "-o", f"{tmp_path}/out/")
    assert run(*words) == 0
    said = capsys.readouterr()
    records = [json.loads(line) for line in said.out.splitlines()]
    assert [record["model"] for record in records] == ["dark", "light"]
    low, high = sorted(record["channel"]["p"] for record in records)
    assert said.err.splitlines()[-3:] == [
        f"2 of 2 images: p = {(low + high) / 2:.3g} was found (the median; from {low:.3g} to {high:.3g})",
        "1 of 2 images: more probable under dark than under light",
        "1 of 2 images: more probable under light than under dark",
    ]
    for record in records:
        levels = record["levels"]
        assert len(levels["tried"]) == len(levels["evidence"]) == len(levels["converged"])
        best = max((value, level) for value, level in zip(levels["evidence"], levels["tried"], strict=True) if value)[1]
        assert record["channel"]["p"] == pytest.approx(best, rel=0.5)
        assert any("was found" in note for note in record["notes"])
    assert run(*words[:2], "--p", "auto", "-o", tmp_path / "alone.png") == 0
    alone = capsys.readouterr().err.splitlines()
    assert [line.split(": ", 1)[1] for line in alone] == records[0]["notes"] and len(alone) == 2
    assert run(*words[:3], "--p", 0.1, "--model", "light", "--json", "-o", f"{tmp_path}/given/") == 0
    said = capsys.readouterr()
    record = json.loads(said.out.splitlines()[0])
    assert record["levels"] is None and record["channel"]["p"] == 0.1 and "more probable" not in said.err


BAD = {
    "35-text": (["--p", "some"], "--p is a number or auto, not some"),
    "35-sigma-text": (["--sigma", "0.1.2"], "--sigma is a number or auto"),
    "35-both": (["--p", "auto", "--sigma", "auto"], "cannot both be auto"),
    "35-sigma-of-binary": (["--sigma", "auto", "--model", "tap-mnist"], "black and white images"),
    "35-conditional": (["--p", "auto", "--model", "crbm-bp-mnist-flip10"], "has learnt to undo"),
    "35-nan": (["--p", "nan"], "must lie in [0, 1], not nan"),
}


@pytest.mark.parametrize(("words", "says"), BAD.values(), ids=BAD)
def test_levels_that_are_none(
    words: list[str], says: str, run: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("denoise", ASSETS / "digit-noisy.png", *words, "-o", tmp_path / "out.png") == 2
    said = capsys.readouterr().err
    assert says in said and said.count("\n") == 1 and not (tmp_path / "out.png").exists()
