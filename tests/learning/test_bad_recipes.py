"""What bad recipes, and settings of learners, get: one line that names the table and the key (rule 4 of bad inputs)."""

from __future__ import annotations

import math
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest
from lessons import GOOD, assert_refused, write
from refusals import refused

from restore.errors import UsageError
from restore.learning.learners import LEARNERS
from restore.learning.recipe.recipe import MAX_BYTES, parse
from restore.learning.rules.bslm import BSLM
from restore.learning.rules.conditional.divergence import ConditionalDivergence
from restore.learning.rules.contrastive import ContrastiveDivergence
from restore.learning.rules.matched import MatchedMarginals
from restore.learning.rules.spectral import SpectralDescent
from restore.learning.rules.tap_likelihood import TAPLikelihood

HEAD = 'name = "x"\ndata.source = "mnist"\n'
STEPS = f"{HEAD}training.epochs = 2\n"
DIGITS = "0" * 5000

# Good recipes, to each of which a case adds one thing that is wrong.
BASES: dict[str, str] = {
    "rbm": f'{STEPS}prior.hidden = 5\nlearner.method = "tap"',
    "crbm": f'{STEPS}data.task = "flip:0.1"\nprior = {{family = "crbm", hidden = 5}}\nlearner.method = "mean_field"',
    "grey": f'{STEPS}prior = {{visible = "truncated-gaussian", hidden = 3}}\n'
    'learner = {method = "tap", grey_unit = 0.3}',
    "deep": f'{STEPS}prior = {{family = "deep", hidden = 4, deeper = [3]}}\nlearner.method = "tap"\n'
    "pretraining.epochs = 2",
    "fw": f'{HEAD}data.validation = 10\nprior.hidden = "auto"\nlearner.method = "frank_wolfe"',
    "principal": f'{HEAD}learner.method = "principal"\n'
    'prior = {hidden = 2, visible = "truncated-gaussian", hidden_type = "gaussian"}',
    "fvbm": f'{HEAD}prior.family = "fvbm"\nlearner.method = "bslm"',
    "mixture": f'{HEAD}learner.method = "expectation_maximisation"\n'
    'prior = {family = "mixture", visible = "gaussian", hidden_type = "gaussian", components = 2, hidden = 3}',
    "matched": f'{STEPS}prior.hidden = 5\nlearner.method = "matched"',
    "watched": f'{STEPS}prior.hidden = 5\nlearner.method = "tap"\ndata.validation = 9\ntraining.watch = "flip:0.1"',
}

