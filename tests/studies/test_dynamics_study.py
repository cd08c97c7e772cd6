"""The study of training: what it measures, what it keeps and goes on from, its table and its pictures."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import dynamics_kept as kept
import dynamics_measure as measure
import dynamics_show as show
import pytest
import torch
from dynamics_measure import Moment, PerUnit
from harness import TRAINING, Asked, parsed
from machines import four_modes, random_machine, seeded, two_patterns, with_weights
from probing.findings import Findings
from probing.solutions import tap_solutions
from tap_likelihood import log_weights

from restore.errors import InputError
from restore.learning.recipe.recipe import read_recipe
from restore.priors.exact import log_likelihood

# It needs scikit-learn.
study = pytest.importorskip("dynamics", exc_type=ImportError)

OF = {"weights": "abc", "seed": "0"}


def moment(run: str, epoch: int, sizes: tuple[int, ...] = (9, 4), starts: int = 20, **changed: object) -> Moment:
    energies = tuple(-3.0 - index / 7 for index in range(min(epoch, 15)))
    probe = Findings(
        run, epoch, starts, starts - 1, 1, 0, len(energies), 0.3, 1, -3.5, energies, (1,) * len(energies), "", (), 0.5
    )
    facts = {"grey": False, "data": "mnist", "minutes": 2.6, "weights": f"{run} {epoch}", "recipe": "abc"} | changed
    train = PerUnit(20, -0.25 + 0.001 * epoch, 0.0004, 0)
    return Moment(**{"run": run, "sizes": sizes, "probe": probe, "train": train, "test": train} | facts)


# --- what is measured ---


def test_the_likelihood_of_units_without_couplings_is_exact() -> None:
    machine = with_weights(random_machine(("spiked-truncated", 4), ("bernoulli", 3)), 0.0)
    images = torch.rand(30, 4, generator=seeded(), dtype=torch.float64)
    wanted = log_likelihood(machine, images) / 7
    found = measure.per_unit(machine, images, tap_solutions(machine, images))
    assert found.mean == pytest.approx(float(wanted.mean()), abs=1e-6)
    assert found.standard_error == pytest.approx(float(wanted.std()) / 30**0.5, rel=1e-6)
    assert (found.n, found.unfinished) == (30, 0)


def test_every_solution_counts_once_whatever_its_basin() -> None:
    machine, patterns = two_patterns(tilt=-0.1)
    solutions = tap_solutions(machine, patterns[[0, 0, 0, 1]])
    assert solutions.basins.tolist() in ([3, 1], [1, 3])
    log_z = float(solutions.log_partition[0] + solutions.log_partition[1]) / 2
    units = sum(layer.size for layer in machine.layers)
    found = measure.per_unit(machine, patterns, solutions)
    assert found.mean == pytest.approx((float(log_weights(machine, patterns).values.mean()) - log_z) / units)


def test_all_layers_count_as_units_and_without_solutions_there_is_no_likelihood() -> None:
    machine = with_weights(random_machine(("bernoulli", 4), ("bernoulli", 3), ("bernoulli", 5)), 0.0)
    images = (torch.rand(6, 4, generator=seeded()) < 0.5).double()
    solutions = tap_solutions(machine, images)
    bias = machine.layers[0].parameters["bias"]
    wanted = float((images * bias - torch.log1p(bias.exp())).sum(1).mean())
    assert measure.per_unit(machine, images, solutions).mean == pytest.approx(wanted / 12)
    none = replace(solutions, means=tuple(mean[:0] for mean in solutions.means), log_partition=torch.zeros(0))
    assert measure.per_unit(machine, images, none) is None


def test_many_starts_are_for_the_last_epoch_of_the_machine_that_is_counted() -> None:
    one, other = measure.COUNTED, "dynamics-mnist-25"
    epochs = list(range(1, 101))
    assert [epoch for epoch, _ in measure.wanted(other, epochs, 60_000)] == [1, 3, 10, 32, 100]
    assert measure.wanted(one, epochs, 60_000) == [*measure.wanted(other, epochs, 60_000), (100, 10_000)]
    assert measure.wanted(one, [5, 9], 2429) == [(5, 500), (9, 500), (9, 2429)]
    assert measure.wanted(one, [5, 9], 40) == [(5, 40), (9, 40)]


# --- what is kept ---


def test_kept_solutions_are_read_back(tmp_path: Path) -> None:
    machine = random_machine(("bernoulli", 6), ("bernoulli", 4), ("bernoulli", 3), scale=3.0)
    solutions = tap_solutions(machine, (torch.rand(30, 6, generator=seeded()) < 0.5).double())
    path = tmp_path / "solutions" / "one.safetensors"
    assert kept.read(path, OF) is None
    kept.write(path, OF, solutions)
    again = kept.read(path, OF)
    for name in ("log_partition", "led_to", "status", "basins"):
        torch.testing.assert_close(getattr(again, name), getattr(solutions, name), rtol=0, atol=0)
    for one, other in zip(again.means, solutions.means, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)
    assert kept.read(path, OF | {"weights": "abd"}) is None
    path.write_bytes(path.read_bytes()[:100])
    assert kept.read(path, OF) is None


def test_moments_read_back_from_json() -> None:
    for one in (moment("a", 3), moment("b", 2, (9, 4, 2), train=None, test=None)):
        assert parsed(Moment, json.loads(json.dumps(asdict(one)))) == one


# --- table and pictures ---

MOMENTS = [
    moment("dynamics-mnist-100", 4, (9, 8)),
    moment("dynamics-mnist-100", 1, (9, 8), train=None),
    moment("dynamics-deep-2", 3, (9, 4, 2)),
    moment("dynamics-cbcl", 15, (6, 4), grey=True, data="cbcl"),
    moment("dynamics-mnist-25", 4, (9, 5)),
    moment("dynamics-mnist-100", 12, (9, 8)),
    moment("dynamics-mnist-100", 12, (9, 8), starts=100),
]


def test_the_table_has_a_row_per_run() -> None:
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in show.as_table(MOMENTS).splitlines()[2:]]
    assert [row[0] for row in rows] == [
        "`dynamics-mnist-25`",
        "`dynamics-mnist-100`",
        "`dynamics-cbcl`",
        "`dynamics-deep-2`",
    ]
    assert rows[1][1:] == ["8", "12", "3", "- (epoch 1)", "-0.2380 ± 0.0004", *rows[1][6:]]
    assert rows[1][8:] == ["100", "12", "12.0 %", "99.0 %"]
    assert rows[3][1] == "4 + 2"


def test_the_sum_over_solutions_is_told_beside_their_mean() -> None:
    """The record holds free energies as finely as pictures show them."""
    machine, patterns = four_modes()
    solutions = tap_solutions(machine, patterns)
    found = measure.compact(Findings.of("four", 1, solutions, 0.0))
    sizes = tuple(layer.size for layer in machine.layers)
    likelihood = measure.per_unit(machine, patterns, solutions)
    told = moment("four", 1, sizes, probe=found, train=likelihood).summed
    wanted = float(log_likelihood(machine, patterns).mean()) / sum(sizes)
    # Rounded energies are off by .05 nats at most, TAP's log-sum-exp by less than .02 (see its own test).
    assert told == pytest.approx(wanted, abs=0.12 / sum(sizes))
    assert likelihood.mean - wanted > 1 / sum(sizes)
    assert moment("none", 1, train=None).summed is None


def test_lines_of_a_picture_are_of_equally_many_starts() -> None:
    assert [(one.epoch, one.probe.starts) for one in measure.courses(MOMENTS)["dynamics-mnist-100"]] == [
        (1, 20),
        (4, 20),
        (12, 20),
    ]
    assert measure.last(MOMENTS, "dynamics-mnist-100").probe.starts == 100


def test_panels_and_bars() -> None:
    pytest.importorskip("matplotlib")
    figures = show.figures(MOMENTS)
    titles = [axes.get_title() for axes in figures["dynamics-solutions.png"].axes if axes.get_title()]
    assert titles == [
        "binary MNIST, 8 hidden units\n12 solutions from 100 starts at epoch 12",
        "grey CBCL, 4 hidden units\n15 solutions from 20 starts at epoch 15",
        "epoch 12, 100 starts",
        "epoch 15, 20 starts",
    ]
    assert not show.figures([moment("dynamics-mnist-25", 4)])


# --- the recipes ---


def test_the_recipes_are_those_of_the_figures() -> None:
    recipes = {path.stem: read_recipe(path) for path in (TRAINING / "recipes" / "dynamics").glob("*.toml")}
    assert set(measure.PROBED) < set(recipes)
    assert all(recipe.name == name for name, recipe in recipes.items())
    sizes = {
        name: recipe for name, recipe in recipes.items() if name.startswith("dynamics-mnist-") and "real" not in name
    }
    assert sorted(recipe.prior.hidden for recipe in sizes.values()) == [25, 50, 100, 500]
    # Curves over the number of hidden units differ in nothing else.
    assert len({str((recipe.data, recipe.learner, recipe.optimizer, recipe.seed)) for recipe in sizes.values()}) == 1
    assert {len(recipes[f"dynamics-deep-{layers}"].prior.deeper) + 1 for layers in (2, 3)} == {2, 3}


# --- the whole ---

RECIPE = """
name = "NAME"
[data]
source = "bars-and-stripes"
[prior]
hidden = 4
PRIOR
[learner]
method = "tap"
starts = "data"
[optimizer]
rate = 0.2
[training]
epochs = 6
batch = 8
"""
RECIPES = {
    "dynamics-mnist-100": "weight_scale = 0.5",
    "dynamics-cbcl": 'visible = "truncated-gaussian"',
    "dynamics-deep-2": 'family = "deep"\ndeeper = [3]\nweight_scale = 0.5',
}
PICTURES = ["dynamics-solutions.png", "dynamics-fields.png", "dynamics-isomap.png"]


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asked:
    pytest.importorskip("matplotlib")
    for name, value in {"EPOCHS": 3, "STARTS": 10, "MANY": 16}.items():
        monkeypatch.setattr(measure, name, value)
    asked = Asked(tmp_path, runs=tmp_path / "runs")
    (asked.recipes / study.FOLDER).mkdir(parents=True)
    for name, prior in RECIPES.items():
        text = RECIPE.replace("NAME", name).replace("PRIOR", prior)
        (asked.recipes / study.FOLDER / f"{name}.toml").write_text(text)
    (asked.root / "log.md").write_text("before\n<!-- dynamics: begin -->\nold\n<!-- dynamics: end -->\nafter\n")
    return asked


@pytest.mark.thorough
def test_what_is_missing_is_trained_and_measured(
    asked: Asked, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    training, record = replace(asked, train_missing=True), asked.records / "dynamics.json"
    with pytest.raises(InputError, match="give --train"):
        study.study(asked)

    # A study that is stopped in the middle has lost no more than what it was at.
    probed, count = study._probed, iter(range(100))

    def stopped(*words: object) -> object:
        if next(count) == 4:
            raise KeyboardInterrupt
        return probed(*words)

    with monkeypatch.context() as patch:
        patch.setattr(study, "_probed", stopped)
        with pytest.raises(KeyboardInterrupt):
            study.study(training)
    begun = json.loads(record.read_text())["moments"]
    assert [(one["run"], one["probe"]["epoch"]) for one in begun] == [
        *[("dynamics-cbcl", epoch) for epoch in (1, 2, 6)],
        ("dynamics-deep-2", 1),
    ]
    study.study(asked)
    moments = json.loads(record.read_text())["moments"]
    assert moments[:4] == begun
    found = [(one["run"], one["probe"]["epoch"], one["probe"]["starts"]) for one in moments]
    assert found == [
        (name, epoch, starts)
        for name in sorted(RECIPES)
        for epoch, starts in [(1, 10), (2, 10), (6, 10), *([(6, 16)] if name == measure.COUNTED else [])]
    ]
    for one in moments:
        assert one["train"]["n"] == one["test"]["n"] == 16
        # The same images in another order.
        assert one["train"]["mean"] == pytest.approx(one["test"]["mean"], rel=1e-9)
        assert one["probe"]["converged"] > 0 and one["minutes"] > 0
    for name in PICTURES:
        assert (asked.records / name).stat().st_size > 5000
    readme = (asked.root / "log.md").read_text()
    assert readme.startswith("before") and "old" not in readme and readme.count("| `dynamics-") == 3

    # What was measured is not measured again, and maps are drawn from what is kept beside the run. Pixels take most of
    # the time: the rest looks at figures without them.
    monkeypatch.setattr(study, "_probed", lambda *_: pytest.fail("measured again"))
    shown: list[dict[str, list[str]]] = []

    def publish(asked: Asked, tables: dict[str, str], figures: dict[str, Any]) -> None:
        assert tables["dynamics"] in readme
        shown.append({name: [axes.get_title() for axes in figure.axes] for name, figure in figures.items()})

    monkeypatch.setattr(study, "publish", publish)
    before = record.read_text()
    study.study(asked)
    assert record.read_text() == before and set(shown[0]) == set(PICTURES)

    # Nor is it trained or measured again where the runs are gone, and pictures keep their panels.
    for gone in (asked.runs / "dynamics-cbcl", asked.runs):
        shutil.rmtree(gone)
        capsys.readouterr()
        study.study(training)
        assert not gone.exists()
        assert record.read_text() == before
        assert shown[-1] == {name: shown[0][name] for name in ("dynamics-solutions.png",)}
        assert "dynamics-isomap.png: left as it is, for the runs of" in capsys.readouterr().err


@pytest.mark.thorough
def test_priors_that_have_changed_are_measured_again(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study, "publish", lambda *_: None)
    for name in ("dynamics-cbcl", "dynamics-deep-2"):
        (asked.recipes / study.FOLDER / f"{name}.toml").unlink()
    study.study(replace(asked, train_missing=True))
    record = asked.records / "dynamics.json"
    before = json.loads(record.read_text())["moments"]
    epochs = asked.runs / "dynamics-mnist-100" / "epochs"
    shutil.rmtree(epochs / "0002")
    shutil.copytree(epochs / "0005", epochs / "0002")
    study.study(asked)
    after = json.loads(record.read_text())["moments"]
    assert [one == other for one, other in zip(before, after, strict=True)] == [True, False, True, True]
    # Neither runs nor records of another recipe are taken for those of this one.
    recipe = asked.recipes / study.FOLDER / "dynamics-mnist-100.toml"
    recipe.write_text(recipe.read_text().replace("rate = 0.2", "rate = 0.3"))
    with pytest.raises(InputError, match="holds a run of another recipe"):
        study.study(asked)
    shutil.rmtree(asked.runs)
    with pytest.raises(InputError, match="give --train"):
        study.study(asked)


def test_the_record_of_another_study_is_refused(asked: Asked) -> None:
    asked.records.mkdir(parents=True)
    record = {"seed": 0, "n": 10_000, "starts": 10, "moments": []}
    (asked.records / "dynamics.json").write_text(json.dumps(record))
    with pytest.raises(InputError, match="seed 0, not 1; remove it"):
        study.study(replace(asked, seed=1))
