"""Exported graphs: they do what the library does, nothing makes them lie, and their files say what they are."""

from __future__ import annotations

import copy
import hashlib
import itertools
import json
import os
import pickle
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from machines import two_patterns, with_weights
from onnx import external_data_helper, numpy_helper
from PIL import Image
from priors import random_conditional, random_prior
from safetensors.torch import load_file

import restore
from restore import zoo
from restore.channels import BitFlip, Occlusion
from restore.description import FORMAT, Description, Inference
from restore.engine import Engine, machine_under, polarity_gain, solve
from restore.errors import ModelError, OutputError, RestoreError, UsageError
from restore.export import contract, packing
from restore.export.runtime import OnnxEngine
from restore.fields import Fields
from restore.marginals import Status
from restore.priors import RBM, exact
from restore.priors.bits import pack
from restore.solvers import Solution, solver_of
from restore.zoo import GRAPH, WEIGHTS, TrainedPrior

Arrays = dict[str, np.ndarray]

# Not square, and the number of pixels no multiple of eight.
SHAPE = (5, 7)

# Of the solvers here. Rounding may decide whether it is met an iteration sooner, which moves no mean by more than that.
TOLERANCE = 1e-5


def settled(prior: TrainedPrior, weaker: float = 1.0, **inference: Any) -> TrainedPrior:
    """A prior with other settings, by default a small tolerance, and weaker couplings."""
    about = prior.description
    inference = {"tol": TOLERANCE, "max_iter": 500} | inference
    description = replace(about, inference=replace(about.inference, **inference))
    if isinstance(prior.machine, RBM):
        return replace(prior, description=description, machine=with_weights(prior.machine, weaker))
    named = prior.machine.parameters
    named["weights.0"] = weaker * named["weights.0"]
    return replace(prior, description=description, machine=prior.machine.with_parameters(named))


def patterns() -> TrainedPrior:
    """A prior with two modes of like weight, which it carries among others that are none."""
    machine, found = two_patterns()
    noise = torch.rand(3, 12, generator=torch.Generator().manual_seed(0)) < 0.5
    modes = pack(torch.cat([noise, found > 0]))
    about = Description("pair", (3, 4), 12, 127, "none", "none", inference=Inference(modes=5, starts=4))
    return settled(TrainedPrior(about, machine.to(torch.float32), torch.full((12,), 0.5), modes))


# What is exported here, each once: the prior, and how.
MADE: dict[str, tuple[Callable[[], TrainedPrior], dict[str, bool]]] = {
    "tap": (lambda: settled(random_prior(SHAPE, modes=6)), {}),
    "mean_field": (lambda: settled(random_prior(SHAPE, modes=0), 0.3, solver="mean_field", starts=1), {}),
    "alone": (lambda: settled(random_prior(SHAPE, modes=0), 0.3, starts=0), {}),
    "sum": (lambda: settled(random_conditional(SHAPE), 0.3), {}),
    "mixed": (lambda: settled(random_conditional(SHAPE), solver="mixed_product", damping=0.2), {"beside": True}),
    "field": (patterns, {"field": True}),
    "half": (lambda: settled(random_prior(SHAPE, modes=6)), {"float16": True}),
}
TOLD = ["tap", "mean_field", "alone", "half"]
LEARNT = ["sum", "mixed"]


@dataclass(frozen=True)
class Exported:
    """A prior in a folder and the file made of it."""

    folder: Path
    path: Path

    @cached_property
    def model(self) -> onnx.ModelProto:
        """As it is stored: tensors outside the file are not read."""
        return onnx.load(self.path, load_external_data=False)

    @cached_property
    def session(self) -> onnxruntime.InferenceSession:
        return onnxruntime.InferenceSession(self.path, providers=["CPUExecutionProvider"])

    @cached_property
    def trained(self) -> TrainedPrior:
        """The prior whose numbers are in the graph."""
        prior = zoo.load(self.folder)
        if prior.description.name != "half":
            return prior
        named = prior.machine.parameters
        rounded = named | {"weights.0": named["weights.0"].half().float()}
        return replace(prior, machine=prior.machine.with_parameters(rounded))

    @property
    def about(self) -> Description:
        return self.trained.description

    @property
    def facts(self) -> contract.Facts:
        return contract.Facts.from_metadata(self.session.get_modelmeta().custom_metadata_map, "here")

    def run(self, image: np.ndarray, p: Any = 0.1, mask: Any = False, **settings: Any) -> Arrays:
        """The outputs of the graph by name; p and mask at least of rank 3, as they are."""
        inference = self.about.inference
        used = {name: settings.get(name, getattr(inference, name)) for name in ("max_iter", "tol", "damping")}
        feed = {
            "image": np.float32(image),
            "field": np.float32(image),
            "p": np.broadcast_to(np.float32(p), np.shape(p) or (1, 1, 1)),
            "mask": np.broadcast_to(mask, np.shape(mask) or (1, 1, 1)),
            "max_iter": np.array(used["max_iter"], np.int64),
            "tol": np.array(used["tol"], np.float32),
            "damping": np.array(used["damping"], np.float32),
        }
        names = [node.name for node in self.session.get_outputs()]
        wanted = {node.name: feed[node.name] for node in self.session.get_inputs()}
        return dict(zip(names, self.session.run(names, wanted), strict=True))

    def evidence(self, image: np.ndarray, p: Any = 0.1, mask: Any = False) -> Fields:
        """What the prior is told by the channels of the library."""
        if self.facts.channel == "field":
            return Fields(torch.from_numpy(np.float32(image)).flatten(1))
        ink = torch.from_numpy(image > self.about.threshold / 255).float().flatten(1)
        if self.about.conditional:
            return Fields(ink)
        whole = np.broadcast_to(np.float32(p), image.shape).reshape(len(image), -1)
        hidden = np.broadcast_to(mask, image.shape).reshape(len(image), -1)
        channel = BitFlip(torch.from_numpy(whole.astype(np.float64))) + Occlusion(torch.from_numpy(hidden.copy()))
        return channel.evidence(ink)

    def solved(self, image: np.ndarray, p: Any = 0.1, mask: Any = False, **settings: Any) -> Solution:
        """What the library's solver finds."""
        solver = replace(solver_of(self.about.inference), **settings)
        with torch.inference_mode():
            return solve(self.trained, solver, self.evidence(image, p, mask))


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Exported]:
    """Call with a name of `MADE`."""
    root = tmp_path_factory.mktemp("exported")
    done: dict[str, Exported] = {}

    def call(name: str) -> Exported:
        if name not in done:
            make, options = MADE[name]
            prior = make()
            folder = root / name
            zoo.save(folder, replace(prior, description=replace(prior.description, name=name)), f"# {name}\n")
            beside = options.get("beside", False)
            path = folder / GRAPH if beside else root / f"{name}.onnx"
            path.write_bytes(packing.beside_weights(folder) if beside else packing.standalone(folder, **options))
            done[name] = Exported(folder, path)
        return done[name]

    return call


def images(count: int, shape: tuple[int, int] = SHAPE, seed: int = 0) -> np.ndarray:
    return (np.random.default_rng(seed).random((count, *shape)) < 0.4).astype(np.float32)


