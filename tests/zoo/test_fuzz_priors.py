"""Priors changed at random are refused or restore; none takes memory or time, and none ends in another fault."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from exports import MADE
from fuzz_priors import MEMORY, TARGETS

from restore import zoo
from restore.export import packing

# `python tests/support/fuzz_priors.py` tries more, from another seed.
CASES = 150


@pytest.fixture(scope="module", params=["tap", "mixed", "deep"])
def prior(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("priors") / str(request.param)
    zoo.save(folder, MADE[request.param][0](), f"# {request.param}\n\nA card.\n")
    (folder / zoo.GRAPH).write_bytes(packing.beside_weights(folder))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_67_priors_changed_at_random(target: str, prior: Path) -> None:
    script = Path(__file__).parents[1] / "support" / "fuzz_priors.py"
    found = subprocess.run(
        [sys.executable, script, prior, target, str(CASES)],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    cases = [json.loads(line) for line in found.stdout.splitlines() if line.startswith('{"case"')]
    assert len(cases) == CASES
    odd = [case for case in cases if case["outcome"] not in ("refused", "restored") or case["memory"] > MEMORY / 2]
    assert not odd
    if target != "card":
        # Changes find something to change, and are not all as harmful as that.
        assert set(Counter(case["outcome"] for case in cases)) == {"refused", "restored"}
