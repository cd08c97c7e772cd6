"""Recipes: what they say, and what bad ones get (row 36 of the table of bad inputs)."""

from __future__ import annotations

import inspect
import json
import os
import tomllib
from pathlib import Path

import pytest
from recipes import GOOD, assert_refused, write

from restore.data.loading import NAMED
from restore.errors import UsageError
from restore.learning.recipes.recipe import parse, read_recipe
from restore.learning.recipes.tables import Data, Optimizer
from restore.learning.rules.conditional_divergence import ConditionalDivergence
from restore.learning.rules.contrastive import ContrastiveDivergence
from restore.learning.rules.frank_wolfe import FrankWolfe
from restore.learning.rules.max_margin import MarginalMaxMargin
from restore.learning.rules.tap_likelihood import TAPLikelihood
from restore.registry import LEARNERS
from restore.zoo.description import Inference

RBM_METHODS = "tap, contrastive, spectral, frank_wolfe, principal"

TRAINING = sorted((Path(__file__).parents[2] / "training" / "recipes").rglob("*.toml"))


def with_line(table: str, line: str) -> str:
    """The good recipe with one more line in a table; "" is the top of the file."""
    head = f"[{table}]\n" if table else "\n"
    if head in GOOD:
        return GOOD.replace(head, f"{head}{line}\n", 1)
    return f"{GOOD}{head}{line}\n"


def conditional(*sections: str) -> str:
    """A good recipe of a conditional prior, with more lines in (or other values of) its sections."""
    table = tomllib.loads(GOOD)
    table["data"]["task"] = "flip:0.1"
    table["prior"]["family"] = "crbm"
    table["learner"]["method"] = "mean_field"
    for section in sections:
        for name, entries in tomllib.loads(section).items():
            table[name] = table.get(name, {}) | entries
    lines = [f'name = "{table.pop("name")}"']
    for name, entries in table.items():
        lines += [f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in entries.items())]
    return "\n".join(lines)


@pytest.mark.parametrize("path", TRAINING, ids=lambda path: path.stem)
def test_published_recipes_are_sound_and_named_as_their_file(path: Path) -> None:
    recipe = read_recipe(path)
    assert recipe.name == path.stem
    assert recipe.data.source in NAMED
    assert recipe.data.threshold == 127


def test_there_are_published_recipes() -> None:
    assert {"tap-mnist", "tap-mnist-25", "tap-mnist-50", "tap-mnist-100", "tap-mnist-500"} <= {p.stem for p in TRAINING}


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


def test_defaults(tmp_path: Path) -> None:
    recipe = read_recipe(write(tmp_path, GOOD))
    assert recipe.learner == TAPLikelihood()
    assert recipe.seed == 0
    assert recipe.storage == "float16"


def test_a_recipe_of_a_conditional_prior(tmp_path: Path) -> None:
    recipe = read_recipe(
        write(
            tmp_path,
            """
            name = "undo"
            data = { source = "mnist", task = "patch:8:1", validation = 10 }
            prior = { family = "crbm", hidden = 12 }
            learner = { method = "marginal_max_margin", iterations = 3, growth = 2, tol = 0.01 }
            optimizer = { average = 0.99 }
            training = { epochs = 3, patience = 2 }
            """,
        )
    )
    assert recipe.conditional
    assert (recipe.data.task, recipe.data.validation, recipe.training.patience) == ("patch:8:1", 10, 2)
    assert recipe.optimizer.average == 0.99
    assert recipe.learner == MarginalMaxMargin(iterations=3, growth=2, tol=0.01)
    # What restores is what the learner used in that epoch.
    assert recipe.learner.inference(4) == Inference("mixed_product", 11, 0.01, 0.0, modes=0, starts=0)


@pytest.mark.parametrize("method", LEARNERS["crbm"])
def test_every_conditional_learner_has_a_recipe(method: str, tmp_path: Path) -> None:
    # Logistic regression has no hidden units, and the only sign of that is that their weights stay at 0.
    scale = "weight_scale = 0" if method == "logistic" else ""
    recipe = read_recipe(write(tmp_path, conditional(f'[learner]\nmethod = "{method}"', f"[prior]\n{scale}")))
    assert (recipe.method, recipe.learner) == (method, LEARNERS["crbm"][method].load()())
    assert (recipe.data.validation, recipe.training.patience, recipe.optimizer.average) == (0, 0, 0)


