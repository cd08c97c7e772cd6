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
from restore.inference.torch_engine import Engine

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


def test_documents_keep_everything_but_the_section() -> None:
    document = "before\n<!-- x: begin -->\nold\n<!-- x: end -->\nafter\n"
    assert section(document, "x", "new") == "before\n<!-- x: begin -->\nnew\n<!-- x: end -->\nafter\n"
    assert section("no marks", "x", "new") == "no marks"


# --- likelihoods ---


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
    small = engine.header.hidden <= 25
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
