"""`restore study dcp`: learners of RBMs at equal numbers of Gibbs sweeps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from restore.cli.study_report import report

if TYPE_CHECKING:
    from torch import Tensor


def study_dcp(output: Path, runs: Path, train_missing: bool, n: int | None, seed: int, data_root: Path | None) -> None:
    """Write what the runs there are have found: dcp.json, two figures and two parts of README.md."""
    import json

    from restore.errors import InputError
    from restore.evaluation import dcp_study as dcp
    from restore.files import write_atomically

    if train_missing:
        _train(runs, n, seed, data_root)
    results = [
        dcp.Small(**json.loads(path.read_text()))
        for data in dcp.BEST
        for copies in dcp.TRIALS
        for algorithm in dcp.ALGORITHMS
        if (path := runs / f"{data}-x{copies}-{algorithm.lower()}.json").exists()
    ]
    curves = {
        figure: [curve for plan in plans if (curve := dcp.read_large(plan, runs / plan.name)) is not None]
        for figure, plans in dcp.plans().items()
    }
    if not results and not any(curves.values()):
        raise InputError(f"{runs}: holds no run of this study; give --train, or --runs")
    parts = {}
    record = dcp.as_record(results, curves, seed)
    write_atomically(output / "dcp.json", json.dumps(record, indent=None).encode())
    if results:
        parts["dcp-small"] = dcp.small_tables(results)
        dcp.small_figure(results, output / "dcp-small.png")
    if any(curves.values()):
        parts["dcp-large"] = dcp.large_tables(curves)
        dcp.large_figure(curves, output / "dcp-large.png")
    report(output, parts)


def _train(runs: Path, n: int | None, seed: int, data_root: Path | None) -> None:
    """Train what is missing, on one thread: small sets first, then the curves in the order of `plans`."""
    import json
    from dataclasses import asdict
    from itertools import product

    import torch

    from restore.data import binarise, load, sample_binary
    from restore.evaluation import dcp_study as dcp
    from restore.files import write_atomically
    from restore.progress import progress

    torch.set_num_threads(1)
    runs.mkdir(parents=True, exist_ok=True)
    for data, (copies, trials), algorithm in product(dcp.BEST, dcp.TRIALS.items(), dcp.ALGORITHMS):
        path = runs / f"{data}-x{copies}-{algorithm.lower()}.json"
        if path.exists():
            continue
        with progress(path.stem, dcp.SMALL_EPOCHS) as meter:
            found = dcp.small(
                data,
                algorithm,
                torch.from_numpy(binarise(load(data, split="train", root=data_root).images)),
                copies=copies,
                rates=dcp.SMALL_RATES,
                trials=trials,
                epochs=dcp.SMALL_EPOCHS,
                every=dcp.SMALL_EVERY,
                seed=seed,
                meter=meter,
            )
        write_atomically(path, json.dumps(asdict(found)).encode())
    known: dict[str, tuple[Tensor, Tensor]] = {}
    for plan in dict.fromkeys(plan for plans in dcp.plans().values() for plan in plans):
        if plan.data not in known:
            # The images to be judged by are drawn apart from those to learn from.
            known[plan.data] = (
                torch.from_numpy(sample_binary(load(plan.data, split="train", root=data_root).images, seed)),
                torch.from_numpy(sample_binary(load(plan.data, split="test", root=data_root).images[:n], seed + 1)),
            )
        training, test = known[plan.data]
        with progress(plan.name, plan.epochs) as meter:
            dcp.train_large(plan, training[: plan.images or None], test, runs / plan.name, seed, meter)
