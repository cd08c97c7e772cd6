"""Priors on disk: round trips, what replaces what, and places that cannot be written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from exports import GENERAL, conditional_prior, prior_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from priors import random_convolutional_deep_prior
from safetensors import safe_open
from safetensors.torch import load_file

from restore import zoo
from restore.errors import OutputError, TrainingError
from restore.zoo import CARD, WEIGHTS, TrainedPrior, card_of, describe, load, save
from restore.zoo.description import NEWEST


def same(first: TrainedPrior, second: TrainedPrior) -> bool:
    tensors = [
        {**prior.machine.parameters, "pixel_means": prior.pixel_means, "modes": prior.modes}
        for prior in (first, second)
    ]
    return first.description == second.description and all(
        torch.equal(value, tensors[1][name]) and value.dtype == tensors[1][name].dtype
        for name, value in tensors[0].items()
    )


pytestmark = pytest.mark.usefixtures("quick_disk")


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(1, 5), st.integers(1, 5), st.integers(1, 4), st.integers(0, 9))
def test_round_trip(tmp_path: Path, height: int, width: int, hidden: int, modes: int) -> None:
    prior = prior_of(shape=(height, width), hidden=hidden, modes=modes)
    save(tmp_path / "again", prior, "card")
    assert same(load(tmp_path / "again"), prior)
    assert describe(tmp_path / "again") == prior.description
    assert card_of(tmp_path / "again") == "card"


def test_round_trip_of_a_temperature_that_only_the_own_solver_has(tmp_path: Path) -> None:
    prior = prior_of(modes=0)
    prior = replace(prior, description=replace(prior.description, temperature=1.25))
    save(tmp_path / "again", prior, "card")
    header = describe(tmp_path / "again")
    assert header == prior.description
    assert (header.with_solver("tap").temperature, header.with_solver("mean_field").temperature) == (1.25, 1.0)


def test_a_graph_of_other_weights_does_not_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "again"
    save(folder, prior_of(), "card")
    (folder / zoo.GRAPH).write_bytes(b"a graph")

    def full(path: Path, content: bytes, error: type[Exception]) -> None:
        raise error("no space left")

    with monkeypatch.context() as patch, pytest.raises(OutputError):
        patch.setattr(zoo.store, "write_atomically", full)
        save(folder, prior_of(), "card")
    assert (folder / zoo.GRAPH).read_bytes() == b"a graph"
    save(folder, prior_of(), "card")
    assert not (folder / zoo.GRAPH).exists()


CONVOLUTIONAL = ("deep_convolutional", "informed_convolutional")
OTHERS: dict[str, Callable[[], TrainedPrior]] = GENERAL | {"conditional": conditional_prior}
OTHERS |= {name: partial(random_convolutional_deep_prior, family=name) for name in CONVOLUTIONAL}


@pytest.mark.parametrize("make", OTHERS.values(), ids=OTHERS)
def test_round_trip_of_other_kinds(make: Callable[[], TrainedPrior], tmp_path: Path) -> None:
    prior = make()
    save(tmp_path / "again", prior, "card")
    result, header = load(tmp_path / "again"), prior.description
    assert (
        same(result, prior) and type(result.machine) is type(prior.machine) and describe(tmp_path / "again") == header
    )
    layers = [[type(layer) for layer in getattr(one.machine, "layers", ())] for one in (result, prior)]
    assert layers[0] == layers[1]
    # Matrices that half precision holds take no more.
    for name, value in load_file(tmp_path / "again" / WEIGHTS).items():
        fits = value.dim() == 2 and name != "modes" and bool((value.half() == value).all())
        assert (value.dtype == torch.float16) == fits, name
    assert (result.grey_pixels is None) == (not header.grey)
    if prior.grey_pixels is not None and result.grey_pixels is not None:
        for name, value in prior.grey_pixels.parameters.items():
            assert torch.equal(result.grey_pixels.parameters[name], value)
    with safe_open(tmp_path / "again" / WEIGHTS, framework="numpy") as stored:
        assert stored.metadata()["format_version"] == str(NEWEST)


def test_weights_that_half_precision_holds_take_half_the_room_and_stay_exact(tmp_path: Path) -> None:
    full = prior_of()
    rounded = replace(
        full,
        machine=full.machine.with_parameters(
            full.machine.parameters | {"weights.0": full.machine.weights.half().float()}
        ),
    )
    for name, prior, kind in (("full", full, torch.float32), ("rounded", rounded, torch.float16)):
        save(tmp_path / name, prior, "")
        assert load_file(tmp_path / name / WEIGHTS)["weights.0"].dtype == kind
        assert same(load(tmp_path / name), prior)
    # A weight beyond the range of half precision is not rounded to infinity.
    large = replace(
        full,
        machine=full.machine.with_parameters(
            full.machine.parameters | {"weights.0": torch.full_like(full.machine.weights, 2.0**17)}
        ),
    )
    save(tmp_path / "large", large, "")
    assert same(load(tmp_path / "large"), large)


def test_saving_again_replaces(folder: Path) -> None:
    other = replace(prior_of(), description=replace(prior_of().description, threshold=99))
    save(folder, other, "new")
    assert load(folder).description.threshold == 99
    assert sorted(path.name for path in folder.iterdir()) == [CARD, WEIGHTS]


@pytest.mark.parametrize("error", [OutputError, TrainingError])
def test_places_that_cannot_be_written(error: type[Exception], folder: Path) -> None:
    before = (folder / WEIGHTS).read_bytes()
    with pytest.raises(error):
        save(folder / CARD / "below", prior_of(), "", error)
    (folder / "taken" / WEIGHTS).mkdir(parents=True)
    with pytest.raises(error):
        save(folder / "taken", prior_of(), "", error)
    assert (folder / WEIGHTS).read_bytes() == before
