"""RBMs of other programs: found in a file whatever they are called, converted exactly, and made to restore."""

from __future__ import annotations

import pickle
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from commands import QUICK
from foreign_rbms import parameters, pgmax, sklearn, written
from machines import random_rbm, seeded
from refusals import refused
from torch import Tensor

from restore import zoo
from restore.channels import parse_task
from restore.errors import InputError, ModelError, RestoreError, UsageError
from restore.inference.torch_engine import Engine
from restore.learning import imports
from restore.learning.imports import best_inference, drawn, parameters_in, prior_of, read_rbm
from restore.learning.recipe.plan import STARTS
from restore.priors import RBM
from restore.priors.bits import unpack
from restore.priors.exact import binary_states
from restore.zoo.description import Description
from restore.zoo.inference import Inference

CPU = torch.device("cpu")


def as_spins(machine: RBM) -> tuple[Tensor, Tensor, Tensor]:
    """The machine over x = 2v - 1 and s = 2h - 1, solved for M, a and b by hand."""
    weights, visible, hidden = (value.double() for value in parameters(machine))
    spins = weights / 4
    return spins, visible / 2 + spins.sum(1), hidden / 2 + spins.sum(0)


KEPT: Mapping[str, Callable[[Tensor, Tensor, Tensor], dict[str, Tensor]]] = {
    "sklearn": sklearn,
    "pgmax": pgmax,
    "module": lambda w, v, h: {"rbm.W": w.T, "rbm.h_bias": h, "rbm.v_bias": v},
    "linear": lambda w, v, h: {"up.weight": w.T, "up.bias": h, "v_bias": v},
    "rows-of-pixels": lambda w, v, h: {"W": w, "vbias": v[None], "hbias": h[None]},
    "b-and-c": lambda w, v, h: {"W": w.T, "b": v, "c": h},
    "a-and-b": lambda w, v, h: {"W": w, "a": v, "b": h},
    "plural": lambda w, v, h: {"weights": w, "visible_biases": v, "hidden_biases": h},
}


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
@pytest.mark.parametrize("kept", KEPT.values(), ids=KEPT)
def test_a_machine_is_the_same_however_it_was_kept(
    kept: Callable[..., dict[str, Tensor]], suffix: str, tmp_path: Path
) -> None:
    original = random_rbm(6, 3, dtype=torch.float32)
    found, shape = read_rbm(written(tmp_path / f"rbm{suffix}", kept(*parameters(original))), shape=(2, 3))
    assert shape == (2, 3)
    for name, value in original.parameters.items():
        assert torch.equal(found.parameters[name], value)


@pytest.mark.parametrize("spins", [False, True], ids=["bits", "spins"])
def test_a_published_prior_comes_back_with_the_same_marginals(spins: bool, tmp_path: Path) -> None:
    published = zoo.load(zoo.find(QUICK))
    assert isinstance(published.machine, RBM)
    values = as_spins(published.machine) if spins else parameters(published.machine)
    machine, shape = read_rbm(written(tmp_path / "rbm.npz", sklearn(*values)), spins=spins)
    assert shape == published.description.image_shape
    images = (torch.rand(3, 784, generator=seeded(1)) < 0.2).float()
    observed, channel = parse_task("flip:0.1").damage(images, shape, seeded(2))
    # In as many steps, converged or not: rounding would decide in which step it has.
    once = replace(published.description, inference=Inference(max_iter=50, tol=0, damping=0.7, modes=0, starts=1))
    told = replace(published, description=once, modes=published.modes[:0])
    means = [
        Engine.of(replace(told, machine=each), CPU).restore(observed, channel).means[0]
        for each in (published.machine, machine)
    ]
    assert float((means[0] - means[1]).abs().max()) < 1e-5


def test_spins_are_converted_exactly() -> None:
    weights, visible, hidden = (torch.randn(size, generator=seeded(3)).double() for size in ((4, 3), (4,), (3,)))
    machine = RBM.from_spins(weights, visible, hidden)
    bits = [(v, h) for v in binary_states(4, visible) for h in binary_states(3, hidden)]
    spins = torch.stack(
        [x @ weights @ s + visible @ x + hidden @ s for x, s in [(2 * v - 1, 2 * h - 1) for v, h in bits]]
    )
    states = [torch.stack(layer) for layer in zip(*bits, strict=True)]
    shift = weights.sum() - visible.sum() - hidden.sum()
    torch.testing.assert_close(-machine.energy(states) + shift, spins)


def test_square_weights_need_a_name_that_says_what_their_rows_are(tmp_path: Path) -> None:
    machine = random_rbm(4, 4, dtype=torch.float32)
    with refused(ModelError, tmp_path / "rbm.npz", "components_"):
        read_rbm(written(tmp_path / "rbm.npz", pgmax(*parameters(machine))))
    named = read_rbm(written(tmp_path / "sklearn.npz", sklearn(*parameters(machine))))[0]
    assert torch.equal(named.weights, machine.weights)


def test_a_tensor_has_one_role() -> None:
    # `b` is the hidden bias beside `a`, and the visible one beside `c`.
    for names, fits in ((("a", "b"), (3, 2)), (("b", "c"), (3, 2)), (("vb", "bias"), (3, 2))):
        tensors = {"W": torch.ones(3, 2)} | {name: torch.zeros(size) for name, size in zip(names, fits, strict=True)}
        _, visible, hidden = parameters_in(tensors, "a file")
        assert (len(visible), len(hidden)) == fits


