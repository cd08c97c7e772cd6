"""The study of growth: which recipes belong to it, what it measures, and its table and figure."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import growth as study
import pytest
from growth import GROWN, TUNED, Point
from harness import read

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
