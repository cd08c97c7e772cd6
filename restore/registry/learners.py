"""Entries of learners in the tables of families, `restore.families.Family.learners`.

A new learner is a file in `restore/learning/rules/` that fulfils `contract.py` there (or `InRounds` there), and
an entry in the table of each family that it trains. Its settings, a dataclass on top of `LearningRule`, are keys of a
recipe's [learner].
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from restore.registry.entry import Entry


@dataclass(frozen=True)
class Offer:
    """What `restore train --method` offers by a name.

    Attributes:
        settings: the learner's settings that differ from its own defaults.
        levels: the pixels that it learns from, "binary" or "grey".
        rate, scale: of steps, and of the first weights, where the family's plan leaves them to the method.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    levels: tuple[str, ...] = ("binary",)
    rate: float = 0.0
    scale: float = 0.0


@dataclass(frozen=True)
class Learner(Entry):
    """A learner; `place` names its class.

    Attributes:
        offers: what `--method` calls it, each with its settings; empty for recipes alone.
    """

    offers: Mapping[str, Offer] = field(default_factory=dict)
