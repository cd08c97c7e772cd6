"""Code run in a process of its own, of which it is measured how much memory it takes beyond that of a first call."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

# What is called first loads libraries and fills caches; the second call may not have more address space than this
# beyond what the first one left, and so cannot do harm whatever it does.
_CEILING = 3 << 30

_CODE = """
import re, resource, sys

def most():
    with open("/proc/self/status") as status:  # unlike ru_maxrss, without what the parent process had
        return int(re.search(r"VmHWM:\\s*(\\d+)", status.read())[1]) * 1024

def taken():
    with open("/proc/self/statm") as status:
        return int(status.read().split()[0]) * resource.getpagesize()

{prepare}

def attack(path):
{attack}

attack(sys.argv[1])
before = most()
limit = taken() + {ceiling}
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    attack(sys.argv[2])
except Exception as fault:
    print(type(fault).__name__, fault)
else:
    print("accepted")
print(most() - before)
"""

linux = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux says how much memory was taken")


def attacked(code: str, harmless: Path, harmful: Path, prepare: str = "") -> tuple[str, int]:
    """What comes of code about a `path`: called with a harmless file first, and then with another.

    Returns:
        The name of the exception with its message, or "accepted"; and how many bytes more the process then had at most.
    """
    body = "\n".join(f"    {line}" for line in code.splitlines())
    program = _CODE.format(prepare=prepare, attack=body, ceiling=_CEILING)
    words = [sys.executable, "-c", program, str(harmless), str(harmful)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(words, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    said, grown = done.stdout.splitlines()
    return said, int(grown)
