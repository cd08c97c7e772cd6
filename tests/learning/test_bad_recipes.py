"""What bad recipes get (row 36 of the table of bad inputs)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from recipes import GOOD, assert_refused, conditional, with_line, write

from restore.errors import UsageError
from restore.families import FAMILIES
from restore.learning.recipe.recipe import MAX_BYTES, read_recipe

UNKNOWN = {
    "top": ("", "sead = 3"),
    "table": ("", "[optimiser]"),
    "data": ("data", "treshold = 3"),
    "learner": ("learner", "iteration = 3"),
    "other-learner": ("learner", "chains = 3"),
    "training": ("training", "batch_size = 3"),
    "inference": ("inference", "zzz = 1"),
    "method-at-top": ("", 'method = "tap"'),
    "newline": ("", '"a\\nb" = 1'),
}

WRONG = {
    "text-for-number": ("", 'seed = "0"'),
    "fraction-for-whole": ("prior", "family = 3"),
    "true-for-number": ("data", "threshold = true"),
    "float-for-whole": ("training", "batch = 10.0"),
    "number-for-flag": ("learner", "centring = 1"),
    "list-for-number": ("optimizer", "rate = [1]"),
    "fixed-point": ("learner", 'fixed_point = "bethe"'),
    "choice": ("optimizer", 'schedule = "cosine"'),
    "value-for-table": ("", "optimizer = 3"),
    "storage": ("", 'storage = "float8"'),
    "digits-of-a-number": ("optimizer", f"rate = 1{'0' * 400}"),
    "digits-of-a-whole-number": ("training", f"batch = 0x1{'0' * 5000}"),
    "digits-for-a-text": ("prior", f"family = 0x1{'0' * 5000}"),
    "digits-for-a-word": ("optimizer", f"schedule = [0x1{'0' * 5000}]"),
}

RANGE = {
    "count": ("data", "count = 1"),
    "threshold": ("data", "threshold = 255"),
    "threshold-negative": ("data", "threshold = -1"),
    "weight-scale": ("prior", "weight_scale = 0.0"),
    "weight-scale-negative": ("prior", "weight_scale = -1"),
    "weight-scale-nan": ("prior", "weight_scale = nan"),
    "weight-scale-inf": ("prior", "weight_scale = inf"),
    "rate": ("optimizer", "rate = -0.1"),
    "rate-nan": ("optimizer", "rate = nan"),
    "rate-inf": ("optimizer", "rate = inf"),
    "momentum": ("optimizer", "momentum = 1.0"),
    "decay": ("optimizer", "weight_decay = -1"),
    "decay-inf": ("optimizer", "weight_decay = inf"),
    "average": ("optimizer", "average = 1"),
    "average-negative": ("optimizer", "average = -0.1"),
    "average-nan": ("optimizer", "average = nan"),
    "task": ("data", 'task = "flip:0.1"'),
    "binarisation": ("data", 'binarisation = "grey"'),
    "batch": ("training", "batch = 0"),
    "checkpoint": ("training", "checkpoint_every = -5"),
    "iterations": ("learner", "iterations = 0"),
    "tol": ("learner", "tol = -1e-3"),
    "damping": ("learner", "damping = 1"),
    "max-iter": ("inference", "max_iter = 0"),
    "starts": ("inference", "starts = 0"),
    "starts-negative": ("inference", "starts = -1"),
    "modes": ("inference", "modes = -1"),
    "inference-damping": ("inference", "damping = nan"),
    "seed": ("", "seed = -1"),
    "seed-large": ("", "seed = 18446744073709551616"),
}


@pytest.mark.parametrize(
    ("table", "line"),
    [
        pytest.param(*case, id=f"36-{kind}-{name}")
        for kind, cases in (("unknown", UNKNOWN), ("wrong", WRONG), ("range", RANGE))
        for name, case in cases.items()
    ],
)
def test_bad_entries(table: str, line: str, tmp_path: Path) -> None:
    key = line.partition(" = ")[0].strip('"[]')
    assert_refused(write(tmp_path, with_line(table, line)), f"[{table}]" if table else "", key)


def test_36_a_solver_that_starts_by_itself_takes_no_starts(tmp_path: Path) -> None:
    assert_refused(write(tmp_path, with_line("inference", 'solver = "sum_product"')), "[inference]", "sum_product")


@pytest.mark.parametrize(("table", "key", "near"), [("", "sead", "seed"), ("data", "treshold", "threshold")])
def test_a_misspelt_key_gets_the_near_one(table: str, key: str, near: str, tmp_path: Path) -> None:
    assert_refused(write(tmp_path, with_line(table, f"{key} = 3")), key, f"did you mean {near}?")


@pytest.mark.parametrize("shape", ['family = "deep"\ndeeper = [3]', 'hidden_type = "spin"', 'visible = "bernoulli"'])
def test_36_adaptive_tap_is_for_binary_units_in_two_layers(shape: str, tmp_path: Path) -> None:
    text = with_line("prior", shape).replace('method = "tap"', 'method = "tap"\nfixed_point = "adaptive_tap"')
    path = write(tmp_path, text)
    if shape == 'visible = "bernoulli"':
        assert read_recipe(path).learner.fixed_point == "adaptive_tap"
    else:
        assert_refused(path, "[learner] fixed_point")


CONDITIONAL = {
    "no-task": ('[data]\ntask = ""', "[data] task"),
    "task-unknown": ('[data]\ntask = "blur:3"', "[data] 'blur:3'"),
    "task-out-of-range": ('[data]\ntask = "flip:1.5"', "flip:1.5"),
    "task-no-text": ("[data]\ntask = 0.1", "[data] task"),
    "validation-negative": ("[data]\nvalidation = -1", "[data] validation"),
    "validation-share": ("[data]\nvalidation = 0.1", "[data] validation"),
    "learner-of-an-rbm": ('[learner]\nmethod = "tap"', "[learner] method"),
    "inference": ("[inference]\ndamping = 0.1", "[inference]"),
    "inference-empty": ("[inference]", "[inference]"),
    "iterations": ("[learner]\niterations = 0", "[learner] iterations"),
    "growth": ("[learner]\ngrowth = -1", "[learner] iterations"),
    "constant": ("[learner]\ntol = 0.1", "[learner] tol"),
    "constant-of-logistic": ('[learner]\nmethod = "logistic"\niterations = 1', "[learner] iterations"),
    "steps": ('[learner]\nmethod = "contrastive"\nsteps = 0', "[learner] steps"),
    "weight-scale": ("[prior]\nweight_scale = 0.0", "[prior] weight_scale"),
    "weight-scale-of-logistic": ('[learner]\nmethod = "logistic"', "[prior] weight_scale"),
}


@pytest.mark.parametrize(("section", "says"), CONDITIONAL.values(), ids=[f"36-{name}" for name in CONDITIONAL])
def test_bad_entries_of_conditional_priors(section: str, says: str, tmp_path: Path) -> None:
    read_recipe(write(tmp_path, conditional()))
    assert_refused(write(tmp_path, conditional(section)), says)


def test_a_conditional_learner_for_an_rbm_says_where_it_belongs(tmp_path: Path) -> None:
    text = GOOD.replace('"tap"', '"mean_field"')
    assert_refused(write(tmp_path, text), "'mean_field'", '[prior] family = "crbm"')


@pytest.mark.parametrize(
    ("gone", "subject"),
    [
        ('name = "digits"', "name"),
        ('[data]\nsource = "mnist"', "data"),
        ('source = "mnist"', "[data] source"),
        ("hidden = 5", "[prior] hidden"),
        ("[prior]\nhidden = 5", "prior"),
        ('[learner]\nmethod = "tap"', "[learner]"),
        ('method = "tap"', "[learner] method"),
        ("epochs = 2", "[training] epochs"),
    ],
)
def test_missing_entries(gone: str, subject: str, tmp_path: Path) -> None:
    assert gone in GOOD
    assert_refused(write(tmp_path, GOOD.replace(gone, "")), subject)


@pytest.mark.parametrize("method", ['"TAP"', "3", "[1]", "{ a = 1 }"])
def test_unknown_methods(method: str, tmp_path: Path) -> None:
    text = GOOD.replace('method = "tap"', f"method = {method}")
    assert_refused(write(tmp_path, text), "[learner] method", *FAMILIES["rbm"].learners)


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../up", "a/b", "/root", ".hidden", "-o", "a b", "a\\nb", "x" * 61, "a\\u0000"]
)
def test_names_that_are_no_folder_names(name: str, tmp_path: Path) -> None:
    assert_refused(write(tmp_path, GOOD.replace("digits", name)), "name")


@pytest.mark.parametrize(
    "content",
    [
        b"hidden = ",
        b"[data\n",
        b"a = 1\na = 2\n",
        b"\xff\xfe",
        b"\x89PNG\r\n\x1a\n\0",
        b'{"name": "x"}',
        b"a = " + b"[" * 50_000,
        b"a = 1" + b"0" * 5000,
        b"#" * (MAX_BYTES + 1),
        b"",
        b"learner = 3",
        b"prior = 3\n[learner]",
    ],
    ids=["cut", "open", "twice", "not-utf8", "png", "json", "nested", "digits", "long", "empty", "number", "prior"],
)
def test_files_that_are_no_recipe(content: bytes, tmp_path: Path) -> None:
    assert_refused(write(tmp_path, content))


def test_a_device_that_never_ends_is_no_recipe() -> None:
    assert_refused(Path("/dev/zero"))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    assert_refused(tmp_path / "missing.toml")
    assert_refused(tmp_path)
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert_refused(tmp_path / "loop")
    if os.geteuid() != 0:
        path = write(tmp_path, GOOD)
        path.chmod(0)
        assert_refused(path)


def test_the_name_of_the_file_fits_on_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        read_recipe(write(tmp_path, "x", "a\nb[red].toml"))
    assert r"a\nb[red].toml: " in str(caught.value)
    assert "\n" not in str(caught.value)
