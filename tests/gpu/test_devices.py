"""All that computes with tensors, on a GPU that is not there: devices do not mix, and numbers are the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from fits import CONDITIONAL, IMAGES, LEARNERS, conditional_recipe, damaged_images, recipe_of, run, stopped_run
from kernels import CUDA, Generator, MixedDevices, card, compared, on_card, values_of
from machines import random_rbm, seeded
from priors import SPIKED, TRUNCATED, grey_prior
from settling import Settling
from textbook import log_likelihood
from together import PIPELINES
from torch import Tensor
from unit_cases import CASES

from restore.channels import BitFlip, Damage, GaussianNoise, Occlusion, SaltAndPepper, parse_task
from restore.families import FAMILIES, Features, Spec
from restore.fields import Fields
from restore.learning.course import CleanImages
from restore.learning.recipe.recipe import parse
from restore.learning.recipe.spec import Training
from restore.learning.run.session import Session
from restore.learning.steps import fit
from restore.learning.train import train
from restore.registry import SOLVERS
from restore.solvers import SeveralStarts, solver_of
from restore.solvers.messages.belief_propagation import BeliefPropagation
from restore.solvers.samplers.gibbs import gibbs_steps
from restore.zoo.inference import Inference

Place = Callable[[Any], Any]

pytestmark = pytest.mark.usefixtures("quick_disk", "quick_growth")


# --- the card itself ---


def test_what_a_gpu_refuses_is_refused() -> None:
    with card() as mode:
        there, here = on_card(mode, torch.ones(3)), torch.ones(3)
        assert there.device == CUDA and there.is_cuda
        for mixed in (
            lambda: there + here,
            lambda: here[on_card(mode, torch.tensor([0]))],
            lambda: torch.stack([there, here]),
            lambda: torch.rand(3, device="cuda", generator=torch.Generator()),
            lambda: torch.bernoulli(there, generator=torch.Generator()),
            lambda: torch.where(here > 0, there, 0.0),
        ):
            with pytest.raises(MixedDevices):
                mixed()
        with pytest.raises(TypeError):
            there.numpy()


def test_what_a_gpu_takes_is_taken() -> None:
    with card() as mode:
        there = on_card(mode, torch.arange(4.0))
        drawn = torch.rand(4, device="cuda", generator=torch.Generator("cuda").manual_seed(1))
        found = [
            there * torch.tensor(2.0),  # a number
            there[torch.tensor([1, 2])],
            there.cpu().to(there),
            torch.where(there > 1, there, 0.0),
            drawn,
        ]
        assert there.cpu().numpy().tolist() == there.tolist() == [0, 1, 2, 3]
        assert bool(there.any()) and int(there.sum()) == 6
        there[there > 2] = -1.0
    assert [values_of(each).tolist() for each in found[:4]] == [[0, 2, 4, 6], [1, 2], [0, 1, 2, 3], [0, 0, 2, 3]]
    assert torch.equal(values_of(drawn), torch.rand(4, generator=Generator().manual_seed(1)))
    assert values_of(there).tolist() == [0, 1, 2, -1]


# --- units, channels, solvers ---


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_units(case: Any) -> None:
    def work(place: Place) -> Any:
        units = place(case.units(torch.float32))
        fields = Fields(*(place(torch.full((5, 2), value)) for value in (0.3, 0.5, -0.2)))
        draw = torch.Generator(units.parameters["bias"].device).manual_seed(1)
        samples = units.sample(fields, draw)
        statistics = units.statistics(samples), units.expected_statistics(fields)
        return units.moments(fields), units.log_partition(fields), units.mode(fields), samples, statistics

    compared(work)


CHANNELS = {
    "flips": lambda place: BitFlip(place(torch.linspace(0, 1, 9))),
    "noise": lambda place: GaussianNoise(place(torch.full((1, 9), 0.2))),
    "salt": lambda place: SaltAndPepper(0.2),
}


@pytest.mark.parametrize("name", CHANNELS)
def test_channels(name: str) -> None:
    def work(place: Place) -> Any:
        channel, images = CHANNELS[name](place), place(IMAGES)
        draw = torch.Generator(images.device).manual_seed(1)
        seen = channel.corrupt(images, draw)
        evidence = channel.evidence(seen)
        return seen, evidence.linear, log_likelihood(channel, seen, images)

    compared(work)


@pytest.mark.parametrize("text", ["flip:0.2", "patch:2", "noise:0.1", "salt:0.1", "holes:1:0.2"])
def test_damage_is_drawn_where_the_generator_is(text: str) -> None:
    """Images on the GPU, damaged by numbers from the processor, as evaluation has them; and by numbers from the GPU."""

    def work(place: Place) -> Any:
        images = place(IMAGES)
        task = parse_task(text)
        found = []
        for device in (images.device, torch.device("cpu")):
            damaged = task.damage(images, (3, 3), torch.Generator(device).manual_seed(1))
            evidence = damaged.damage.channel(grey=False).evidence(damaged.observed)
            found.append((damaged.observed, evidence.linear))
        return found

    compared(work)


def spec_of(name: str, visible: str = "") -> Spec:
    asked: dict[str, dict[str, Any]] = {
        "deep": {"deeper": (2, 3)},
        "deep_convolutional": {"hidden": 0, "layers": (Features(5, 3, 1, "rectified"), Features(2, 3, 1, "spin"))},
        "informed_convolutional": {"hidden": 0, "layers": (Features(5, 3, 1, "rectified"), Features(2, 3, 1, "spin"))},
        "conditional_convolutional": {
            "hidden": 0,
            "layers": (Features(5, 6, 2, "rectified"), Features(2, 3, 1, "spin")),
        },
        "mixture": {"components": 3, "visible": "gaussian", "hidden_type": "gaussian"},
        "fvbm": {"hidden": 0},
    }
    return Spec(**{"family": name, "hidden": 5} | asked.get(name, {}) | ({"visible": visible} if visible else {}))


def machine_of(spec: Spec) -> Any:
    draw, shape = seeded(), (3, 4)
    made = {name: 0.1 * torch.rand(size, generator=draw) for name, size in spec.kind.shapes(spec, shape).items()}
    if spec.kind.structure == "pairwise":
        made["weights.0"] = (made["weights.0"] + made["weights.0"].T).fill_diagonal_(0)
    return spec.kind.machine(spec, shape, made)


SPECS = {name: spec_of(name) for name in FAMILIES}
SPECS |= {f"rbm-{kind}": spec_of("rbm", kind) for kind in (TRUNCATED, SPIKED)}


def solver_cases() -> Iterator[Any]:
    """Each family with each of its solvers; those of which neither is new are thorough."""
    met = set[str]()
    for name, spec in SPECS.items():
        for solver in spec.solvers:
            marks = [pytest.mark.thorough] if {name, solver} <= met else []
            yield pytest.param(name, solver, marks=marks, id=f"{name}-{solver}")
            met |= {name, solver}


@pytest.mark.parametrize(("name", "solver"), list(solver_cases()))
def test_solvers(name: str, solver: str) -> None:
    spec = SPECS[name]
    # Some rows end and others go on; more iterations would only repeat these.
    settings = Inference(solver, max_iter=4, tol=1e-2, modes=0, starts=int(SOLVERS[solver].starts))
    seen = (torch.rand(4, 12, generator=seeded(2)) < 0.5).float()

    def work(place: Place) -> Any:
        evidence = seen if spec.kind.learnt else 4 * seen - 2
        known = spec.grey or spec.kind.pages
        fields = Fields(place(evidence), place(torch.ones(1, 12) if known else torch.zeros(())))
        found = solver_of(settings).solve(spec.kind.given(place(machine_of(spec)), fields))
        return found.means, found.variances, found.log_partition, found.status

    compared(work, atol=2e-4)


@pytest.mark.parametrize("kind", ["sum", "max", "mixed"])
def test_belief_propagation_with_damping_and_pairs(kind: Any) -> None:
    def work(place: Place) -> Any:
        machine = place(random_rbm(5, 4, dtype=torch.float32).tilt(Fields(torch.randn(3, 5, generator=seeded(1)))))
        found = [BeliefPropagation(kind, 4, 1e-2, damping).solve(machine) for damping in (0.0, 0.3)]
        return found, BeliefPropagation(max_iter=4).solve(machine, pairs=True).pairs

    compared(work, atol=2e-4)


def test_several_starts_and_further_tries() -> None:
    def work(place: Place) -> Any:
        machine = place(random_rbm(8, 5, scale=2.0, dtype=torch.float32).tilt(Fields(torch.zeros(3, 8))))
        starts = place(torch.rand(3, 4, 8, generator=seeded(4)))
        solver = solver_of(Inference("tap", max_iter=3, tol=1e-6))
        needy = place(torch.tensor([True, False, True]))

        def others(rows: Tensor) -> Tensor:
            return starts[rows, 1:]

        return (
            SeveralStarts(solver).solve(machine, starts),
            SeveralStarts(solver).solve_where_needed(machine, starts[:, 0], needy, others, starts.new_ones(3)),
            Settling(solver).solve(machine, starts[:, 0]),
        )

    compared(work, rtol=1e-3, atol=1e-3)


def test_chains() -> None:
    def work(place: Place) -> Any:
        machine = place(random_rbm(6, 4, dtype=torch.float32))
        draw = torch.Generator(machine.weights.device).manual_seed(1)
        return gibbs_steps(machine, place(torch.zeros(5, 6)), 3, draw)

    compared(work)


# --- engines and what uses them ---


@pytest.mark.parametrize("name", ["binary", "once", "grey"])
def test_the_engine_restores_what_it_is_given_on_any_device(name: str) -> None:
    from priors import PIXELS, SHAPE, some_images, trained

    from restore.inference.torch_engine import Engine

    prior = {"binary": trained(clear=0.3), "once": trained(modes=0, starts=1), "grey": grey_prior(shape=SHAPE)}[name]
    if name == "once":  # as it has learnt, without another try
        prior = replace(prior, modes=prior.modes[:0], description=replace(prior.description, method="matched"))
        assert not prior.description.tries_again
    images = some_images(7)
    channel = GaussianNoise(0.2) if name == "grey" else BitFlip(0.1)
    hole = Occlusion(torch.arange(PIXELS) < 4, channel)
    told = Damage(sigma=0.2) if name == "grey" else Damage(p=0.1)

    def work(place: Place) -> Any:
        # Observations come from the processor.
        engine = Engine.of(prior, place(torch.zeros(1)).device)
        found = engine.restore(images, channel), engine.restore(images, hole)
        answer = engine.solve(images.reshape(-1, *SHAPE).numpy(), told)
        numbers = [answer.means, *answer.layers, answer.inversion]
        return found, [float(value) for each in numbers for value in each.reshape(-1)[:50]], engine.light_ground

    compared(work, rtol=1e-3, atol=1e-3)


def test_evaluation_and_likelihoods() -> None:
    from mean_likelihoods import ais_likelihood, exact_likelihood
    from priors import SHAPE, engine_of, some_images, trained
    from pseudo import pseudo_likelihood

    from restore.evaluation.evaluate import evaluate, restorer_of
    from restore.inference.torch_engine import Engine

    def work(place: Place) -> Any:
        images = place(some_images(9))
        engine = Engine.of(trained(), images.device)
        report = evaluate(restorer_of(engine), [images.reshape(-1, *SHAPE)], parse_task("flip:0.1"), seeded(1))
        machine = place(engine_of().trained.machine)
        draw = torch.Generator(images.device).manual_seed(1)
        return (
            report.error_all.mean,
            exact_likelihood(machine, images).mean,
            pseudo_likelihood(machine, images, pixels=12, generator=draw).mean,
            ais_likelihood(machine, images, "linear:6", runs=20, generator=draw).mean,
        )

    compared(work)


def test_the_torch_layer(tmp_path: Path) -> None:
    from priors import saved_prior

    from restore.torch import Restorer

    folder = saved_prior(tmp_path, (3, 4))

    def work(place: Place) -> Any:
        layer = Restorer(folder, iterations=4)
        for name, value in (*layer.named_parameters(), *layer.named_buffers()):
            moved = place(value.detach())
            layer.register_parameter(name, torch.nn.Parameter(moved)) if name in dict(
                layer.named_parameters()
            ) else layer.register_buffer(name, moved)
        images = place(torch.rand(3, 1, 3, 4, generator=seeded(3)).round()).requires_grad_(True)
        mask = place(torch.rand(3, 1, 3, 4, generator=seeded(4)) < 0.3)
        clean = layer(images, p=0.1, mask=mask)
        clean.sum().backward()
        return clean.detach(), images.grad, [value.grad for value in layer.parameters()]

    compared(work)


# --- training, with checkpoints ---


@pytest.mark.parametrize("learner", LEARNERS)
def test_learners(learner: str, tmp_path: Path) -> None:
    recipe = recipe_of(learner, training=Training(epochs=2, batch=14, checkpoint_every=2))

    def work(place: Place) -> Any:
        images = place(IMAGES)
        return fit(recipe, CleanImages(images), Session(tmp_path / images.device.type, "data")).machine.parameters

    compared(work, rtol=1e-3, atol=1e-3)


@pytest.mark.thorough
@pytest.mark.parametrize("learner", CONDITIONAL)
def test_learners_of_conditional_priors(learner: str, tmp_path: Path) -> None:
    recipe = conditional_recipe(learner)

    def work(place: Place) -> Any:
        course = damaged_images()
        course = replace(course, images=place(course.images), validation=place(course.validation))
        found = fit(recipe, course, Session(tmp_path / course.images.device.type, "data"))
        return found.machine.parameters, found.score

    compared(work, rtol=1e-3, atol=1e-3)


# A run that a time ends is as long as its device lets it.
@pytest.mark.thorough
@pytest.mark.parametrize("name", [name for name in PIPELINES if name != "timed"])
def test_pipelines(name: str, tmp_path: Path) -> None:
    # Modes are drawn by the same code after any training; that takes longer than all before.
    modes = {"modes": 3 if name == "deep" else 0, "starts": 1}
    common = {"name": "test", "storage": "float32", "data": {"source": "bars"}, "inference": modes}
    told = PIPELINES[name]
    few = {"learner": told["learner"] | {"rounds": 3}} if name == "bslm" else {}
    recipe = parse(common | told | few)

    def work(place: Place) -> Any:
        images = place(IMAGES)
        found = train(recipe, images, (3, 3), Session(tmp_path / images.device.type, "data"), every=1).prior
        return found.machine.parameters, found.modes, found.pixel_means

    compared(work, rtol=1e-3, atol=1e-3)


def test_a_run_on_the_card_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    with card() as mode:
        images = on_card(mode, IMAGES)
        whole = run(recipe_of(), tmp_path / "whole", images=images)
        stopped_run(tmp_path / "stopped", recipe_of(), images=images)
        found = run(recipe_of(), tmp_path / "stopped", resume=True, images=images)
    for name, value in whole.parameters.items():
        assert torch.equal(values_of(value), values_of(found.parameters[name]))
