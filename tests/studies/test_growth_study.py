"""The study of growth: which recipes belong to it, what it measures, and its table and figure."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import growth as study
import pytest
from growth import GROWN, TUNED, Point
from harness import TRAINING, checksum, read
from priors import random_prior

from restore import zoo
from restore.errors import InputError


def point(method: str, hidden: int, likelihood: float, **changed: object) -> Point:
    facts = {"error": 0.074, "data": "mnist", "name": "x", "minutes": 1.25, "effective": 40.2}
    interval = (likelihood - 0.5, likelihood + 0.25)
    facts |= {"weights": f"{method} {hidden} {likelihood}", "recipe": "abc"} | changed
    return Point(method=method, hidden=hidden, likelihood=likelihood, interval=interval, **facts)


def test_a_record_reads_back(tmp_path: Path) -> None:
    points = [point(GROWN, 100, -131.256), point(TUNED, 200, -95.5, error=None)]
    path = tmp_path / "growth.json"

    def known(n: int) -> list[study.Point]:
        return read(path, {"seed": 3, "n": n}, points=Point)["points"]

    path.write_text(json.dumps({"seed": 3, "n": 5, "points": [asdict(point) for point in points]}))
    assert known(5) == points
    with pytest.raises(InputError, match="holds the study with n 5, not 6; remove it"):
        known(6)
    for text in ("{", "[]", '{"points": []}', '{"seed": 3, "n": 5, "points": [{"name": "x"}]}'):
        path.write_text(text)
        with pytest.raises(InputError, match="not the record of this study"):
            known(5)
    assert read(tmp_path / "missing.json", {"seed": 3}, points=Point) == {"points": []}


def test_a_prior_is_known_by_its_tensors_whatever_its_header_says(tmp_path: Path) -> None:
    prior = random_prior((4, 4))
    zoo.save(tmp_path / "one", prior, "# one")
    other = replace(prior, description=replace(prior.description, name="another", auto=3))
    zoo.save(tmp_path / "two", other, "# two")
    assert (tmp_path / "one" / zoo.WEIGHTS).read_bytes() != (tmp_path / "two" / zoo.WEIGHTS).read_bytes()
    assert checksum(tmp_path / "one") == checksum(tmp_path / "two")


@pytest.mark.parametrize("name", ["fw-mnist", "cd-fw-mnist", "fw-caltech"])
def test_published_priors_need_not_be_measured_again(name: str) -> None:
    folder = zoo.published_folder() / name
    known = json.loads((TRAINING / "studies" / "records" / "growth.json").read_text())["points"]
    assert (zoo.describe(folder).recipe, checksum(folder)) in [(each["recipe"], each["weights"]) for each in known]


def test_other_tensors_are_another_prior(tmp_path: Path) -> None:
    for seed in (0, 1):
        zoo.save(tmp_path / str(seed), random_prior((4, 4), seed=seed), "# one")
    assert checksum(tmp_path / "0") != checksum(tmp_path / "1")


def test_a_table_has_no_interval_of_too_few_effective_runs() -> None:
    text = study.as_tables([point(GROWN, 100, -131.0, effective=4.2), point(TUNED, 200, -95.0, effective=5.1)], {})
    few, enough = (next(line for line in text.splitlines() if f" {value} " in line) for value in ("-131.00", "-95.00"))
    assert "..." not in few and "-95.50 ... -94.75" in enough
