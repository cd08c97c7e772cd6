"""What holds for all tests; pytest reads this before any of them loads torch."""

from __future__ import annotations

import os

# Workers of `pytest -n` share the cores: with as many threads each as there are cores they would fight over them. What
# they start inherits the setting.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
