"""The script of likelihoods: every method for binary machines, TAP alone for others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from grey_priors import grey_prior, saved_grey
from likelihood import likelihood
from oracle import log_likelihood
from priors import random_conditional, random_prior

from restore import zoo
from restore.errors import ModelError

SHAPE = (4, 5)


def test_all_methods_come_near_the_truth(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    images = np.random.default_rng(0).random((30, *SHAPE)) < 0.4
    np.save(tmp_path / "data.npy", images)
    prior = random_prior(SHAPE, modes=0)
    zoo.save(tmp_path / "mine", prior, "# mine\n")
    likelihood(str(tmp_path / "mine"), str(tmp_path / "data.npy"), n=25, schedule="linear:300")
    truth = float(log_likelihood(prior.machine, torch.from_numpy(images[:25]).float().flatten(1)).mean())
    told = capsys.readouterr().out
    assert all(kind in told for kind in ("exact", "ais", "tap", "pseudo")) and f"{truth:.2f}" in told
    zoo.save(tmp_path / "seer", random_conditional(SHAPE), "")
    with pytest.raises(ModelError):
        likelihood(str(tmp_path / "seer"), str(tmp_path / "data.npy"))


def test_grey_priors_have_a_tap_likelihood(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "data.npy", np.random.default_rng(0).random((30, *SHAPE)))
    likelihood(str(saved_grey(tmp_path, grey_prior(shape=SHAPE))), str(tmp_path / "data.npy"))
    assert "nats per image" in capsys.readouterr().out
