"""A prior as a layer of a network: `restore.torch.Restorer`, differentiable from end to end.

It does a fixed number of iterations, so that gradients reach the image, the noise level and the parameters.
"""

from __future__ import annotations

from os import PathLike
from typing import Any

import torch
from torch import Tensor, nn

from restore import zoo
from restore.channels import Damage
from restore.errors import InputError, UsageError, require
from restore.priors import BoltzmannMachine
from restore.registry import SOLVERS, smooth_solvers
from restore.solvers import LayeredMap, solver_of


class Restorer(nn.Module):
    """Restores images of the prior's size; see `forward`. Its parameters are those of the prior, for further training.

    It works like a denoiser of deepinv: `restorer(y, sigma)`; with a level of its own, as a layer of `nn.Sequential`.

    Args:
        model: name of a published or trained prior, or its folder.
        iterations: number of iterations for every image; by default the limit of its solver, at most 50.
        sigma: the noise of images for which `forward` is given no damage; see there.
        p: the same.

    Raises:
        ModelError: if there is no such prior.
        UsageError: if its solver cannot be differentiated through.

    >>> import torch
    >>> from restore.torch import Restorer
    >>> restorer = Restorer("tap-mnist", iterations=10)
    >>> noisy = torch.zeros(2, 1, 28, 28, requires_grad=True)
    >>> clean = restorer(noisy, p=0.1)
    >>> clean.shape, bool((clean < 0.5).all())
    (torch.Size([2, 1, 28, 28]), True)
    >>> clean.sum().backward()
    >>> bool((noisy.grad >= 0).all())
    True
    >>> Restorer("tap-mnist", p=0.1)
    Restorer(model=tap-mnist, solver=tap, iterations=50, p=0.1)
    """

    def __init__(
        self,
        model: str | PathLike[str] = "tap-mnist",
        *,
        iterations: int | None = None,
        sigma: float | None = None,
        p: float | None = None,
    ) -> None:
        super().__init__()
        prior = zoo.load(zoo.find(str(model)))
        header = prior.description
        settings = header.inference
        if not SOLVERS[settings.solver].smooth or not isinstance(prior.machine, BoltzmannMachine):
            remedy = f"give a prior that restores with {smooth_solvers()}"
            raise UsageError(f"{settings.solver} cannot be differentiated through; {remedy}", header.name)
        require(iterations is None or iterations >= 1, f"iterations must be at least 1, not {iterations}")
        self.description = header
        self.iterations = min(settings.max_iter, 50) if iterations is None else iterations
        if isinstance(p, str) or isinstance(sigma, str):
            raise UsageError(f"a layer finds no noise level; give p and sigma as numbers, not {p or sigma!r}")
        damage = Damage.of(p, sigma)
        damage.channel(header.grey)  # refuses what cannot be
        self.sigma, self.p = damage.sigma, damage.p
        solver = solver_of(settings)
        assert isinstance(solver, LayeredMap)
        self.solver = solver
        self._machine: BoltzmannMachine = prior.machine
        self._pointwise = prior.pointwise
        for name, value in prior.machine.parameters.items():
            self.register_parameter(_attribute(name), nn.Parameter(value.detach().float().clone()))
        for index, coupling in enumerate(prior.machine.couplings):
            # An optimizer's steps keep a symmetric coupling symmetric.
            self.get_parameter(_attribute(f"weights.{index}")).register_hook(coupling.slope)
        for name, value in prior.pointwise.parameters.items():
            self.register_buffer(_attribute(f"pointwise.{name}"), value.detach().float().clone())

    def _present(self, part: Any, prefix: str = "") -> Any:
        """The machine, or its independent pixels, with the current parameters."""
        return part.with_parameters({name: getattr(self, _attribute(prefix + name)) for name in part.parameters})

    def extra_repr(self) -> str:
        """The settings, as printing a network shows them."""
        facts = {"model": self.description.name, "solver": self.description.inference.solver}
        levels = {"iterations": self.iterations, "sigma": self.sigma, "p": self.p}
        return ", ".join(f"{name}={value}" for name, value in (facts | levels).items() if value is not None)

    def forward(self, y: Tensor, sigma: Any = None, *, p: Any = None, mask: Tensor | None = None) -> Tensor:
        """The posterior mean of each pixel, in the shape of `y`; for black and white images the probability of white.

        Args:
            y: damaged images, (N, 1, H, W) or (N, H, W), black 0 and white 1.
            sigma: standard deviation of Gaussian noise: a number, a tensor (N,) or one that broadcasts with `y`.
            p: flip probability of black and white pixels, or of salt or pepper in grey images; shaped like `sigma`.
            mask: the pixels to fill, boolean, broadcastable with `y`. Without noise the other pixels are exact.

        Raises:
            InputError: if the images are not of the prior's size.
            UsageError: if no damage is given, here or before, or a level is out of range.
        """
        height, width = self.description.image_shape
        if tuple(y.shape[1:]) not in ((height, width), (1, height, width)):
            where = f"{self.description.name} takes (N, 1, {height}, {width})"
            raise InputError(f"images have shape {tuple(y.shape)}; {where}")
        if sigma is None and p is None and mask is None:
            sigma, p = self.sigma, self.p
        require(not (sigma is None and p is None and mask is None), "give sigma, p or a mask: the damage to undo")
        machine: BoltzmannMachine = self._present(self._machine)
        flips, noise, hidden = (None if level is None else _flat(level, y) for level in (p, sigma, mask))
        damage = Damage(flips, noise, hidden=None if hidden is None else hidden.bool())
        observed = y.flatten(1).to(machine.couplings[0].weights.dtype)
        evidence = damage.channel(self.description.grey).evidence(observed)
        machine = machine.tilt(evidence)
        state = self.solver.init(machine, self._present(self._pointwise, "pointwise.").moments(evidence)[0])
        return self.solver.stepped(machine, state, self.iterations)[0].reshape(y.shape)


def _flat(level: Any, y: Tensor) -> Any:
    """A level in a shape that broadcasts with images (N, D)."""
    level = torch.as_tensor(level, device=y.device)
    if level.dim() == 0:
        return level
    level = level.reshape(-1, *[1] * (y.dim() - 1)) if level.dim() == 1 else level
    return level.expand(y.shape).flatten(1)


def _attribute(name: str) -> str:
    """A parameter's name as an attribute of a module, which may have no dot."""
    return name.replace(".", "_")
