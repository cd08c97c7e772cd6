"""A map of images in two dimensions that keeps neighbours together, with solutions on it (TAP machine, Fig. 7)."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

# Neighbours of each image that its place on the map is told by.
NEIGHBOURS = 10

# Images that the map is made of at most: it takes all shortest paths among them, and the eigenvectors of a matrix.
MAPPED = 1000

# Fewer different images than this span no plane.
FEWEST = 3

Points = NDArray[np.float64]


def isomap(images: Points, solutions: Points) -> tuple[Points, Points] | None:
    """Places of images (N, 2) and of solutions (S, 2) on one map; None if there are too few different images for one.

    Isomap (Tenenbaum et al., 2000) is fitted to the images, the first `MAPPED` different ones, and the solutions are
    then put between them.

    Args:
        images: shape (N, D).
        solutions: visible means, (S, D).
    """
    from sklearn.manifold import Isomap

    different = images[np.sort(np.unique(images, axis=0, return_index=True)[1])][:MAPPED]
    if len(different) < FEWEST:
        return None
    # The default solver of eigenvectors starts at a random vector.
    made = Isomap(n_neighbors=min(NEIGHBOURS, len(different) - 1), n_components=2, eigen_solver="dense")
    with warnings.catch_warnings():
        # Images in separate clusters are joined where they come nearest, which is what is wanted.
        warnings.simplefilter("ignore")
        places = made.fit_transform(different)
        among = made.transform(solutions) if len(solutions) else np.zeros((0, 2))
    return places, among
