"""Recipes for grey pixels and hidden units of other kinds: what they may say, and what the published ones did."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from stripes import recipe

import restore
from restore.errors import UsageError
from restore.families import FAMILIES
from restore.learning.optimizers import scheduled_rate
from restore.learning.recipe.recipe import parse, read_recipe
from restore.learning.recipe.spec import Optimizer
from restore.zoo import describe, published_folder


@pytest.mark.parametrize(
    ("schedule", "end", "rates"),
    [
        ("constant", 0.0, (0.2, 0.2, 0.2)),
        ("linear", 0.0, (0.2, 0.1, 0.0)),
        ("linear", 0.5, (0.2, 0.15, 0.1)),
        ("geometric", 0.25, (0.2, 0.1, 0.05)),
    ],
)
def test_schedules_fall_to_their_end(schedule: str, end: float, rates: tuple[float, ...]) -> None:
    settings = Optimizer(rate=0.2, schedule=schedule, end=end)  # type: ignore[arg-type]
    assert [scheduled_rate(settings, share) for share in (0, 0.5, 1)] == pytest.approx(rates)


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "grey-unit-zero": ({"learner": {"grey_unit": 0.0}}, r"\[learner\] grey_unit must lie in \(0, 1\], not 0"),
    "grey-unit-large": ({"learner": {"grey_unit": 1.5}}, r"\[learner\] grey_unit must lie in \(0, 1\], not 1.5"),
    "grey-unit-nan": ({"learner": {"grey_unit": float("nan")}}, r"grey_unit must lie in \(0, 1\], not nan"),
    "grey-unit-without-gauge": ({"learner": {"centring": False}}, "grey_unit is part of the centred gauge; leave it"),
    "grey-unit-of-bits": ({"prior": {"visible": "bernoulli"}}, r"\[learner\] grey_unit is for grey pixels; leave it"),
    "sampled": (
        {"data": {"binarisation": "sampled"}},
        r"\[data\] binarisation is for black and white .* leave it out",
    ),
    "visible": ({"prior": {"visible": "gaussian"}}, r"\[prior\] visible .* bernoulli, truncated-gaussian"),
    "hidden-type": ({"prior": {"hidden_type": "potts"}}, r"\[prior\] hidden_type .* bernoulli, spin"),
    "auto": ({"prior": {"hidden": "auto"}}, r'\[prior\] hidden = "auto" grows binary units only; give a number'),
    "deeper-alone": ({"prior": {"deeper": [2]}}, r'\[prior\] deeper .* "deep"'),
    "deep-alone": (
        {"prior": {"family": "deep"}},
        r"\[prior\] deeper .* at least 1",
    ),
    "deeper-zero": ({"prior": {"family": "deep", "deeper": [0]}}, r"\[prior\] deeper .* at least 1"),
    "deeper-number": ({"prior": {"family": "deep", "deeper": 3}}, r"\[prior\] deeper must be a list, not 3"),
    "deeper-words": ({"prior": {"family": "deep", "deeper": ["a"]}}, r"deeper entries must be a whole number"),
    "deep-auto": (
        {"prior": {"family": "deep", "deeper": [2], "hidden": "auto"}},
        r"hidden of a deep .* number",
    ),
    "modes": ({"inference": {"modes": 5}}, r"\[inference\] modes are for binary units; set it to 0"),
    "products": (
        {"inference": {"solver": "sum_product", "starts": 0}},
        r"\[inference\] sum_product is for binary units in two layers; take tap",
    ),
    "geometric-to-nothing": ({"optimizer": {"schedule": "geometric"}}, r"\[optimizer\] end is missing; a geometric"),
    "constant-with-end": ({"optimizer": {"schedule": "constant", "end": 0.1}}, r"\[optimizer\] end has no meaning"),
    "end": ({"optimizer": {"end": 1.5}}, r"\[optimizer\] end is the share .* in \[0, 1\], not 1.5"),
    "end-nan": ({"optimizer": {"end": float("nan")}}, r"\[optimizer\] end is the share .* not nan"),
    "task": ({"data": {"task": "noise:0.1"}}, r"\[data\] task .* leave it out"),
}


@pytest.mark.parametrize(("tables", "says"), BAD.values(), ids=[f"36-{name}" for name in BAD])
def test_wrong_combinations_are_refused_with_their_remedy(tables: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError) as caught:
        recipe(**tables)
    assert "\n" not in str(caught.value) and caught.value.exit_code == 2


@pytest.mark.parametrize("method", ["spectral", "frank_wolfe"])
def test_36_learners_of_binary_units_alone(method: str) -> None:
    epochs = {} if method == "frank_wolfe" else {"training": {"epochs": 2}}
    prior = {"hidden": 3, "visible": "truncated-gaussian"}
    with pytest.raises(UsageError):
        parse({"name": "x", "data": {"source": "y"}, "prior": prior, "learner": {"method": method}} | epochs)


@pytest.mark.parametrize("family", ["crbm", "fvbm"])
@pytest.mark.parametrize("key", ["visible", "hidden_type"])
def test_36_families_of_binary_units_alone(family: str, key: str) -> None:
    prior = {"family": family, key: "truncated-gaussian"} | ({"hidden": 3} if family == "crbm" else {})
    data = {"source": "y"} | ({"task": "flip:0.1"} if family == "crbm" else {})
    method = next(iter(FAMILIES[family].learners))
    with pytest.raises(UsageError):
        parse({"name": "x", "data": data, "prior": prior, "learner": {"method": method}})


def test_a_default_that_is_written_out_changes_nothing() -> None:
    tables = {"name": "x", "data": {"source": "y"}, "learner": {"method": "tap"}, "training": {"epochs": 1}}
    told = {"hidden": 3, "visible": "bernoulli", "hidden_type": "bernoulli", "deeper": []}
    assert parse(tables | {"prior": told}) == parse(tables | {"prior": {"hidden": 3}})
    assert parse(tables | {"prior": told}).digest == parse(tables | {"prior": {"hidden": 3}}).digest


@pytest.mark.parametrize("path", sorted((Path(restore.__file__).parent.parent / "training" / "recipes").glob("*.toml")))
def test_recipes_have_the_digests_that_the_priors_made_of_them_tell(path: Path) -> None:
    folder = published_folder() / path.stem
    if not folder.exists():
        pytest.skip("no prior of this recipe is published")
    assert describe(folder).recipe == read_recipe(path).digest
