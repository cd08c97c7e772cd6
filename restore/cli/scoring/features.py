"""What `restore evaluate --classify` does: classify images by the hidden units of a prior."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restore.console import say

if TYPE_CHECKING:
    from restore.cli.scoring.source import Source
    from restore.data import Dataset
    from restore.data.sets.named import Labels
    from restore.evaluation.classification import Classification, Examples
    from restore.inference.torch_engine import Engine


def evaluate_features(model: str, source: Source, seed: int, device: str) -> Classification:
    """The errors of a logistic regression on E[h | v], fitted to the training images and tested on the test images."""
    # Imported first, so that a missing library is reported before the data are read.
    import numpy as np
    import sklearn.linear_model  # noqa: F401 - `restore.cli.main` names a missing library

    from restore.data import load_labels, overlap
    from restore.evaluation.classification import classify
    from restore.inference.torch_engine import Engine

    engine = Engine.load(model, device)
    engine.machine_with_features()
    known, unknown = source.load("train"), source.load("test")
    labels = [load_labels(source.data, split=split, root=source.root) for split in ("train", "test")]
    shared = overlap(known, unknown)
    if shared:
        source.note(f"{shared} of the images it is tested on are also trained on")
    training, test = (
        _examples(engine, source, dataset, found) for dataset, found in zip((known, unknown), labels, strict=True)
    )
    found = classify(training, test, np.random.default_rng(seed))
    for warning in () if source.quiet else found.warnings:
        say(f"{model}: {warning}")
    return found


def _examples(engine: Engine, source: Source, dataset: Dataset, labels: Labels) -> Examples:
    from restore.errors import InputError
    from restore.evaluation.classification import Examples

    source.check_size(dataset, engine.description)
    if len(labels) != len(dataset.images):
        raise InputError(f"{source.data}: has {len(labels)} labels for {len(dataset.images)} images; get both again")
    visible = source.pixels(dataset, engine.description)
    machine = engine.machine_with_features()
    features = machine.transform(visible.to(machine.weights)).cpu().numpy()
    return Examples(features, labels[: source.n])
