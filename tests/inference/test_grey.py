"""Restoring grey images: engine, Python interface and command line."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
import torch
from commands import Run
from grey_priors import SPIKED, TRUNCATED, grey_prior, saved_grey
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from priors import random_prior

import restore
from restore import zoo
from restore.api import Restorer
from restore.errors import InputError, UsageError
from restore.inference.damage import Damage
from restore.inference.torch_engine import Engine, grey_polarity_gain
from restore.marginals import Status
from restore.zoo import TrainedPrior

SHAPE = (5, 7)
CPU = torch.device("cpu")
KINDS = (SPIKED, TRUNCATED)


def restorer(prior: TrainedPrior) -> Restorer:
    return Restorer(Engine.of(prior, CPU))


def pictures(count: int = 3, seed: int = 0) -> np.ndarray:
    """Grey pictures, half black."""
    draw = np.random.default_rng(seed)
    return np.where(draw.random((count, *SHAPE)) < 0.5, 0.0, draw.random((count, *SHAPE)) ** 2)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return saved_grey(tmp_path / "models", grey_prior())


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of published priors, which is empty."""
    monkeypatch.setattr(zoo.search, "published_folder", lambda: tmp_path / "published")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    return tmp_path / "published"


# --- what is found ---


def posterior(named: dict[str, float], log_likelihood: Callable[[Any], Any], atom: float) -> tuple[float, float]:
    """Mean and standard deviation of a pixel by adaptive quadrature; `atom` is the likelihood of the value 0."""

    def weight(x: Any) -> Any:
        own = named["bias"] * x - named["quadratic"] * x * x / 2 + named.get("presence", 0.0)
        return mpmath.exp(own + log_likelihood(x))

    ends = [0, 0.1, 0.25, 0.5, 0.75, 0.9, 1]
    moments = [mpmath.quad(lambda x, k=k: x**k * weight(x), ends) for k in range(3)]
    mass = moments[0] + (atom if "presence" in named else 0)
    mean = moments[1] / mass
    return float(mean), float(mpmath.sqrt(moments[2] / mass - mean**2))


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("p", [None, 0.2])
def test_without_couplings_pixels_are_restored_one_by_one(kind: str, p: float | None) -> None:
    prior, sigma = grey_prior(kind, scale=0.0), 0.2
    noisy = pictures(1) + np.random.default_rng(1).normal(0, sigma, (1, *SHAPE))
    noisy[0, 0, :4] = (0, 1, -0.4, 1.3)
    found, marginals = restorer(prior).denoise(noisy, p, sigma=sigma, return_solution=True)
    named = prior.machine.parameters
    for pixel in range(12):
        y = noisy.flatten()[pixel]
        own = {name: float(named[f"units.0.{name}"][pixel]) for name in prior.machine.layers[0].parameters}
        impulse = p is not None and y in (0, 1)
        at_zero = 1.0 if impulse else float(np.exp(-(y**2) / (2 * sigma**2)))
        mean, deviation = posterior(
            own, lambda x, y=y, impulse=impulse: 0 if impulse else -((y - x) ** 2) / (2 * sigma**2), at_zero
        )
        assert found.flatten()[pixel] == pytest.approx(mean, abs=2e-5)
        assert np.sqrt(marginals.variances[0][0, pixel]) == pytest.approx(deviation, abs=2e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_an_image_that_was_seen_exactly_comes_back(kind: str) -> None:
    clean = pictures()
    found = restorer(grey_prior(kind)).denoise(clean, p=0.0)
    # Exact evidence is that of a hundredth of the grey scale, which the ends of the scale cut in two.
    inner = (clean > 0.05) & (clean < 0.95)
    np.testing.assert_allclose(found[inner], clean[inner], atol=2e-3)
    np.testing.assert_allclose(found, clean, atol=0.025)
    if kind == SPIKED:
        assert (found[clean == 0] == 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_little_noise_changes_little_and_much_leaves_the_prior(kind: str) -> None:
    clean, made = pictures(), restorer(grey_prior(kind))
    np.testing.assert_allclose(made.denoise(clean, sigma=0.01), clean, atol=0.025)
    blind = made.denoise(clean, sigma=1e6)
    np.testing.assert_allclose(blind[0], blind[1], atol=1e-4)


def test_salt_and_pepper_of_certainty_says_nothing() -> None:
    made = restorer(grey_prior())
    found = made.denoise(np.stack([np.zeros(SHAPE), np.ones(SHAPE)]), p=1.0)
    np.testing.assert_allclose(found[0], found[1], atol=1e-6)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32, np.float64])
