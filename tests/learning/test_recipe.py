"""Recipes: what they say, their defaults and their digest."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
from recipes import GOOD, conditional, with_line, write

from restore.data.sets import NAMED
from restore.families import FAMILIES
from restore.learning.recipe.recipe import read_recipe
from restore.learning.recipe.spec import Data, Optimizer
from restore.learning.rules.conditional.divergence import ConditionalDivergence
from restore.learning.rules.contrastive import ContrastiveDivergence
from restore.learning.rules.frank_wolfe import FrankWolfe
from restore.learning.rules.tap_likelihood import TAPLikelihood
from restore.zoo import describe, published_folder
from restore.zoo.inference import Inference
from training.data.make import SETS

TRAINING = sorted((Path(__file__).parents[2] / "training" / "recipes").rglob("*.toml"))


@pytest.mark.parametrize("path", TRAINING, ids=lambda path: path.stem)
def test_published_recipes_are_sound_and_named_as_their_file(path: Path) -> None:
    recipe = read_recipe(path)
    assert recipe.name == path.stem
    if (published_folder() / path.stem).exists():
        assert describe(published_folder() / path.stem).recipe == recipe.digest
    assert recipe.data.source in (*NAMED, *SETS)
    assert recipe.data.threshold == 127


def test_a_recipe_says_everything(tmp_path: Path) -> None:
    recipe = read_recipe(
        write(
            tmp_path,
            """
            name = "my.digits-2"
            seed = 7
            storage = "float32"
            data = { source = "some/folder", threshold = 100, binarisation = "sampled" }
            prior = { family = "rbm", hidden = 12, weight_scale = 1 }
            [learner]
            method = "contrastive"
            starts = "persistent"
            chains = 20
            steps = 3
            centring = false
            inner_steps = 2
            [optimizer]
            name = "adam"
            rate = 1e-3
            momentum = 0.9
            weight_decay = 0
            schedule = "constant"
            [training]
            epochs = 3
            batch = 50
            checkpoint_every = 2
            [inference]
            solver = "mean_field"
            max_iter = 10
            tol = 0.001
            damping = 0.1
            modes = 0
            starts = 1
            """,
        )
    )
    assert (recipe.name, recipe.seed, recipe.storage, recipe.method) == ("my.digits-2", 7, "float32", "contrastive")
    assert recipe.data == Data("some/folder", 100, binarisation="sampled")
    # Whole numbers are numbers.
    assert (recipe.prior.hidden, recipe.prior.weight_scale) == (12, 1.0)
    assert isinstance(recipe.prior.weight_scale, float)
    assert recipe.learner == ContrastiveDivergence("persistent", 20, 3, False, 2)
    assert (recipe.optimizer.name, recipe.optimizer.rate, recipe.optimizer.schedule) == ("adam", 1e-3, "constant")
    assert (recipe.training.epochs, recipe.training.batch, recipe.training.checkpoint_every) == (3, 50, 2)
    assert (recipe.inference.solver, recipe.inference.max_iter, recipe.inference.starts) == ("mean_field", 10, 1)


@pytest.mark.parametrize("method", FAMILIES["crbm"].learners)
def test_every_conditional_learner_has_a_recipe(method: str, tmp_path: Path) -> None:
    # Logistic regression has no hidden units, and the only sign of that is that their weights stay at 0.
    scale = "weight_scale = 0" if method == "logistic" else ""
    recipe = read_recipe(write(tmp_path, conditional(f'[learner]\nmethod = "{method}"', f"[prior]\n{scale}")))
    assert (recipe.method, recipe.learner) == (method, FAMILIES["crbm"].learners[method].load()())
    assert (recipe.data.validation, recipe.optimizer.average) == (0, 0)


def test_families_do_not_share_learners_of_one_name(tmp_path: Path) -> None:
    plain = read_recipe(write(tmp_path, GOOD.replace('"tap"', '"contrastive"')))
    paired = read_recipe(write(tmp_path, conditional('[learner]\nmethod = "contrastive"')))
    assert (type(plain.learner), type(paired.learner)) == (ContrastiveDivergence, ConditionalDivergence)
    assert plain.digest != paired.digest


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