# --- what it needs to restore ---


@pytest.fixture(scope="module")
def black_or_white() -> RBM:
    """A machine of 16 pixels that are mostly all black or all white, each as often as the other."""
    return RBM.binary(torch.full((16, 1), 4.0), torch.full((16,), -2.0), torch.full((1,), -32.0))


def test_images_are_drawn_from_all_modes(black_or_white: RBM) -> None:
    # Plain Gibbs sampling never leaves the mode that it is in: the hidden unit would have to turn against 16 pixels.
    share = float((drawn(black_or_white, 400, seeded(), lambda done, note="": None).mean(1) > 0.5).float().mean())
    assert abs(share - 0.5) < 5 * 0.5 / 400**0.5


def test_a_prior_of_two_modes_has_both(black_or_white: RBM, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("restore.learning.modes.SWEEPS", 5)
    header = Description("two", (4, 4), 127, "made up", "import", hidden=1)
    prior, converged = prior_of(black_or_white, header, 0, lambda done, note="": None)
    assert abs(float(prior.pixel_means.mean()) - 0.5) < 0.3
    assert converged >= imports.ENOUGH and len(prior.modes) == prior.description.inference.modes


def test_damping_is_the_least_that_converges() -> None:
    weak = RBM.binary(torch.zeros(36, 4), torch.zeros(36), torch.zeros(4))
    found, share = best_inference(weak, torch.rand(100, 36, generator=seeded(4)).round(), (6, 6), 0)
    assert share == 1 and found == Inference(max_iter=100, **STARTS)


@pytest.mark.thorough
def test_a_machine_that_was_trained_with_more_damping_gets_more() -> None:
    published = zoo.load(zoo.find(QUICK))
    assert isinstance(published.machine, RBM) and published.description.inference.damping > Inference().damping
    images = unpack(published.modes[:100], 784).float()
    found, share = best_inference(published.machine, images, published.description.image_shape, 0)
    assert share >= imports.ENOUGH and found.damping > Inference().damping and found.tol < Inference().tol


# --- bad files ---


def pickled(path: Path) -> None:
    path.write_bytes(pickle.dumps({"W": [1.0]}))


def of_objects(path: Path) -> None:
    np.savez(path, W=np.array([object()], dtype=object))


def of_torch(path: Path) -> None:
    torch.save({"W": torch.ones(2, 2)}, path)


def truncated(path: Path) -> None:
    whole = written(path, sklearn(*parameters(random_rbm(4, 3)))).read_bytes()
    path.write_bytes(whole[: len(whole) // 2])


def bomb(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("W.npy", "w") as member:
        for _ in range(2):
            member.write(bytes(2**20))


def tensors(change: Callable[[dict[str, Tensor]], object]) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        held = sklearn(*parameters(random_rbm(4, 3)))
        change(held)
        written(path, held)

    return write


BAD: Mapping[str, tuple[Callable[[Path], object], type[RestoreError]]] = {
    "row1-missing": (lambda path: None, InputError),
    "row2-folder": (Path.mkdir, InputError),
    "row5-empty": (Path.touch, ModelError),
    "row42-pickle": (pickled, ModelError),
    "row42-pickled-array": (of_objects, ModelError),
    "row42-torch": (of_torch, ModelError),
    "row41-truncated": (truncated, ModelError),
    "row66-bomb": (bomb, ModelError),
    "row66-narrow-numbers": (lambda path: np.savez_compressed(path, W=np.zeros(2**19, np.int8)), ModelError),
    "row43-nan": (tensors(lambda held: held["components_"].fill_(torch.nan)), ModelError),
    "row43-shapes": (tensors(lambda held: held.update(intercept_visible_=torch.zeros(7))), ModelError),
    "row43-scalar": (tensors(lambda held: held.update(intercept_visible_=torch.zeros(()))), ModelError),
    "row43-none": (tensors(lambda held: held.update(intercept_visible_=torch.zeros(0))), ModelError),
    "row43-missing-tensor": (tensors(lambda held: held.pop("intercept_visible_")), ModelError),
    "row43-two-machines": (
        lambda path: written(path, {"one.W": torch.ones(2, 3), "two.W": torch.ones(2, 3)}),
        ModelError,
    ),
    "row67-infinite-in-single-precision": (
        tensors(lambda held: held.update(components_=torch.full((3, 4), 1e300, dtype=torch.float64))),
        ModelError,
    ),
}


@pytest.mark.parametrize(("make", "error"), BAD.values(), ids=BAD)
def test_bad_files(
    make: Callable[[Path], object], error: type[RestoreError], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imports, "MOST", 2**20)
    path = tmp_path / "rbm.npz"
    make(path)
    with pytest.raises(error) as caught:
        read_rbm(path)
    assert str(caught.value).startswith(str(path)) and "\n" not in str(caught.value)


def test_damaged_safetensors(tmp_path: Path) -> None:
    path = written(tmp_path / "rbm.safetensors", sklearn(*parameters(random_rbm(4, 3))))
    path.write_bytes(path.read_bytes()[:-8])
    with refused(ModelError, path):
        read_rbm(path)


def test_images_that_are_not_square_need_a_shape(tmp_path: Path) -> None:
    path = written(tmp_path / "rbm.npz", sklearn(*parameters(random_rbm(6, 2))))
    with refused(UsageError, path, "shape"):
        read_rbm(path)
