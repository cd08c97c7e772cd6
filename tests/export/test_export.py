"""Exported graphs do what the library does, and nothing makes them lie."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from exports import LEARNT, MADE, RATES, SHAPE, TOLERANCE, Arrays, Exported, images, kinds, settled
from machines import two_patterns
from onnx import numpy_helper
from priors import grey_prior, random_conditional

from restore.channels.damage import Damage
from restore.export.graph import Flips, Graph, Grey, Learnt, Shared
from restore.inference.torch_engine import Engine, polarity_gain
from restore.solvers import Solution
from restore.status import Status
from restore.zoo import TrainedPrior

TOLD = ["tap", "mean_field", "relaxed", "deep"]


def agree(found: Arrays, solution: Solution, tolerance: float = 2 * TOLERANCE) -> None:
    """A graph's outputs are the library's solution, which nowhere diverged."""
    assert (solution.status != int(Status.DIVERGED)).all()
    for kind, layers in (("means", solution.means), ("variances", solution.variances)):
        for layer, values in enumerate(layers):
            name = kind if layer == 0 else f"{kind}.{layer}"
            np.testing.assert_allclose(found[name].reshape(values.shape), values, atol=tolerance, err_msg=name)
    assert (found["restored"] == (found["means"] > 0.5)).all()
    if "log_partition" in found:  # not with one start, as tests of files say
        np.testing.assert_allclose(found["log_partition"], solution.log_partition, rtol=1e-6, atol=10 * tolerance)
    assert (abs(found["iterations"] - solution.iterations.numpy()) <= 1).all()
    np.testing.assert_allclose(found["residual"], solution.residual, atol=tolerance)
    assert found["converged"].tolist() == (solution.status == int(Status.CONVERGED)).tolist()


def equal(first: Arrays, second: Arrays) -> None:
    """The same up to rounding: products of matrices add up in another order in batches of another size."""
    for name, values in first.items():
        room = 1 if name == "iterations" else 2 * TOLERANCE
        np.testing.assert_allclose(np.float64(values), np.float64(second[name]), atol=room, rtol=1e-6, err_msg=name)


HIDDEN = np.random.default_rng(4).random((4, *SHAPE)) < 0.3


def with_huge_weights(case: Exported, size: float) -> onnxruntime.InferenceSession:
    model = copy.deepcopy(case.model)
    for tensor in model.graph.initializer:
        if tensor.name == "weights.0":
            signs = np.sign(numpy_helper.to_array(tensor))
            tensor.CopyFrom(numpy_helper.from_array(np.float32(size) * signs, tensor.name))
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


# ------------------------------------------------------------------------------------------- what a graph finds


@pytest.mark.parametrize("name", kinds([*TOLD, *LEARNT]))
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


@pytest.mark.thorough
def test_a_graph_of_fields_finds_what_the_library_finds(exported: Callable[[str], Exported]) -> None:
    case = exported("field")
    fields = np.random.default_rng(1).normal(0, 0.5, (7, 3, 4)).astype(np.float32)
    agree(case.run(fields), case.solved(fields))
    assert "inversion" not in case.run(fields)


@pytest.mark.thorough
def test_a_weak_evidence_tempers_the_weights_as_in_the_library(exported: Callable[[str], Exported]) -> None:
    case = exported("field")
    _, (first, second) = two_patterns()
    fields = np.stack([(size * (first - second)).reshape(3, 4).numpy() for size in (-0.3, -0.1, 0.1, 0.3)])
    agree(case.run(fields), case.solved(fields))


IMAGES = np.random.default_rng(1).random((3, *SHAPE)).astype(np.float32)
ONE = torch.ones(1, 1, 1)


def inversion(kind: type[Graph], prior: TrainedPrior, image: np.ndarray, *told: torch.Tensor) -> np.ndarray:
    """What the module that becomes a graph says of inverted images before it is traced, which takes no time."""
    pointwise = {} if prior.grey_pixels is None else prior.grey_pixels.parameters
    stored = prior.machine.parameters | {"pixel_means": prior.pixel_means, "modes": prior.modes}
    stored |= {f"pointwise.{name}": value for name, value in pointwise.items()}
    settings = (torch.tensor(9), torch.tensor(0.01), torch.tensor(0.25))
    *_, result = kind(prior.description, stored)(torch.from_numpy(np.float32(image)), *told, *settings)
    return np.asarray(result)


MASKS = [images(4, seed=1) > 0, images(1, seed=1) > 0, np.zeros((1, 1, 1), bool), np.ones((1, *SHAPE), bool)]


@pytest.mark.parametrize("hidden", MASKS, ids=["per-image", "one", "none", "all"])
def test_hidden_pixels_do_not_say_whether_an_image_looks_inverted(hidden: np.ndarray) -> None:
    prior, batch = MADE["mean_field"][0](), images(4)
    batch[0] = 1
    ink, whole = (torch.from_numpy(np.broadcast_to(each, batch.shape).copy()).flatten(1) for each in (batch, hidden))
    result = inversion(Flips, prior, batch, 0.1 * ONE, torch.from_numpy(hidden))
    np.testing.assert_allclose(result, polarity_gain(ink, whole, prior.pixel_means), rtol=1e-5)
    # A change of what is hidden changes nothing, and of what is seen something.
    other = inversion(Flips, prior, np.where(hidden, 1 - batch, batch), 0.1 * ONE, torch.from_numpy(hidden))
    np.testing.assert_array_equal(result, other)
    assert hidden.all() == bool((result == 0).all())


@pytest.mark.parametrize("kind", [Grey, Shared])
def test_the_polarity_of_grey_images(kind: type[Graph]) -> None:
    prior, damage = grey_prior(shape=SHAPE), Damage(sigma=0.3, hidden=HIDDEN[0])
    wanted = Engine.of(prior, torch.device("cpu")).solve(IMAGES, damage).inversion
    noise = (0.3 * ONE, 0 * ONE) if kind is Grey else (0.3 * ONE,)
    np.testing.assert_allclose(
        inversion(kind, prior, IMAGES, *noise, torch.from_numpy(HIDDEN[0])[None]), wanted, rtol=1e-4
    )
    assert np.abs(wanted).min() > 0.01


def test_the_polarity_of_images_whose_damage_was_learnt() -> None:
    prior = settled(random_conditional(SHAPE), 0.3)
    wanted = Engine.of(prior, torch.device("cpu")).solve((IMAGES > 0.5).astype(np.float32), Damage()).inversion
    np.testing.assert_allclose(inversion(Learnt, prior, IMAGES), wanted, rtol=1e-5)
    assert np.abs(wanted).min() > 0.01


# ---------------------------------------------------------------------------------------------- what it is told

FORMS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "one": lambda whole: whole[:1, :1, :1],
    "per-image": lambda whole: whole[:, :1, :1],
    "per-pixel": lambda whole: whole[:1],
    "per-row": lambda whole: whole[:1, :, :1],
    "per-column": lambda whole: whole[:, :1, :],
    "full": lambda whole: whole,
}


@pytest.mark.thorough
@pytest.mark.parametrize("shift", range(3))
@pytest.mark.parametrize("p", FORMS)
def test_flips_and_masks_in_every_form(p: str, shift: int, exported: Callable[[str], Exported]) -> None:
    """Each form of the one with the same form of the other, the next, and the one after it."""
    case, batch, forms = exported("mean_field"), images(4), list(FORMS.values())
    rates, hidden = FORMS[p](RATES), forms[(list(FORMS).index(p) + shift) % len(forms)](HIDDEN)
    agree(case.run(batch, rates, hidden), case.solved(batch, rates, hidden))


@pytest.mark.thorough
@pytest.mark.parametrize("p", [0, 1e-30, 0.5, 1 - 2**-24, 1])
@pytest.mark.parametrize("mask", [False, "some", True])
def test_boundary_values(p: float, mask: bool | str, exported: Callable[[str], Exported]) -> None:
    case, batch = exported("tap"), images(4)
    hidden = HIDDEN if mask == "some" else np.full((1, *SHAPE), mask)
    outputs = case.run(batch, p, hidden)
    agree(outputs, case.solved(batch, p, hidden))
    visible = ~np.broadcast_to(hidden, batch.shape)
    if p in (0, 1):
        assert (outputs["restored"][visible] == abs(p - batch)[visible]).all()
    if p == 0.5 or mask is True:
        # Nothing was seen, so that all images are the same.
        assert (outputs["means"] == outputs["means"][0]).all()


@pytest.mark.parametrize("name", kinds(["tap", "mixed"]))
def test_white_is_above_the_threshold(name: str, exported: Callable[[str], Exported]) -> None:
    case = exported(name)
    levels = np.tile(np.arange(124, 131), (1, 5, 1))
    white = levels > case.header.threshold
    assert 0 < white.sum() < white.size and (levels == case.header.threshold).any()
    equal(case.run(np.float32(levels / 255), 0.0), case.run(np.float32(white), 0.0))
    if name == "tap":
        assert (case.run(np.float32(levels / 255), 0.0)["restored"] == white).all()


@pytest.mark.parametrize("name", kinds(["tap", "mean_field", "sum", "mixed"]))
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
    outputs = case.run(batch, **settings)
    solution = case.solved(batch, **settings)
    if settings.get("tol", 1) < 1e-10:
        # Whether rounding settles on a fixed point, and when, is no property of the method.
        assert (outputs["iterations"] <= 20).all()
        np.testing.assert_allclose(outputs["means"].reshape(3, -1), solution.means[0], atol=1e-4)
        return
    agree(outputs, solution)
    if settings.get("max_iter"):
        assert (outputs["iterations"] <= settings["max_iter"]).all() and np.isfinite(outputs["residual"]).all()
        assert settings["max_iter"] > 1 or not outputs["converged"].any()


# ------------------------------------------------------------------------------------- what no answer is given for


def nowhere_nan(result: Arrays) -> None:
    assert not any(np.isnan(values).any() for values in result.values() if values.dtype.kind == "f")


def no_answer(result: Arrays, row: int) -> None:
    assert not result["converged"][row] and result["iterations"][row] == 0
    assert result["residual"][row] == np.inf
    assert "log_partition" not in result or result["log_partition"][row] == -np.inf
    assert (result["restored"][row] == 0).all()
    for name in ("means", "means.1"):
        assert (result[name][row] == 0.5).all() and (result[name.replace("means", "variances")][row] == 0.25).all()


def others_as_before(case: Exported, batch: np.ndarray, result: Arrays, row: int, **told: Any) -> None:
    rest = [index for index in range(len(batch)) if index != row]
    told = {name: values if len(values) == 1 else values[rest] for name, values in told.items()}
    equal({name: values[rest] for name, values in result.items()}, case.run(batch[rest], **told))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", kinds(["tap", "mean_field", "sum", "mixed", "field"]))
def test_an_image_that_is_none_gets_no_answer(name: str, value: float, exported: Callable[[str], Exported]) -> None:
    case = exported(name)
    batch = images(3, case.header.image_shape)
    batch[1, 2, 3] = value
    outputs = case.run(batch)
    nowhere_nan(outputs)
    no_answer(outputs, 1)
    others_as_before(case, batch, outputs, 1)


@pytest.mark.parametrize("value", [np.nan, -0.1, 1.5, np.inf])
@pytest.mark.parametrize("name", kinds(TOLD))
def test_no_probability_gets_no_answer(name: str, value: float, exported: Callable[[str], Exported]) -> None:
    case, batch = exported(name), images(3)
    outputs = case.run(batch, value)
    nowhere_nan(outputs)
    for row in range(3):
        no_answer(outputs, row)
    for rates in (np.full((3, 1, 1), 0.2, np.float32), np.full((3, *SHAPE), 0.2, np.float32)):
        rates[1, -1, -1] = value
        outputs = case.run(batch, rates)
        nowhere_nan(outputs)
        no_answer(outputs, 1)
        others_as_before(case, batch, outputs, 1, p=rates)


@pytest.mark.parametrize(
    "settings",
    [
        *({"damping": value} for value in (1.0, np.nan, -0.1, np.inf)),
        *({"max_iter": value} for value in (0, -5)),
        *({"tol": value} for value in (np.nan, -1.0)),
    ],
    ids=str,
)
@pytest.mark.parametrize("name", kinds(["tap", "mean_field", "sum", "field"]))
def test_settings_out_of_range_get_no_answer(
    name: str, settings: dict[str, Any], exported: Callable[[str], Exported]
) -> None:
    case = exported(name)
    outputs = case.run(images(2, case.header.image_shape), **settings)
    nowhere_nan(outputs)
    for row in range(2):
        no_answer(outputs, row)


# Reached without another export: the weights of a graph are tensors in its file.


@pytest.mark.parametrize("name", kinds(["tap", "mean_field", "sum"]))
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
    outputs = strange.run(batch, 0.4, max_iter=30)
    nowhere_nan(outputs)
    solution = strange.solved(batch, 0.4, max_iter=30)
    diverged = solution.status.numpy() == int(Status.DIVERGED)
    if name == "sum" and size == 1e38:
        # Sums of such messages are infinite in a graph; the library's fused kernel limits them.
        assert not (outputs["converged"] & diverged).any()
        return
    assert (np.isinf(outputs["residual"]) == diverged).all()
    assert outputs["converged"].tolist() == (solution.status == int(Status.CONVERGED)).tolist()
    if size == 1e38 and name == "tap":
        # Squares of such weights are infinite.
        assert diverged.all() and (outputs["means"] == 0.5).all() and (outputs["log_partition"] == -np.inf).all()
