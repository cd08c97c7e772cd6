"""Which epochs of a training run to look at."""

from __future__ import annotations

from collections.abc import Sequence


def spread(epochs: Sequence[int], count: int) -> list[int]:
    """At most `count` of some epochs, in order: the first, the last, and others at about equal factors between them.

    Most happens early in a training run.
    """
    epochs = sorted(epochs)
    if len(epochs) <= count:
        return epochs
    ratio = (epochs[-1] / epochs[0]) ** (1 / (count - 1))
    chosen: list[int] = []
    for index in range(count):
        # The nearest that leaves enough for the rest.
        left = [epoch for epoch in epochs[: len(epochs) - (count - 1 - index)] if not chosen or epoch > chosen[-1]]
        chosen.append(min(left, key=lambda epoch: abs(epoch - epochs[0] * ratio**index)))
    return chosen
