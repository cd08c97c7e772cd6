"""`restore study grey`: priors of grey images against scikit-image's denoisers and inpainting."""

from __future__ import annotations

from restore.cli.study_report import Asked, report
from restore.console import say

# The data sets, and how many of their test images by default.
SETS = ("mnist", "cbcl")
IMAGES = 200


def study_grey(asked: Asked, names: list[str]) -> None:
    """Measure, and write grey.json, grey.png and a table for each data set into README.md."""
    import json
    from dataclasses import asdict

    import torch

    from restore.data import load
    from restore.engine import Engine
    from restore.evaluation import grey_study as study
    from restore.evaluation.evaluate import Restorer, restorer_of
    from restore.files import write_atomically

    priors: dict[str, dict[str, Restorer]] = {data: {} for data in SETS}
    for name in names:
        engine = Engine.load(name, asked.device)
        if engine.description.data in priors and engine.description.grey:
            priors[engine.description.data][name] = restorer_of(engine)
    entries = []
    for data in SETS:
        train, test = (load(data, split=split, root=asked.data_root).images for split in ("train", "test"))
        training, truth = (
            torch.from_numpy(images.reshape(len(images), -1)) / 255 for images in (train, test[: asked.n or IMAGES])
        )
        shape = (test.shape[1], test.shape[2])
        entries += study.study(priors[data], data, training, truth, shape, asked.seed, say)
    record = {"n": asked.n or IMAGES, "seed": asked.seed, "entries": [asdict(entry) for entry in entries]}
    write_atomically(asked.output / "grey.json", json.dumps(record, indent=1).encode())
    study.as_figure(entries, asked.output / "grey.png")
    report(asked.output, {f"grey-{data}": study.as_table(entries, data) for data in SETS})
