"""Recipes for grey pixels and hidden units of other kinds: what they may say, and what the published ones did."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from stripes import recipe

import restore
from restore.errors import UsageError
from restore.learning.recipe.recipe import parse, read_recipe
from restore.registry import LEARNERS
from restore.zoo import describe, published_folder

BAD: dict[str, dict[str, Any]] = {
    "grey-unit-zero": {"learner": {"grey_unit": 0.0}},
    "grey-unit-large": {"learner": {"grey_unit": 1.5}},
    "grey-unit-nan": {"learner": {"grey_unit": float("nan")}},
    "grey-unit-without-gauge": {"learner": {"centring": False}},
    "grey-unit-of-bits": {"prior": {"visible": "bernoulli"}},
    "sampled": {"data": {"binarisation": "sampled"}},
    "visible": {"prior": {"visible": "gaussian"}},
    "hidden-type": {"prior": {"hidden_type": "potts"}},
    "auto": {"prior": {"hidden": "auto"}},
    "deeper-alone": {"prior": {"deeper": [2]}},
    "deep-alone": {"prior": {"family": "deep"}},
    "deeper-zero": {"prior": {"family": "deep", "deeper": [0]}},
    "deeper-number": {"prior": {"family": "deep", "deeper": 3}},
    "deeper-words": {"prior": {"family": "deep", "deeper": ["a"]}},
    "deep-auto": {"prior": {"family": "deep", "deeper": [2], "hidden": "auto"}},
    "modes": {"inference": {"modes": 5}},
    "products": {"inference": {"solver": "sum_product", "starts": 0}},
    "geometric-to-nothing": {"optimizer": {"schedule": "geometric"}},
    "constant-with-end": {"optimizer": {"schedule": "constant", "end": 0.1}},
    "end": {"optimizer": {"end": 1.5}},
    "end-nan": {"optimizer": {"end": float("nan")}},
    "task": {"data": {"task": "noise:0.1"}},
}


@pytest.mark.parametrize("tables", BAD.values(), ids=[f"36-{name}" for name in BAD])
def test_wrong_combinations_are_refused_by_their_key(tables: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as caught:
        recipe(**tables)
    assert "\n" not in str(caught.value) and caught.value.exit_code == 2
    keys = {*tables, "grey_unit", "deeper", "end", *(key for table in tables.values() for key in table)}
    assert any(key in str(caught.value) for key in keys)


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
    method = next(iter(LEARNERS[family]))
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