def test_families_do_not_share_learners_of_one_name(tmp_path: Path) -> None:
    plain = read_recipe(write(tmp_path, GOOD.replace('"tap"', '"contrastive"')))
    paired = read_recipe(write(tmp_path, conditional('[learner]\nmethod = "contrastive"')))
    assert (type(plain.learner), type(paired.learner)) == (ContrastiveDivergence, ConditionalDivergence)
    assert plain.digest != paired.digest


def test_inference_that_starts_by_itself(tmp_path: Path) -> None:
    for solver in ("sum_product", "max_product", "mixed_product", "mean_field"):
        text = f'{GOOD}\n[inference]\nsolver = "{solver}"\nmodes = 0\nstarts = 0\n'
        assert read_recipe(write(tmp_path, text)).inference.starts == 0


def test_digest_and_facts_depend_on_content_not_on_layout(tmp_path: Path) -> None:
    first = read_recipe(write(tmp_path, GOOD))
    same = read_recipe(write(tmp_path, "# a comment\n" + GOOD.replace("hidden = 5", "hidden   =   0x5")))
    explicit = read_recipe(write(tmp_path, with_line("", "seed = 0")))
    other = read_recipe(write(tmp_path, GOOD.replace("hidden = 5", "hidden = 6")))
    renamed = read_recipe(write(tmp_path, GOOD.replace("digits", "numbers")))
    assert first.digest == same.digest == explicit.digest
    assert len({first.digest, other.digest, renamed.digest}) == 3
    # Defaults count as if they were written out.
    for table, line in (("optimizer", "average = 0.0"), ("training", "patience = 0"), ("prior", 'family = "rbm"')):
        assert read_recipe(write(tmp_path, with_line(table, line))).digest == first.digest
    assert read_recipe(write(tmp_path, with_line("optimizer", "average = 0.5"))).digest != first.digest
    assert first.training_facts == renamed.training_facts != other.training_facts


UNKNOWN = {
    "top": ("", "sead = 3", "sead is not a known key; did you mean seed?"),
    "table": ("", "[optimiser]", "optimiser is not a known key; did you mean optimizer?"),
    "data": ("data", "treshold = 3", "[data] treshold is not a known key; did you mean threshold?"),
    "learner": ("learner", "iteration = 3", "[learner] iteration is not a known key; did you mean iterations?"),
    "other-learner": ("learner", "chains = 3", "[learner] chains is not a known key; known: "),
    "training": ("training", "batch_size = 3", "[training] batch_size is not a known key; did you mean batch?"),
    "inference": ("inference", "zzz = 1", "[inference] zzz is not a known key; known: solver, max_iter"),
    "method-at-top": ("", 'method = "tap"', "method is not a known key here; it belongs into [learner]"),
    "newline": ("", '"a\\nb" = 1', r"a\nb is not a known key"),
}

WRONG = {
    "text-for-number": ("", 'seed = "0"', "seed must be a whole number, not '0'"),
    "fraction-for-whole": ("prior", "family = 3", "[prior] family must be a text, not 3"),
    "true-for-number": ("data", "threshold = true", "[data] threshold must be a whole number, not True"),
    "float-for-whole": ("training", "batch = 10.0", "[training] batch must be a whole number, not 10.0"),
    "number-for-flag": ("learner", "centring = 1", "[learner] centring must be true or false, not 1"),
    "list-for-number": ("optimizer", "rate = [1]", "[optimizer] rate must be a number, not [1]"),
    "fixed-point": (
        "learner",
        'fixed_point = "bethe"',
        "[learner] fixed_point must be one of tap, adaptive_tap, not 'bethe'",
    ),
    "choice": ("optimizer", 'schedule = "cosine"', "schedule must be one of constant, linear, geometric, not 'cosine'"),
    "value-for-table": ("", "optimizer = 3", "[optimizer] must be a table, not 3"),
    "storage": ("", 'storage = "float8"', "storage must be one of float16, float32, not 'float8'"),
    "number-of-any-size": ("optimizer", f"rate = 1{'0' * 400}", "[optimizer] rate must be a number, not 1000"),
}

