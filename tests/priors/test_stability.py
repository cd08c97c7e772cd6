"""Which machines have a distribution: against the eigenvalues of P written out, in every solver, and in files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import random_machine
from priors import TRUNCATED, grey_prior, saved_grey
from torch import Tensor

from restore.errors import ModelError
from restore.fields import Fields
from restore.priors import RBM, BoltzmannMachine, FullyVisible, LayeredPrior
from restore.priors.stability import stable
from restore.solvers import TAP, AdaptiveTAP, MeanField, RelaxedBeliefPropagation
from restore.status import Status
from restore.units import Gaussian
from restore.zoo import WEIGHTS, TrainedPrior, read

UNBOUNDED = ("gaussian", "spiked-gaussian")


def smallest_eigenvalue(machine: LayeredPrior, kinds: list[str]) -> float:
    """The smallest eigenvalue of P over the units without bounds, written out block by block."""
    sizes = [layer.size if kind in UNBOUNDED else 0 for layer, kind in zip(machine.layers, kinds, strict=True)]
    ends = np.cumsum([0, *sizes])
    precision = np.zeros((ends[-1], ends[-1]))
    for index, (layer, kind) in enumerate(zip(machine.layers, kinds, strict=True)):
        if kind in UNBOUNDED:
            own = slice(ends[index], ends[index + 1])
            precision[own, own] = np.diag(layer.parameters["quadratic"].numpy())
            if index and kinds[index - 1] in UNBOUNDED:
                below = slice(ends[index - 1], ends[index])
                precision[below, own] = -machine.couplings[index - 1].matrix.numpy()
                precision[own, below] = precision[below, own].T
    return float(np.linalg.eigvalsh(precision).min()) if len(precision) else 1.0


@settings(max_examples=150)
@given(
    st.lists(st.sampled_from([*UNBOUNDED, "truncated", "bernoulli"]), min_size=2, max_size=4),
    st.sampled_from([0.1, 0.4, 0.8, 3.0]),
    st.integers(0, 10_000),
)
def test_a_machine_is_stable_where_its_precision_is_positive_definite(
    kinds: list[str], scale: float, seed: int
) -> None:
    machine = random_machine(*zip(kinds, (3, 2, 4, 1), strict=False), scale=scale, seed=seed)
    assert bool(stable(machine)) == (smallest_eigenvalue(machine, kinds) > 0)


@pytest.mark.parametrize("strength", [0.999, 1.001])
def test_units_of_one_layer_count_where_they_are_coupled(strength: float) -> None:
    couplings = torch.tensor([[0.0, strength], [strength, 0.0]]).double()
    machine = FullyVisible((Gaussian(torch.zeros(2).double(), torch.ones(2).double()),), (couplings,))
    assert bool(stable(machine)) == (strength < 1)


def without_biases(strength: float) -> RBM:
    ones = torch.ones(2, dtype=torch.float64)
    return RBM((Gaussian(0 * ones, ones), Gaussian(0 * ones, ones)), (strength * torch.eye(2).double(),))


@pytest.mark.parametrize("solver", [TAP, MeanField, AdaptiveTAP, RelaxedBeliefPropagation])
def test_no_solver_stands_still_on_an_unstable_machine(solver: type) -> None:
    # Without biases every mean is 0, a fixed point of mean field even where it is no maximum.
    sound = solver(max_iter=3000).solve(without_biases(0.45))
    assert sound.status.tolist() == [Status.CONVERGED]
    assert float(sound.means[0].abs().max()) < 1e-4
    broken = solver(max_iter=3000).solve(without_biases(1.1))
    assert broken.status.tolist() == [Status.DIVERGED]
    assert bool(broken.log_partition.isnan().all())


@pytest.mark.parametrize("solver", [TAP, MeanField])
def test_an_image_may_make_a_machine_stable(solver: type) -> None:
    curvature = torch.tensor([0.0, 5.0, -0.5]).double()[:, None]
    machine = without_biases(1.1).tilt(Fields(torch.zeros(3, 2).double(), curvature))
    assert stable(machine).tolist() == [False, True, False]
    verdicts = [Status.DIVERGED, Status.CONVERGED, Status.DIVERGED]
    assert solver(max_iter=3000).solve(machine).status.tolist() == verdicts


# --- files ---


def changed(prior: TrainedPrior, name: str, change: Callable[[Tensor], Tensor]) -> TrainedPrior:
    machine = prior.machine
    assert isinstance(machine, BoltzmannMachine)
    return replace(
        prior, machine=machine.with_parameters(machine.parameters | {name: change(machine.parameters[name])})
    )


def with_one(value: float) -> Callable[[Tensor], Tensor]:
    return lambda values: values.index_fill(0, torch.tensor([1]), value)


@pytest.mark.parametrize(
    "prior",
    [
        changed(grey_prior(TRUNCATED, "gaussian"), "units.1.quadratic", with_one(0.0)),
        changed(grey_prior("bernoulli", "gaussian"), "units.1.quadratic", with_one(-1.0)),
        changed(grey_prior(TRUNCATED, "gauss-bernoulli"), "units.1.quadratic", with_one(-1.0)),
        changed(grey_prior(TRUNCATED, "gaussian", deeper=(3,)), "weights.1", lambda weights: 20 * weights),
    ],
    ids=["no-curvature", "negative", "spiked", "deep"],
)
def test_files_of_unstable_machines_are_refused(
    prior: TrainedPrior, run: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = saved_grey(tmp_path, prior)
    with pytest.raises(ModelError) as caught:
        read(folder)
    assert str(caught.value).startswith(f"{folder / WEIGHTS}: ") and "\n" not in str(caught.value)
    options = ("--p", 0.1) if prior.description.visible == "bernoulli" else ("--sigma", 0.1)
    image = Path(__file__).parents[2] / "assets" / "digit-noisy.png"
    assert run("denoise", image, "--model", folder, *options, "-o", tmp_path / "out.png") == 4
    assert "the machine is unstable" in capsys.readouterr().err
    assert run("export", folder, "-o", tmp_path / "graph.onnx") == 4
    assert sorted(path.name for path in tmp_path.iterdir()) == [folder.name]
