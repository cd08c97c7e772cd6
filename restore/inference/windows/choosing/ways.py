"""A prior in one polarity, tried on a sample of a large image."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from restore.channels.values import log_odds_of
from restore.inference.damage import Damage
from restore.inference.explained import Observed
from restore.inference.noise.held_out import foretold
from restore.inference.pictures import ChosenLevel, Restored, restore_pictures, solved
from restore.inference.windows.choosing.field import allowed
from restore.inference.windows.choosing.sampling import Crop, Stacked
from restore.inference.windows.moments import Turned
from restore.inference.windows.tally import Tally
from restore.marginals import Marginals, NoiseLevel


@dataclass(frozen=True, eq=False)
class Way(Turned):
    """A prior and a polarity to restore the sample in."""

    sample: Stacked

    @property
    def allowed(self) -> float:
        """By how many nats rivals may be ahead."""
        return float(allowed(int((~self.sample.hidden).sum())))

    def certain(self, damage: Damage) -> bool:
        """Whether no pixel of the sample is a guess."""
        seen = Observed(self.sample.grey[None], self.sample.damaged(damage))
        return damage.unknown is None and bool(seen.certain.all())

    def evidence(self, damage: Damage) -> float:
        """log p(sample | prior) under damage of known levels, in nats; -inf if there is none."""
        told = self.sample.damaged(damage.inverted() if self.invert else damage)
        told.check_for(self.sample.stack.description)
        grey = 1 - self.sample.grey if self.invert else self.sample.grey
        found, _ = solved(self.sample.stack, Observed(grey[None], told))
        assert found.evidence is not None  # conditional priors are not compared
        evidence = float(found.evidence[0] - self.sample.stack.log_partition)
        return evidence if np.isfinite(evidence) else -np.inf

    def predicted(self, crop: Crop, damage: Damage, folds: Iterable[int]) -> float:
        """log p(pixels held out | others) under damage of known levels, in nats; restored as the image would be."""
        told, total = replace(damage, p=crop.p) if crop.p is not None else damage, 0.0
        white = self.engine.description.as_known(crop.grey) > 0
        for asked, hidden in crop.held_out(folds):
            mean, _ = self.moments(crop.grey, replace(told, hidden=hidden), Tally())
            rates = [np.broadcast_to(rate, crop.grey.shape)[asked] for rate in told.rates]
            total += foretold(log_odds_of(mean[asked]), white[asked], (rates[0], rates[1]))
        return total

    def restored(self, damage: Damage) -> tuple[Restored, Marginals]:
        """The sample, at the most probable level if none is told."""
        told = self.sample.damaged(damage)
        (restored,), marginals = restore_pictures(self.sample.stack, [self.sample.grey], told, invert=self.invert)
        return restored, marginals

    def at_level(self, damage: Damage, noise: NoiseLevel) -> tuple[Restored, Marginals]:
        """The sample at a level that was chosen otherwise."""
        assert damage.unknown is not None
        restored, marginals = self.restored(damage.chosen(noise, 0))
        level = ChosenLevel.of(damage.unknown, noise, 0)
        return replace(restored, level=level), replace(marginals, noise=noise)
