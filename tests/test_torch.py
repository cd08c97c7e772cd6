"""The layer `restore.torch.Restorer`: what it computes, its gradients, and what a network needs of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from machines import random_fully_visible, seeded
from priors import TRUNCATED, grey_prior, random_conditional, random_prior, saved_grey, saved_prior

import restore
from restore.errors import InputError, UsageError
from restore.torch import Restorer
from restore.zoo import TrainedPrior, save

SHAPE = (3, 4)


def layer(folder: Path, **settings: Any) -> Restorer:
    return Restorer(saved_prior(folder, SHAPE), **settings)


def noisy(count: int = 3) -> torch.Tensor:
    return torch.rand(count, 1, *SHAPE, generator=seeded(3)).round()


def test_after_enough_iterations_it_finds_what_restoring_finds(tmp_path: Path) -> None:
    result = restore.load(str(saved_prior(tmp_path, SHAPE)), engine="torch")
    images, hidden = noisy(), torch.rand(3, 1, *SHAPE, generator=seeded(4)) < 0.3
    for p, mask in ((0.2, None), (0.1, hidden), (None, hidden)):
        if mask is None:
            _, wanted = result.denoise(images[:, 0].numpy(), p=p, invert=False, return_solution=True)
        else:
            pictures, holes = images[:, 0].numpy(), mask[:, 0].numpy()
            _, wanted = result.complete(pictures, holes, p=p, invert=False, return_solution=True)
        got = layer(tmp_path, iterations=300)(images, p=p, mask=mask)
        # The library stops at its tolerance, and starts more than once; the machine has one fixed point.
        torch.testing.assert_close(got.flatten(1), torch.as_tensor(wanted.means).flatten(1), rtol=0, atol=0.01)


def test_with_a_level_of_its_own_it_is_a_layer_among_others(tmp_path: Path) -> None:
    images, hidden = noisy(), torch.rand(3, 1, *SHAPE, generator=seeded(4)) < 0.3
    plain, own = layer(tmp_path, iterations=5), layer(tmp_path, iterations=5, p=0.1)
    network = torch.nn.Sequential(own, torch.nn.Flatten())
    assert torch.equal(network(images), plain(images, p=0.1).flatten(1))
    # Damage that is given to it is all there is.
    assert torch.equal(own(images, p=0.3), plain(images, p=0.3))
    assert torch.equal(own(images, mask=hidden), plain(images, mask=hidden))
    assert "(model=random-4x3, solver=tap, iterations=5, p=0.1)" in str(network) and "p=" not in str(plain)
    assert torch.equal(layer(tmp_path, iterations=5, sigma=0.2)(images), plain(images, sigma=0.2))


@pytest.mark.parametrize("levels", [{"p": 1.5}, {"p": "auto"}, {"sigma": -1.0}, {"p": 0.1, "sigma": 0.1}])
def test_a_level_of_its_own_that_cannot_be_is_refused_at_once(levels: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        layer(tmp_path, **levels)


@pytest.mark.parametrize("what", ["p", "sigma"])
def test_gradients_in_images_levels_and_parameters(what: str, tmp_path: Path) -> None:
    restorer = layer(tmp_path, iterations=4).double()
    images = torch.rand(2, 1, *SHAPE, generator=seeded(1), dtype=torch.float64, requires_grad=True)
    level = torch.tensor([0.2, 0.3], dtype=torch.float64, requires_grad=True)
    named = dict(restorer.named_parameters())

    def restored(y: torch.Tensor, level: torch.Tensor, *values: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(restorer, dict(zip(named, values, strict=True)), (y,), {what: level})

    assert torch.autograd.gradcheck(restored, (images, level, *named.values()))


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore")
def test_a_compiled_layer_gives_the_same(tmp_path: Path) -> None:
    restorer, images = layer(tmp_path, iterations=3), noisy()
    compiled = torch.compile(restorer, backend="aot_eager")
    torch.testing.assert_close(compiled(images, p=0.2), restorer(images, p=0.2))


def test_a_mask_hides_whatever_is_below_it(tmp_path: Path) -> None:
    restorer, images = layer(tmp_path), noisy()
    mask = torch.zeros(1, 1, *SHAPE, dtype=torch.bool)
    mask[..., :2] = True
    changed = torch.where(mask, 1 - images, images)
    assert torch.equal(restorer(images, mask=mask), restorer(changed, mask=mask))
    assert torch.equal(restorer(images, mask=mask)[..., 2:], images[..., 2:])


def test_a_level_for_each_image_or_pixel(tmp_path: Path) -> None:
    restorer, images = layer(tmp_path), noisy(2)
    one, other = restorer(images, p=0.1)[:1], restorer(images, p=0.3)[1:]
    both = torch.cat([one, other])
    torch.testing.assert_close(restorer(images, p=torch.tensor([0.1, 0.3])), both)
    everywhere = torch.tensor([0.1, 0.3]).reshape(2, 1, 1, 1).expand(2, 1, *SHAPE)
    torch.testing.assert_close(restorer(images, p=everywhere), both)
    assert restorer(images[:, 0], p=0.1).shape == (2, *SHAPE)


def test_it_is_kept_and_loaded_like_any_module(tmp_path: Path) -> None:
    restorer, images = layer(tmp_path), noisy()
    torch.optim.SGD(restorer.parameters(), 0.1).zero_grad()
    restorer(images, p=0.1).square().sum().backward()
    torch.optim.SGD(restorer.parameters(), 0.1).step()
    again = layer(tmp_path)
    assert not torch.equal(again(images, p=0.1), restorer(images, p=0.1))
    again.load_state_dict(restorer.state_dict())
    assert torch.equal(again(images, p=0.1), restorer(images, p=0.1))
    assert again.double()(images.double(), p=0.1).dtype == torch.float64


def test_a_symmetric_coupling_stays_symmetric(tmp_path: Path) -> None:
    machine = random_fully_visible(12, scale=0.2, dtype=torch.float32)
    other = random_prior(SHAPE, modes=0)
    settings = {"family": "fvbm", "hidden": 0}
    header = other.description.__class__(**vars(other.description) | settings)
    save(tmp_path / "visible", TrainedPrior(header, machine, other.pixel_means, other.modes), "# x\n")
    restorer = Restorer(tmp_path / "visible")
    restorer(noisy(), p=0.2).square().sum().backward()
    torch.optim.Adam(restorer.parameters(), 0.01).step()
    assert restorer(noisy(), p=0.2).isfinite().all()


def test_grey_images_take_noise_and_impulses(tmp_path: Path) -> None:
    folder = saved_grey(tmp_path, grey_prior(TRUNCATED, "gaussian", scale=0.1, solver="mean_field"))
    restorer = Restorer(folder, iterations=5)
    images = torch.rand(2, 1, *restorer.description.image_shape, generator=seeded(2), requires_grad=True)
    both = restorer(images, 0.2, p=0.1)
    both.sum().backward()
    assert images.grad is not None and images.grad.isfinite().all()
    assert ((both > 0) & (both < 1)).all()


def test_what_it_cannot_do_is_refused(tmp_path: Path) -> None:
    restorer, images = layer(tmp_path), noisy()
    for shape in (SHAPE, (3, 2, *SHAPE), (3, 1, 5, 5)):
        with pytest.raises(InputError):
            restorer(torch.zeros(shape), p=0.1)
    for damage in ({}, {"sigma": 0.1, "p": 0.1}, {"p": 1.5}):
        with pytest.raises(UsageError):
            restorer(images, **damage)
    with pytest.raises(UsageError):
        layer(tmp_path, iterations=0)
    save(tmp_path / "learnt", random_conditional(SHAPE), "# x\n")
    with pytest.raises(UsageError):
        Restorer(tmp_path / "learnt")


def test_it_is_a_denoiser_of_deepinv(tmp_path: Path) -> None:
    deepinv = pytest.importorskip("deepinv")
    physics = deepinv.physics.Denoising(deepinv.physics.GaussianNoise(0.2))
    clean = noisy()
    seen = physics(clean)
    # One step of plug-and-play: the prior's answer where deepinv expects a denoiser's.
    prior = deepinv.optim.prior.PnP(denoiser=layer(tmp_path))
    assert prior.prox(seen, 0.2).shape == clean.shape
