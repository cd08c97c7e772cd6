"""From facts about images to a recipe that can be written down and read again."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from restore.errors import UsageError
from restore.learning.options import TrainOptions
from restore.learning.recipe.plan import METHODS, PLENTY, Facts, plan, usual, written
from restore.learning.recipe.recipe import Recipe, parse
from restore.learning.rules.principal import Principal

BINARY = Facts(1000, (20, 30), "binary", 99)
GREY = Facts(1000, (20, 30), "grey", black=0.01)
DARK = Facts(1000, (20, 30), "grey", black=0.8)


def tables(facts: Facts = BINARY, **asked: Any) -> dict[str, Any]:
    return plan("mine", 'some "images" \\ Ä\x7f', facts, TrainOptions(**asked, seed=3))


def recipe(facts: Facts = BINARY, **asked: Any) -> Recipe:
    return parse(tables(facts, **asked))


CASES = [
    *[
        (facts, {"method": name} | ({"task": "flip:0.2"} if method.learnt else {}))
        for name, method in METHODS.items()
        for facts in (BINARY, GREY, DARK)
        if facts.levels in method.levels
    ],
    (BINARY, {"hidden": "auto"}),
    (GREY, {"hidden": "auto"}),
    (BINARY, {"minutes": 3}),
    (BINARY, {"method": "fw", "minutes": 0.5}),
    (BINARY, {"method": "tap"}),
]


@pytest.mark.parametrize(("facts", "asked"), CASES)
@pytest.mark.parametrize("images", [2, 100, 5000, 10**6])
def test_every_plan_is_a_recipe_that_can_be_written_and_read(facts: Facts, asked: dict[str, Any], images: int) -> None:
    made = tables(Facts(images, facts.image_shape, facts.levels, facts.threshold, facts.black), **asked)
    assert tomllib.loads(written(made)) == made
    read = parse(tomllib.loads(written(made)))
    assert read == parse(made)
    assert (read.name, read.seed, read.data.gathering.shape) == ("mine", 3, (20, 30))
    assert read.prior.kind.learnt == bool(asked.get("task"))
    assert read.training.minutes == asked.get("minutes", 0)


def test_the_method_follows_from_the_images_and_the_task() -> None:
    plain = recipe()
    assert (plain.method, plain.prior.family, plain.training.watch) == ("matched", "informed_convolutional", "flip:0.1")
    layers = usual("convolutional")["prior"]["layers"]
    assert plain.data.threshold == 99 and [[*layer] for layer in plain.prior.layers] == layers
    thinner = recipe(method="convolutional", hidden=layers[0][0] // 2).prior.layers
    assert [[*layer] for layer in thinner] == [[number // 2, *window] for number, *window in layers]
    whole = recipe(method="tap")
    assert (whole.method, whole.learner.starts, whole.training.watch) == ("tap", "redrawn", "flip:0.1")
    assert whole.prior.hidden == 200
    # What only other machines have, and images smaller than a feature.
    assert recipe(hidden=7).method == recipe(tables={"optimizer": {"rate": 0.1}}).method == "tap"
    assert recipe(Facts(100, (3, 30), "binary")).method == "tap"
    grey = recipe(GREY)
    assert isinstance(grey.learner, Principal) and grey.data.variations.copies == 20
    dark = recipe(DARK)
    assert (dark.method, dark.prior.visible, dark.training.watch) == ("tap", "truncated-gauss-bernoulli", "noise:0.2")
    assert recipe(GREY, epochs=3).method == "tap"
    assert recipe(GREY, hidden=7).prior.hidden == 7
    assert recipe(task="patch:8").method == "belief_propagation"
    assert recipe(hidden="auto").prior.grows and recipe(GREY, hidden="auto").prior.grows
    assert recipe(method="fw").prior.grows and recipe(method="fw", hidden=9).prior.hidden == 9


def test_where_nothing_else_ends_growth_the_plan_says_how_many_units_there_are() -> None:
    assert recipe(hidden="auto").prior.filled == recipe(method="tap").prior.hidden == 200  # of few images
    assert recipe(Facts(10_000, (20, 30), "binary"), hidden="auto").prior.filled == 600  # as many as pixels
    assert recipe(Facts(10_000, (28, 28), "binary"), hidden="auto").prior.filled == 700
    assert recipe(Facts(10, (28, 28), "binary"), hidden="auto").prior.filled == 50  # 10 images, each 20 times
    assert recipe(hidden="auto", tables={"growth": {"units": 20}}).prior.filled == 0
    assert recipe(hidden="auto", task="flip:0.1").prior.filled == 250
    assert recipe(method="fw").prior.filled == recipe(hidden=9).prior.filled == 0


def test_what_is_asked_for_goes_before_the_plan() -> None:
    made = recipe(hidden=12, epochs=7, tables={"training": {"batch": 3}, "learner": {"method": "spectral"}})
    assert (made.prior.hidden, made.training.epochs, made.training.batch, made.method) == (12, 7, 3, "spectral")
    rounds = recipe(hidden=3, tables={"learner": {"method": "frank_wolfe", "penalty": 0.5}})
    assert (rounds.method, rounds.learner.penalty, rounds.training.epochs) == ("frank_wolfe", 0.5, 0)
    margin = recipe(task="flip:0.1", tables={"learner": {"method": "marginal_max_margin"}})
    assert margin.optimizer == recipe(task="flip:0.1", method="crbm-mssvm").optimizer
    timed = recipe(minutes=2)
    assert timed.training == replace(recipe().training, minutes=2.0)


@settings(max_examples=40)
@given(images=st.integers(2, 10**6))
def test_few_images_hold_a_prior_back_and_are_seen_more_often_and_moved(images: int) -> None:
    made, more = (recipe(Facts(each, (28, 28), "binary"), method="tap") for each in (images, 2 * images))
    varied = made.data.variations
    assert (varied.copies, varied.shift) == ((0, 0) if images >= PLENTY else (min(20, -(-PLENTY // images)), 4))
    images *= varied.copies or 1
    assert made.optimizer.weight_decay >= more.optimizer.weight_decay >= 1e-4
    assert made.prior.hidden <= more.prior.hidden <= 784 // 3
    steps = made.training.epochs * images / made.training.batch
    wanted = usual("binary")["plan"]["steps"]
    assert steps >= 0.9 * wanted
    # At least ten epochs of very many images are more than that.
    assert made.training.epochs == 10 or steps <= 1.1 * wanted
    assert made.training.epochs / made.training.watch_every <= 60


REFUSED: dict[str, tuple[Facts, dict[str, Any], str]] = {
    "method": (BINARY, {"method": "magic"}, "method"),
    "task-missing": (BINARY, {"method": "crbm-bp"}, "task"),
    "task-of-none": (BINARY, {"method": "tap", "task": "flip:0.1"}, "task"),
    "both-lengths": (BINARY, {"epochs": 3, "minutes": 1}, "epochs and minutes"),
    "no-epochs": (BINARY, {"epochs": 0}, "epochs"),
    "no-minutes": (BINARY, {"minutes": 0}, "minutes"),
    "minutes-nan": (BINARY, {"minutes": float("nan")}, "minutes"),
    "binary-learner": (GREY, {"method": "pcd"}, "pcd"),
    "task-of-grey": (GREY, {"task": "noise:0.1"}, "crbm-bp"),
    "grey-learner": (BINARY, {"method": "principal"}, "principal"),
    "growing-grey": (DARK, {"hidden": "auto"}, "[prior] hidden"),
    "epochs-of-rounds": (BINARY, {"method": "fw", "epochs": 3}, "[training] epochs"),
    "table": (BINARY, {"tables": {"growth": 3}}, "growth"),
    "hidden": (BINARY, {"hidden": -1}, "hidden"),
    "no-hidden": (BINARY, {"hidden": 0}, "hidden"),
    "hidden-of-none": (BINARY, {"method": "fvbm", "hidden": 50}, "hidden"),
    "hidden-of-logistic": (BINARY, {"method": "crbm-lr", "task": "flip:0.1", "hidden": "auto"}, "hidden"),
}


@pytest.mark.parametrize(("facts", "asked", "subject"), REFUSED.values(), ids=[f"36-{name}" for name in REFUSED])
def test_what_cannot_be_done_is_refused_with_its_remedy(facts: Facts, asked: dict[str, Any], subject: str) -> None:
    with refused(UsageError, subject):
        recipe(facts, **asked)
