"""Images for which the log-pseudo-likelihood of a fully visible machine has no maximum.

It rises for ever along a direction of parameters exactly if no unit of any image is predicted wrongly there: if all
margins x_j f_j under the direction are at least 0, and one is positive. Since a coupling belongs to two units, one unit
that the others predict without error is no proof: its couplings predict the others as well, and these perhaps wrongly.

What is found here is proved. That nothing is found proves no maximum: directions whose margins are 0 at some images
take a linear program over all parameters to find.
"""

from __future__ import annotations

import torch
from torch import Tensor

from restore.errors import TrainingError
from restore.learning.gradients.pseudo_likelihood import Objective, Spins

# Units that a message names.
NAMED = 5


def refuse_unbounded(images: Tensor) -> None:
    """Refuse images (N, D) with a pixel that never changes, or two that never show one of their four combinations.

    The direction of the first is its bias. Of the second, say never 1 and 0, it is the coupling with biases -1 and 1 in
    spins: the margins are 0, 2, 0 and 0, 0, 2 at what remains. Both are cheap to find, and the most common.

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
    """Units among which these parameters prove that there is no maximum; empty if they do not.

    Those whose margins are all positive are kept, with the parameters among them alone, until what remains is a
    direction without an error, or nothing.
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
    """Pixels in words, the first few by number."""
    named = ", ".join(str(unit) for unit in units[:NAMED].tolist())
    more = f" and {len(units) - NAMED} more" if len(units) > NAMED else ""
    return f"{'pixel' if len(units) == 1 else 'pixels'} {named}{more}"