# Lines each of which is wrong: those of which the error names its own table and key, and those of which it names this
# besides; "-" for only this.
PLAIN: dict[str, str] = {
    "rbm": 'learner.iteration = 3 | learner.chains = 3 | training.batch_size = 3 | inference.zzz = 1 | seed = "0" | '
    "prior.family = 3 | data.threshold = true | training.batch = 10.0 | learner.centring = 1 | "
    'optimizer.rate = [1] | learner.fixed_point = "bethe" | optimizer.schedule = "cosine" | optimizer = 3 | '
    'storage = "float8" | data.count = 1 | data.threshold = 255 | prior.weight_scale = 0.0 | '
    "prior.weight_scale = inf | optimizer.rate = -0.1 | optimizer.rate = inf | optimizer.momentum = 1.0 | "
    "optimizer.weight_decay = -1 | optimizer.average = 1 | optimizer.average = -0.1 | "
    'optimizer.name = "lbfgs" | optimizer.end = 1.5 | data.task = "flip:0.1" | data.binarisation = "grey" | '
    "training.batch = 0 | training.checkpoint_every = -5 | training.minutes = -1.0 | training.epochs = 0 | "
    "training.watch_every = 3 | learner.iterations = 0 | learner.grey_unit = 0.5 | inference.max_iter = 0 | "
    "inference.starts = 0 | inference.modes = -1 | inference.damping = nan | seed = -1 | "
    "seed = 18446744073709551616 | prior.deeper = [2] | prior.filled = 9",
    "crbm": 'data.task = "" | data.task = 0.1 | data.validation = -1 | learner.method = "tap" | inference = {} | '
    "learner.iterations = 0 | learner.growth = -1 | learner.tol = 0.1 | prior.weight_scale = 0.0 | "
    'prior.visible = "truncated-gaussian" | prior.hidden_type = "truncated-gaussian"',
    "grey": 'learner.grey_unit = 0.0 | learner.grey_unit = 1.5 | data.binarisation = "sampled" | '
    'prior.hidden = "auto" | inference.modes = 5 | data.task = "noise:0.1" | '
    'learner.fixed_point = "adaptive_tap"',
    "deep": 'pretraining.epochs = -1 | prior.deeper = [] | prior.deeper = [3, 0] | prior.deeper = ["a"] | '
    'prior.deeper = 3 | prior.hidden = "auto" | learner.fixed_point = "adaptive_tap"',
    "fw": 'prior.hidden = "some" | data.validation = 0 | prior.filled = 9 | prior.filled = -1 | '
    'training.epochs = 3 | training.watch = "flip:0.1" | learner.units = 0 | learner.penalty = 0.0',
    "principal": 'prior.visible = "bernoulli" | prior.hidden_type = "bernoulli" | training.epochs = 3 | '
    "learner.rounds = 2",
    "fvbm": 'prior.hidden = 5 | prior.visible = "truncated-gaussian" | training.epochs = 3 | data.task = "flip:0.1"',
    "mixture": 'prior.components = 0 | prior.hidden = 1 | prior.hidden = "auto" | prior.visible = "bernoulli"',
    "matched": 'learner.solver = "sum_product" | learner.tasks = [] | learner.scored = 0 | learner.scored = 13 | '
    "learner.unrolled = 2 | learner.damping = 1.0",
    "watched": "data.validation = 0",
}
NAMED: dict[str, dict[str, str]] = {
    "rbm": {
        "sead = 3": "did you mean seed?",
        "optimiser.rate = 3": "-optimiser",
        "data.treshold = 3": "did you mean threshold?",
        'method = "tap"': "[learner]",
        '"a\\nb" = 1': r"-a\nb",
        f"optimizer.rate = 1{DIGITS[:400]}": "",
        f"prior.family = 0x1{DIGITS}": "",
        f"optimizer.schedule = [0x1{DIGITS}]": "",
        'optimizer.name = "admm"': "adam",
        'optimizer.schedule = "geometric"': "-[optimizer] end",
        'optimizer = {schedule = "constant", end = 0.1}': "end",
        'inference.solver = "sum_product"': "-[inference] sum_product",
        'prior.hidden_type = "potts"': "bernoulli, spin",
        "pretraining.epochs = 2": "-[pretraining]",
        'learner.method = "mean_field"': '[prior] family = "crbm"',
    },
    "crbm": {
        'data.task = "blur:3"': "-blur:3",
        'data.task = "flip:1.5"': "-flip:1.5",
        "inference.damping = 0.1": "-[inference]",
        'learner = {method = "logistic", iterations = 1}': "iterations",
        'learner = {method = "contrastive", steps = 0}': "steps",
        'learner.method = "logistic"': "-[prior] weight_scale",
        'data.validation = 9\nprior = {hidden = "auto", weight_scale = 0.0}\nlearner.method = "logistic"': "-hidden",
    },
    "grey": {
        "learner.centring = false": "grey_unit",
        'prior.visible = "gaussian"': "bernoulli, truncated-gaussian",
        'inference = {solver = "sum_product", starts = 0}': "sum_product",
        'learner = {method = "spectral"}': "-[learner]",
        'learner = {method = "matched"}': "-[learner]",
    },
    "deep": {"pretraining.epoch = 1": "did you mean epochs?", 'prior.hidden_type = "spin"': "-[pretraining]"},
    "fw": {
        "growth.penalty = 0.5": "-[growth]",
        "optimizer.rate = 0.1": "-[optimizer]",
        'learner.method = "tap"': "-[training] epochs",
    },
    "principal": {
        "optimizer.rate = 0.1": "-[optimizer]",
        'learner.method = "frank_wolfe"': "-[learner] frank_wolfe",
        'prior.hidden = "auto"': "-[data] validation",
    },
    "fvbm": {
        'inference = {solver = "sum_product", modes = 0, starts = 0}': "sum_product",
        'learner.method = "tap"': "quasi_newton",
    },
    "mixture": {'inference.solver = "tap"': "-[inference] tap"},
    "matched": {'learner.tasks = ["blur:3"]': "-blur:3", 'learner.gradient = "implicit"': "scored"},
    "watched": {
        'training.watch = "blur:3"': "-blur:3",
        'data.gathering.levels = "grey"': "-validation",
        "data = {validation = 0, gathering = {patches = 3, shape = [2, 2]}}": "-[data.gathering] levels",
    },
}


