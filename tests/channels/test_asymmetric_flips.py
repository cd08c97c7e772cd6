"""Flips of white and of black pixels at different rates: against enumeration, in both engines, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from commands import Run
from grey_priors import grey_prior
from machines import brute_force, random_rbm, seeded
from parity import compared
from PIL import Image
from priors import random_prior

import restore
from restore.channels import AsymmetricFlip, BitFlip, parse_task
from restore.errors import UsageError
from restore.fields import Fields
from restore.inference.damage import Damage, Rates
from restore.inference.onnx.engine import OnnxEngine
from restore.inference.torch_engine import Engine, machine_under
from restore.zoo import published_folder

ASSETS = Path(__file__).parents[2] / "assets"
CPU = torch.device("cpu")
SHAPE = (5, 7)
WHITE, BLACK = 0.3, 0.05


def test_the_tilted_machine_is_the_posterior_by_enumeration() -> None:
    machine, pixels = random_rbm(6, 4), 6
    prior = brute_force(machine)
    states = torch.from_numpy(prior.states[:, :pixels])
    for y in torch.tensor([[0.0, 1, 1, 0, 0, 1], [0, 0, 0, 0, 0, 0], [1, 1, 1, 1, 0, 1]], dtype=torch.float64):
        # By hand, in terms of what is seen: white is 1.
        kept = torch.where(states == 1, 1 - WHITE, torch.tensor(1 - BLACK, dtype=torch.float64))
        likelihood = torch.where(states == y, kept, 1 - kept).prod(-1).numpy()
        posterior = prior.probabilities * likelihood / (prior.probabilities @ likelihood)
        found = brute_force(machine.tilt(AsymmetricFlip(WHITE, BLACK).evidence(y[None])))
        np.testing.assert_allclose(found.probabilities, posterior, atol=1e-12)


def test_the_engine_tilts_by_the_same_fields() -> None:
    engine, images = Engine.of(random_prior(SHAPE), CPU), torch.bernoulli(torch.full((3, 35), 0.4), generator=seeded(1))
    machine = engine.machine("log-likelihood")
    channel = Damage.of((WHITE, BLACK)).channel(grey=False)
    fields = channel.evidence(images)
    tilted = machine_under(engine.trained, fields)
    odds = torch.where(
        images == 1, torch.tensor(np.log((1 - WHITE) / BLACK)), torch.tensor(np.log(WHITE / (1 - BLACK)))
    )
    expected = machine.tilt(Fields(odds.float()))
    for found, wanted in zip(tilted.layers, expected.layers, strict=True):
        for name, value in found.parameters.items():
            torch.testing.assert_close(value, wanted.parameters[name])


@pytest.mark.parametrize(("white", "black"), [(0.3, 0.05), (0.0, 0.2), (0.2, 0.0), (0.6, 0.3), (0.0, 0.0)])
def test_a_symmetric_rate_per_pixel_says_the_same(white: float, black: float) -> None:
    y = np.array([[0.0, 1.0, 1.0, 0.0]])
    channel = AsymmetricFlip(white, black)
    p = channel.symmetric(y)
    assert ((p >= 0) & (p < 0.5)).all()
    seen = torch.from_numpy(y)
    torch.testing.assert_close(BitFlip(p).evidence(seen).linear, channel.evidence(seen).linear, rtol=1e-12, atol=1e-12)


def test_equal_rates_are_those_of_one() -> None:
    engine, images = Engine.of(random_prior(SHAPE), CPU), np.random.default_rng(0).random((3, *SHAPE)).round()
    (found, gain), (expected, its) = (engine.marginals(images, Damage.of(p)) for p in ((0.1, 0.1), 0.1))
    np.testing.assert_allclose(found.means[0], expected.means[0], atol=1e-5)
    np.testing.assert_array_equal(gain, its)


@pytest.mark.parametrize("masked", [False, True])
def test_both_engines_agree_with_a_published_graph(masked: bool) -> None:
    graph, peer = OnnxEngine.load(published_folder() / "tap-mnist-25"), Engine.load("tap-mnist-25", "cpu")
    clean = np.asarray(Image.open(ASSETS / "digit.png").convert("L")) / 255
    grey = np.abs(clean - (np.random.default_rng(0).random((4, *clean.shape)) < 0.1))
    hidden = np.random.default_rng(1).random(grey.shape) < 0.3 if masked else None
    for rates in (Rates(WHITE, BLACK), Rates(0.01, 0.2)):
        (found, gain), (expected, its) = (one.marginals(grey, Damage(rates, hidden=hidden)) for one in (graph, peer))
        parity = compared(found, expected, peer.description, str(rates))
        assert parity.agrees and parity.parted + parity.unsettled <= 1, parity
        np.testing.assert_allclose(gain, its, atol=1e-6)


def test_rates_of_each_colour_repair_better_than_their_mean() -> None:
    clean = np.asarray(Image.open(ASSETS / "digit.png").convert("L")) > 127
    draw = np.random.default_rng(0)
    damaged = np.stack([parse_task("flip:0.4,0.02").damage_picture(clean * 1.0, draw)[0] for _ in range(10)])
    # What the two amount to, where a seventh of the pixels is white.
    right, mean = (restore.denoise(damaged, "tap-mnist-100", p, force=True) != clean for p in ((0.4, 0.02), 0.08))
    assert right.mean() < 0.8 * mean.mean()
    filled = restore.complete(damaged, clean, "tap-mnist-100", (0.4, 0.02), force=True)
    assert filled.shape == damaged.shape


@pytest.mark.parametrize(
    "p", [(0.1, 1.2), (0.1, float("nan")), (0.6, 0.5), (0.5, 0.5), (0.1, 0.1, 0.1), ("auto", 0.1)], ids=str
)
def test_no_rates(p: Any) -> None:
    with pytest.raises(UsageError) as caught:
        restore.Restorer(Engine.of(random_prior(SHAPE), CPU)).denoise(np.zeros(SHAPE), p)
    assert "\n" not in str(caught.value)


def test_grey_images_have_one_rate() -> None:
    with pytest.raises(UsageError):
        restore.Restorer(Engine.of(grey_prior(), CPU)).denoise(np.zeros(SHAPE), (0.1, 0.02))
    with pytest.raises(UsageError):
        parse_task("flip:0.1,0.02", grey=True)


def test_the_command_line(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    noisy, out = tmp_path / "noisy.png", tmp_path / "out.png"
    assert run("corrupt", ASSETS / "digit.png", "--task", "flip:0.3,0.02", "--seed", 1, "-o", noisy) == 0
    words = ["denoise", noisy, "--model", "tap-mnist-25", "--p", "0.3,0.02", "-o", out, "--json"]
    assert run(*words) == 0
    assert json.loads(capsys.readouterr().out)["p"] == [0.3, 0.02]
    clean, damaged, found = (np.asarray(Image.open(path)) > 127 for path in (ASSETS / "digit.png", noisy, out))
    assert (found != clean).sum() < (damaged != clean).sum()


@pytest.mark.parametrize("p", ["0,1", "0.1,x", "0.1,,", "0.1,0.1,0.1", ",", "0.5,0.6"])
def test_no_rates_on_the_command_line(p: str, run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("denoise", ASSETS / "digit-noisy.png", "--model", "tap-mnist-25", "--p", p) == 2
    assert capsys.readouterr().err.count("\n") == 1