def test_complete_keeps_visible_pixels_bit_for_bit(dtype: type) -> None:
    images, hidden = pictures(), np.random.default_rng(4).random((3, *SHAPE)) < 0.3
    white = np.iinfo(dtype).max if np.issubdtype(dtype, np.integer) else 1
    given_images = (images * white).astype(dtype)
    found = restorer(grey_prior()).complete(given_images, hidden)
    assert found.dtype == dtype
    assert (found[~hidden] == given_images[~hidden]).all()
    assert (found[hidden] != given_images[hidden]).any()
    noisy = restorer(grey_prior()).complete(given_images, hidden, sigma=0.1)
    assert (noisy[~hidden] != given_images[~hidden]).any()


@pytest.mark.thorough
@settings(max_examples=10)
@given(st.integers(1, 6), st.sampled_from([None, 0.05, 0.5]), st.sampled_from([None, 0.0, 0.3]), st.integers(0, 99))
def test_a_batch_is_its_images_one_by_one(count: int, sigma: float | None, p: float | None, seed: int) -> None:
    if sigma is None and p is None:
        p = 0.1
    made, images = restorer(grey_prior()), pictures(count, seed)
    together = made.denoise(images, p, sigma=sigma)
    np.testing.assert_allclose(together, [made.denoise(image, p, sigma=sigma) for image in images], atol=3e-5)


def test_a_probability_for_every_pixel() -> None:
    made, images = restorer(grey_prior()), pictures()
    np.testing.assert_allclose(
        made.denoise(images, np.full(SHAPE, 0.2), sigma=0.1), made.denoise(images, 0.2, sigma=0.1), atol=1e-6
    )


def test_noise_beyond_black_and_white_is_not_cut_off_when_an_image_is_resized() -> None:
    made, small = restorer(grey_prior()), pictures(1)[0] + np.random.default_rng(2).normal(0, 0.5, SHAPE)
    assert small.min() < 0 and small.max() > 1
    wanted = made.denoise(small, sigma=0.5, return_solution=True)[1]
    large = small.repeat(2, axis=0).repeat(2, axis=1)
    found = made.denoise(large, sigma=0.5, fit="resize", return_solution=True)[1]
    np.testing.assert_allclose(found.means[0], wanted.means[0], atol=1e-6)


# --- polarity ---


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("sigma", "p"), [(0.1, None), (0.1, 0.1), (None, None), (None, 0.1), (None, 0.0), (1e-3, None)]
)
def test_an_image_and_its_inverse_disagree_about_inversion(kind: str, sigma: float | None, p: float | None) -> None:
    prior, images = grey_prior(kind), torch.from_numpy(pictures(20)).flatten(1).float()
    channel = Damage(p, sigma).channel(grey=True)
    assert prior.grey_pixels is not None
    gain = grey_polarity_gain(images, channel, prior.grey_pixels)
    inverse = grey_polarity_gain(1 - images, channel, prior.grey_pixels)
    assert (gain < 0).all() and (inverse > 0).all(), (gain, inverse)


def _weight(bias: float, quadratic: float, seen: float) -> Any:
    """The integral over a pixel seen through noise of standard deviation 0.3."""
    return mpmath.quad(
        lambda x: mpmath.exp(bias * x - quadratic * x * x / 2 - (seen - x) ** 2 / 0.18), [0, 0.25, 0.5, 0.75, 1]
    )


def test_the_gain_is_the_likelihood_ratio_per_pixel_seen() -> None:
    prior = grey_prior(TRUNCATED)
    assert prior.grey_pixels is not None
    image, hidden = torch.from_numpy(pictures(1)).flatten(1).float(), np.arange(35).reshape(1, 5, 7) > 3
    gain = grey_polarity_gain(image, Damage(sigma=0.3, hidden=hidden).channel(grey=True), prior.grey_pixels)
    named = prior.grey_pixels.parameters
    ratio = 0.0
    for pixel in range(4):
        y = float(image[0, pixel])
        weights = [_weight(float(named["bias"][pixel]), float(named["quadratic"][pixel]), seen) for seen in (1 - y, y)]
        ratio += float(mpmath.log(weights[0] / weights[1]))
    assert float(gain) == pytest.approx(ratio / 4, abs=1e-5)


