"""`restore study bslm`: sequences of BSLM from several starts, and its errors beside their prediction."""

from __future__ import annotations

from pathlib import Path

from restore.cli.study_report import report
from restore.console import say


def study_bslm(output: Path, seed: int) -> None:
    """Measure, and write bslm.json, bslm.png and two tables of README.md."""
    import json

    from restore.evaluation import bslm_study as study
    from restore.files import write_atomically

    runs, found = study.study(seed, say)
    parts = {"bslm-sequences": study.sequence_table(runs), "bslm-errors": study.errors_table(found)}
    write_atomically(output / "bslm.json", json.dumps(study.as_record(runs, found, seed), indent=1).encode())
    study.as_figure(runs, output / "bslm.png")
    report(output, parts)