RANGE = {
    "count": ("data", "count = 1", "[data] count must be 0, for all images, or at least 2, not 1"),
    "threshold": ("data", "threshold = 255", "[data] threshold must lie in 0 ... 254, not 255"),
    "threshold-negative": ("data", "threshold = -1", "not -1"),
    "weight-scale": ("prior", "weight_scale = 0.0", "[prior] weight_scale must be positive, not 0.0"),
    "weight-scale-negative": ("prior", "weight_scale = -1", "[prior] weight_scale must be positive, not -1.0"),
    "weight-scale-nan": ("prior", "weight_scale = nan", "[prior] weight_scale must be positive, not nan"),
    "weight-scale-inf": ("prior", "weight_scale = inf", "[prior] weight_scale must be positive, not inf"),
    "rate": ("optimizer", "rate = -0.1", "[optimizer] rate must be positive, not -0.1"),
    "rate-nan": ("optimizer", "rate = nan", "[optimizer] rate must be positive, not nan"),
    "rate-inf": ("optimizer", "rate = inf", "[optimizer] rate must be positive, not inf"),
    "momentum": ("optimizer", "momentum = 1.0", "[optimizer] momentum must lie in [0, 1), not 1.0"),
    "decay": ("optimizer", "weight_decay = -1", "[optimizer] weight_decay"),
    "decay-inf": ("optimizer", "weight_decay = inf", "[optimizer] weight_decay"),
    "average": ("optimizer", "average = 1", "[optimizer] average must lie in [0, 1), not 1.0"),
    "average-negative": ("optimizer", "average = -0.1", "[optimizer] average must lie in [0, 1), not -0.1"),
    "average-nan": ("optimizer", "average = nan", "[optimizer] average must lie in [0, 1), not nan"),
    "patience": ("training", "patience = -1", "[training] patience must not be negative, not -1"),
    "patience-alone": ("training", "patience = 3", "[training] patience needs [data] validation"),
    "task": ("data", 'task = "flip:0.1"', '[data] task belongs to [prior] family = "crbm"; leave it out'),
    "binarisation": (
        "data",
        'binarisation = "grey"',
        "[data] binarisation must be one of threshold, sampled, not 'grey'",
    ),
    "batch": ("training", "batch = 0", "[training] batch must be at least 1, not 0"),
    "checkpoint": ("training", "checkpoint_every = -5", "[training] checkpoint_every must be at least 1, not -5"),
    "noise": ("learner", "noise = 0.7", "[learner] noise must lie in [0, 0.5], not 0.7"),
    "noise-alone": ("learner", "noise = 0.2", "[learner] noise is the flip rate"),
    "iterations": ("learner", "iterations = 0", "[learner] solutions and iterations must be at least 1, not 100 and 0"),
    "tol": ("learner", "tol = -1e-3", "[learner] tol must not be negative"),
    "damping": ("learner", "damping = 1", "[learner] damping must lie in [0, 1), not 1.0"),
    "max-iter": ("inference", "max_iter = 0", "[inference] max_iter must lie in 1 ... 1000000, not 0"),
    "starts": (
        "inference",
        "starts = 0",
        "[inference] starts must lie in 0 ... 1000, and be 0 only without modes, not 0",
    ),
    "starts-negative": ("inference", "starts = -1", "[inference] starts must lie in 0 ... 1000"),
    "starts-of-their-own": (
        "inference",
        'solver = "sum_product"',
        "sum_product starts by itself: set modes and starts",
    ),
    "modes": ("inference", "modes = -1", "[inference] modes must lie in 0 ... 100000"),
    "inference-damping": (
        "inference",
        "damping = nan",
        "[inference] tol must be finite and >= 0, and damping in [0, 1)",
    ),
    "seed": ("", "seed = -1", "seed must lie in 0 ... 2^63 - 1, not -1"),
    "seed-large": ("", f"seed = {2**64}", "seed must lie in"),
}


@pytest.mark.parametrize(
    ("table", "line", "says"),
    [
        pytest.param(*case, id=f"36-{kind}-{name}")
        for kind, cases in (("unknown", UNKNOWN), ("wrong", WRONG), ("range", RANGE))
        for name, case in cases.items()
    ],
)
def test_bad_entries(table: str, line: str, says: str, tmp_path: Path) -> None:
    assert_refused(write(tmp_path, with_line(table, line)), says)


