"""Connected components of a black and white picture, by runs: union and find on rows, without a library."""

from __future__ import annotations

import numpy as np

# All columns but the last, and but the first.
LEFT = np.s_[:, :-1]
RIGHT = np.s_[:, 1:]


def components(ink: np.ndarray) -> np.ndarray:
    """The number of the component of each pixel, (H, W), from 0: ink joins by edges and corners, paper by edges.

    Runs are joined by pointer jumping: each root takes a smaller one that it meets, whichever is written last, and runs
    then that of their root (Shiloach and Vishkin, J. Algorithms 3, 1982). Roots only ever fall, so that the one that is
    left of a component is its first run.

    >>> components(np.array([[1, 0, 0], [0, 1, 0], [0, 0, 0]], bool)).tolist()
    [[0, 1, 1], [1, 0, 1], [1, 1, 1]]
    """
    if not ink.size:
        return np.zeros(ink.shape, int)
    first = np.ones(ink.shape, bool)
    np.not_equal(ink[:, 1:], ink[:, :-1], out=first[:, 1:])
    run = np.cumsum(first.ravel(), dtype=np.int32).reshape(ink.shape)
    run -= 1
    root = np.arange(int(run[-1, -1]) + 1, dtype=np.int32)
    one, two = _meetings(ink, run, first)
    while (differ := np.flatnonzero(root[one] != root[two])).size:
        one = one[differ]
        two = two[differ]
        root[np.maximum(root[one], root[two])] = np.minimum(root[one], root[two])
        while not np.array_equal(root, up := root[root]):
            root = up
    numbers = np.cumsum(root == np.arange(len(root)), dtype=np.int32) - 1
    return np.asarray(numbers[root][run])


def _meetings(ink: np.ndarray, run: np.ndarray, first: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of runs of one colour in adjacent rows that meet: by an edge where either begins, or, of ink, a corner.

    They go from the last row to the first, as the first that a run meets is the one that is best written last.
    """
    above = ink[:-1]
    below = ink[1:]
    beside = (above == below) & (first[:-1] | first[1:])
    pairs = [(run[:-1][beside], run[1:][beside])]
    for here, there in ((LEFT, RIGHT), (RIGHT, LEFT)):
        # A corner joins what no edge joins already.
        corner = above[here] & below[there] & ~above[there] & ~below[here]
        pairs.append((run[:-1][here][corner], run[1:][there][corner]))
    one, two = zip(*pairs[::-1], strict=True)
    return np.concatenate(one)[::-1], np.concatenate(two)[::-1]
