"""The command line with a conditional prior: it takes only an image; damage given as well is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from commands import Run
from PIL import Image
from priors import random_conditional, random_prior, saved_prior

from restore import zoo
from restore.status import Status

SHAPE = (10, 12)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "models" / "seer"
    zoo.save(folder, random_conditional(SHAPE), "# seer\n\n## Scores\n\nNone.\n")
    return folder


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "image.png"
    drawn = np.random.default_rng(0).random(SHAPE) < 0.4
    Image.fromarray(np.where(drawn, 255, 0).astype(np.uint8)).save(path)
    return path


def only_line(capsys: pytest.CaptureFixture[str]) -> str:
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1, lines
    return lines[0]


@pytest.mark.parametrize(
    "words", [["denoise", "--p", "0.1"], ["complete", "--mask", "MASK"]], ids=["a-flip-rate", "a-mask"]
)
def test_being_told_of_the_damage_is_answered_with_an_explanation(
    run: Run, model: Path, image: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Once, however many images there are."""
    words = [str(image) if word == "MASK" else word for word in words]
    other = image.with_name("other.png")
    other.write_bytes(image.read_bytes())
    assert run(words[0], image, other, *words[1:], "--model", model) == 2
    line = only_line(capsys)
    assert "seer" in line and "flip:0.1" in line
    assert not image.with_name("image.restored.png").exists()


def test_other_priors_that_are_told_nothing_find_the_level(
    run: Run, image: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other, out = saved_prior(tmp_path, SHAPE), tmp_path / "out.png"
    assert run("denoise", image, "--model", other, "-o", out, "--strict") == 4
    assert run("denoise", image, "--model", other, "-o", out, "--force") == 0
    said = capsys.readouterr().err
    found, wanted = (np.asarray(Image.open(path)) > 127 for path in (out, image))
    assert f"restored with {other.name}, p = " in said and "(found)" in said
    assert f"{np.mean(found != wanted):.2%} of pixels changed: {out}" in said
    assert run("denoise", image, "--model", other, "-o", tmp_path / "same.png", "--p", "auto", "--force") == 0
    assert (tmp_path / "same.png").read_bytes() == out.read_bytes()


def test_stopping_where_training_stopped_is_nothing_to_say(
    run: Run, image: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "short"
    zoo.save(folder, random_conditional(SHAPE, max_iter=1), "# short\n")
    assert run("denoise", image, "--model", folder, "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert record["status"] == "converged" and not any("stopped" in note for note in record["notes"])


def test_stopping_before_convergence_is_said_once_of_many(
    run: Run, image: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, prior = tmp_path / "short", random_prior(SHAPE, name="short")
    limited = replace(prior.description, inference=replace(prior.description.inference, max_iter=1, tol=0.0))
    zoo.save(folder, replace(prior, description=limited), "# short\n")
    other = image.with_name("other.png")
    other.write_bytes(image.read_bytes())
    missing = image.with_name("missing.png")
    sentence = Status.MAX_ITER.sentence
    assert run("denoise", image, other, missing, "--model", folder, "--p", "0.1", "--json", "--force") == 6
    said = capsys.readouterr()
    assert said.err.count(sentence) == 1 and f"2 of 2 images: {sentence}" in said.err.splitlines()
    facts = [json.loads(line) for line in said.out.splitlines()]
    assert [sentence in record.get("notes", []) for record in facts].count(True) == 2
    again = ("--p", "0.1", "--force", "--quiet", "--overwrite")
    assert run("denoise", image, other, "--model", folder, *again) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("size", "code"), [("4K", 3), ("no", 2), ("0", 2), pytest.param("9" * 400, 2, id="400-digits"), ("1.5GiB", 0)]
)
def test_memory_limits(
    run: Run, model: Path, image: Path, size: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    # 120 x 5 units take more than 4 KiB in either form.
    assert run("denoise", image, "--model", model, "--max-memory", size) == code
    if code:
        assert "memory" in only_line(capsys)
        assert not image.with_name("image.restored.png").exists()


def test_evaluation_damages_by_the_task_and_tells_nothing(
    run: Run, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data.npy"
    np.save(data, np.random.default_rng(1).random((9, *SHAPE)) < 0.3)
    words = ["evaluate", model, "--data", data, "--json"]
    assert run(*words, "--task", "flip:0.1") == 0
    said = capsys.readouterr()
    report = json.loads(said.out)
    assert report["n"] == 9 and report["error_unchanged"]["mean"] < report["error_changed"]["mean"]
    assert "was trained" not in said.err
    assert run(*words, "--task", "patch:3") == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["mask"] == "unknown" and "was trained to undo flip:0.1, not patch:3:0" in said.err