@pytest.mark.parametrize("shape", ['family = "deep"\ndeeper = [3]', 'hidden_type = "spin"', 'visible = "bernoulli"'])
def test_36_adaptive_tap_is_for_binary_units_in_two_layers(shape: str, tmp_path: Path) -> None:
    text = with_line("prior", shape).replace('method = "tap"', 'method = "tap"\nfixed_point = "adaptive_tap"')
    path = write(tmp_path, text)
    if shape == 'visible = "bernoulli"':
        assert read_recipe(path).learner.fixed_point == "adaptive_tap"
    else:
        says = '[learner] fixed_point = "adaptive_tap" is for binary units in two layers; leave it out'
        assert_refused(path, says)


def test_the_fixed_point_counts_written_out_or_not(tmp_path: Path) -> None:
    plain, told = (read_recipe(write(tmp_path, text)) for text in (GOOD, with_line("learner", 'fixed_point = "tap"')))
    other = read_recipe(write(tmp_path, with_line("learner", 'fixed_point = "adaptive_tap"')))
    assert plain.digest == told.digest != other.digest


CONDITIONAL = {
    "no-task": ('[data]\ntask = ""', '[data] task is missing; a crbm undoes a damage, such as "flip:0.1"'),
    "task-unknown": ('[data]\ntask = "blur:3"', "[data] 'blur:3' is no task; give flip:P"),
    "task-out-of-range": ('[data]\ntask = "flip:1.5"', "[data] flip:1.5: a flip probability must lie in [0, 1]"),
    "task-no-text": ("[data]\ntask = 0.1", "[data] task must be a text, not 0.1"),
    "validation-negative": ("[data]\nvalidation = -1", "[data] validation must not be negative, not -1"),
    "validation-share": ("[data]\nvalidation = 0.1", "[data] validation must be a whole number, not 0.1"),
    "patience-alone": ("[training]\npatience = 3", "[training] patience needs [data] validation"),
    "learner-of-an-rbm": (
        '[learner]\nmethod = "tap"',
        "[learner] method for family crbm must be one of belief_propagation, mean_field, contrastive, perceptron, "
        "marginal_max_margin, latent_max_margin, logistic, not 'tap'; that one is for [prior] family = \"rbm\"",
    ),
    "inference": ("[inference]\ndamping = 0.1", "[inference] follows from the learner of a crbm; leave it out"),
    "inference-empty": ("[inference]", "[inference] follows from the learner of a crbm; leave it out"),
    "iterations": (
        "[learner]\niterations = 0",
        "[learner] iterations must be at least 1 and growth not negative, not 0",
    ),
    "growth": (
        "[learner]\ngrowth = -1",
        "[learner] iterations must be at least 1 and growth not negative, not 7 and -1",
    ),
    "tol": ("[learner]\ntol = -1", "[learner] tol must not be negative, not -1.0"),
    "steps": ('[learner]\nmethod = "contrastive"\nsteps = 0', "[learner] steps must be at least 1, not 0"),
    "weight-scale": ("[prior]\nweight_scale = 0.0", "[prior] weight_scale must be positive, not 0.0"),
    "weight-scale-of-logistic": (
        '[learner]\nmethod = "logistic"',
        "[prior] weight_scale must be 0 for logistic regression, not 0.01",
    ),
}


@pytest.mark.parametrize(("section", "says"), CONDITIONAL.values(), ids=[f"36-{name}" for name in CONDITIONAL])
def test_bad_entries_of_conditional_priors(section: str, says: str, tmp_path: Path) -> None:
    read_recipe(write(tmp_path, conditional()))
    assert_refused(write(tmp_path, conditional(section)), says)


def test_a_conditional_learner_for_an_rbm_says_where_it_belongs(tmp_path: Path) -> None:
    text = GOOD.replace('"tap"', '"mean_field"')
    assert_refused(write(tmp_path, text), "not 'mean_field'; that one is for [prior] family = \"crbm\"")


