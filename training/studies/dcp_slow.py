"""Whether the local maximum of Shifting Bar (S-DCP, Fig. 1) is a matter of the rate: the same trials, slower."""

from __future__ import annotations

import dcp_small as small
import torch
from dcp_small import Trials
from harness import Asked, main, publish, read, write

from restore.evaluation.markdown import table
from restore.progress import progress

DATA, COMPARED = "shifting-bar", ("CG", "CD", "CS-DCP", "S-DCP")

# The paper's rates, divided by these.
DIVISORS = (3, 10)
SLOW = tuple(round(rate / divisor, 4) for divisor in DIVISORS for rate in small.RATES)

# The log-likelihood of the local maximum in the paper, and how far above it a trial has left it.
LOCAL, ABOVE = -3.15, 0.1


def as_table(found: list[Trials]) -> str:
    """Markdown: a row per learner; per rate the mean at the end, and how many trials have left the local maximum."""
    rows = []
    for algorithm in COMPARED:
        own = {one.rate: one for one in found if one.algorithm == algorithm}
        cells = [
            f"{one.mean[-1]:.3f} ({left(one)} of {len(one.ends)})" if (one := own.get(rate)) else "-" for rate in SLOW
        ]
        rows.append([algorithm, *cells])
    return table(["mean at the end (trials that left -3.15)", *(f"rate {rate:g}" for rate in SLOW)], rows)


def left(one: Trials) -> int:
    """How many trials end above the local maximum."""
    return sum(end > LOCAL + ABOVE for end in one.ends)


def study(asked: Asked) -> None:
    """Learn Shifting Bar at small rates; write dcp-slow.json and a table."""
    torch.set_num_threads(1)
    path, settings = asked.records / "dcp-slow.json", {"seed": asked.seed}
    found: list[Trials] = read(path, settings, trials=Trials)["trials"]
    images = asked.images(DATA, "train")
    for algorithm in COMPARED:
        if any(one.algorithm == algorithm for one in found):
            continue
        with progress(f"{DATA}, {algorithm}", small.EPOCHS) as meter:
            trials = small.TRIALS[1]
            found += small.learn(
                DATA, algorithm, images, copies=1, trials=trials, seed=asked.seed, rates=SLOW, meter=meter
            )
        write(path, settings | {"trials": found}, indent=None)
    publish(asked, {"dcp-slow": as_table(found)})


if __name__ == "__main__":
    main(study)
