"""Growth by Frank-Wolfe, small enough for tests."""

from __future__ import annotations

from typing import Any

from machines import bars_and_stripes

from restore.learning.rules.frank_wolfe import FrankWolfe

IMAGES = bars_and_stripes(3)


def growth_of(units: int = 8, penalty: float = 0.003, **constants: Any) -> FrankWolfe:
    """Settings of a growth under other constants, by their names."""
    usual = {"samples": 4000, "bias_steps": 20, "bias_rate": 0.3, "away_every": 4}
    return type("Small", (FrankWolfe,), usual | constants)(units, penalty)


SMALL = growth_of()