def joined(table: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    both = {key: joined(table[key], more[key]) for key in table.keys() & more.keys() if isinstance(more[key], dict)}
    return table | more | both


@pytest.mark.parametrize(
    ("base", "line", "names"),
    [
        pytest.param(base, line, names, id=f"{base}-{line[:40]}")
        for base in BASES
        for line, names in (dict.fromkeys(PLAIN.get(base, "").split(" | "), "") | NAMED.get(base, {})).items()
        if line
    ],
)
def test_bad_entries(base: str, line: str, names: str) -> None:
    table = tomllib.loads(BASES[base])
    parse(table)
    with pytest.raises(UsageError) as caught:
        parse(joined(table, tomllib.loads(line)))
    text = str(caught.value)
    where, _, key = line.partition(" = ")[0].rpartition(".")
    own = [] if names.startswith("-") else [f"[{where}]" if where else "", key]
    assert all(subject in text for subject in (*own, names.removeprefix("-"))), text
    assert "\n" not in text and len(text) < 500


SETTINGS: list[tuple[type, dict[str, Any]]] = [
    *((BSLM, {name: value}) for name, value in (("rounds", 0), ("tol", -1.0), ("tol", math.nan), ("l2", -1.0))),
    (BSLM, {"spacers": -1}),
    *((ContrastiveDivergence, {name: 0}) for name in ("chains", "steps", "inner_steps")),
    *((SpectralDescent, {name: 0}) for name in ("chains", "steps")),
    *((TAPLikelihood, {name: value}) for name, value in (("solutions", 0), ("tol", -1.0), ("damping", 1.0))),
    (ConditionalDivergence, {"regression": -1}),
    (MatchedMarginals, {"tasks": ()}),
]


@pytest.mark.parametrize(("kind", "settings"), SETTINGS, ids=str)
def test_settings_out_of_range(kind: type, settings: dict[str, Any]) -> None:
    with refused(UsageError, next(iter(settings))):
        kind(**settings)


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
    assert_refused(write(tmp_path, text), "[learner] method", *LEARNERS["rbm"])


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../up", "a/b", "/root", ".hidden", "-o", "a b", "a\\nb", "x" * 61, "a\\u0000"]
)
def test_names_that_are_no_folder_names(name: str, tmp_path: Path) -> None:
    assert_refused(write(tmp_path, GOOD.replace("digits", name)), "name")


@pytest.mark.parametrize(
    "content",
    [
        b"hidden = ",
        b"\xff\xfe",
        b"a = " + b"[" * 50_000,
        b"a = 1" + b"0" * 5000,
        b"#" * (MAX_BYTES + 1),
        b"",
        b"learner = 3",
        b"prior = 3\n[learner]",
    ],
    ids=["cut", "not-utf8", "nested", "digits", "long", "empty", "number", "prior"],
)
def test_files_that_are_no_recipe(content: bytes, tmp_path: Path) -> None:
    assert_refused(write(tmp_path, content))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for path in (Path("/dev/zero"), tmp_path / "missing.toml", tmp_path, tmp_path / "loop"):
        assert_refused(path)
    if os.geteuid() != 0:
        path = write(tmp_path, GOOD)
        path.chmod(0)
        assert_refused(path)
