"""A batch that is started again after something has changed: what is restored anew, and what is refused."""

from __future__ import annotations

import json
import os
from pathlib import Path

import bad_images
import numpy as np
import pytest
from batches import again, images, stamps
from commands import Run
from PIL import Image
from priors import saved_prior
from restore.cli.batch.manifest import NAME


def test_an_image_that_changed_is_restored_again_and_no_other(
    run: Run, words: tuple[object, ...], tmp_path: Path
) -> None:
    assert run(*words) == 0
    Image.fromarray(np.zeros(bad_images.SHAPE, np.uint8)).save(tmp_path / "in" / "0002.png")
    assert again(run, words, tmp_path / "out") == (0, {"0002.restored.png"})
    assert again(run, words, tmp_path / "out") == (0, set())


def test_an_output_that_is_gone_is_made_again_and_one_that_was_edited_is_kept(
    run: Run, words: tuple[object, ...], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert run(*words) == 0
    (out / "0001.restored.png").unlink()
    assert again(run, words, out) == (0, {"0001.restored.png"})
    (out / "0003.restored.png").write_bytes(b"precious")
    assert again(run, words, out) == (5, set())
    assert again(run, words, out, "--skip-existing") == (0, set())
    assert again(run, words, out, "--overwrite") == (0, {"0003.restored.png"})


def test_other_settings_are_refused_unless_told_to_overwrite(
    run: Run, words: tuple[object, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert run(*words) == 0
    capsys.readouterr()
    assert again(run, words, out, "--p", 0.1, "--soft") == (2, set())
    assert "p was 0.3 and is 0.1; soft was False and is True; give --overwrite" in capsys.readouterr().err
    assert again(run, words, out, "--p", 0.1, "--soft", "--skip-existing") == (0, set())
    # How it is computed is no part of the result.
    assert again(run, words, out, "--workers", 1, "--max-pixels", 1000, "--max-memory", "1G") == (0, set())
    assert again(run, words, out, "--p", 0.1, "--soft", "--overwrite")[1] == set(stamps(out))
    assert again(run, words, out, "--p", 0.1, "--soft") == (0, set())
    assert again(run, words, out) == (2, set())


def test_another_prior_is_refused_and_so_is_one_that_was_trained_again(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from priors import random_prior

    from restore.zoo import save

    prior = saved_prior(tmp_path / "m", bad_images.SHAPE)
    words = ("denoise", images(tmp_path / "in", 2), "--model", prior, "--p", 0.3, "-o", f"{tmp_path}/out/")
    assert run(*words) == 0
    save(prior, random_prior(bad_images.SHAPE, name=prior.name, seed=1), "")
    assert again(run, words, tmp_path / "out") == (2, set())
    assert "has changed" in capsys.readouterr().err
    assert again(run, words, tmp_path / "out", "--overwrite")[0] == 0
    assert again(run, words, tmp_path / "out") == (0, set())


def test_row49_an_image_of_the_same_name_elsewhere_is_no_change_of_the_first(
    run: Run, words: tuple[object, ...], tmp_path: Path
) -> None:
    assert run(*words) == 0
    elsewhere = ("denoise", images(tmp_path / "other", 1), *words[2:])
    assert again(run, elsewhere, tmp_path / "out") == (5, set())


def test_another_mask_is_another_setting_and_a_changed_one_is_a_change(run: Run, model: str, tmp_path: Path) -> None:
    masks, out = tmp_path / "masks", tmp_path / "out"
    masks.mkdir()
    for name in ("0000.png", "0001.png", "other.png"):
        Image.fromarray(bad_images.HOLE).save(masks / name)
    words = ("complete", images(tmp_path / "in", 2), "--model", model, "-o", f"{out}/", "--mask")
    assert run(*words, masks) == 0
    assert again(run, (*words, masks / "other.png"), out) == (2, set())
    Image.fromarray(bad_images.HOLE[::-1].copy()).save(masks / "0001.png")
    os.utime(masks / "0001.png", (1, 1))
    assert again(run, (*words, masks), out) == (0, {"0001.restored.png"})


def test_failures_are_noted_and_tried_again(
    run: Run, words: tuple[object, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad, out = tmp_path / "in" / "0002.png", tmp_path / "out"
    whole = bad.read_bytes()
    bad.write_bytes(whole[:50])
    assert run(*words) == 6
    capsys.readouterr()
    assert again(run, words, out) == (6, set())
    assert "1 of 1 images failed" in capsys.readouterr().err
    told = [json.loads(line) for line in (out / NAME).read_text().splitlines() if line]
    assert [line["input"] for line in told if "error" in line] == [os.path.relpath(bad, out)] * 2
    bad.write_bytes(whole)
    assert again(run, words, out) == (0, {"0002.restored.png"})


def test_folders_that_move_together_still_know_each_other(run: Run, words: tuple[object, ...], tmp_path: Path) -> None:
    assert run(*words) == 0
    moved = tmp_path / "moved"
    moved.mkdir()
    for name in ("in", "out"):
        (tmp_path / name).rename(moved / name)
    assert again(run, ("denoise", moved / "in", *words[2:-1], moved / "out"), moved / "out") == (0, set())
