"""The registry of solvers and unit types, and the choice of a solver for one call."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from commands import Run
from priors import random_conditional, random_prior

import restore
from restore import zoo
from restore.channels import BitFlip
from restore.channels.damage import Damage
from restore.errors import UsageError
from restore.fields import Fields
from restore.inference.open import Engines, open_engine
from restore.inference.options import Options
from restore.inference.torch_engine import Engine
from restore.priors import RBM, FullyVisible, GaussianMixture
from restore.registry import SOLVERS, UNITS
from restore.solvers import AdaptiveTAP, RelaxedBeliefPropagation, solver_of
from restore.units import Bernoulli
from restore.units.layers import blank
from restore.zoo import TrainedPrior
from restore.zoo.inference import Inference

every_unit = pytest.mark.parametrize("name", UNITS)
# Those that read pages alone have a test of their own.
every_solver = pytest.mark.parametrize("name", [name for name, kind in SOLVERS.items() if kind.coarser == 1])


@every_unit
def test_of_a_unit_type_are_known_parameters_values_and_bounds(name: str) -> None:
    kind, layer = UNITS[name], blank(name, 2, torch.zeros(1, dtype=torch.float64))
    assert tuple(layer.parameters) == tuple(kind.parameters)
    assert kind.bits == isinstance(layer, Bernoulli)
    assert (kind.bits or kind.grey) == (layer.support == (0, 1))
    nothing = Fields(torch.zeros(2, dtype=torch.float64))
    assert math.isfinite(float(layer.log_partition(nothing).sum()))


MIXTURE = GaussianMixture(torch.zeros(1, 2, 1), torch.ones(1), torch.zeros(1))


def settings(name: str) -> Inference:
    return Inference(name, max_iter=50, tol=1e-4, modes=0, starts=int(SOLVERS[name].starts))


@every_solver
def test_a_solver_solves_the_machines_that_it_says(name: str) -> None:
    kind, solver = SOLVERS[name], solver_of(settings(name))
    bits, zeros = torch.zeros(2, 3), torch.zeros(2)
    plain = RBM.binary(zeros[:, None] + 0.1, zeros, torch.zeros(1)).tilt(Fields(bits[:, :2]))
    grey = RBM((blank("truncated-gaussian", 2, zeros), Bernoulli(torch.zeros(1))), (zeros[:, None] + 0.1,))
    dense = FullyVisible.binary(0.1 - 0.1 * torch.eye(2), zeros)
    layers = "layered" in kind.structures
    kinds = ((plain, layers), (grey, layers and kind.any_units), (dense, "pairwise" in kind.structures))
    if "mixture" in kind.structures:
        solver.solve(MIXTURE.tilt(Fields(bits[:, :2], bits[:1, :2])))
    for machine, fits in kinds:
        tilted = machine.tilt(Fields(bits[:, :2]))
        if fits:
            solver.solve(tilted)
        else:
            with pytest.raises(UsageError):
                solver.solve(tilted)


@every_solver
def test_a_solver_takes_a_start_or_has_its_own(name: str) -> None:
    machine: Any = RBM.binary(torch.full((2, 1), 0.1), torch.zeros(2), torch.zeros(1)).tilt(Fields(torch.zeros(3, 2)))
    solver = solver_of(settings(name))
    if "mixture" in SOLVERS[name].structures:
        machine = MIXTURE
    if SOLVERS[name].starts:
        solver.solve(machine, torch.full((3, 2), 0.5))
        return
    with pytest.raises(UsageError, match="starts by itself"):
        solver.solve(machine, torch.full((3, 2), 0.5))
    with pytest.raises(UsageError, match="set modes and starts to 0"):
        Inference(name)


SHAPE = (10, 12)
# Mixtures of Gaussians have a solver of their own, and so have pages.
FREE = tuple(name for name, kind in SOLVERS.items() if name != "exact" and kind.coarser == 1)
PRODUCTS = ("sum_product", "max_product", "mixed_product")


def fully_visible() -> TrainedPrior:
    """A prior whose pixels are coupled with each other."""
    prior = random_prior(SHAPE, modes=0, name="dense")
    upper = 0.05 * torch.randn(120, 120, generator=torch.Generator().manual_seed(2)).triu(1)
    header = replace(prior.description, family="fvbm", hidden=0, inference=Inference(modes=0, starts=1))
    machine = FullyVisible.binary(upper + upper.T, torch.full((120,), -0.5))
    return TrainedPrior(header, machine, prior.pixel_means, prior.modes)


def saved(folder: Path, prior: TrainedPrior) -> str:
    zoo.save(folder / prior.description.name, prior, "# A prior\n")
    return str(folder / prior.description.name)


@pytest.fixture
def model(tmp_path: Path) -> str:
    return saved(tmp_path, random_prior(SHAPE))


def images(count: int = 3) -> np.ndarray:
    return np.random.default_rng(0).random((count, *SHAPE)) < 0.3


# --- who may have which ---


@pytest.mark.parametrize(
    ("prior", "solver"),
    [
        (random_prior(), "gibbs"),
        (fully_visible(), "sum_product"),
        (fully_visible(), "relaxed_bp"),
        (random_conditional(), "exact"),
    ],
    ids=["unknown", "dense-bp", "dense-relaxed", "conditional"],
)
def test_what_does_not_fit_is_refused_naming_the_choices(prior: TrainedPrior, solver: str) -> None:
    header = prior.description
    with pytest.raises(UsageError) as error:
        header.with_solver(solver)
    assert all(name in str(error.value) for name in (header.name, solver, *header.solvers))
    with pytest.raises(UsageError):
        Engines(Options(solver=solver), only=Engine.of(prior, torch.device("cpu")))


@pytest.mark.parametrize("prior", [random_prior(), fully_visible(), random_conditional()], ids=["rbm", "fvbm", "crbm"])
def test_every_choice_restores_and_the_prior_s_own_is_no_change(prior: TrainedPrior) -> None:
    engine = Engine.of(prior, torch.device("cpu"))
    observed = torch.from_numpy(images()).flatten(1).float()
    channel = None if prior.description.task else BitFlip(0.1)
    plain = engine.restore(observed, channel)
    for solver in prior.description.solvers:
        header = prior.description.with_solver(solver).inference
        other = Engine.of(replace(prior, description=prior.description.with_solver(solver)), torch.device("cpu"))
        assert type(other.solver) is SOLVERS[solver].load()
        assert (other.solver.max_iter, other.solver.tol) == (header.max_iter, header.tol)
        restored = other.restore(observed, channel)
        if solver == prior.description.inference.solver:
            assert other == engine
            assert torch.equal(restored.means[0], plain.means[0])
            torch.testing.assert_close(restored.log_partition, plain.log_partition, rtol=0, atol=0, equal_nan=True)
        elif solver in ("max_product", "mixed_product"):
            # Sharper than marginals, but not about other pixels.
            assert float(((restored.means[0] > 0.5) != (plain.means[0] > 0.5)).double().mean()) < 0.1
        else:
            torch.testing.assert_close(restored.means[0], plain.means[0], rtol=0, atol=0.05)
            assert not torch.equal(restored.means[0], plain.means[0])


def test_starts_stay_where_a_solver_has_them() -> None:
    header = random_prior().description
    assert header.with_solver("relaxed_bp").inference == replace(header.inference, solver="relaxed_bp")
    assert header.with_solver("adaptive_tap").inference == replace(header.inference, solver="adaptive_tap")
    for solver in PRODUCTS:
        inference = header.with_solver(solver).inference
        assert (inference.starts, inference.modes, inference.damping) == (0, 0, 0)
        assert (inference.max_iter, inference.tol) == (header.inference.max_iter, header.inference.tol)


@pytest.mark.parametrize(("solver", "kind"), [("relaxed_bp", RelaxedBeliefPropagation), ("adaptive_tap", AdaptiveTAP)])
def test_the_limit_on_memory_reaches_the_solver(solver: str, kind: type) -> None:
    prior = random_prior(SHAPE)
    header = prior.description.with_solver(solver)
    engine = Engine.of(replace(prior, description=header), torch.device("cpu"), max_memory=12345678)
    inference = engine.header.inference
    assert engine.solver == kind(inference.max_iter, inference.tol, inference.damping, 12345678)


# --- engines ---


def test_a_solver_that_no_graph_can_hold_is_not_exported(tmp_path: Path) -> None:
    packing = pytest.importorskip("restore.export.packing")
    prior = random_prior(SHAPE)
    folder = saved(tmp_path, replace(prior, description=prior.description.with_solver("adaptive_tap")))
    with pytest.raises(UsageError):
        packing.standalone(Path(folder))


# --- Python and the command line ---


def test_python_calls_take_a_solver_each(model: str) -> None:
    prior = restore.load(model, engine="torch")
    _, own = prior.denoise(images(), 0.1, return_solution=True)
    for solver in FREE:
        wanted = open_engine(model, "torch", solver=solver).solve(images().astype(float), Damage(0.1))
        _, method = prior.denoise(images(), 0.1, solver=solver, return_solution=True)
        _, function = restore.denoise(images(), model, 0.1, solver=solver, engine="torch", return_solution=True)
        _, loaded = restore.denoise(images(), prior, 0.1, solver=solver, return_solution=True)
        for result in (method, function, loaded):
            np.testing.assert_array_equal(result.means, wanted.means)
        assert (solver == "tap") == np.array_equal(method.means, own.means)
    mask = np.zeros(SHAPE, bool)
    mask[2:5, 2:6] = True
    _, method = prior.complete(images(), mask, solver="relaxed_bp", return_solution=True)
    _, function = restore.complete(images(), mask, model, solver="relaxed_bp", return_solution=True)
    np.testing.assert_array_equal(method.means, function.means)
    assert prior.description.inference.solver == "tap"


def picture(folder: Path) -> Path:
    from PIL import Image

    path = folder / "image.png"
    Image.fromarray(images(1)[0].astype(np.uint8) * 255).save(path)
    return path


def test_the_command_line_refuses_what_does_not_fit(
    run: Run, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = picture(tmp_path)
    seer = saved(tmp_path, random_conditional(SHAPE))
    assert run("denoise", source, "--model", seer, "--solver", "exact") == 2
    assert "seer: restores with tap, mean_field, hard" in capsys.readouterr().err
    assert not (tmp_path / "image.restored.png").exists()
    assert run("denoise", source, "--model", seer, "--solver", "mixed_product") == 0
    assert run("complete", source, "--mask", source, "--model", model, "--solver", "gibbs") == 2


def test_evaluation_names_the_solver(run: Run, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "data.npy"
    np.save(data, images(8))
    words = ("evaluate", model, "--data", data, "--task", "flip:0.1", "--json", "--quiet")
    assert run(*words) == 0
    assert json.loads(capsys.readouterr().out)["solver"] == "tap"