def agree(found: Arrays, solution: Solution, tolerance: float = 2 * TOLERANCE) -> None:
    """A graph's outputs are the library's solution, which nowhere diverged."""
    assert (solution.status != int(Status.DIVERGED)).all()
    for kind, layers in (("means", solution.means), ("variances", solution.variances)):
        for layer, values in enumerate(layers):
            name = kind if layer == 0 else f"{kind}.{layer}"
            np.testing.assert_allclose(found[name].reshape(values.shape), values, atol=tolerance, err_msg=name)
    assert (found["restored"] == (found["means"] > 0.5)).all()
    np.testing.assert_allclose(found["log_partition"], solution.log_partition, rtol=1e-6, atol=10 * tolerance)
    assert (abs(found["iterations"] - solution.iterations.numpy()) <= 1).all()
    np.testing.assert_allclose(found["residual"], solution.residual, atol=tolerance)
    assert found["converged"].tolist() == (solution.status == int(Status.CONVERGED)).tolist()


def equal(first: Arrays, second: Arrays) -> None:
    """The same up to rounding: products of matrices add up in another order in batches of another size."""
    for name, values in first.items():
        room = 1 if name == "iterations" else 2 * TOLERANCE
        np.testing.assert_allclose(np.float64(values), np.float64(second[name]), atol=room, rtol=1e-6, err_msg=name)


# ------------------------------------------------------------------------------------------- what a graph finds


@pytest.mark.parametrize("name", [*TOLD, *LEARNT])
def test_a_graph_finds_what_the_library_finds_and_an_image_the_same_in_any_batch(
    name: str, exported: Callable[[str], Exported]
) -> None:
    case, batch = exported(name), images(7)
    together = case.run(batch)
    agree(together, case.solved(batch))
    assert together["converged"].all()
    for count in (1, 2):
        equal({key: values[:count] for key, values in together.items()}, case.run(batch[:count]))
    order = np.array([3, 0, 6, 1, 5, 2, 4])
    equal({key: values[order] for key, values in together.items()}, case.run(batch[order]))


def test_a_graph_of_fields_finds_what_the_library_finds(exported: Callable[[str], Exported]) -> None:
    case = exported("field")
    fields = np.random.default_rng(1).normal(0, 0.5, (7, 3, 4)).astype(np.float32)
    agree(case.run(fields), case.solved(fields))
    assert "inversion" not in case.run(fields)


@pytest.mark.parametrize(("name", "tolerance"), [("alone", 5e-4), ("mean_field", 1e-2), ("sum", 5e-4)])
def test_weakly_coupled_marginals_are_those_of_enumeration(
    name: str, tolerance: float, exported: Callable[[str], Exported]
) -> None:
    """TAP errs at the third order in the couplings, mean field at the second, belief propagation by loops alone."""
    case, batch = exported(name), images(5)
    batch[4] = 0
    found = case.run(batch, 0.3)
    truth = exact.exact_moments(machine_under(case.trained, case.evidence(batch, 0.3)).to(torch.float64))
    np.testing.assert_allclose(found["means"].reshape(5, -1), truth.visible, atol=tolerance)
    np.testing.assert_allclose(found["means.1"], truth.hidden, atol=3 * tolerance)
    np.testing.assert_allclose(found["log_partition"], truth.log_partition, atol=10 * tolerance)


def test_solutions_are_weighted_by_their_free_energy(exported: Callable[[str], Exported]) -> None:
    """Two modes under weak evidence for either: the share of each is what enumeration says."""
    case = exported("field")
    _, (first, second) = two_patterns()
    trust = case.about.inference.trust
    fields = np.stack(
        [(strength * (first - second)).reshape(3, 4).numpy() for strength in (-trust, trust)]
        + [trust * np.where(np.arange(12).reshape(3, 4) < 6, 1, -1)]
    ).astype(np.float32)
    found = case.run(fields)
    truth = exact.exact_moments(machine_under(case.trained, case.evidence(fields)).to(torch.float64))
    np.testing.assert_allclose(found["means"].reshape(3, -1), truth.visible, atol=0.05)
    np.testing.assert_allclose(found["log_partition"], truth.log_partition, atol=0.1)


def test_a_weak_evidence_tempers_the_weights_as_in_the_library(exported: Callable[[str], Exported]) -> None:
    case = exported("field")
    _, (first, second) = two_patterns()
    fields = np.stack([(size * (first - second)).reshape(3, 4).numpy() for size in (-0.3, -0.1, 0.1, 0.3)])
    agree(case.run(fields), case.solved(fields))


def test_mixed_product_finds_a_best_state_and_its_probability(exported: Callable[[str], Exported]) -> None:
    case, batch = exported("mixed"), images(3)
    found = case.run(batch)
    machine = machine_under(case.trained, case.evidence(batch)).to(torch.float64)
    state = torch.from_numpy(found["restored"]).double().flatten(1)
    best = -machine.free_energy(state)
    np.testing.assert_allclose(found["log_partition"], best, rtol=1e-9)
    for pixel in range(state.shape[1]):
        other = state.clone()
        other[:, pixel] = 1 - other[:, pixel]
        assert (-machine.free_energy(other) < best).all()


def test_half_precision_moves_marginals_little(exported: Callable[[str], Exported]) -> None:
    batch = images(7)
    whole, half = (exported(name).run(batch) for name in ("tap", "half"))
    assert 0 < abs(whole["means"] - half["means"]).max() < 2e-3
    assert (whole["restored"] == half["restored"]).all()
    assert exported("half").path.stat().st_size < exported("tap").path.stat().st_size


def test_whether_an_image_looks_inverted(exported: Callable[[str], Exported]) -> None:
    batch, mask = images(4), images(4, seed=1) > 0
    batch[0] = 1
    ink = torch.from_numpy(batch).flatten(1)
    case = exported("tap")
    for hidden in (mask, mask[:1], np.zeros((1, 1, 1), bool)):
        whole = torch.from_numpy(np.broadcast_to(hidden, batch.shape).copy()).flatten(1)
        gain = polarity_gain(ink, whole, case.trained.pixel_means)
        np.testing.assert_allclose(case.run(batch, mask=hidden)["inversion"], gain, rtol=1e-5)
    np.testing.assert_allclose(case.run(batch, mask=np.ones(SHAPE, bool)[None])["inversion"], 0)
    gain = polarity_gain(ink, None, torch.tensor(0.3))
    np.testing.assert_allclose(exported("sum").run(batch)["inversion"], gain, rtol=1e-5)


# ---------------------------------------------------------------------------------------------- what it is told

RATES = np.random.default_rng(3).random((4, *SHAPE)).astype(np.float32)
HIDDEN = np.random.default_rng(4).random((4, *SHAPE)) < 0.3
FORMS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "one": lambda whole: whole[:1, :1, :1],
    "per-image": lambda whole: whole[:, :1, :1],
    "per-pixel": lambda whole: whole[:1],
    "per-row": lambda whole: whole[:1, :, :1],
    "per-column": lambda whole: whole[:, :1, :],
    "full": lambda whole: whole,
}


@pytest.mark.parametrize(("p", "mask"), list(itertools.product(FORMS, FORMS)))
def test_flips_and_masks_in_every_form(p: str, mask: str, exported: Callable[[str], Exported]) -> None:
    case, batch = exported("alone"), images(4)
    rates, hidden = FORMS[p](RATES), FORMS[mask](HIDDEN)
    agree(case.run(batch, rates, hidden), case.solved(batch, rates, hidden))


