"""Every family answers for its machines, and its answers agree with each other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from restore.errors import UsageError
from restore.families import FAMILIES, OBSERVED, SPECIAL, Features, Spec
from restore.fields import Fields
from restore.learning.learners import LEARNERS, METHODS
from restore.learning.recipe.spec import PriorShape
from restore.registry import SOLVERS
from restore.solvers import solver_of
from restore.zoo.inference import Inference

SHAPE = (3, 4)
# A machine of each family that has special keys or needs units of its own.
ASKED: dict[str, dict[str, Any]] = {
    "deep": {"deeper": (2, 3)},
    "deep_convolutional": {"hidden": 0, "layers": (Features(5, 3, 1, "rectified"), Features(2, 2, 2, "spin"))},
    "informed_convolutional": {"hidden": 0, "layers": (Features(5, 3, 1, "rectified"), Features(2, 2, 2, "spin"))},
    "conditional_convolutional": {"hidden": 0, "layers": (Features(5, 3, 1, "rectified"), Features(2, 2, 2, "spin"))},
    "mixture": {"components": 3, "visible": "gaussian", "hidden_type": "gaussian"},
    "fvbm": {"hidden": 0},
}

every_family = pytest.mark.parametrize("name", FAMILIES)


def spec_of(name: str) -> Spec:
    return Spec(**{"family": name, "hidden": 5} | ASKED.get(name, {}))


def tensors_of(spec: Spec) -> dict[str, Tensor]:
    """Small positive tensors of the right shapes; symmetric where pixels are coupled with each other."""
    draw = torch.Generator().manual_seed(0)
    made = {name: 0.1 * torch.rand(shape, generator=draw) for name, shape in spec.kind.shapes(spec, SHAPE).items()}
    if spec.kind.structure == "pairwise":
        made["weights.0"] = (made["weights.0"] + made["weights.0"].T).fill_diagonal_(0)
    return made


@every_family
def test_a_machine_has_the_tensors_and_the_layers_that_its_family_says(name: str) -> None:
    spec, tensors = spec_of(name), tensors_of(spec_of(name))
    spec.check(SHAPE)
    kind = spec.kind
    machine = kind.machine(spec, SHAPE, tensors)
    assert {key: tuple(value.shape) for key, value in machine.parameters.items()} == kind.shapes(spec, SHAPE)
    assert all(torch.allclose(machine.parameters[key], value) for key, value in tensors.items())
    assert kind.hidden_in(spec, machine) == spec.hidden
    kind.check_machine(machine)
    pictures = kind.pictures(machine, SHAPE)
    assert pictures.dim() == 3 and (len(pictures) > 0) == kind.hidden_units
    sizes, evidence = kind.sizes(spec, SHAPE), Fields(torch.zeros(2, 12), torch.ones(1, 12))
    assert sizes[0] == 12
    under = kind.given(machine, evidence if spec.grey else Fields(torch.zeros(2, 12)))
    for solver in spec.solvers:
        starts = SOLVERS[solver].starts
        settings = Inference(solver, max_iter=3, modes=0, starts=int(starts))
        assert [mean.shape for mean in solver_of(settings).solve(under).means] == [(2, size) for size in sizes]


@every_family
def test_an_image_is_observed_with_what_it_needs(name: str) -> None:
    spec = spec_of(name)
    inputs = OBSERVED[spec.kind.observation(spec)]
    assert (inputs == ("image",)) == spec.kind.learnt
    assert spec.kind.learnt or ("sigma" in inputs) == spec.grey


@every_family
def test_the_keys_of_other_families_are_refused(name: str) -> None:
    spec = spec_of(name)
    for key in SPECIAL:
        wrong = replace(spec, **{key: (3,) if key == "deeper" else 3})
        if key in spec.kind.special:
            wrong = replace(spec, **{key: () if key == "deeper" else 0})
        with pytest.raises(UsageError):
            wrong.check()


@every_family
def test_layers_are_described_where_they_are_no_numbers(name: str) -> None:
    spec, other = spec_of(name), () if FAMILIES[name].by_layers else (Features(2, 3, 1, "spin"),)
    with pytest.raises(UsageError):
        replace(spec, layers=other).check()


@every_family
def test_hidden_units_are_counted_grown_or_missing(name: str) -> None:
    spec, kind = spec_of(name), FAMILIES[name]
    for hidden, fits in ((-1, False), (0, not kind.numbered), (1, kind.numbered), ("auto", kind.grows)):
        other = replace(spec, hidden=hidden)
        if fits:
            other.check()
        else:
            with pytest.raises(UsageError):
                other.check()


@pytest.mark.parametrize(
    "wrong",
    [{"family": "magic"}, {"visible": "gaussian"}, {"hidden_type": "potts"}, {"family": "crbm", "visible": "spin"}],
)
def test_machines_that_there_are_not_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        Spec(**{"hidden": 5} | wrong).check()


@pytest.mark.parametrize(
    ("spec", "key", "value"),
    [
        (spec_of("mixture"), "units.noise", -1.0),
        (spec_of("fvbm"), "weights.0", 0.5),
        (Spec(hidden=5, visible="truncated-gaussian", hidden_type="gaussian"), "units.1.quadratic", -0.9),
    ],
    ids=["noise", "symmetry", "curvature"],
)
def test_tensors_without_a_distribution_are_refused(spec: Spec, key: str, value: float) -> None:
    tensors = tensors_of(spec)
    tensors[key].flatten()[0] = value
    with pytest.raises(ValueError):
        spec.kind.check_machine(spec.kind.machine(spec, SHAPE, tensors))


def test_only_a_machine_of_any_size_is_resized() -> None:
    for name, kind in FAMILIES.items():
        spec = spec_of(name)
        machine = kind.machine(spec, SHAPE, tensors_of(spec))
        if kind.any_size:
            larger = kind.of_size(machine, (6, 7))
            assert tuple(layer.size for layer in larger.layers) == kind.sizes(spec, (6, 7))
            assert larger.parameters.keys() == machine.parameters.keys()
        else:
            with pytest.raises(UsageError):
                kind.of_size(machine, (6, 7))


def test_a_recipe_and_a_header_have_the_same_machine() -> None:
    asked = PriorShape(hidden=5, family="deep", deeper=(2,), weight_scale=0.3)
    assert asked.alone == Spec(hidden=5, family="deep", deeper=(2,))
    with pytest.raises(UsageError):
        PriorShape(hidden=5, deeper=(2,))


def test_every_method_names_a_learner_of_its_family() -> None:
    for method in METHODS.values():
        learner = LEARNERS[method.family][method.learner]
        made = learner.load()(**method.settings)
        assert made is not None


@every_family
def test_a_family_of_any_size_knows_no_places(name: str) -> None:
    kind, means = FAMILIES[name], torch.linspace(0.1, 0.9, 12)
    expected = torch.full((12,), 0.5) if kind.any_size else means
    assert torch.allclose(kind.pixel_means(means), expected)


@every_family
def test_pixels_of_images_of_any_size_share_one_mean(name: str) -> None:
    """A machine that no pixel's place matters to has no place for a mean of each."""
    means, kind = torch.tensor([0.1, 0.3, 0.8]), FAMILIES[name]
    wanted = torch.full((3,), 0.4) if kind.any_size else means
    torch.testing.assert_close(kind.pixel_means(means), wanted)
