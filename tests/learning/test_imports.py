"""RBMs of other programs: read from W, b and c, and made to restore."""

from __future__ import annotations

import pickle
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
import torch
from commands import QUICK
from machines import random_rbm
from refusals import refused
from safetensors.torch import save_file
from torch import Tensor

from restore import zoo
from restore.errors import InputError, ModelError, RestoreError, UsageError
from restore.learning import imports
from restore.learning.imports import prior_of, read_rbm
from restore.learning.recipe.plan import STARTS
from restore.priors import RBM
from restore.zoo import limits
from restore.zoo.description import Description
from restore.zoo.inference import Inference


def tensors(machine: RBM) -> dict[str, Tensor]:
    return {"W": machine.weights, "b": machine.visible.parameters["bias"], "c": machine.hidden.parameters["bias"]}


def written(path: Path, held: Mapping[str, Tensor]) -> Path:
    if path.suffix == ".npz":
        np.savez(path, **{name: value.numpy() for name, value in held.items()})
    else:
        save_file({name: value.clone().contiguous() for name, value in held.items()}, path)
    return path


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
@pytest.mark.parametrize("sizes", [(6, 3), (6, 6)], ids=str)
def test_a_machine_is_the_same_however_it_was_kept(sizes: tuple[int, int], suffix: str, tmp_path: Path) -> None:
    original = random_rbm(*sizes, dtype=torch.float32)
    found, shape = read_rbm(written(tmp_path / f"rbm{suffix}", tensors(original)), (2, 3))
    assert shape == (2, 3)
    for name, value in original.parameters.items():
        assert torch.equal(found.parameters[name], value)


def header(shape: tuple[int, int]) -> Description:
    return Description("made", shape, 127, "made up", "import", hidden=1)


def test_a_prior_of_two_modes_has_both(monkeypatch: pytest.MonkeyPatch) -> None:
    # 16 pixels, mostly all black or all white, each as often as the other. Plain Gibbs sampling never leaves the mode
    # that it is in: the hidden unit would have to turn against 16 pixels.
    machine = RBM.binary(torch.full((16, 1), 4.0), torch.full((16,), -2.0), torch.full((1,), -32.0))
    monkeypatch.setattr("restore.learning.finish.MODE_SWEEPS", 5)
    prior, converged = prior_of(machine, header((4, 4)), 0, lambda done, note="": None)
    assert abs(float(prior.pixel_means.mean()) - 0.5) < 5 * 0.5 / STARTS["modes"] ** 0.5
    assert converged >= imports.CONVERGED_SHARE and len(prior.modes) == prior.description.inference.modes


def test_damping_is_the_least_that_converges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("restore.learning.finish.MODE_SWEEPS", 5)
    weak = RBM.binary(torch.zeros(36, 4), torch.zeros(36), torch.zeros(4))
    prior, share = prior_of(weak, header((6, 6)), 0, lambda done, note="": None)
    assert share == 1 and prior.description.inference == Inference(max_iter=imports.MOST_ITERATIONS, **STARTS)


@pytest.mark.thorough
def test_a_machine_that_was_trained_with_more_damping_gets_more() -> None:
    published = zoo.load(zoo.find(QUICK))
    assert isinstance(published.machine, RBM) and published.description.inference.damping > Inference().damping
    prior, share = prior_of(published.machine, header((28, 28)), 0, lambda done, note="": None)
    found = prior.description.inference
    assert share >= imports.CONVERGED_SHARE and found.damping > Inference().damping and found.tol < Inference().tol


# --- bad files ---


def pickled(path: Path) -> None:
    path.write_bytes(pickle.dumps({"W": [1.0]}))


def of_objects(path: Path) -> None:
    np.savez(path, W=np.array([object()], dtype=object))


def of_torch(path: Path) -> None:
    torch.save({"W": torch.ones(2, 2)}, path)


def truncated(path: Path) -> None:
    whole = written(path, tensors(random_rbm(4, 3))).read_bytes()
    path.write_bytes(whole[: len(whole) // 2])


def bomb(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("W.npy", "w") as member:
        for _ in range(2):
            member.write(bytes(2**20))


def changed(change: Callable[[dict[str, Tensor]], object]) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        held = tensors(random_rbm(4, 3))
        change(held)
        written(path, held)

    return write


BAD: Mapping[str, tuple[Callable[[Path], object], type[RestoreError]]] = {
    "missing": (lambda path: None, InputError),
    "folder": (Path.mkdir, InputError),
    "empty": (Path.touch, ModelError),
    "pickle": (pickled, ModelError),
    "pickled-array": (of_objects, ModelError),
    "torch": (of_torch, ModelError),
    "truncated": (truncated, ModelError),
    "bomb": (bomb, ModelError),
    "nan": (changed(lambda held: held["W"].fill_(torch.nan)), ModelError),
    "shapes": (changed(lambda held: held.update(b=torch.zeros(7))), ModelError),
    "rows-of-hidden-units": (changed(lambda held: held.update(W=held["W"].T)), ModelError),
    "scalar": (changed(lambda held: held.update(b=torch.zeros(()))), ModelError),
    "none": (changed(lambda held: held.update(W=torch.zeros(0, 3), b=torch.zeros(0))), ModelError),
    "missing-tensor": (changed(lambda held: held.pop("b")), ModelError),
    "infinite-in-single-precision": (
        changed(lambda held: held.update(W=torch.full((4, 3), 1e300, dtype=torch.float64))),
        ModelError,
    ),
}


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
@pytest.mark.parametrize(("make", "error"), BAD.values(), ids=BAD)
def test_bad_files(
    make: Callable[[Path], object], error: type[RestoreError], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "PACKED", 2**20)
    path = tmp_path / "rbm.npz"
    make(path)
    with pytest.raises(error) as caught:
        read_rbm(path)
    assert str(caught.value).startswith(str(path)) and "\n" not in str(caught.value)


def test_damaged_safetensors(tmp_path: Path) -> None:
    path = written(tmp_path / "rbm.safetensors", tensors(random_rbm(4, 3)))
    path.write_bytes(path.read_bytes()[:-8])
    with refused(ModelError, path):
        read_rbm(path)


def test_images_that_are_not_square_need_a_shape(tmp_path: Path) -> None:
    path = written(tmp_path / "rbm.npz", tensors(random_rbm(6, 2)))
    with refused(UsageError, path, "shape"):
        read_rbm(path)
