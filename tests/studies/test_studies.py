"""The studies: their tables say what was measured, and go where the documents have room for them."""

from __future__ import annotations

from pathlib import Path

import denoising
import likelihoods
import pytest
import torch
from harness import Asked, main, section, spread
from priors import random_conditional, random_prior

from restore import zoo
from restore.errors import UsageError
from restore.evaluation.likelihoods.result import Likelihood
from restore.inference.torch_engine import Engine, starts

SHAPE = (12, 12)


@pytest.fixture(scope="module")
def truth() -> torch.Tensor:
    return (torch.rand(6, 144, generator=torch.Generator().manual_seed(3)) < 0.4).float()


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine.of(random_prior(SHAPE), torch.device("cpu"))


@pytest.fixture(scope="module")
def curves(engine: Engine, truth: torch.Tensor) -> list[denoising.Curve]:
    return denoising.measured({"mine": engine}, truth, truth, SHAPE, seed=4)


def test_every_method_has_a_curve(curves: list[denoising.Curve]) -> None:
    assert [curve.name for curve in curves] == [
        "OPE",
        "1-NN",
        "1-NN of 1,000",
        "1-NN of 10,000",
        "mine, one start",
        "mine",
        "mine, from the clean image",
    ]
    for curve in curves:
        assert len(curve.mcc) == len(denoising.PROBABILITIES) == 11
        assert (curve.log_partition is None) == (curve.name == "OPE" or curve.name.startswith("1-NN"))
    # The training images hold the truth, which the nearest neighbour finds; without noise the prior keeps all pixels.
    assert curves[1].mcc[1].mean == 1
    assert curves[5].mcc[0].mean == 1


def test_one_start_is_the_pointwise_estimate_alone(engine: Engine, truth: torch.Tensor) -> None:
    alone = denoising.one_start(engine)
    evidence = denoising.BitFlip(0.2).evidence(truth)
    assert starts(alone.trained, evidence).shape == (6, 1, 144)
    assert torch.equal(starts(alone.trained, evidence)[:, 0], starts(engine.trained, evidence)[:, 0])