# --- what is said ---


@pytest.mark.parametrize("sigma", [0, 0.0, -0.1, float("nan"), float("inf"), True, False, "0.1", 1j])
def test_35_no_sigma(sigma: Any) -> None:
    with pytest.raises(UsageError, match="sigma is the standard deviation of noise, a finite number above 0"):
        restorer(grey_prior()).denoise(pictures(), sigma=sigma)


@pytest.mark.parametrize("sigma", [1, np.float32(0.25), np.float64(0.25), np.int64(1), 1e-30, 1e30])
def test_36_any_positive_number_is_a_sigma(sigma: Any) -> None:
    found, marginals = restorer(grey_prior()).denoise(pictures(), sigma=sigma, return_solution=True)
    assert np.isfinite(found).all() and (marginals.status == Status.CONVERGED).all()


@pytest.mark.parametrize("p", [-0.1, 1.1, float("nan")])
def test_35_no_probability_of_impulses(p: float) -> None:
    with pytest.raises(UsageError, match=r"must lie in \[0, 1\]"):
        restorer(grey_prior()).denoise(pictures(), p, sigma=0.1)


def test_a_binary_prior_knows_no_sigma() -> None:
    with pytest.raises(UsageError, match=r"knows black and white images; .* choose one of them, or give p"):
        restorer(random_prior(SHAPE)).denoise(pictures(), sigma=0.1)


def test_a_grey_prior_finds_the_noise_if_nothing_is_told() -> None:
    prior = restorer(grey_prior())
    found, wanted = (prior.denoise(pictures(), sigma=sigma, force=True) for sigma in (None, "auto"))
    assert np.array_equal(found, wanted)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_23_noise_may_carry_floats_six_standard_deviations_out(dtype: type) -> None:
    made, image = restorer(grey_prior()), pictures(1)[0].astype(dtype)
    image[0, :2] = -0.599, 1.599
    assert made.denoise(image, sigma=0.1).dtype == dtype
    made.complete(image, np.eye(5, 7) > 0, sigma=0.1)
    for value in (-0.61, 1.61):
        image[0, 0] = value
        with pytest.raises(InputError, match=r"outside \[-0\.6, 1\.6\]"):
            made.denoise(image, sigma=0.1)
    with pytest.raises(InputError, match=r"outside \[0, 1\]"):
        made.denoise(image, p=0.1)
    for value in (np.nan, np.inf):
        image[0, 0] = value
        with pytest.raises(InputError, match="NaN or infinite"):
            made.denoise(image, sigma=0.1)


def test_every_kind_of_image_gives_the_same(tmp_path: Path, model: Path) -> None:
    levels = np.rint(pictures(1)[0] * 255).astype(np.uint8)
    Image.fromarray(levels).save(tmp_path / "image.png")
    wanted = restore.denoise(levels, str(model), sigma=0.1)
    assert wanted.dtype == np.uint8 and wanted.shape == SHAPE
    for given_image in (Image.fromarray(levels), str(tmp_path / "image.png"), tmp_path / "image.png"):
        found = restore.denoise(given_image, str(model), sigma=0.1)
        assert isinstance(found, Image.Image) and (np.asarray(found) == wanted).all()
    tensor = restore.denoise(torch.from_numpy(levels / 255), str(model), sigma=0.1)
    assert isinstance(tensor, torch.Tensor) and tensor.dtype == torch.float64
    assert (np.rint(tensor.numpy() * 255) == wanted).all()
    several = restore.denoise([levels, Image.fromarray(levels)], str(model), sigma=0.1)
    assert (several[0] == wanted).all() and (np.asarray(several[1]) == wanted).all()


def test_27_auto_with_sigma_takes_a_prior_of_grey_images(places: Path) -> None:
    saved_grey(places, grey_prior(name="a-grey-one"))
    zoo.save(places / "binary", random_prior(SHAPE, name="binary"), "")
    zoo.save(places / "other", random_prior((4, 4), name="other"), "")
    image = pictures(1)[0]
    wanted = restore.denoise(image, str(places / "a-grey-one"), sigma=0.2)
    assert (restore.denoise(image, sigma=0.2) == wanted).all()
    assert set(np.unique(restore.denoise(image, p=0.1))) <= {0, 1}
    # A prior of binary images, even of the very size, would refuse sigma.
    _, solution = restore.denoise(np.zeros((4, 4)), sigma=0.1, force=True, return_solution=True)
    assert solution.model == "a-grey-one"


