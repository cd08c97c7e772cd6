"""`restore study adaptive`: pseudo-likelihood along training by adaptive TAP and by TAP."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from restore.cli.study_report import Asked, keep_record, read_record, report, tell_missing
from restore.console import say

if TYPE_CHECKING:
    from restore.evaluation.adaptive_study import Curve, Point
    from restore.learning.recipe import Recipe


def study_adaptive(asked: Asked) -> None:
    """Measure the runs of the recipes adaptive-*, and write adaptive.json, adaptive.png and a table.

    What was measured before is read from adaptive.json, and runs that have been stopped count as far as they got.
    """
    from restore.errors import InputError
    from restore.evaluation import adaptive_study as study
    from restore.learning.recipe import read_recipe

    path = asked.output / "adaptive.json"
    settings = {"n": asked.n}
    known = read_record(path, settings, lambda record: [study.read(entry) for entry in record.get("curves", ())])
    curves: list[Curve] = []
    missing = []
    for recipe in sorted(asked.output.rglob("adaptive-*.toml")):
        plan = read_recipe(recipe)
        earlier = [curve for curve in known if (curve.name, curve.recipe) == (plan.name, plan.digest)]
        last = study.measured_epochs(plan.training.epochs)[-1]
        done = any(curve.points[-1].epoch == last for curve in earlier)
        run = asked.runs / plan.name
        if asked.train_missing and not done and not (run / "epochs" / f"{last:04d}").exists():
            asked.train(recipe, run / "prior", run, every=1)
        points = _points(plan, run, earlier[0].points if earlier else (), asked)
        if not points:
            missing.append(plan.name)
            continue
        learner = plan.learner
        curve = study.Curve(
            plan.name,
            plan.digest,
            learner.fixed_point,
            learner.iterations,
            plan.optimizer.rate,
            plan.training.epochs,
            points,
        )
        curves.append(curve)
        keep_record(path, settings, "curves", curves, known)
    tell_missing(missing)
    if not curves:
        raise InputError(f"{asked.output}: none of its recipes adaptive-* has been trained; give --train")
    study.as_figure(curves, asked.output / "adaptive.png")
    report(asked.output, {"adaptive": study.as_tables(curves)})


def _points(plan: Recipe, run: Path, earlier: tuple[Point, ...], asked: Asked) -> tuple[Point, ...]:
    """What is known of a run, and what it has kept beyond that."""
    from restore.engine import Engine
    from restore.errors import InputError, shown
    from restore.evaluation import adaptive_study as study
    from restore.learning.pipeline import kept_epochs
    from restore.learning.run_folder import epoch_records

    points = {point.epoch: point for point in earlier}
    kept = kept_epochs(run)
    chosen = [epoch for epoch in study.measured_epochs(plan.training.epochs) if epoch in kept and epoch not in points]
    if not chosen:
        return earlier
    images = replace(asked, n=asked.n or plan.data.count or None).images(plan.data.source, plan.data.threshold, "train")
    records = epoch_records(run)
    for epoch in chosen:
        engine = Engine.load(str(kept[epoch]), asked.device)
        if engine.description.recipe != plan.digest:
            raise InputError(f"{shown(run)}: holds a run of another recipe; remove it, or give another --runs")
        record = records[epoch - 1]
        points[epoch] = study.Point(
            epoch,
            record["seconds"] / 60,
            study.pseudo_likelihood_of(engine, images),
            record["solution_change"],
            record.get("lawless"),
        )
        say(f"{plan.name}, epoch {epoch}: {points[epoch].pseudo:.2f} nats")
    return tuple(points[epoch] for epoch in sorted(points))
