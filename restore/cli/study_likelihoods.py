"""`restore study likelihoods`: likelihoods along a training run and of the published priors."""

from __future__ import annotations

from pathlib import Path

from restore.cli.study_report import Asked, report
from restore.console import say

# The run that is measured, a recipe below the output folder, and at how many of its epochs.
RECIPE = Path("likelihoods/tap-mnist-500-along.toml")
EPOCHS = 10


def study_likelihoods(asked: Asked, names: list[str]) -> None:
    """Measure, and write likelihoods.json, likelihoods.png and two tables of README.md."""
    import json

    from restore.engine import Engine
    from restore.errors import InputError
    from restore.evaluation import likelihood_study as study
    from restore.evaluation.epochs import spread
    from restore.files import write_atomically
    from restore.learning.pipeline import kept_epochs
    from restore.learning.recipe import read_recipe

    recipe = asked.output / RECIPE
    settings = read_recipe(recipe)
    run = asked.runs / settings.name
    if asked.train_missing and not (run / "epochs" / f"{settings.training.epochs:04d}").exists():
        asked.train(recipe, run / "prior", run, every=1)
    kept = kept_epochs(run)
    if not kept:
        raise InputError(f"{run}: has no priors in epochs/; train them with --train, or give --runs")
    images = asked.test_images(settings.data.source, settings.data.threshold)

    chosen = spread(list(kept), EPOCHS)
    found = study.along(
        {epoch: Engine.load(str(kept[epoch]), asked.device) for epoch in chosen}, images, asked.seed, say
    )
    priors = []
    for name in names:
        engine = Engine.load(name, asked.device)
        if engine.description.conditional or engine.description.data != settings.data.source:
            continue
        priors.append(study.measure(engine, images, asked.seed))
        say(f"{name}: {priors[-1].likelihoods['ais'].mean:.2f} nats per image by AIS")
    correlations = study.correlation_table(study.rank_correlations(found))
    parts = {"likelihoods-along": f"{study.along_table(found)}\n\n{correlations}"}
    if priors:
        parts["likelihoods"] = study.priors_table(priors)
    record = study.as_record(found, priors, len(images), asked.seed)
    write_atomically(asked.output / "likelihoods.json", json.dumps(record, indent=1).encode())
    study.as_figure(found, asked.output / "likelihoods.png")
    report(asked.output, parts)
