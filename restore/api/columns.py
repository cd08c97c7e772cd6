"""Restore images batch by batch, as Ray Data, Dask and `datasets.map` hand them to the processes of a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from restore import zoo
from restore.api.given import Flips, Opening, listing, restored, settings
from restore.errors import InputError, UsageError, some, unforeseen
from restore.inference.open import Engines
from restore.inference.options import Options
from restore.status import Status

# The status of an image that cannot be read.
FAILED = "failed"


@dataclass(frozen=True)
class Batches:
    """Restores batches; see `restore.batches`. It is pickled without priors, and each process opens them once."""

    model: str
    p: Flips
    column: str
    mask: str | None
    how: dict[str, Any]

    def __call__(self, batch: Mapping[str, Any] | Iterable[Any]) -> Any:
        """A batch with restored images, their status and notes: a dict of columns, or a list of dicts for a list."""
        if not isinstance(batch, Mapping):
            return [dict(zip(("image", "status", "notes"), row, strict=True)) for row in self._rows([*batch], None)]
        for name in {self.column, self.mask or self.column} - {*batch}:
            raise UsageError(f"the batch has no such column; it has {some(map(str, batch)) or 'none'}", name)
        images = batch[self.column]
        rows = self._rows(images, None if self.mask is None else batch[self.mask])
        column, status, notes = ([row[part] for row in rows] for part in range(3))
        answers: Any = column
        if rows and isinstance(images, np.ndarray):
            answers = np.fromiter(column, object, len(column)) if images.dtype == object else np.stack(column)
        return {**batch, self.column: answers, "status": status, "notes": notes}

    def _rows(self, images: Sequence[Any], masks: Sequence[Any] | None) -> list[tuple[Any, str, str]]:
        """Each image restored or as it was, what it came back as, and its notes."""
        if not len(images):
            return []
        _, options, _ = settings(self.model, self.p, self.how)
        engines = _opened(options)
        holes = None if masks is None else [*masks]
        try:
            whole, answers = restored([*images], holes, self.model, self.p, True, self.how, engines)
            if len(answers.status) != len(images):
                raise InputError("an image holds several pages; give each in a row of its own")
        except ModuleNotFoundError:
            raise
        except Exception as fault:  # no row stops the others
            if len(images) == 1:
                return [(images[0], FAILED, str(unforeseen(fault, "")))]
            rows = [slice(number, number + 1) for number in range(len(images))]
            return [row for where in rows for row in self._rows(images[where], holes and holes[where])]
        texts = ["; ".join(filter(None, (answer.objection, *answer.notes))) for answer in answers.answers]
        ended = [FAILED if one.status is Status.FAILED else str(one.outcome) for one in answers.answers]
        return list(zip(whole, ended, texts, strict=True))


@lru_cache(maxsize=8)
def _opened(options: Options) -> Engines:
    """The priors of this process, opened once; raises ModelError if the one that is named cannot be opened."""
    engines = Engines(options)
    if engines.named:
        engines.open(options.model)
    return engines


@listing(Opening)
def batches(
    model: str | Path = "auto",
    p: Flips = None,
    *,
    column: str = "image",
    mask: str | None = None,
    **how: Unpack[Opening],
) -> Batches:
    """Make what restores batches of images of any size, for programs that work with many processes or machines.

    It can be pickled, and each process loads the prior once. So Ray Data, Dask and `datasets.map` take it as it is.

    >>> import numpy as np
    >>> import restore
    >>> blank, text = np.zeros((28, 28), bool), np.array(["no image"])
    >>> restored = restore.batches("tap-mnist", p=0.1)
    >>> batch = restored({"image": [blank, text], "path": ["a.png", "b.png"]})
    >>> batch["status"], batch["path"]
    (['clean', 'failed'], ['a.png', 'b.png'])
    >>> [row["status"] for row in restored([blank])]
    ['clean']

    Args:
        model: as in `restore.denoise`, but a name or a path; each machine needs the prior.
        p: as in `restore.denoise`.
        column: the name of the column of images, each as in `restore.denoise`.
        mask: the name of a column of masks as in `restore.complete`; None to remove noise.
        channel_axis: the axis of colours of arrays (H, W, C), by default the last one.
        {options}

    Returns:
        A function of a batch. A dict of columns comes back with restored images, and the columns "status" and "notes",
        a text; a list of images as a list of dicts of image, status and notes. The status is "restored", "clean", "not
        sure", or "failed" for an image that cannot be read. An image in which nothing changed comes back as it
        was, and its notes say why.

    Raises:
        ModelError: if there is no such prior.
        UsageError: if an option is wrong, or the damage does not fit the prior.
    """
    damage, _, _ = settings(str(model), p, {**how})
    if model != "auto" and (path := zoo.find(str(model))).is_dir() and (damage.touched or mask):
        zoo.describe(path).check_damage(replace(damage, hidden=np.zeros((1, 1), bool) if mask else None))
    return Batches(str(model), p, column, mask, {"channel_axis": -1, **how})