@pytest.mark.parametrize("p", [0, 1e-30, 0.5, 1 - 2**-24, 1])
@pytest.mark.parametrize("mask", [False, "some", True])
def test_boundary_values(p: float, mask: bool | str, exported: Callable[[str], Exported]) -> None:
    case, batch = exported("tap"), images(4)
    hidden = HIDDEN if mask == "some" else np.full((1, *SHAPE), mask)
    found = case.run(batch, p, hidden)
    agree(found, case.solved(batch, p, hidden))
    visible = ~np.broadcast_to(hidden, batch.shape)
    if p in (0, 1):
        assert (found["restored"][visible] == abs(p - batch)[visible]).all()
    if p == 0.5 or mask is True:
        # Nothing was seen, so that all images are the same.
        assert (found["means"] == found["means"][0]).all()


def test_certain_evidence_beside_weak_one(exported: Callable[[str], Exported]) -> None:
    case, batch = exported("tap"), images(4)
    rates = np.where(HIDDEN, np.float32(0.4999), np.float32([0, 1, 1e-7, 0.99999])[:, None, None])
    agree(case.run(batch, rates), case.solved(batch, rates))


def test_white_is_above_the_threshold(exported: Callable[[str], Exported]) -> None:
    case = exported("tap")
    levels = np.tile(np.arange(124, 131), (1, 5, 1))
    batch = np.float32(levels / 255)
    found = case.run(batch, 0.0)
    assert (found["restored"] == (levels > 127)).all()


@pytest.mark.parametrize("name", ["tap", "mean_field", "alone", "sum", "mixed"])
@pytest.mark.parametrize(
    "settings",
    [
        {"max_iter": 1},
        {"max_iter": 3},
        {"tol": 1.0},
        {"damping": 0.0},
        {"damping": 0.9},
        {"tol": 0.0, "max_iter": 20},
        {"tol": 1e-30, "max_iter": 20},
    ],
    ids=str,
)
def test_settings_act_as_in_the_library(
    name: str, settings: dict[str, Any], exported: Callable[[str], Exported]
) -> None:
    case, batch = exported(name), images(3)
    found = case.run(batch, **settings)
    solution = case.solved(batch, **settings)
    if settings.get("tol", 1) < 1e-10:
        # Whether rounding settles on a fixed point, and when, is no property of the method.
        assert (found["iterations"] <= 20).all()
        np.testing.assert_allclose(found["means"].reshape(3, -1), solution.means[0], atol=1e-4)
        return
    agree(found, solution)
    if settings.get("max_iter"):
        assert (found["iterations"] <= settings["max_iter"]).all() and np.isfinite(found["residual"]).all()
        assert settings["max_iter"] > 1 or not found["converged"].any()


def test_every_image_stops_on_its_own(exported: Callable[[str], Exported]) -> None:
    case = exported("tap")
    batch = images(7)
    rates = np.linspace(0.01, 0.49, 7)[:, None, None]
    found = case.run(batch, rates)
    assert len(set(found["iterations"].tolist())) > 2
    for index in range(7):
        alone = case.run(batch[index : index + 1], rates[index : index + 1])
        equal({name: values[index : index + 1] for name, values in found.items()}, alone)


# ------------------------------------------------------------------------------------- what no answer is given for


def nowhere_nan(found: Arrays) -> None:
    assert not any(np.isnan(values).any() for values in found.values() if values.dtype.kind == "f")


def no_answer(found: Arrays, row: int) -> None:
    assert not found["converged"][row] and found["iterations"][row] == 0
    assert found["residual"][row] == np.inf and found["log_partition"][row] == -np.inf
    assert (found["restored"][row] == 0).all()
    for name in ("means", "means.1"):
        assert (found[name][row] == 0.5).all() and (found[name.replace("means", "variances")][row] == 0.25).all()


def others_as_before(case: Exported, batch: np.ndarray, found: Arrays, row: int, **told: Any) -> None:
    rest = [index for index in range(len(batch)) if index != row]
    told = {name: values if len(values) == 1 else values[rest] for name, values in told.items()}
    equal({name: values[rest] for name, values in found.items()}, case.run(batch[rest], **told))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["tap", "mean_field", "alone", "sum", "mixed", "field"])
def test_an_image_that_is_none_gets_no_answer(name: str, value: float, exported: Callable[[str], Exported]) -> None:
    case = exported(name)
    batch = images(3, case.about.image_shape)
    batch[1, 2, 3] = value
    found = case.run(batch)
    nowhere_nan(found)
    no_answer(found, 1)
    others_as_before(case, batch, found, 1)


@pytest.mark.parametrize("value", [np.nan, -0.1, 1.5, np.inf])
@pytest.mark.parametrize("name", TOLD)
def test_no_probability_gets_no_answer(name: str, value: float, exported: Callable[[str], Exported]) -> None:
    case, batch = exported(name), images(3)
    found = case.run(batch, value)
    nowhere_nan(found)
    for row in range(3):
        no_answer(found, row)
    for rates in (np.full((3, 1, 1), 0.2, np.float32), np.full((3, *SHAPE), 0.2, np.float32)):
        rates[1, -1, -1] = value
        found = case.run(batch, rates)
        nowhere_nan(found)
        no_answer(found, 1)
        others_as_before(case, batch, found, 1, p=rates)


