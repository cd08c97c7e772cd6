"""The torch engine on batches of evidence: limits, batches, solvers, starts, and the gain by inversion."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from machines import seeded
from oracle import exact_moments
from priors import PIXELS, SHAPE, SPIKED, TRUNCATED, engine_of, grey_prior, some_images, trained

from restore.channels import BitFlip, Channel, GaussianNoise, Occlusion
from restore.channels.damage import Damage
from restore.errors import UsageError
from restore.fields import Fields
from restore.inference import torch_engine as engine_module
from restore.inference.torch_engine import Engine, grey_polarity_gain, polarity_gain, starts
from restore.priors import ConditionalRBM
from restore.priors.bits import unpack
from restore.solvers import TAP, Solution
from restore.zoo import TrainedPrior


def unstarted(**settings: object) -> Engine:
    """An engine whose solver starts by itself."""
    prior = trained(modes=0, starts=0, **settings)
    return Engine.of(replace(prior, modes=prior.modes[:0]), torch.device("cpu"))


MASK = torch.zeros(PIXELS, dtype=torch.bool).index_fill(0, torch.tensor([1, 5, 6, 10]), True)


CHANNELS: dict[str, Channel] = {
    "flips": BitFlip(0.15),
    "flips-per-pixel": BitFlip(torch.linspace(0, 1, PIXELS)),
    "mask": Occlusion(MASK),
    "mask-and-flips": Occlusion(MASK, BitFlip(0.1)),
    "mask-per-image": Occlusion(some_images(9, seed=4).bool()),
}


def rows_of(channel: Channel, row: int) -> Channel:
    if isinstance(channel, Occlusion) and channel.hidden.dim() == 2:
        return replace(channel, hidden=channel.hidden[row : row + 1])
    return channel


# --- limits ---


@pytest.mark.parametrize("channel", CHANNELS.values(), ids=CHANNELS)
@pytest.mark.parametrize("solver", ["tap", "mean_field"])
def test_posterior_is_close_to_the_exact_one_at_weak_coupling(channel: Channel, solver: str) -> None:
    images = some_images(9)
    got = engine_of(scale=0.1, solver=solver).restore(images, channel)
    exact = exact_moments(trained(scale=0.1).machine.to(torch.float64).tilt(channel.evidence(images.double())))
    torch.testing.assert_close(got.means[0].double(), exact.visible, rtol=0, atol=2e-3 if solver == "tap" else 5e-3)
    torch.testing.assert_close(got.means[1].double(), exact.hidden, rtol=0, atol=2e-3 if solver == "tap" else 5e-3)
    assert got.means[0].shape == (9, PIXELS)
    assert got.log_partition.shape == (9,)


def test_bits_under_gaussian_noise_have_the_log_odds_of_their_two_levels() -> None:
    noisy = some_images(9) + 0.6 * torch.randn(9, PIXELS, generator=seeded(1))
    got = engine_of(scale=0.1).restore(noisy, GaussianNoise(0.6))
    # log p(y | 1) - log p(y | 0) = (y² - (y - 1)²) / (2 sigma²).
    odds = (noisy.double() ** 2 - (noisy.double() - 1) ** 2) / (2 * 0.6**2)
    exact = exact_moments(trained(scale=0.1).machine.to(torch.float64).tilt(Fields(odds)))
    torch.testing.assert_close(got.means[0].double(), exact.visible, rtol=0, atol=2e-3)


# --- who is tried again ---


@pytest.mark.parametrize("starts", [1, 2])
@pytest.mark.parametrize("method", ["tap", "matched"])
def test_what_has_learnt_its_iterations_is_not_solved_again(method: str, starts: int) -> None:
    """Of one start, a prior that learnt through its solver gives what it gave in learning."""
    prior, images = trained(starts=starts, modes=5 * (starts > 1), max_iter=2, tol=0.0), some_images(9)
    if starts == 1:
        prior = replace(prior, modes=prior.modes[:0])
    prior = replace(prior, description=replace(prior.description, method=method))
    actual = Engine.of(prior, torch.device("cpu")).restore(images, BitFlip(0.2))
    learnt = method == "matched" and starts == 1
    assert actual.iterations.tolist() == 9 * [2 if learnt else 4]
    assert prior.description.tries_again is not learnt
    if learnt:
        once = TAP(max_iter=2, tol=0.0).solve(
            prior.machine.tilt(BitFlip(0.2).evidence(images)), prior.pointwise.moments(BitFlip(0.2).evidence(images))[0]
        )
        torch.testing.assert_close(actual.means[0], once.means[0], rtol=0, atol=1e-6)


def test_log_z_is_estimated_where_it_weighs_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one start it decides nothing, and takes longer than all iterations of a convolutional prior."""

    def refused(*arguments: object) -> None:
        raise AssertionError("log Z is estimated")

    assert torch.isfinite(engine_of(starts=4).restore(some_images(3), BitFlip(0.2)).log_partition).all()
    monkeypatch.setattr(TAP, "log_partition", refused)
    actual = engine_of(starts=1).restore(some_images(3), BitFlip(0.2))
    assert torch.isnan(actual.log_partition).all() and torch.isfinite(actual.means[0]).all()


