"""Recipes: what they say, their defaults and their digest."""

from __future__ import annotations

import inspect
import json
from dataclasses import fields
from pathlib import Path

import pytest
from lessons import GOOD, write

from restore.data.sets import NAMED_SETS
from restore.learning.recipe.recipe import parse, read_recipe
from restore.learning.recipe.spec import Optimizer
from restore.learning.rules.frank_wolfe import FrankWolfe
from restore.learning.rules.tap_likelihood import TAPLikelihood
from restore.zoo import describe, published_folder
from restore.zoo.inference import Inference
from training.data.make import PAIRS, SETS


def with_line(table: str, line: str) -> str:
    """The good recipe with one more line in a table; "" is the top of the file."""
    head = f"[{table}]\n" if table else "\n"
    if head in GOOD:
        return GOOD.replace(head, f"{head}{line}\n", 1)
    return f"{GOOD}{head}{line}\n"


ROOT = Path(__file__).parents[2]
TRAINING = sorted((ROOT / "training" / "recipes").rglob("*.toml"))
# The digest of every recipe by its path, and that in every published header, as they are meant to stay: a change of
# shapes in the code must not change what a recipe says. `training/restamp.py` writes headers anew if it has to.
DIGESTS = json.loads((Path(__file__).parent / "recipe_digests.json").read_text("utf-8"))


def test_the_digests_of_recipes_and_published_priors_stay() -> None:
    recipes = {path.relative_to(ROOT).as_posix(): read_recipe(path).digest for path in TRAINING}
    headers = {folder.name: describe(folder).recipe for folder in published_folder().iterdir() if folder.is_dir()}
    assert recipes == DIGESTS["recipes"]
    assert headers == DIGESTS["headers"]


@pytest.mark.parametrize("path", TRAINING, ids=lambda path: path.stem)
def test_what_a_recipe_says_as_a_dictionary_is_the_recipe(path: Path) -> None:
    recipe = read_recipe(path)
    tables = recipe.as_dict()
    for name, settings in (("learner", recipe.learner), ("growth", recipe.growth)):
        for field in fields(settings):
            if not field.init:  # a constant of the learner, no key
                del tables[name][field.name]
    tables["learner"] = {"method": tables.pop("method")} | tables["learner"]
    if recipe.prior.kind.learnt:
        # Its inference follows from its learner.
        del tables["inference"]
    assert parse(tables) == recipe


@pytest.mark.parametrize("path", TRAINING, ids=lambda path: path.stem)
def test_published_recipes_are_sound_and_named_as_their_file(path: Path) -> None:
    recipe = read_recipe(path)
    assert recipe.name == path.stem
    if (published_folder() / path.stem).exists():
        assert describe(published_folder() / path.stem).recipe == recipe.digest
    assert recipe.data.source in (*NAMED_SETS, *SETS, *PAIRS)
    assert recipe.data.threshold == 127


def test_digest_and_facts_depend_on_content_not_on_layout(tmp_path: Path) -> None:
    first = read_recipe(write(tmp_path, GOOD))
    same = read_recipe(write(tmp_path, "# a comment\n" + GOOD.replace("hidden = 5", "hidden   =   0x5")))
    explicit = read_recipe(write(tmp_path, with_line("", "seed = 0")))
    other = read_recipe(write(tmp_path, GOOD.replace("hidden = 5", "hidden = 6")))
    renamed = read_recipe(write(tmp_path, GOOD.replace("digits", "numbers")))
    assert first.digest == same.digest == explicit.digest
    assert len({first.digest, other.digest, renamed.digest}) == 3
    # Defaults count as if they were written out.
    for table, line in (("optimizer", "average = 0.0"), ("training", "last = 0"), ("prior", 'family = "rbm"')):
        assert read_recipe(write(tmp_path, with_line(table, line))).digest == first.digest
    assert read_recipe(write(tmp_path, with_line("optimizer", "average = 0.5"))).digest != first.digest
    assert first.training_facts == renamed.training_facts != other.training_facts


@pytest.mark.parametrize(
    ("settings", "name"),
    [(Optimizer, "momentum"), (Inference, "damping"), (TAPLikelihood, "tol"), (FrankWolfe, "penalty")],
)
def test_another_default_is_another_digest(
    settings: type, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, GOOD)
    before, first = read_recipe(path), inspect.signature(settings)
    values = [0.125 if key == name else entry.default for key, entry in first.parameters.items()]
    monkeypatch.setattr(settings.__init__, "__defaults__", tuple(values))
    # Tables of their own are made when a recipe is.
    assert read_recipe(path).digest != before.digest
