"""Whether the local maximum of Shifting Bar (S-DCP, Fig. 1) is a matter of the rate: the same trials, slower."""

from __future__ import annotations

from collections.abc import Sequence

import dcp_small as small
import torch
from dcp_small import Trials
from harness import Asked, main, publish, read, write

from restore.evaluation.markdown import table
from restore.progress import progress

DATA, COMPARED = "shifting-bar", ("CG", "CD", "S-DCP", "CS-DCP")

# The paper's rates, divided by this; the first of the 25 trials; and fewer epochs, in which others leave.
DIVISOR, TRIALS, EPOCHS = 3, 5, 13_000
SLOW = tuple(round(rate / DIVISOR, 4) for rate in small.RATES)

# The log-likelihood of the local maximum in the paper, which is that of independent pixels, and how far above it a mean
# over trials has left it.
LOCAL, ABOVE = -3.15, 0.05


def leaves(one: Trials) -> int | None:
    """The first epoch at which the mean over trials is above the local maximum; None if it never is."""
    pairs = zip(one.epochs, one.mean, strict=True)
    return next((epoch for epoch, value in pairs if value > LOCAL + ABOVE), None)


def as_table(usual: Sequence[Trials], slow: Sequence[Trials]) -> str:
    """Markdown: a row per learner; when its mean leaves the local maximum, at the paper's rates and slower."""
    rows = []
    for algorithm in COMPARED:
        own = {one.rate: one for one in (*usual, *slow) if (one.data, one.algorithm) == (DATA, algorithm)}
        if set(SLOW) <= own.keys():
            when = [leaves(own[rate]) for rate in (*small.RATES, *SLOW)]
            rows.append([algorithm, *("-" if epoch is None else f"{epoch:,}" for epoch in when)])
    head = [f"leaves {LOCAL} in epoch", *(f"rate {rate:g}" for rate in (*small.RATES, *SLOW))]
    return table(head, rows)


def study(asked: Asked) -> None:
    """Learn Shifting Bar at small rates; write dcp-slow.json and a table, beside the trials of dcp.json."""
    torch.set_num_threads(1)
    path, settings = asked.records / "dcp-slow.json", {"seed": asked.seed}
    usual: list[Trials] = read(asked.records / "dcp.json", settings, small=Trials)["small"]
    found: list[Trials] = read(path, settings, trials=Trials)["trials"]
    images = asked.images(DATA, "train")
    for algorithm in COMPARED:
        if any(one.algorithm == algorithm for one in found):
            continue
        with progress(f"{DATA}, {algorithm}", EPOCHS) as meter:
            found += small.learn(
                DATA,
                algorithm,
                images,
                copies=1,
                trials=TRIALS,
                seed=asked.seed,
                rates=SLOW,
                epochs=EPOCHS,
                meter=meter,
            )
        write(path, settings | {"trials": found}, indent=None)
    publish(asked, {"dcp-slow": as_table(usual, found)})


if __name__ == "__main__":
    main(study)