def test_the_table_has_the_means_and_marks_the_best(
    curves: list[denoising.Curve], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(denoising, "DEPTHS", ("mine",))
    lines = denoising.as_tables(curves).splitlines()
    cells = [cell.strip() for cell in lines[3].strip("|").split("|")]
    assert cells[0] == "1-NN" and cells[2] == "**1.000**"
    depth = denoising.depth_table(curves).splitlines()
    assert len(lines) == 2 + 6 + 1 + len(depth) and len(depth) == 2 + 3
    several = curves[5].log_partition
    assert several is not None and f"{several[1]:.1f}" in depth[3]


def test_known_curves_are_not_measured_again(engine: Engine, truth: torch.Tensor) -> None:
    known = ["OPE", "1-NN", "1-NN of 1,000", "1-NN of 10,000", "mine", "mine, one start", "mine, from the clean image"]
    found = denoising.measured({"mine": engine}, truth, truth, SHAPE, 4, {"paper": engine}, known)
    assert [curve.name for curve in found] == ["paper, one start"]


def test_documents_keep_everything_but_the_section() -> None:
    document = "before\n<!-- x: begin -->\nold\n<!-- x: end -->\nafter\n"
    assert section(document, "x", "new") == "before\n<!-- x: begin -->\nnew\n<!-- x: end -->\nafter\n"
    assert section("no marks", "x", "new") == "no marks"


# --- likelihoods ---


def by_solutions(mean: float) -> tuple[tuple[str, float], ...]:
    """What a TAP likelihood of 3 solutions says besides its mean."""
    figures = {"mean_by_log_sum_exp": mean - 2, "starts": 7, "converged": 6, "solutions": 3}
    return tuple(figures.items())


def measured(values: dict[int, tuple[float, float, float]]) -> dict[int, likelihoods.Measured]:
    """By epoch, with these means of AIS, TAP and pseudo-likelihood."""
    return {
        epoch: likelihoods.Measured(
            f"epoch-{epoch}",
            5,
            {
                "ais": Likelihood(
                    "ais", 9, ais, 0.5, 100.0, 0.1, (ais - 0.25, ais + 0.25), 0.95, (("effective_runs", 71.0),)
                ),
                "tap": Likelihood("tap", 9, tap, 0.5, 101.0, 0.2, details=by_solutions(tap)),
                "pseudo": Likelihood("pseudo", 9, pseudo, 0.3),
            },
        )
        for epoch, (ais, tap, pseudo) in values.items()
    }


ALONG = {1: (-9.0, -8.0, -5.0), 2: (-7.0, -6.5, -4.0), 4: (-6.0, -5.5, -4.5)}


def test_rank_correlations_compare_orders() -> None:
    found = likelihoods.rank_correlations(measured(ALONG))
    assert found[("ais", "tap")] == pytest.approx(1)
    assert found[("ais", "pseudo")] == found[("tap", "pseudo")] == pytest.approx(0.5)


def test_tables_of_likelihoods_have_a_row_per_prior() -> None:
    rows = likelihoods.along_table(measured(ALONG)).splitlines()
    assert len(rows) == 2 + 3
    assert (
        rows[2]
        == "| 1 | -9.00 (-9.25 ... -8.75) | 100.00 | -8.00 ± 0.20 | -10.00 | 3 (6 of 7) | 101.00 | -5.00 ± 0.30 |"
    )
    (prior,) = likelihoods.priors_table(list(measured({1: ALONG[1]}).values())).splitlines()[2:]
    assert (
        prior
        == "| `epoch-1` | 5 |  | -9.00 (-9.25 ... -8.75) | 71 | -8.00 ± 0.20 | -10.00 | 3 (6 of 7) | -5.00 ± 0.30 |"
    )


@pytest.mark.parametrize(
    ("epochs", "count", "chosen"),
    [
        (range(1, 41), 10, [1, 2, 3, 4, 5, 8, 12, 18, 27, 40]),
        ([10, 20, 30], 5, [10, 20, 30]),
        ([10, 20, 30, 40], 2, [10, 40]),
        (range(1, 6), 4, [1, 2, 3, 5]),
    ],
)
def test_epochs_are_spread_by_factors(epochs: range, count: int, chosen: list[int]) -> None:
    assert spread(list(epochs), count) == chosen


def test_likelihoods_of_a_prior_along_a_run(
    truth: torch.Tensor, engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    found = likelihoods.along({3: engine, 7: engine}, truth, 0, "linear:20")
    assert list(found) == [3, 7] and capsys.readouterr().err.startswith("epoch 3: ")
    assert found[3].likelihoods["tap"].mean == found[7].likelihoods["tap"].mean
    small = engine.description.hidden <= 25
    assert ("exact" in found[3].likelihoods) == small
    record = likelihoods.as_record(found, [], 6, 0)
    # The same prior twice has no order to compare.
    assert set(record["rank_correlations"].values()) == {None}
    assert record["along"]["3"]["likelihoods"]["ais"]["mean"] == found[3].likelihoods["ais"].mean


# --- as scripts ---


def test_the_denoising_study_is_for_priors_that_are_told(tmp_path: Path) -> None:
    zoo.save(tmp_path / "seer", random_conditional(), "# seer")
    with pytest.raises(UsageError, match="--model"):
        denoising.study(Asked(tmp_path, models=(str(tmp_path / "seer"),)))


@pytest.mark.parametrize(("words", "code"), [((), 2), (("--seed", "-1"), 2), (("--help",), 0)])
def test_a_script_reads_its_options_and_ends_with_an_exit_code(
    words: tuple[str, ...], code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def study(asked: Asked) -> None:
        """Look at nothing."""
        raise UsageError(f"seed {asked.seed} has no study; give another")

    monkeypatch.setattr("sys.argv", ["study.py", *words])
    with pytest.raises(SystemExit) as stopped:
        main(study)
    said = capsys.readouterr()
    assert stopped.value.code == code
    assert {(): "seed 0 has no study", ("--help",): "Look at nothing"}.get(words, "--seed") in said.out + said.err


def test_options_reach_the_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Asked] = []
    words = ["-o", tmp_path, "--model", "a", "--model", "b", "--n", 5, "--train", "--data", "there", "--device", "cpu"]
    monkeypatch.setattr("sys.argv", ["study.py", *map(str, words)])
    with pytest.raises(SystemExit):
        main(given.append)
    wanted = Asked(tmp_path, models=("a", "b"), n=5, train_missing=True, data=Path("there"), device="cpu")
    assert given == [wanted]