@pytest.mark.parametrize(
    ("gone", "says"),
    [
        ('name = "digits"', "name is missing; add it"),
        ('[data]\nsource = "mnist"', "data is missing; add it"),
        ('source = "mnist"', "[data] source is missing; add it"),
        ("hidden = 5", "[prior] hidden is missing; add it"),
        ('[learner]\nmethod = "tap"', "[learner] is missing; add it"),
        (
            'method = "tap"',
            f"[learner] method for family rbm must be one of {RBM_METHODS}, not None",
        ),
        ("epochs = 2", "[training] epochs is missing; add it"),
    ],
)
def test_missing_entries(gone: str, says: str, tmp_path: Path) -> None:
    assert gone in GOOD
    assert_refused(write(tmp_path, GOOD.replace(gone, "")), says)


@pytest.mark.parametrize("method", ['"TAP"', "3", "[1]", "{ a = 1 }"])
def test_unknown_methods(method: str, tmp_path: Path) -> None:
    text = GOOD.replace('method = "tap"', f"method = {method}")
    assert_refused(
        write(tmp_path, text),
        f"[learner] method for family rbm must be one of {RBM_METHODS}, not ",
    )


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../up", "a/b", "/root", ".hidden", "-o", "a b", "a\\nb", "x" * 61, "a\\u0000"]
)
def test_names_that_are_no_folder_names(name: str, tmp_path: Path) -> None:
    assert_refused(write(tmp_path, GOOD.replace("digits", name)), "name becomes a folder")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"hidden = ", "not a TOML file"),
        (b"[data\n", "not a TOML file"),
        (b"a = 1\na = 2\n", "not a TOML file"),
        (b"\xff\xfe", "not a TOML file"),
        (b"\x89PNG\r\n\x1a\n\0", "not a TOML file"),
        (b'{"name": "x"}', "not a TOML file"),
        (b"a = " + b"[" * 50_000, "not a TOML file"),
        (b"", "[learner] is missing"),
        (b"learner = 3", "[learner] must be a table, not 3"),
    ],
    ids=["cut", "open", "twice", "not-utf8", "png", "json", "nested", "empty", "number"],
)
def test_files_that_are_no_recipe(content: bytes, says: str, tmp_path: Path) -> None:
    assert_refused(write(tmp_path, content), says)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    assert_refused(tmp_path / "missing.toml", "cannot be read (No such file or directory)")
    assert_refused(tmp_path, "cannot be read (Is a directory)")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert_refused(tmp_path / "loop", "cannot be read")
    if os.geteuid() != 0:
        path = write(tmp_path, GOOD)
        path.chmod(0)
        assert_refused(path, "cannot be read (Permission denied)")


def test_the_name_of_the_file_fits_on_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        read_recipe(write(tmp_path, "x", "a\nb[red].toml"))
    assert r"a\nb[red].toml: not a TOML file" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ('name = "admm"', "'admm' is no optimizer of torch that fits here; did you mean adam?"),
        ('name = "lbfgs"', "'lbfgs' is no optimizer of torch that fits here"),
        ('name = "rmsprop"\noptions = { alpa = 0.9 }', "options do not suit rmsprop"),
        ('name = "rmsprop"\noptions = { alpha = -1 }', "options do not suit rmsprop (Invalid alpha value: -1)"),
        ("options = { lr = 0.1 }", "options hold lr, which follows from rate"),
        ("options = 3", "options must be a table, not 3"),
    ],
)
def test_optimizers_and_options_that_torch_does_not_have(lines: str, says: str) -> None:
    table = tomllib.loads(
        f'name = "x"\n[data]\nsource = "mnist"\n[prior]\nhidden = 3\n[learner]\nmethod = "tap"\n'
        f"[training]\nepochs = 1\n[optimizer]\n{lines}\n"
    )
    with pytest.raises(UsageError) as caught:
        parse(table)
    assert str(caught.value).startswith("[optimizer] ") and says in str(caught.value)


def test_options_reach_the_optimizer_and_the_digest(tmp_path: Path) -> None:
    lines = ('name = "rmsprop"', 'name = "rmsprop"\noptions = { alpha = 0.5 }')
    plain, other = (read_recipe(write(tmp_path, with_line("optimizer", line))) for line in lines)
    assert (plain.optimizer.options, other.optimizer.options) == ({}, {"alpha": 0.5})
    assert plain.digest != other.digest


@pytest.mark.parametrize(
    ("settings", "name"),
    [(Optimizer, "momentum"), (Inference, "damping"), (TAPLikelihood, "tol"), (FrankWolfe, "overlap")],
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
