"""Restore sets of images too large for one machine with Ray Data, with the same results as on one.

Needs the extra `restore-prior[ray]`. For example:

    images = ray.data.read_images("s3://parts/scans", mode="L", include_paths=True)
    restored(images, model="tap-mnist", p=0.1, actors=(1, 64)).write_parquet("s3://parts/restored")
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from restore.api import Restorer, load
from restore.errors import ModelError, UsageError, shown
from restore.inference.options import EngineName
from restore.marginals import Status
from restore.sizes import Fit

if TYPE_CHECKING:
    from ray.data import Dataset

# How many images an actor restores together: as in a batch on the command line.
BATCH = 64


def restored(
    dataset: Dataset,
    column: str = "image",
    *,
    model: str,
    p: float | tuple[float, float] | None = None,
    sigma: float | None = None,
    mask: str | None = None,
    output: str | None = None,
    status: str | None = None,
    fit: Fit = "tile",
    force: bool = False,
    invert: bool = False,
    soft: bool = False,
    engine: EngineName = "auto",
    device: str = "auto",
    actors: int | tuple[int, int] = 1,
    **resources: Any,
) -> Dataset:
    """Restore a column of a Ray data set, with exactly the results of `restore.denoise` or `restore.complete`.

    Args:
        dataset: holds the images; nothing is computed until it is consumed.
        column: its column of images, each (H, W): uint8, uint16, bool, or float in [0, 1].
        model: name of a prior, or its path on every machine; each actor loads it once.
        p, sigma, fit, force, invert, soft: as in `restore.denoise`.
        mask: the column of masks, (H, W), True or white = to fill; None for no masks.
        output: the column for the restored images; by default they replace the damaged ones.
        status: a column for how each ended, such as "converged", or why it is left as it came, such as "diverged" or
            "unrecognised". Without this column such an image raises an error.
        engine, device: as in `restore.load`, on every machine.
        actors: how many actors restore at a time, or the least and the most.
        resources: what Ray reserves for each actor, such as `num_cpus=4` or `num_gpus=1`; see `Dataset.map_batches`.

    Returns:
        The data set with the restored images, of the shape and type of the damaged ones.

    Raises:
        UsageError: if Ray is not installed. Errors of `restore.denoise` are raised when the data set is consumed; they
            name an image by its `path`, if the data set has such a column.
    """
    if find_spec("ray") is None:
        raise UsageError("restore.ray_data: needs ray; pip install 'restore-prior[ray]'")
    from ray.data import ActorPoolStrategy

    least, most = (actors, actors) if isinstance(actors, int) else actors
    opening = {"model": model, "device": device, "engine": engine}
    options = {"p": p, "sigma": sigma, "fit": fit, "force": force, "invert": invert, "soft": soft}
    return dataset.map_batches(
        Worker,
        fn_constructor_args=(opening, column, mask, (output or column, status), options),
        batch_size=BATCH,
        batch_format="numpy",
        compute=ActorPoolStrategy(min_size=least, max_size=most),
        **resources,
    )


class Worker:
    """An actor: it loads a prior once by `opening`, options of `restore.load`, and restores batch after batch.

    `outputs` are the columns of restored images and of how each ended; `options` those of `denoise` and `complete`.
    """

    def __init__(
        self,
        opening: dict[str, Any],
        column: str,
        mask: str | None,
        outputs: tuple[str, str | None],
        options: dict[str, Any],
    ) -> None:
        self.restorer: Restorer = load(**opening)
        self.column, self.mask, self.outputs, self.options = column, mask, outputs, options

    def __call__(self, batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        images, (output, status) = list(batch[self.column]), self.outputs
        restore = self.restorer.denoise if self.mask is None else self.restorer.complete
        masks = () if self.mask is None else (list(batch[self.mask]),)
        found, solution = restore(images, *masks, **self.options, return_solution=True)
        ends = [Status(value) for value in solution.status]
        lost = [index for index, end in enumerate(ends) if end.refused]
        if status is None and lost:
            name = shown(str(batch["path"][lost[0]])) if "path" in batch else f"image {lost[0]} of a batch, from 0"
            raise ModelError(f"{ends[lost[0]].sentence}; give a column for the status of each to go on", name)
        endings = {} if status is None else {status: np.array([end.name.lower() for end in ends])}
        return batch | {output: _column(found)} | endings


def _column(images: list[np.ndarray]) -> np.ndarray:
    """Images as a column: stacked if they have one shape, else an array of them."""
    if len({image.shape for image in images}) == 1:
        return np.stack(images)
    column = np.empty(len(images), object)
    column[:] = images
    return column
