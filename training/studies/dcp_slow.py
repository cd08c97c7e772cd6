"""Whether the local maximum of Shifting Bar (S-DCP, Fig. 1) is a matter of the rate: the same trials, slower."""

from __future__ import annotations

from collections.abc import Sequence

import dcp_small as small
import torch
from dcp_small import Trials
from harness import Asked, main, publish, read, write

from restore.console import progress
from restore.evaluation.card import table

# The learner that in the paper leaves by the higher rate only, and those that stay.
DATA, LEARNERS = "shifting-bar", ("CG", "CD", "PCD")

# The paper's rates, divided by this; the first of the 25 trials; and fewer epochs, in which others leave.
DIVISOR, TRIALS, EPOCHS = 3, 5, 13_000
SLOW = tuple(round(rate / DIVISOR, 4) for rate in small.RATES)

# The log-likelihood of the local maximum in the paper, near that of independent pixels, and how far above it a mean has
# left it.
LOCAL, ABOVE = -3.15, 0.05


def leaves(one: Trials) -> int | None:
    """The first epoch at which the mean over trials is above the local maximum; None if it never is."""
    pairs = zip(one.epochs, one.mean, strict=True)
    return next((epoch for epoch, value in pairs if value > LOCAL + ABOVE), None)


def as_table(found: Sequence[Trials]) -> str:
    """Markdown: when the mean of each rate leaves the local maximum, the paper's rates first."""
    rows = [
        [f"{one.algorithm}, {one.rate:g}", "-" if (epoch := leaves(one)) is None else f"{epoch:,}"]
        for learner in LEARNERS
        for one in found
        if (one.data, one.algorithm) == (DATA, learner)
    ]
    return table(["rate", f"leaves {LOCAL} in epoch"], rows)


def study(asked: Asked) -> None:
    """Learn Shifting Bar at small rates; write dcp-slow.json and a table, beside the trials of dcp.json."""
    torch.set_num_threads(1)
    path, settings = asked.records / "dcp-slow.json", {"seed": asked.seed}
    usual: list[Trials] = read(asked.records / "dcp.json", settings, small=Trials)["small"]
    found: list[Trials] = read(path, settings, trials=Trials)["trials"]
    for learner in LEARNERS:
        if any(one.algorithm == learner for one in found):
            continue
        with progress(f"{DATA}, {learner}", EPOCHS) as meter:
            found += small.learn(
                DATA,
                learner,
                asked.images(DATA, "train"),
                copies=1,
                trials=TRIALS,
                seed=asked.seed,
                rates=SLOW,
                epochs=EPOCHS,
                meter=meter,
            )
        write(path, settings | {"trials": found}, indent=None)
    publish(asked, {"dcp-slow": as_table([*usual, *found])})


if __name__ == "__main__":
    main(study)
