"""`restore study growth`: Frank-Wolfe, what CD makes of it, and CD from random weights, over the number of units."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from restore.cli.study_report import Asked, checksum, keep_record, read_record, report, tell_missing
from restore.console import say

if TYPE_CHECKING:
    from restore.evaluation.growth_study import Point

# Training images that a classifier is fitted to.
LABELLED = 10_000


def study_growth(asked: Asked) -> None:
    """Measure the priors of the recipes fw-*, cd-fw-* and cd-*, and write growth.json, growth.png and a table.

    What was measured before is read from growth.json.
    """
    from dataclasses import replace

    from restore.errors import InputError
    from restore.evaluation import growth_study as study
    from restore.learning.recipe import read_recipe

    path = asked.output / "growth.json"
    settings = {"seed": asked.seed, "n": asked.n, "schedule": study.SCHEDULE, "runs": study.RUNS}
    known = read_record(path, settings, lambda record: [study.read(entry) for entry in record.get("points", ())])
    points: list[Point] = []
    sizes: dict[str, int] = {}
    missing = []
    for recipe in sorted(path for path in asked.output.rglob("*.toml") if study.kind_of(path.stem)):
        name, plan = recipe.stem, read_recipe(recipe)
        earlier = [point for point in known if (point.name, point.recipe) == (name, plan.digest)]
        wanted = replace(asked, train_missing=asked.train_missing and not earlier)
        folder = wanted.prior(recipe, every=20 if plan.in_rounds else 0)
        if folder is None or any(point.weights == checksum(folder) for point in earlier):
            found = earlier
        else:
            run = asked.runs / name
            found = [_point(part, name, run, asked) for part in _parts(folder, run)]
        if not found:
            missing.append(name)
            continue
        points += found
        if plan.in_rounds and plan.auto:
            sizes[found[0].data] = max(point.hidden for point in found)
        keep_record(path, settings, "points", points, known)
    tell_missing(missing)
    if not points:
        raise InputError(f"{asked.output}: none of its recipes fw-*, cd-fw-*, cd-* has a trained prior; give --train")
    study.as_figure(points, sizes, asked.output / "growth.png")
    report(asked.output, {"growth": study.as_tables(points, sizes)})


def _parts(folder: Path, run: Path) -> list[Path]:
    """The folders of the prior, and before it of those that were kept while it grew."""
    from restore import zoo
    from restore.evaluation.growth_study import SIZES
    from restore.learning.pipeline import epoch_folder

    whole = zoo.describe(folder).hidden
    kept = [epoch_folder(run, size) for size in SIZES if size < whole]
    return [*(path for path in kept if (path / zoo.WEIGHTS).exists()), folder]


def _point(folder: Path, name: str, run: Path, asked: Asked) -> Point:
    """What a prior is worth."""
    from restore.cli.evaluate_features import evaluate_features
    from restore.cli.source import Source
    from restore.engine import Engine
    from restore.evaluation import growth_study as study
    from restore.learning.run_folder import epoch_seconds

    engine = Engine.load(str(folder), asked.device)
    about = engine.description
    method, data = study.kind_of(name) or ("", "")
    images = asked.test_images(about.data, about.threshold)
    mean, interval, effective = study.likelihood_of(engine, images, asked.seed)
    source = Source(about.data, "test", min(asked.n or LABELLED, LABELLED), None, asked.data_root, quiet=True)
    error = evaluate_features(str(folder), source, asked.seed, asked.device).error
    # A prior that was kept on the way is as old as the round it is from.
    seconds = epoch_seconds(run)
    minutes = seconds[int(folder.name) - 1 if folder.parent.parent == run else -1] / 60
    point = study.Point(
        name, data, method, about.hidden, minutes, mean, interval, effective, error, about.recipe, checksum(folder)
    )
    say(f"{name}, {point.hidden} units: {point.likelihood:.2f} nats")
    return point