# --- batches ---


@pytest.mark.parametrize("channel", CHANNELS.values(), ids=CHANNELS)
def test_a_batch_gives_what_each_image_alone_gives(channel: Channel, monkeypatch: pytest.MonkeyPatch) -> None:
    images = some_images(9)
    engine = engine_of(scale=0.8)
    solve, sizes = engine_module.solve, []

    def watched(trained: TrainedPrior, solver: TAP, evidence: Fields) -> Solution:
        sizes.append(len(evidence.linear))
        return solve(trained, solver, evidence)

    monkeypatch.setattr(engine_module, "solve", watched)
    whole = engine.restore(images, channel)
    # Two images with four starts each go side by side.
    monkeypatch.setitem(engine_module.ROWS_AT_ONCE, "cpu", 8)
    together = engine.restore(images, channel)
    assert sizes == [9, 2, 2, 2, 2, 1]
    monkeypatch.undo()
    for row in range(9):
        alone = engine.restore(images[row : row + 1], rows_of(channel, row))
        for batch in (together, whole):
            for got, wanted in zip((*batch.means, *batch.variances), (*alone.means, *alone.variances), strict=True):
                torch.testing.assert_close(got[row : row + 1], wanted, rtol=0, atol=1e-5)
            assert int(batch.status[row]) == int(alone.status)
            torch.testing.assert_close(batch.log_partition[row], alone.log_partition[0], rtol=1e-7, atol=1e-4)


@pytest.mark.parametrize("shape", [(PIXELS,), (2, PIXELS + 1), (0, PIXELS), (1, *SHAPE)], ids=str)
def test_images_that_do_not_fit(shape: tuple[int, ...]) -> None:
    with pytest.raises(UsageError):
        engine_of().restore(torch.zeros(shape), BitFlip(0.1))


# --- solver and starts ---


def test_starts_are_the_pointwise_estimate_and_the_likeliest_modes() -> None:
    engine = engine_of()
    images, channel = some_images(5), BitFlip(0.2)
    actual = starts(engine.trained, channel.evidence(images))
    assert actual.shape == (5, 4, PIXELS)
    means = engine.trained.pixel_means
    odds = means / (1 - means) * torch.where(images == 1, 0.8 / 0.2, 0.2 / 0.8)
    torch.testing.assert_close(actual[:, 0], odds / (1 + odds))
    distance = (unpack(engine.trained.modes, PIXELS)[None] != images[:, None]).sum(-1)
    for row in range(5):
        picked = (actual[row, 1:] != images[row]).sum(-1)
        assert picked.tolist() == distance[row].sort().values[:3].tolist()


# --- conditional priors ---


@pytest.mark.parametrize("solver", ["sum_product", "mean_field"])
def test_a_conditional_prior_restores_from_the_image_alone(solver: str) -> None:
    prior, images = unstarted(scale=0.1, solver=solver).trained, some_images(9)
    draw = 0.3 * torch.randn(PIXELS + 6, PIXELS, generator=seeded(5))
    machine = ConditionalRBM(prior.machine, draw[:PIXELS], draw[PIXELS:])
    header = replace(prior.description, family="crbm", task="flip:0.1")
    engine = Engine.of(replace(prior, description=header, machine=machine), torch.device("cpu"))
    got, exact = engine.restore(images), exact_moments(machine.to(torch.float64).given(images.double()))
    torch.testing.assert_close(got.means[0].double(), exact.visible, rtol=0, atol=5e-3)
    torch.testing.assert_close(engine.restore(images[3:4]).means[0], got.means[0][3:4], rtol=0, atol=1e-5)
    # By the name of another solver it restores with that one.
    other = engine.header.with_solver("tap")
    assert other.inference == replace(engine.header.inference, solver="tap")
    again = replace(engine, trained=replace(engine.trained, description=other)).restore(images)
    torch.testing.assert_close(again.means[0].double(), exact.visible, rtol=0, atol=5e-3)
    # It has learnt the damage, and others have to be told.
    with pytest.raises(UsageError):
        engine.restore(images, BitFlip(0.1))
    with pytest.raises(UsageError):
        engine_of().restore(images)


