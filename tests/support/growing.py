"""Growth by Frank-Wolfe, small enough for tests."""

from __future__ import annotations

from machines import bars_and_stripes

from restore.learning.rules.frank_wolfe import FrankWolfe

IMAGES = bars_and_stripes(3)

SMALL = FrankWolfe(units=8, samples=4000, penalty=0.003, bias_steps=20, bias_rate=0.3, away_every=4)
