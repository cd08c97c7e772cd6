"""`restore evaluate`: scores on a card, options that exclude each other, and images that do not do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from commands import Run
from PIL import Image
from priors import saved_prior
from refusals import refused

from restore.errors import ModelError
from restore.learning.run.card import with_scores

SHAPE = (12, 12)
SMALL = (4, 5)


@pytest.fixture(scope="module")
def truth() -> torch.Tensor:
    return (torch.rand(6, 144, generator=torch.Generator().manual_seed(3)) < 0.4).float()


def test_a_card_keeps_everything_but_its_scores() -> None:
    assert with_scores("# card\n\n## Scores\n\nold\n", "new", "card.md") == "# card\n\n## Scores\n\nnew\n"
    with refused(ModelError, "card.md"):
        with_scores("# card\n", "new", "card.md")


def test_the_command_puts_scores_on_the_card(
    run: Run, tmp_path: Path, truth: torch.Tensor, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, data = saved_prior(tmp_path / "mine", SHAPE), tmp_path / "data.npy"
    np.save(data, truth.reshape(-1, *SHAPE).numpy())
    card = folder / "card.md"
    card.write_text("# mine\n\n## Scores\n\nNot measured yet.\n")
    assert run("evaluate", folder, "--card", "--data", data, "--n", 4) == 0
    told, text = capsys.readouterr().out, card.read_text()
    assert text.startswith("---\n") and 'metrics: ["error_rate", "matthews_correlation"]\n' in text
    assert f"--card --data {data} --n 4 --seed 0`" in text and "Not measured" not in text
    assert text.count("| flip:0.") == 5 and text.count("| patch:") == 2 and "| flip:0.1 | 4 | " in told
    card.unlink()
    assert run("evaluate", folder, "--card", "--data", data, "--n", 4) == 4
    for words in (("--card", "--json"), ("--card", "--task", "flip:0.1"), ("--task", "flip:0.1")):
        assert run("evaluate", folder, *words) == 2


def test_unreadable_images_are_skipped_as_the_message_says(
    run: Run, tmp_path: Path, truth: torch.Tensor, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, data = saved_prior(tmp_path / "mine", SHAPE), tmp_path / "data"
    data.mkdir()
    for number, image in enumerate(truth.reshape(-1, *SHAPE).numpy()):
        Image.fromarray(image > 0).save(data / f"{number}.png")
    (data / "broken.png").write_bytes(b"no image")
    words = ("evaluate", folder, "--data", data, "--task", "flip:0.1")
    assert run(*words) == 7
    remedy = capsys.readouterr().err.rpartition("skip them with ")[2].split()
    assert run(*words, *remedy) == 0


# --- refused ---


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return saved_prior(tmp_path / "tiny", SMALL)


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--data", "data.npy"),
        ("--task", "flip:0.1"),
        ("--data", "data.npy", "--task", "flip:0.1", "--card"),
        ("--data", "data.npy", "--task", "flip:0.1", "--n", 0),
        ("--data", "data.npy", "--task", "flip:2"),
    ],
    ids=lambda words: " ".join(map(str, words)),
)
def test_usage(
    options: tuple[object, ...],
    run: Run,
    model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("data.npy", np.zeros((3, *SMALL)))
    assert run("evaluate", model, *options) == 2
    told = capsys.readouterr()
    assert told.err.count("\n") == 1 and told.out == ""