# --- the gain by inversion, and grey images without couplings ---


def test_polarity_is_judged_by_visible_pixels() -> None:
    means, clean = torch.tensor([0.1, 0.2, 0.5, 0.9]), torch.tensor([[0.0, 0.0, 0.0, 1.0]])
    nothing = torch.zeros(1, 4, dtype=torch.bool)
    # The log-odds of .1 and .9 are those of nine to one, of .2 of four to one.
    gain = float(polarity_gain(1 - clean, nothing, means))
    assert gain == pytest.approx((2 * math.log(9) + math.log(4)) / 4, rel=1e-5)
    assert float(polarity_gain(clean, nothing, means)) == pytest.approx(-gain)
    assert float(polarity_gain(1 - clean, ~nothing, means)) == 0
    first = torch.tensor([[False, True, True, True]])
    assert float(polarity_gain(1 - clean, first, means)) == pytest.approx(math.log(9), rel=1e-5)


NODES = np.linspace(0, 1, 20_001)


@pytest.mark.parametrize("kind", [SPIKED, TRUNCATED])
@pytest.mark.parametrize("p", [None, 0.2])
def test_without_couplings_grey_pixels_are_restored_one_by_one(kind: str, p: float | None) -> None:
    """By quadrature; so is by how much likelier an image is after inversion."""
    prior, sigma = grey_prior(kind, scale=0.0), 0.2
    picture = np.random.default_rng(1).normal(0.3, 0.3, (1, 5, 7))
    picture[0, 0, :4] = (0, 1, -0.4, 1.3)
    posterior = Engine.of(prior, torch.device("cpu")).solve(picture, Damage(p, sigma))
    own = {name: value.numpy() for name, value in prior.machine.parameters.items() if name.startswith("units.0.")}
    for pixel in range(12):
        y = float(picture.flat[pixel])
        impulse = p is not None and y in (0, 1)
        slab = own["units.0.bias"][pixel] * NODES - own["units.0.quadratic"][pixel] * NODES**2 / 2
        if "units.0.presence" in own:
            slab = slab + own["units.0.presence"][pixel]
        # An impulse says nothing of what was there; noise beyond black and white is no impulse.
        weight = np.exp(slab - (0 if impulse else (y - NODES) ** 2 / (2 * sigma**2)))
        atom = 0.0 if "units.0.presence" not in own else 1.0 if impulse else np.exp(-(y**2) / (2 * sigma**2))
        mass = weight.mean() + atom
        mean, square = (weight * NODES).mean() / mass, (weight * NODES**2).mean() / mass
        assert posterior.means.flat[pixel] == pytest.approx(mean, abs=1e-4)
        assert posterior.variances.flat[pixel] == pytest.approx(square - mean**2, abs=1e-4)


def test_the_gain_of_grey_images_is_the_likelihood_ratio_per_pixel_seen() -> None:
    prior = grey_prior(TRUNCATED)
    assert prior.grey_pixels is not None
    picture, hidden = np.random.default_rng(0).random((1, 35)), np.arange(35).reshape(1, 5, 7) > 3
    channel = Damage(sigma=0.3, hidden=hidden).channel(grey=True)
    bias, quadratic = (prior.grey_pixels.parameters[name].numpy() for name in ("bias", "quadratic"))
    ratio = 0.0
    for pixel, y in enumerate(picture[0, :4]):
        own = bias[pixel] * NODES - quadratic[pixel] * NODES**2 / 2
        inverse, upright = (np.exp(own - (value - NODES) ** 2 / 0.18).mean() for value in (1 - y, y))
        ratio += np.log(inverse / upright)
    gain = grey_polarity_gain(torch.from_numpy(picture).float(), channel, prior.grey_pixels)
    assert float(gain) == pytest.approx(ratio / 4, abs=1e-3)
