"""What bad recipes get (row 36 of the table of bad inputs)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from recipes import GOOD, assert_refused, conditional, with_line, write

from restore.errors import UsageError
from restore.learning.recipes.recipe import read_recipe

RBM_METHODS = "tap, matched, contrastive, spectral, frank_wolfe, principal"


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
    "task": ("data", 'task = "flip:0.1"', '[data] task belongs to [prior] family = "crbm"; leave it out'),
    "binarisation": (
        "data",
        'binarisation = "grey"',
        "[data] binarisation must be one of threshold, sampled, not 'grey'",
    ),
    "batch": ("training", "batch = 0", "[training] batch must be at least 1, not 0"),
    "checkpoint": ("training", "checkpoint_every = -5", "[training] checkpoint_every must be at least 1, not -5"),
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


CONDITIONAL = {
    "no-task": ('[data]\ntask = ""', '[data] task is missing; a crbm undoes a damage, such as "flip:0.1"'),
    "task-unknown": ('[data]\ntask = "blur:3"', "[data] 'blur:3' is not a task; give flip:P"),
    "task-out-of-range": ('[data]\ntask = "flip:1.5"', "[data] flip:1.5: a flip probability must lie in [0, 1]"),
    "task-no-text": ("[data]\ntask = 0.1", "[data] task must be a text, not 0.1"),
    "validation-negative": ("[data]\nvalidation = -1", "[data] validation must not be negative, not -1"),
    "validation-share": ("[data]\nvalidation = 0.1", "[data] validation must be a whole number, not 0.1"),
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
    "constant": ("[learner]\ntol = 0.1", "[learner] tol is not a known key; known: iterations, growth"),
    "constant-of-logistic": (
        '[learner]\nmethod = "logistic"\niterations = 1',
        "[learner] iterations is not a known key; known: ",
    ),
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