def unstable() -> TrainedPrior:
    """Gaussian hidden units that weak evidence leaves without curvature."""
    return grey_prior(TRUNCATED, "gaussian", scale=3.0, curvature=0.5, name="unstable")


def test_an_unstable_machine_says_so() -> None:
    found, marginals = restorer(unstable()).denoise(pictures(), sigma=0.5, return_solution=True)
    assert (marginals.status == Status.DIVERGED).all() and np.isnan(marginals.means[0]).all()
    assert (found == pictures()).all()


# --- the command ---


def written(folder: Path, name: str = "image.png") -> Path:
    Image.fromarray(np.rint(pictures(1)[0] * 255).astype(np.uint8)).save(folder / name)
    return folder / name


def test_the_command_restores_grey_levels(
    run: Run, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = written(tmp_path)
    sd = tmp_path / "sd.png"
    assert run("denoise", source, "--model", model, "--sigma", 0.1, "--json", "--uncertainty", sd) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["channel"] == {"p": None, "sigma": 0.1, "mask": None} and record["solver"] == "tap"
    assert record["converged"] and not any("black and white" in note for note in record["notes"])
    levels = np.asarray(Image.open(source))
    found, marginals = restore.denoise(levels, str(model), sigma=0.1, return_solution=True)
    assert (np.asarray(Image.open(tmp_path / "image.restored.png")) == found).all()
    wanted = np.rint(2 * 255 * np.sqrt(marginals.variances[0].reshape(SHAPE)))
    assert (abs(np.asarray(Image.open(sd)) - wanted) <= 1).all() and wanted.max() > 10


def test_the_command_reads_stdin(run: Run, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = written(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(source.read_bytes())))
    assert run("denoise", "-", "--model", model, "--sigma", 0.1, "-o", tmp_path / "out.png") == 0
    wanted = restore.denoise(np.asarray(Image.open(source)), str(model), sigma=0.1)
    assert (np.asarray(Image.open(tmp_path / "out.png")) == wanted).all()


def test_the_command_completes(run: Run, model: Path, tmp_path: Path) -> None:
    source, hole = written(tmp_path), np.eye(5, 7) > 0
    Image.fromarray(hole).save(tmp_path / "mask.png")
    assert run("complete", source, "--mask", tmp_path / "mask.png", "--model", model) == 0
    levels, found = (np.asarray(Image.open(tmp_path / name)) for name in ("image.png", "image.restored.png"))
    assert (found[~hole] == levels[~hole]).all() and (found[hole] != levels[hole]).any()


@pytest.mark.parametrize("command", ["denoise", "complete"])
@pytest.mark.parametrize("sigma", ["0", "-1", "nan", "inf", "x"])
def test_35_the_command_refuses_what_is_no_sigma(
    command: str, sigma: str, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mask = ["--mask", tmp_path / "no.png"] if command == "complete" else []
    # Before anything is read: neither of these files is there.
    assert run(command, tmp_path / "no.png", *mask, "--model", "no-such", f"--sigma={sigma}") == 2
    assert "sigma" in capsys.readouterr().err and not list(tmp_path.iterdir())


def test_35_the_command_refuses_sigma_of_black_and_white(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = written(tmp_path)
    binary = tmp_path / "binary"
    zoo.save(binary, random_prior(SHAPE, name="binary"), "")
    assert run("denoise", source, "--model", binary, "--sigma", 0.1) == 2
    assert "choose one of them, or give p" in capsys.readouterr().err
    assert not (tmp_path / "image.restored.png").exists()


def test_62_what_diverged_is_not_written(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, place = written(tmp_path), saved_grey(tmp_path / "models", unstable())
    before = set(tmp_path.iterdir())
    words = ["--sigma", 0.5, "--json", "--uncertainty", tmp_path / "sd.png"]
    assert run("denoise", source, "--model", place, *words) == 5
    said = capsys.readouterr()
    assert "is not written, for the solver diverged" in said.err and "diverged" in json.loads(said.out)["error"]
    assert set(tmp_path.iterdir()) == before
