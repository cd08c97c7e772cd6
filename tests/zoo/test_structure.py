"""What TOML and JSON hold becomes values of declared types, or is refused by the name of its key."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, NamedTuple

import pytest
from refusals import refused

from restore.errors import UsageError
from restore.zoo.structure import structure


class Corner(NamedTuple):
    row: int
    name: str


@dataclass(frozen=True)
class Inner:
    rate: float = 0.5
    kind: Literal["sgd", "adam"] = "sgd"


@dataclass(frozen=True)
class Outer:
    name: str
    size: tuple[int, int] = (1, 2)
    deeper: tuple[int, ...] = ()
    corners: tuple[Corner, ...] = ()
    hidden: int | Literal["auto"] = 0
    score: float | None = None
    ready: bool = False
    inner: Inner = field(default_factory=Inner)
    parts: tuple[Inner, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    constant: int = field(default=7, init=False)


WHOLE = Outer(
    "a", (3, 4), (5,), (Corner(1, "x"),), "auto", 2.0, True, Inner(1.0, "adam"), (Inner(), Inner(2.0)), {"x": [1]}
)


@pytest.mark.parametrize("made", [WHOLE, Outer("b"), Outer("c", hidden=3, score=None)], ids=lambda made: made.name)
def test_what_json_makes_of_a_value_becomes_the_value(made: Outer) -> None:
    table = json.loads(json.dumps(asdict(made)))
    del table["constant"]
    assert structure(Outer, table) == made


def test_whole_numbers_stand_for_others() -> None:
    made = structure(Outer, {"name": "a", "score": 1, "inner": {"rate": 2}})
    assert (made, type(made.score), type(made.inner.rate)) == (Outer("a", score=1.0, inner=Inner(2.0)), float, float)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "unknown": ({"naem": "a"}, "naem"),
    "constant": ({"name": "a", "constant": 8}, "constant"),
    "missing": ({}, "name"),
    "text": ({"name": 1}, "name"),
    "truth-for-number": ({"name": "a", "deeper": [True]}, "deeper"),
    "number-for-truth": ({"name": "a", "ready": 1}, "ready"),
    "huge": ({"name": "a", "hidden": 10**30}, "hidden"),
    "other-word": ({"name": "a", "hidden": "many"}, "hidden"),
    "none": ({"name": "a", "hidden": None}, "hidden"),
    "too-many": ({"name": "a", "size": [1, 2, 3]}, "size"),
    "too-few": ({"name": "a", "corners": [[1]]}, "corners"),
    "inner": ({"name": "a", "inner": {"kind": "lbfgs"}}, "[inner] kind"),
    "no-table": ({"name": "a", "inner": 3}, "[inner]"),
    "no-settings": ({"name": "a", "settings": [1]}, "settings"),
    "inner-of-several": ({"name": "a", "parts": [{"rate": "x"}]}, "rate"),
}


@pytest.mark.parametrize(("table", "key"), REFUSED.values(), ids=REFUSED.keys())
def test_other_values_are_refused_by_their_key(table: dict[str, Any], key: str) -> None:
    with refused(UsageError, key):
        structure(Outer, table)
