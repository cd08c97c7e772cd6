"""`restore study crbm`: eight methods for conditional RBMs on six tasks (CRBM-BP, tables 1-3)."""

from __future__ import annotations

from pathlib import Path

from restore.cli.study_report import report, train_run


def study_crbm(
    output: Path,
    priors: Path,
    runs: Path,
    train_missing: bool,
    n: int | None,
    seed: int,
    data_root: Path | None,
    device: str,
) -> None:
    import json
    import sys

    import torch

    from restore import zoo
    from restore.data import binarise, load
    from restore.engine import Engine
    from restore.errors import InputError
    from restore.evaluation import crbm_study as crbm
    from restore.files import write_atomically
    from restore.learning.recipe import read_recipe

    recipes = {path.stem: path for path in sorted(output.rglob("crbm-*.toml")) if crbm.key_of(path.stem)}
    cells, shares, missing = [], {}, []
    for name, recipe in recipes.items():
        folder = zoo.published_folder() / name
        # A name alone does not make it the prior of this recipe.
        if not (folder / zoo.WEIGHTS).exists() or zoo.describe(folder).recipe != read_recipe(recipe).digest:
            folder = priors / name
        if train_missing and not (folder / zoo.WEIGHTS).exists():
            train_run(recipe, folder, runs / name, data_root, device)
        if not (folder / zoo.WEIGHTS).exists():
            missing.append(name)
            continue
        engine = Engine.load(str(folder), device)
        about = engine.trained.description
        truth = torch.from_numpy(binarise(load(about.data, split="test", root=data_root).images[:n], about.threshold))
        cells.append(crbm.measure(engine, truth, seed))
        log = runs / name / "log.jsonl"
        if cells[-1].method == "bp" and cells[-1].task in crbm.TASKS and log.exists():
            shares[crbm.TASKS[cells[-1].task]] = crbm.convergence(log)
        print(f"{name}: {cells[-1].everywhere[0]:.3f} % of all pixels wrong", file=sys.stderr)
    if missing:
        print(f"no prior yet for {', '.join(missing)}; train them with --train", file=sys.stderr)
    if not cells:
        raise InputError(f"{output}: none of its recipes crbm-*.toml has a trained prior; give --train, or --priors")
    parts = {"crbm": crbm.as_tables(cells), "crbm-sizes": crbm.curve_table(cells)}
    if shares:
        parts["crbm-converged"] = crbm.convergence_table(shares)
    write_atomically(output / "crbm.json", json.dumps(crbm.as_record(cells, shares, seed), indent=1).encode())
    crbm.as_figure(cells, shares, output / "crbm.png")
    report(output, parts)