@pytest.mark.parametrize(
    "settings",
    [
        *({"damping": value} for value in (1.0, np.nan, -0.1, np.inf)),
        *({"max_iter": value} for value in (0, -5)),
        *({"tol": value} for value in (np.nan, -1.0)),
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["tap", "alone", "sum", "field"])
def test_settings_out_of_range_get_no_answer(
    name: str, settings: dict[str, Any], exported: Callable[[str], Exported]
) -> None:
    case = exported(name)
    found = case.run(images(2, case.about.image_shape), **settings)
    nowhere_nan(found)
    for row in range(2):
        no_answer(found, row)


@pytest.mark.parametrize("value", [1e3, -1e3, 1e30, -1e30, 3e38])
def test_huge_fields(value: float, exported: Callable[[str], Exported]) -> None:
    """Far beyond what any evidence says a graph answers by certainty, or not at all."""
    case = exported("field")
    fields = images(3, (3, 4)) - 0.5
    fields[1, 0, 2] = value
    found = case.run(fields)
    nowhere_nan(found)
    others_as_before(case, fields, found, 1)
    if abs(value) < 1e4:
        agree(found, case.solved(fields))
    if found["converged"][1]:
        assert found["restored"][1, 0, 2] == (value > 0)
    else:
        assert found["residual"][1] == np.inf


# Reached without another export: the weights of a graph are tensors in its file.
def with_huge_weights(case: Exported, size: float) -> onnxruntime.InferenceSession:
    model = copy.deepcopy(case.model)
    for tensor in model.graph.initializer:
        if tensor.name == "weights.0":
            signs = np.sign(numpy_helper.to_array(tensor))
            tensor.CopyFrom(numpy_helper.from_array(np.float32(size) * signs, tensor.name))
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


@pytest.mark.parametrize("name", ["tap", "alone", "mean_field", "sum"])
@pytest.mark.parametrize("size", [30.0, 1e30, 1e38])
def test_a_prior_whose_solver_does_not_settle_says_so(
    name: str, size: float, exported: Callable[[str], Exported]
) -> None:
    case = exported(name)
    strange = Exported(case.folder, case.path)
    vars(strange)["session"] = with_huge_weights(case, size)
    named = case.trained.machine.parameters
    signs = {"weights.0": size * named["weights.0"].sign()}
    machine = case.trained.machine.with_parameters(named | signs)
    vars(strange)["trained"] = replace(case.trained, machine=machine)
    batch = images(4)
    found = strange.run(batch, 0.4, max_iter=30)
    nowhere_nan(found)
    solution = strange.solved(batch, 0.4, max_iter=30)
    diverged = solution.status.numpy() == int(Status.DIVERGED)
    if name == "sum" and size == 1e38:
        # Sums of such messages are infinite in a graph; the library's fused kernel limits them.
        assert not (found["converged"] & diverged).any()
        return
    assert (np.isinf(found["residual"]) == diverged).all()
    assert found["converged"].tolist() == (solution.status == int(Status.CONVERGED)).tolist()
    if size == 1e38 and name in ("tap", "alone"):
        # Squares of such weights are infinite.
        assert diverged.all() and (found["means"] == 0.5).all() and (found["log_partition"] == -np.inf).all()


# ------------------------------------------------------------------------------------------------------ the file


@pytest.mark.parametrize("name", MADE)
def test_a_file_is_sound_and_old_enough_for_every_runtime(name: str, exported: Callable[[str], Exported]) -> None:
    case = exported(name)
    onnx.checker.check_model(str(case.path), full_check=True)
    assert case.model.ir_version == 8
    assert {(entry.domain, entry.version) for entry in case.model.opset_import} == {("", 18)}
    assert not case.model.functions
    operations = [node.op_type for node in case.model.graph.node]
    assert operations.count("Loop") == 1


@pytest.mark.parametrize("name", ["tap", "half", "field"])
def test_bytes_are_not_compared(name: str, exported: Callable[[str], Exported]) -> None:
    """ONNX Runtime 1.20 cannot, and is the oldest that graphs are for."""
    graph = onnx.shape_inference.infer_shapes(exported(name).model).graph
    of_bytes = {
        value.name
        for value in (*graph.value_info, *graph.initializer)
        if (value.data_type if isinstance(value, onnx.TensorProto) else value.type.tensor_type.elem_type)
        == onnx.TensorProto.UINT8
    }
    users = {node.op_type for node in graph.node if of_bytes & set(node.input)}
    assert "BitwiseAnd" in users and not users & {"Equal", "Greater", "Less", "Where", "Mul", "ReduceSum"}


@pytest.mark.parametrize("name", MADE)
def test_inputs_and_outputs_are_as_promised(name: str, exported: Callable[[str], Exported]) -> None:
    case = exported(name)
    height, width = case.about.image_shape
    kinds = {"tensor(float)": "f", "tensor(double)": "d", "tensor(int64)": "i", "tensor(bool)": "?"}
    seen = [(node.name, kinds[node.type], node.shape) for node in case.session.get_inputs()]
    image: list[int | str] = ["images", height, width]
    sizes = ("images", "height", "width")
    wide = [(part, kind, [f"{part}_{size}" for size in sizes]) for part, kind in (("p", "f"), ("mask", "?"))]
    told = {"field": [("field", "f", image)], "learnt": [("image", "f", image)]}
    expected = told.get(case.facts.channel, [("image", "f", image), *wide])
    assert seen == [*expected, ("max_iter", "i", []), ("tol", "f", []), ("damping", "f", [])]
    outputs = [(node.name, kinds[node.type], node.shape) for node in case.session.get_outputs()]
    row: list[int | str] = ["images", case.about.hidden]
    each: list[int | str] = ["images"]
    assert outputs == [
        *((part, "f", image) for part in ("restored", "means", "variances")),
        *((part, "f", row) for part in ("means.1", "variances.1")),
        ("log_partition", "d", each),
        ("iterations", "i", each),
        ("residual", "f", each),
        ("converged", "?", each),
        *([] if case.facts.channel == "field" else [("inversion", "f", each)]),
    ]


@pytest.mark.parametrize("name", MADE)
def test_metadata_say_all_about_a_file(name: str, exported: Callable[[str], Exported]) -> None:
    case = exported(name)
    found = case.session.get_modelmeta().custom_metadata_map
    header = zoo.describe(case.folder).to_header()
    assert {key: found[key] for key in header} == header
    assert found["format_version"] == str(FORMAT) and found["graph_version"] == "1"
    assert found["channel"] == {"field": "field"}.get(name, "learnt" if name in LEARNT else "flips and mask")
    assert found["polarity"] in contract.POLARITIES
    assert found["licence"] == "Apache-2.0" and found["name"] == name
    assert json.loads(found["image_shape"]) == list(case.about.image_shape)
    assert found["weights_sha256"] == hashlib.sha256((case.folder / WEIGHTS).read_bytes()).hexdigest()
    assert found.keys() - header.keys() == {
        "graph_version", "channel", "polarity", "weights_sha256", "images_at_once"
    }  # fmt: skip
    assert case.model.producer_name == "restore"
    assert case.facts.to_metadata() == found


def test_the_polarity_of_dark_strokes(tmp_path: Path) -> None:
    dark = replace(random_prior(SHAPE, modes=0), pixel_means=torch.full((35,), 0.8))
    facts = contract.Facts(dark.description, "flips and mask", True, "0" * 64, 16)
    assert facts.to_metadata()["polarity"] == "dark on light"
    assert contract.Facts.from_metadata(facts.to_metadata(), "here") == facts


@pytest.mark.parametrize("name", MADE)
def test_nothing_of_the_machine_is_in_a_file(name: str, exported: Callable[[str], Exported]) -> None:
    case = exported(name)
    content = case.path.read_bytes()
    for word in (b"site-packages", b".py", b"/tmp", b"/home", b"/root", b"/usr", b"Traceback", b'File "'):
        assert word not in content
    for word in (Path.home(), Path.cwd(), case.folder, Path(restore.__file__).parent, sys.prefix):
        assert os.fsencode(word) not in content or os.fsencode(word) == b"/"
    for graph in graphs(case.model.graph):
        parts = (*graph.node, *graph.input, *graph.output, *graph.initializer, graph)
        assert not any(part.metadata_props or part.doc_string for part in parts)


def graphs(graph: onnx.GraphProto) -> list[onnx.GraphProto]:
    inner = [attribute.g for node in graph.node for attribute in node.attribute if attribute.HasField("g")]
    return [graph, *(part for body in inner for part in graphs(body))]


def test_tensors_beside_the_weights_are_those_in_the_weights(exported: Callable[[str], Exported]) -> None:
    case = exported("mixed")
    content, stored = (case.folder / WEIGHTS).read_bytes(), load_file(case.folder / WEIGHTS)
    outside = [tensor for tensor in case.model.graph.initializer if external_data_helper.uses_external_data(tensor)]
    assert {"weights.0", "inputs.0"} <= {tensor.name for tensor in outside} <= stored.keys()
    for tensor in outside:
        where = {entry.key: entry.value for entry in tensor.external_data}
        offset, length = int(where["offset"]), int(where["length"])
        assert where["location"] == WEIGHTS and offset > 0 and offset + length <= len(content)
        assert content[offset : offset + length] == stored[tensor.name].numpy().tobytes()
        assert list(tensor.dims) == list(stored[tensor.name].shape) and not tensor.raw_data
    # What is left inside is small.
    assert case.path.stat().st_size < 60_000


@pytest.mark.parametrize("name", [name for name, (_, options) in MADE.items() if "beside" not in options])
def test_a_file_by_itself_needs_no_other(name: str, exported: Callable[[str], Exported], tmp_path: Path) -> None:
    case = exported(name)
    assert not any(external_data_helper.uses_external_data(tensor) for tensor in case.model.graph.initializer)
    assert WEIGHTS.encode() not in case.path.read_bytes()
    alone = shutil.copy(case.path, tmp_path / "moved.onnx")
    onnxruntime.InferenceSession(alone, providers=["CPUExecutionProvider"])


def test_tensors_inside_and_outside_give_the_same(exported: Callable[[str], Exported], tmp_path: Path) -> None:
    case, batch = exported("mixed"), images(3)
    inside = tmp_path / "inside.onnx"
    onnx.save(onnx.load(case.path), inside)
    found = Exported(case.folder, inside).run(batch)
    for name, values in case.run(batch).items():
        assert (values == found[name]).all()


@pytest.mark.parametrize("name", ["tap", "half"])
def test_weights_are_stored_once(name: str, exported: Callable[[str], Exported]) -> None:
    """Nothing that follows from the weights is stored beside them, such as their squares."""
    sizes = [int(np.prod(tensor.dims)) for tensor in exported(name).model.graph.initializer]
    assert sum(size >= 35 * 5 for size in sizes) == 1
    assert sum(tensor.data_type == onnx.TensorProto.FLOAT16 for tensor in exported(name).model.graph.initializer) == (
        name == "half"
    )


# ---------------------------------------------------------------------------------------------------- the engine


def both(case: Exported) -> tuple[OnnxEngine, Engine]:
    return OnnxEngine.load(case.path), Engine.of(case.trained, torch.device("cpu"))


@pytest.mark.parametrize("count", [1, 2, 16, 17, 40])
@pytest.mark.parametrize("name", ["tap", "sum"])
def test_engines_agree_on_any_number_of_images(name: str, count: int, exported: Callable[[str], Exported]) -> None:
    ours, peer = both(exported(name))
    grey = np.random.default_rng(0).random((count, *SHAPE))
    hidden = np.random.default_rng(1).random((count, *SHAPE)) < 0.2
    told = [(None, None)] if name == "sum" else [(0.1, None), (None, hidden), (0.2, hidden), (RATES[0] / 2, None)]
    for p, mask in told:
        (found, gain), (expected, its) = ours.marginals(grey, p, mask), peer.marginals(grey, p, mask)
        np.testing.assert_allclose(gain, its, atol=1e-6)
        for layer in range(2):
            np.testing.assert_allclose(found.means[layer], expected.means[layer], atol=2 * TOLERANCE)
            np.testing.assert_allclose(found.variances[layer], expected.variances[layer], atol=2 * TOLERANCE)
        np.testing.assert_allclose(found.log_partition, expected.log_partition, rtol=1e-6, atol=1e-4)
        assert (found.status == expected.status).all() and (abs(found.iterations - expected.iterations) <= 1).all()
        for field in ("log_partition", "iterations", "status"):
            assert getattr(found, field).dtype == getattr(expected, field).dtype


def test_engines_cut_grey_values_alike(exported: Callable[[str], Exported]) -> None:
    ours, peer = both(exported("tap"))
    edge = 127 / 255
    near = np.array([edge, np.nextafter(edge, 0), np.nextafter(edge, 1), edge + 1e-9, edge - 1e-9, 0.0, 1.0])
    grey = np.tile(near, (2, 5, 1))
    (found, _), (expected, _) = ours.marginals(grey, 0.0, None), peer.marginals(grey, 0.0, None)
    assert ((found.means[0] > 0.5) == (expected.means[0] > 0.5)).all()
    assert ((found.means[0][0] > 0.5).reshape(SHAPE) == (near > edge)).all()


@pytest.mark.parametrize("arrange", [np.asfortranarray, lambda a: a[:, ::-1], lambda a: a.repeat(2, 2)[:, :, ::2]])
def test_engines_take_arrays_however_they_lie_in_memory(
    arrange: Callable[[np.ndarray], np.ndarray], exported: Callable[[str], Exported]
) -> None:
    ours, peer = both(exported("tap"))
    grey, hidden, rates = arrange(images(3).astype(np.float64)), arrange(HIDDEN[:3]), arrange(RATES[:1] / 2)[0]
    (found, _), (expected, _) = ours.marginals(grey, rates, hidden), peer.marginals(grey, rates, hidden)
    np.testing.assert_allclose(found.means[0], expected.means[0], atol=2 * TOLERANCE)


def test_a_divergence_is_nan_for_whoever_uses_the_engine(exported: Callable[[str], Exported]) -> None:
    case = exported("tap")
    engine = replace(OnnxEngine.load(case.path), session=with_huge_weights(case, 1e38))
    found, gain = engine.marginals(images(2), 0.1, None)
    assert (found.status == Status.DIVERGED).all() and np.isfinite(gain).all()
    assert np.isnan(found.means[0]).all() and np.isnan(found.variances[1]).all() and np.isnan(found.log_partition).all()


# ------------------------------------------------------------------------------------- files that are refused

Change = Callable[[onnx.ModelProto], None]


def prop(key: str, value: str | None) -> Change:
    def change(model: onnx.ModelProto) -> None:
        kept = {entry.key: entry.value for entry in model.metadata_props} | ({} if value is None else {key: value})
        if value is None:
            del kept[key]
        del model.metadata_props[:]
        onnx.helper.set_model_props(model, kept)

    return change


def renamed(old: str, new: str) -> Change:
    def change(model: onnx.ModelProto) -> None:
        packing._rename(model.graph, {old: new})
        for value in (*model.graph.input, *model.graph.output):
            value.name = new if value.name == old else value.name
        for node in model.graph.node:
            node.output[:] = [new if name == old else name for name in node.output]

    return change


def without_output(name: str) -> Change:
    def change(model: onnx.ModelProto) -> None:
        kept = [value for value in model.graph.output if value.name != name]
        del model.graph.output[:]
        model.graph.output.extend(kept)

    return change


def foreign(model: onnx.ModelProto) -> None:
    value = onnx.helper.make_tensor_value_info("image", onnx.TensorProto.FLOAT, ["images", *SHAPE])
    other = onnx.helper.make_tensor_value_info("restored", onnx.TensorProto.FLOAT, ["images", *SHAPE])
    node = onnx.helper.make_node("Identity", ["image"], ["restored"])
    model.CopyFrom(
        onnx.helper.make_model(onnx.helper.make_graph([node], "g", [value], [other]), ir_version=8,
                               opset_imports=[onnx.helper.make_opsetid("", 18)])
    )  # fmt: skip


def foreign_with_our_metadata(model: onnx.ModelProto) -> None:
    kept = {entry.key: entry.value for entry in model.metadata_props}
    foreign(model)
    onnx.helper.set_model_props(model, kept)


def other_input(kind: int, *sizes: int | str) -> Change:
    def change(model: onnx.ModelProto) -> None:
        (image,) = [value for value in model.graph.input if value.name == "image"]
        image.CopyFrom(onnx.helper.make_tensor_value_info("image", kind, sizes))
        cast = onnx.helper.make_node("Cast", ["image"], ["image_cast"], to=onnx.TensorProto.FLOAT)
        shape = onnx.helper.make_node("Constant", [], ["image_shape"], value_ints=[-1, *SHAPE])
        reshape = onnx.helper.make_node("Reshape", ["image_cast", "image_shape"], ["image_inner"])
        packing._rename(model.graph, {"image": "image_inner"})
        nodes = [cast, shape, reshape, *model.graph.node]
        del model.graph.node[:]
        model.graph.node.extend(nodes)

    return change


def other_output(model: onnx.ModelProto) -> None:
    renamed("iterations", "iterations_inner")(model)
    without_output("iterations_inner")(model)
    node = onnx.helper.make_node("Cast", ["iterations_inner"], ["iterations"], to=onnx.TensorProto.FLOAT)
    model.graph.node.append(node)
    model.graph.output.append(onnx.helper.make_tensor_value_info("iterations", onnx.TensorProto.FLOAT, ["images"]))


def fails_late(model: onnx.ModelProto) -> None:
    """Sound as far as anyone can tell before it runs."""
    renamed("residual", "residual_inner")(model)
    without_output("residual_inner")(model)
    index = onnx.helper.make_node("Constant", [], ["far"], value_ints=[10**6])
    row = onnx.helper.make_node("Gather", ["residual_inner", "far"], ["far_row"])
    model.graph.node.extend([index, row, onnx.helper.make_node("Add", ["residual_inner", "far_row"], ["residual"])])
    model.graph.output.append(onnx.helper.make_tensor_value_info("residual", onnx.TensorProto.FLOAT, ["images"]))


FLOAT, DOUBLE = onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE
NEWER = "a newer kind of graph than this version runs; update the package"
CHANGED: dict[str, tuple[Change, str]] = {
    "foreign": (foreign, "is no file of `restore export`"),
    "foreign-with-our-metadata": (foreign_with_our_metadata, "wrong type or shape: converged"),
    "renamed-input": (renamed("p", "probability"), "wrong type or shape: p, probability"),
    "renamed-output": (renamed("converged", "done"), "wrong type or shape: converged, done"),
    "missing-output": (without_output("residual"), "wrong type or shape: residual"),
    "other-rank": (other_input(FLOAT, "images", 35), "wrong type or shape: image"),
    "other-shape": (other_input(FLOAT, "images", 7, 5), "wrong type or shape: image"),
    "fixed-batch": (other_input(FLOAT, 1, *SHAPE), "wrong type or shape: image"),
    "other-type": (other_input(DOUBLE, "images", *SHAPE), "wrong type or shape: image"),
    "other-output-type": (other_output, "wrong type or shape: iterations"),
    "shape-in-metadata": (prop("image_shape", "[7, 5]"), "wrong type or shape: image, means"),
    "hidden-in-metadata": (prop("hidden", "99"), "wrong type or shape: means.1, variances.1"),
    "channel-in-metadata": (prop("channel", "field"), "wrong type or shape: field, image"),
    "newer-graph": (prop("graph_version", "2"), NEWER),
    "newer-format": (prop("format_version", str(FORMAT + 1)), "update the package"),
    "version-not-a-number": (prop("graph_version", "one"), "metadata are damaged"),
    "no-graph-version": (prop("graph_version", None), "is no file of `restore export`"),
    "no-format-version": (prop("format_version", None), "holds no prior of this package"),
    "unknown-key": (prop("colour", "true"), "its description is damaged"),
    "inference-no-json": (prop("inference", '{"solver": "tap"'), "its description is damaged"),
    "inference-nested": (prop("inference", "[" * 50_000), "its description is damaged"),
    "inference-out-of-range": (prop("inference", '{"max_iter": 0}'), "its description is damaged"),
    "shape-no-list": (prop("image_shape", "35"), "its description is damaged"),
    "unknown-channel": (prop("channel", "telepathy"), "metadata are damaged"),
    "unknown-polarity": (prop("polarity", "grey on grey"), "metadata are damaged"),
    "no-images-at-once": (prop("images_at_once", "0"), "metadata are damaged"),
    **{
        f"no-{key}": (prop(key, None), "damaged")
        for key in ("channel", "polarity", "weights_sha256", "images_at_once", "name", "image_shape", "hidden")
    },
}


def changed(case: Exported, *changes: Change) -> bytes:
    model = copy.deepcopy(case.model)
    for change in changes:
        change(model)
    return model.SerializeToString()


def refused(place: Path, says: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ModelError, match=re.escape(says) if says else None) as caught:
        OnnxEngine.load(place)
    assert "\n" not in str(caught.value) and place.name in str(caught.value)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(("change", "says"), CHANGED.values(), ids=[f"44-{name}" for name in CHANGED])
def test_graphs_that_are_not_what_they_say(
    change: Change, says: str, exported: Callable[[str], Exported], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "odd.onnx"
    path.write_bytes(changed(exported("alone"), change))
    refused(path, says, capfd)


def test_44_what_a_newer_kind_of_graph_says_besides_does_not_matter(
    exported: Callable[[str], Exported], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "odd.onnx"
    newer = (prop("graph_version", "2"), prop("channel", "blur"), prop("kernel", "9"), prop("hidden", "[1, 2]"))
    path.write_bytes(changed(exported("alone"), *newer))
    refused(path, NEWER, capfd)


def test_44_a_graph_that_fails_while_it_runs(
    exported: Callable[[str], Exported], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "odd.onnx"
    path.write_bytes(changed(exported("alone"), fails_late))
    engine = OnnxEngine.load(path)
    with pytest.raises(ModelError, match="cannot be run") as caught:
        engine.marginals(images(2), 0.1, None)
    assert "\n" not in str(caught.value)
    assert capfd.readouterr() == ("", "")


RUINS: dict[str, Callable[[bytes], bytes]] = {
    "garbage": lambda content: np.random.default_rng(0).bytes(5000),
    "text": lambda content: b"solver\n" * 100,
    "empty": lambda content: b"",
    "truncated": lambda content: content[: len(content) // 2],
    "truncated-by-a-byte": lambda content: content[:-1],
    "pickle": lambda content: pickle.dumps({"weights": list(range(99))}),
    "zeros": lambda content: bytes(4096),
}


@pytest.mark.parametrize("ruin", RUINS.values(), ids=[f"44-{name}" for name in RUINS])
def test_files_that_are_no_graphs(
    ruin: Callable[[bytes], bytes],
    exported: Callable[[str], Exported],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "odd.onnx"
    path.write_bytes(ruin(exported("alone").path.read_bytes()))
    refused(path, "", capfd)


@pytest.fixture
def beside(exported: Callable[[str], Exported], tmp_path: Path) -> Path:
    """A copy of a folder whose graph refers to the weights."""
    return Path(shutil.copytree(exported("mixed").folder, tmp_path / "published" / "mixed"))


def referring(folder: Path, **entries: str | None) -> None:
    """Change where the first tensor of a graph is said to lie."""
    model = onnx.load(folder / GRAPH, load_external_data=False)
    tensor = next(item for item in model.graph.initializer if external_data_helper.uses_external_data(item))
    where = {entry.key: entry.value for entry in tensor.external_data} | entries
    del tensor.external_data[:]
    for key, value in where.items():
        if value is not None:
            tensor.external_data.add(key=key, value=value)
    (folder / GRAPH).write_bytes(model.SerializeToString())


def climbing(folder: Path) -> None:
    shutil.copy(folder / WEIGHTS, folder.parent / "x")
    referring(folder, location="../x")


def climbing_within(folder: Path) -> None:
    shutil.copy(folder / WEIGHTS, folder.parent / "x")
    (folder / "inner").mkdir()
    referring(folder, location="inner/../../x")


def absolute(folder: Path) -> None:
    shutil.copy(folder / WEIGHTS, folder.parent / "x")
    referring(folder, location=str(folder.parent / "x"))


def linked(folder: Path) -> None:
    shutil.copy(folder / WEIGHTS, folder.parent / "x")
    (folder / "link").symlink_to(folder.parent / "x")
    referring(folder, location="link")


def flipped(folder: Path) -> None:
    content = bytearray((folder / WEIGHTS).read_bytes())
    content[-1] ^= 1
    (folder / WEIGHTS).write_bytes(content)


def other_prior(folder: Path) -> None:
    about = zoo.describe(folder)
    other = random_conditional(SHAPE)
    zoo.save(folder / "other", replace(other, description=about, pixel_means=other.pixel_means * 0.9), "")
    shutil.copy(folder / "other" / WEIGHTS, folder / WEIGHTS)


def content_changed(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def ruin(folder: Path) -> None:
        (folder / WEIGHTS).write_bytes(change((folder / WEIGHTS).read_bytes()))

    return ruin


OUTSIDE: dict[str, Callable[[Path], None]] = {
    "44-climbing": climbing,
    "44-climbing-from-within": climbing_within,
    "44-absolute": absolute,
    "44-link": linked,
    "44-missing": lambda folder: referring(folder, location="nowhere"),
    "44-folder": lambda folder: referring(folder, location="."),
    "44-device": lambda folder: referring(folder, location="/dev/zero"),
    "44-offset-beyond": lambda folder: referring(folder, offset=str(10**9)),
    "44-offset-negative": lambda folder: referring(folder, offset="-8"),
    "44-offset-no-number": lambda folder: referring(folder, offset="here"),
    "44-offset-overflow": lambda folder: referring(folder, offset=str(2**63 - 1)),
    "44-length": lambda folder: referring(folder, length="4"),
    "40-other-prior": other_prior,
    "40-flipped-bit": flipped,
    "41-truncated": content_changed(lambda content: content[:-100]),
    "41-padded": content_changed(lambda content: content + bytes(100)),
    "41-empty": content_changed(lambda content: b""),
    "42-pickle": content_changed(lambda content: pickle.dumps([1.5] * 9999)),
}


@pytest.mark.parametrize("ruin", OUTSIDE.values(), ids=OUTSIDE)
def test_tensors_that_lie_elsewhere_or_were_changed(
    ruin: Callable[[Path], None], beside: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    OnnxEngine.load(beside)
    ruin(beside)
    refused(beside, "", capfd)
    # Named by its file it is the same graph.
    with pytest.raises(ModelError) as caught:
        OnnxEngine.load(beside / GRAPH)
    assert "\n" not in str(caught.value)
    assert capfd.readouterr() == ("", "")


def test_a_graph_alone_in_a_folder_is_held_to_the_weights_there_only_if_it_is_the_folders(
    exported: Callable[[str], Exported], beside: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    alone = exported("sum")
    shutil.copy(alone.path, beside / "other.onnx")
    assert OnnxEngine.load(beside / "other.onnx").description.name == "sum"
    shutil.copy(alone.path, beside / GRAPH)
    refused(beside, "was made for another weights.safetensors", capfd)


def test_a_graph_of_fields_takes_no_images_and_still_tells_of_itself(exported: Callable[[str], Exported]) -> None:
    engine = OnnxEngine.load(exported("field").path)
    assert engine.facts.channel == "field"
    with pytest.raises(ModelError, match="--no-channel"):
        engine.marginals(images(1, (3, 4)), 0.1, None)


# ----------------------------------------------------------------------------------------------- the command line

Run = Callable[..., int]


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    path = tmp_path / "image.png"
    Image.fromarray(np.uint8(255 * images(1)[0])).save(path)
    return path


def fault(capfd: pytest.CaptureFixture[str]) -> str:
    """The one line that was said, on stderr, when a command failed."""
    out, said = capfd.readouterr()
    assert out == "" and len(said.splitlines()) == 1 and said.startswith("restore: ")
    return said


@pytest.mark.parametrize("ruin", OUTSIDE.values(), ids=OUTSIDE)
def test_denoise_with_damaged_graphs(
    ruin: Callable[[Path], None], beside: Path, run: Run, picture: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    ruin(beside)
    for model in (beside, beside / GRAPH):
        assert run("denoise", picture, "--model", model, "--engine", "onnx") == 4
        fault(capfd)
    assert not picture.with_name("image.restored.png").exists()


@pytest.mark.parametrize("ruin", RUINS.values(), ids=[f"44-{name}" for name in RUINS])
def test_denoise_with_what_is_no_graph(
    ruin: Callable[[bytes], bytes], beside: Path, run: Run, picture: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (beside / GRAPH).write_bytes(ruin((beside / GRAPH).read_bytes()))
    for engine in ("onnx", "auto"):
        assert run("denoise", picture, "--model", beside, "--engine", engine) == 4
        assert GRAPH in fault(capfd)
    assert not picture.with_name("image.restored.png").exists()
    # The weights are sound, and torch needs nothing else.
    assert run("denoise", picture, "--model", beside, "--engine", "torch") == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--model", "mixed"], "there is no such model"),
        (["--model", "no/such.onnx"], "there is no such model"),
        (["--model", "{}", "--engine", "torch"], "name the prior it was made from"),
        (["--model", "{}", "--device", "cuda"], "name the prior it was made from"),
    ],
    ids=["38-name", "38-file", "44-torch", "44-cuda"],
)
def test_denoise_without_a_model_that_will_do(
    words: list[str],
    says: str,
    exported: Callable[[str], Exported],
    run: Run,
    picture: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    words = [word.format(exported("tap").path) for word in words]
    assert run("denoise", picture, "--p", 0.1, *words) == 4
    assert says in fault(capfd)
    assert not picture.with_name("image.restored.png").exists()


def test_an_exported_file_is_a_model(
    exported: Callable[[str], Exported], run: Run, picture: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    case = exported("tap")
    batch = np.asarray(Image.open(picture))
    expected = restore.load(case.folder, engine="torch", device="cpu").denoise(batch, 0.1)
    loaded = restore.load(case.path)
    assert loaded.engine.name == "onnx" and loaded.description == case.about
    assert (loaded.denoise(batch, 0.1) == expected).all()
    assert (restore.denoise(batch, case.path, 0.1) == expected).all()
    assert run("denoise", picture, "--model", case.path, "--p", 0.1, "--json") == 0
    assert json.loads(capfd.readouterr().out)["engine"] == "onnx"
    assert (np.asarray(Image.open(picture.with_name("image.restored.png"))) == expected).all()
    assert run("denoise", picture, "--model", case.path, "--overwrite") == 2
    assert "--p" in fault(capfd)
    assert run("evaluate", case.path, "--data", picture.parent, "--task", "flip:0.1") == 4
    assert "name the prior it was made from" in fault(capfd)
    for engine, device in (("torch", "auto"), ("auto", "cuda")):
        with pytest.raises(ModelError, match="name the prior it was made from"):
            restore.load(case.path, device, engine=engine)


@pytest.mark.parametrize("name", ["tap", "field", "sum"])
def test_info_of_an_exported_file(
    name: str, exported: Callable[[str], Exported], run: Run, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run("info", exported(name).path) == 0
    assert json.loads(capfd.readouterr().out)["name"] == name


def test_a_prior_that_diverges_is_told_of_in_json(
    exported: Callable[[str], Exported], tmp_path: Path, run: Run, picture: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Row 62: said in JSON that every reader takes, and on stderr."""
    case = exported("tap")
    model = copy.deepcopy(case.model)
    for tensor in model.graph.initializer:
        if tensor.name == "weights.0":
            wild = 1e38 * np.sign(numpy_helper.to_array(tensor))
            tensor.CopyFrom(numpy_helper.from_array(wild.astype(np.float32), tensor.name))
    path = tmp_path / "wild.onnx"
    path.write_bytes(model.SerializeToString())
    target = tmp_path / "wild.png"
    for options in ((), ("--soft",)):
        assert run("denoise", picture, "--model", path, "--p", 0.1, "--json", "-o", target, *options) == 5
        out, said = capfd.readouterr()
        assert "diverged" in json.loads(out, parse_constant=pytest.fail)["error"]
        assert "diverged" in said
        assert not target.exists()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Path, dict[str, bool]]]:
    """Exports are notes of what would be exported."""
    asked: list[tuple[Path, dict[str, bool]]] = []

    def noted(folder: Path, **options: bool) -> bytes:
        asked.append((folder, options))
        return b"a graph"

    monkeypatch.setattr(packing, "standalone", noted)
    monkeypatch.setattr(packing, "beside_weights", noted)
    return asked


@pytest.fixture
def plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a prior, below the working directory."""
    monkeypatch.chdir(tmp_path)
    zoo.save(tmp_path / "models" / "plain", random_prior(SHAPE), "# plain\n")
    return tmp_path / "models" / "plain"


def test_export_names_the_file_after_the_prior(
    run: Run, plain: Path, quick: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("export", "models/plain") == 0
    assert (tmp_path / "plain.onnx").read_bytes() == b"a graph"
    assert run("export", plain / WEIGHTS, "-o", "other.onnx", "--float16") == 0
    assert run("export", plain, "-o", "fields.onnx", "--no-channel") == 0
    monkeypatch.chdir(plain)
    assert run("export", ".", "-o", "dot.onnx") == 0
    assert run("export", ".") == 0 and (plain / "plain.onnx").exists()
    assert [options for _, options in quick] == [
        {"float16": False, "field": False},
        {"float16": True, "field": False},
        {"float16": False, "field": True},
        {"float16": False, "field": False},
        {"float16": False, "field": False},
    ]


def test_export_beside_the_weights(run: Run, plain: Path, quick: list[Any], capfd: pytest.CaptureFixture[str]) -> None:
    assert run("export", plain, "--beside") == 0
    assert (plain / GRAPH).read_bytes() == b"a graph" and quick == [(plain, {})]
    assert run("export", plain, "--beside") == 5
    assert "exists already" in fault(capfd)
    assert run("export", plain, "--beside", "--overwrite") == 0


@pytest.mark.parametrize("force", [[], ["--overwrite"]], ids=["", "overwrite"])
def test_export_refuses_before_it_works(
    force: list[str],
    exported: Callable[[str], Exported],
    run: Run,
    plain: Path,
    quick: list[Any],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "there.onnx").write_bytes(b"before")
    (tmp_path / "folder.onnx").mkdir()
    (tmp_path / "dangling.onnx").symlink_to("nowhere")
    before = (plain / WEIGHTS).read_bytes()
    wrong: list[tuple[int, str, list[object]]] = [
        (4, "there is no such model", ["nobody"]),
        (4, "is exported already", [exported("tap").path]),
        (2, "--beside", [plain, "--beside", "-o", "x.onnx"]),
        (2, "--beside", [plain, "--beside", "--float16"]),
        (2, "--beside", [plain, "--beside", "--no-channel"]),
        (5, "is a folder", [plain, "-o", "models"]),
        (5, "is a folder", [plain, "-o", "folder.onnx"]),
        (2, ".onnx", [plain, "-o", "new/"]),
        (2, ".onnx", [plain, "-o", plain / WEIGHTS]),
        (2, ".onnx", [plain, "-o", "-"]),
        (5, "is not an existing folder", [plain, "-o", "nowhere/x.onnx"]),
        (5, "", [plain, "-o", "x" * 300 + ".onnx"]),
    ]
    if not force:
        wrong += [(5, "exists already", [plain, "-o", name]) for name in ("there.onnx", "dangling.onnx")]
    for code, says, words in wrong:
        assert run("export", *words, *force) == code, words
        assert says in fault(capfd)
    assert (tmp_path / "there.onnx").read_bytes() == b"before" and (plain / WEIGHTS).read_bytes() == before
    assert not [path for path in tmp_path.rglob("*") if path.name.startswith(".restore-")]


def test_a_learnt_channel_cannot_be_left_out(
    exported: Callable[[str], Exported], run: Run, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run("export", exported("sum").folder, "--no-channel", "-o", tmp_path / "x.onnx") == 2
    assert "has learnt its channel" in fault(capfd)
    with pytest.raises(UsageError):
        packing.standalone(exported("sum").folder, field=True)
    assert not (tmp_path / "x.onnx").exists()


def test_53_a_full_disk_leaves_the_old_file(
    run: Run, plain: Path, quick: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    (tmp_path / "there.onnx").write_bytes(b"before")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert run("export", plain, "-o", "there.onnx", "--overwrite") == 5
    assert "No space left on device" in fault(capfd)
    assert (tmp_path / "there.onnx").read_bytes() == b"before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["models", "there.onnx"]


def test_a_damaged_prior_is_not_exported(
    run: Run, plain: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (plain / WEIGHTS).write_bytes((plain / WEIGHTS).read_bytes()[:-8])
    assert run("export", plain) == 4
    assert WEIGHTS in fault(capfd)
    assert not (tmp_path / "plain.onnx").exists()


def test_saving_a_prior_anew_takes_the_old_graph_away(beside: Path) -> None:
    zoo.save(beside, random_conditional(SHAPE), "")
    assert not (beside / GRAPH).exists()


def test_every_fault_is_one_of_the_family() -> None:
    assert issubclass(ModelError, RestoreError) and (ModelError.exit_code, OutputError.exit_code) == (4, 5)
