"""Detect images for which the log-pseudo-likelihood of a fully visible machine has no maximum.

It increases for ever along a direction of parameters exactly if that direction predicts no unit of any image wrongly:
all margins x_j f_j are at least 0, and one is positive. Since a coupling belongs to two units, it is no proof if one
unit is predicted by the others without error: its couplings also predict the others, perhaps wrongly.

What is found here is proved; if nothing is found, there may still be no maximum. To find directions whose margins are 0
for some images takes a linear program over all parameters.
"""

from __future__ import annotations

import torch
from torch import Tensor

from restore.errors import TrainingError
from restore.learning.gradients.pseudo_likelihood import Objective, Spins

# The most units that a message lists.
NAMED = 5


def refuse_unbounded(images: Tensor) -> None:
    """Refuse images (N, D) with a pixel that never changes, or two that never show one of their four combinations.

    In the first case the direction is the pixel's bias. In the second, say never 1 and 0, it is the coupling with
    biases -1 and 1 in spins: the margins are 0, 2, 0 and 0, 0, 2 for the rest. Both are common, and cheap to find.

    Raises:
        TrainingError: naming them, and the remedy.
    """
    ones = images.double()
    count, both = ones.sum(0), ones.T @ ones
    constant = ((count == 0) | (count == len(images))).nonzero().squeeze(-1)
    remedy = "the pseudo-likelihood has no maximum; set [learner] l2, such as 1e-3"
    if len(constant):
        changes = "changes" if len(constant) == 1 else "change"
        raise TrainingError(f"{told_units(constant)} never {changes} in {len(images)} images: {remedy}")
    alone = count - both.T
    cells = torch.stack([both, alone, alone.T, len(images) - count - count[:, None] + both])
    missing = (cells == 0).any(0).triu(1).nonzero()
    if len(missing):
        first, second = missing[0].tolist()
        more = f" and {len(missing) - 1} more pairs" if len(missing) > 1 else ""
        raise TrainingError(
            f"pixels {first} and {second}{more} never show one of their four combinations in {len(images)} images: "
            f"{remedy}"
        )


def separated_units(objective: Objective, at: Spins) -> Tensor:
    """Units for which these parameters prove that there is no maximum; empty if they do not.

    Units whose margins are all positive are kept, with only the parameters among them, until the rest is a direction
    without an error, or empty.
    """
    spins = objective.sample.spins
    kept = torch.arange(len(at.bias), device=spins.device)
    while len(kept):
        fields = torch.addmm(at.bias[kept, None], at.couplings[kept][:, kept], spins[kept])
        sure = (spins[kept] * fields > 0).all(1)
        if bool(sure.all()):
            break
        kept = kept[sure]
    return kept


def told_units(units: Tensor) -> str:
    """Pixels in words: the first few by number."""
    named = ", ".join(str(unit) for unit in units[:NAMED].tolist())
    more = f" and {len(units) - NAMED} more" if len(units) > NAMED else ""
    return f"{'pixel' if len(units) == 1 else 'pixels'} {named}{more}"
