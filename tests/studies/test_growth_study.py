"""The study of growth: which recipes belong to it, what it measures, and its table and figure."""

from __future__ import annotations

import json

import pytest
from harness import TRAINING, checksum

from restore import zoo


@pytest.mark.parametrize("name", ["fw-mnist", "cd-fw-mnist", "fw-caltech"])
def test_published_priors_need_not_be_measured_again(name: str) -> None:
    folder = zoo.published_folder() / name
    known = json.loads((TRAINING / "studies" / "records" / "growth.json").read_text())["points"]
    assert (zoo.describe(folder).recipe, checksum(folder)) in [(each["recipe"], each["weights"]) for each in known]
