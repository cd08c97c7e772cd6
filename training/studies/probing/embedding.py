"""Map images to two dimensions so that neighbours stay together, with solutions among them (TAP machine, Fig. 7)."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

# How many neighbours determine an image's place on the map.
NEIGHBOURS = 10

# The most images of the map: it needs all shortest paths among them, and the eigenvectors of a matrix.
MAPPED = 1000

# Fewer different images do not span a plane.
FEWEST = 3

Points = NDArray[np.float64]


def isomap(images: Points, solutions: Points) -> tuple[Points, Points] | None:
    """Places of images (N, 2) and of solutions (S, 2) on one map; None if there are too few different images.

    Isomap (Tenenbaum et al., 2000) is fitted to the first `MAPPED` different images; then the solutions are placed
    among them.

    Args:
        images: shape (N, D).
        solutions: visible means, (S, D).
    """
    from sklearn.manifold import Isomap

    different = images[np.sort(np.unique(images, axis=0, return_index=True)[1])][:MAPPED]
    if len(different) < FEWEST:
        return None
    # The default solver for eigenvectors starts at a random vector.
    made = Isomap(n_neighbors=min(NEIGHBOURS, len(different) - 1), n_components=2, eigen_solver="dense")
    with warnings.catch_warnings():
        # Images in separate clusters are joined where they are nearest, as wanted.
        warnings.simplefilter("ignore")
        places = made.fit_transform(different)
        among = made.transform(solutions) if len(solutions) else np.zeros((0, 2))
    return places, among
