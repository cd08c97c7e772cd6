"""`restore study crbm`: eight methods for conditional RBMs on six tasks (CRBM-BP, tables 1-3)."""

from __future__ import annotations

from restore.cli.study_report import Asked, report, tell_missing
from restore.console import say


def study_crbm(asked: Asked) -> None:
    import json

    from restore.engine import Engine
    from restore.errors import InputError
    from restore.evaluation import crbm_study as crbm
    from restore.files import write_atomically

    recipes = {path.stem: path for path in sorted(asked.output.rglob("crbm-*.toml")) if crbm.key_of(path.stem)}
    cells, shares, missing = [], {}, []
    for name, recipe in recipes.items():
        folder = asked.prior(recipe)
        if folder is None:
            missing.append(name)
            continue
        engine = Engine.load(str(folder), asked.device)
        about = engine.trained.description
        cells.append(crbm.measure(engine, asked.test_images(about.data, about.threshold), asked.seed))
        log = asked.runs / name / "log.jsonl"
        if cells[-1].method == "bp" and cells[-1].task in crbm.TASKS and log.exists():
            shares[crbm.TASKS[cells[-1].task]] = crbm.convergence(log)
        say(f"{name}: {cells[-1].everywhere[0]:.3f} % of all pixels wrong")
    tell_missing(missing)
    if not cells:
        raise InputError(
            f"{asked.output}: none of its recipes crbm-*.toml has a trained prior; give --train, or --priors"
        )
    parts = {"crbm": crbm.as_tables(cells), "crbm-sizes": crbm.curve_table(cells)}
    if shares:
        parts["crbm-converged"] = crbm.convergence_table(shares)
    record = crbm.as_record(cells, shares, asked.seed)
    write_atomically(asked.output / "crbm.json", json.dumps(record, indent=1).encode())
    crbm.as_figure(cells, shares, asked.output / "crbm.png")
    report(asked.output, parts)
