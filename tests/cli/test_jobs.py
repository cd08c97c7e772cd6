"""`--jobs`: several processes give what one gives, and end with the first one, however that ends."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from commands import QUICK, Run, command, stamps, strokes
from PIL import Image
from processes import HANG, wait_for

COUNT = 12

# The command, whose processes say who they are, write two results each, and hold the others back until there is a file.
HELD = """
import os, sys, time
from itertools import count
from pathlib import Path
from restore.cli import main
from restore.cli.batch import work
folder, number, write = Path(os.environ["HELD"]), count(), work.write_atomically
def held(*arguments):
    late = next(number) >= 2
    (folder / str(os.getpid())).touch()
    while late and not (folder / "go").exists():
        time.sleep(0.02)
    write(*arguments)
work.write_atomically = held
if __name__ == "__main__":
    main()
"""


def words(tmp_path: Path, *more: object) -> tuple[object, ...]:
    source = strokes(tmp_path / "in", COUNT)
    return ("denoise", source, "--model", QUICK, "--p", 0.3, "--force", "-o", f"{tmp_path}/out/", *more)


def pixels(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def reported(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """All lines but those on progress before the end, which depend on time."""
    out, err = capsys.readouterr()
    lines = [*out.splitlines(), *err.splitlines()]
    return [line for line in lines if not line.startswith("restored ") or line.endswith("13/13")]


def same_but_for_rounding(one: dict[str, float], other: dict[str, float]) -> bool:
    return one == pytest.approx(other, rel=1e-6)


def without_facts(lines: list[str]) -> list[str]:
    return [re.sub(r'"facts": \{[^}]*\}', "", line) for line in lines]


def test_several_processes_write_and_report_what_one_does(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Failures among them, in the same order; facts but for rounding, which differs with what is restored together."""
    given = words(tmp_path, "--json", "--overwrite")
    (tmp_path / "in" / "0001.png").write_bytes(b"")
    Image.fromarray(np.zeros((90, 90), np.uint8)).save(tmp_path / "in" / "a name with spaces.png")
    assert run(*given) == 6
    alone, one = reported(capsys), pixels(tmp_path / "out")
    assert run(*given, "--jobs", 3) == 6
    several = reported(capsys)
    facts = [[json.loads(line).pop("facts") for line in lines if '"facts"' in line] for lines in (alone, several)]
    assert len(facts[0]) == COUNT and all(map(same_but_for_rounding, *facts))
    assert without_facts(several) == without_facts(alone) and pixels(tmp_path / "out") == one
    assert len(one) == COUNT and "done 13/13" in alone and any(line.startswith("12 images: ") for line in alone)


def test_what_is_wrong_with_all_is_said_once(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = words(tmp_path, "--jobs", 2, "--solver", "mean_field", "--engine", "onnx")
    assert run(*given) == run(*given, "--jobs", 1) == 2
    said = capsys.readouterr().err.splitlines()
    assert said[0] == said[1] and len(said) == 2 and "--solver" in said[0]


def started(tmp_path: Path, *given: object, jobs: int = 2) -> tuple[subprocess.Popen[str], list[int]]:
    """The command in some processes, all of which wait before they write; and who these are."""
    (tmp_path / "held").mkdir()
    (tmp_path / "held.py").write_text(HELD)
    process = subprocess.Popen(
        [sys.executable, str(tmp_path / "held.py"), *map(str, given), "--jobs", str(jobs)],
        env=os.environ | {"HELD": str(tmp_path / "held")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    held, results = (tmp_path / "held").iterdir, tmp_path / "out"
    wait_for(lambda: len(list(held())) == jobs and len(stamps(results)) == 2 * jobs, process)
    return process, [int(path.name) for path in held()]


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")  # one that nobody has waited for is no longer alive
    return not stat.exists() or stat.read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"


@pytest.mark.thorough
@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize(
    ("number", "everyone", "code", "jobs"),
    [
        (signal.SIGINT, True, 130, 2),
        (signal.SIGTERM, False, 143, 2),
        (signal.SIGTERM, True, 143, 2),
        (signal.SIGKILL, False, -9, 2),
        (signal.SIGINT, False, 130, 1),
        (signal.SIGTERM, False, 143, 1),
    ],
    ids=["ctrl-c", "term", "term-all", "kill", "ctrl-c, one", "term, one"],
)
def test_a_stop_ends_all_processes_and_leaves_whole_results(
    number: int, everyone: bool, code: int, jobs: int, tmp_path: Path
) -> None:
    given = words(tmp_path, "--quiet")
    process, workers = started(tmp_path, *given, jobs=jobs)
    (os.killpg if everyone else os.kill)(process.pid, number)
    (tmp_path / "held" / "go").touch()
    _, said = process.communicate(timeout=HANG)
    assert process.returncode == code and "Traceback" not in said
    wait_for(lambda: not any(map(alive, workers)))
    done = stamps(tmp_path / "out")
    assert 2 * jobs <= len(done) == len(list((tmp_path / "out").iterdir()))
    assert all(Image.open(tmp_path / "out" / name).size == (28, 28) for name in done)
    subprocess.run(command(*given, "--skip-existing", "--jobs", 2), check=True)
    after = stamps(tmp_path / "out")
    assert len(after) == COUNT and done.items() <= after.items()


@pytest.mark.thorough
@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["kill", "term"])
def test_pictures_of_a_killed_process_count_as_failed(number: int, tmp_path: Path) -> None:
    given = words(tmp_path, "--json")
    process, workers = started(tmp_path, *given)
    os.kill(workers[0], number)
    (tmp_path / "held" / "go").touch()
    out, said = process.communicate(timeout=HANG)
    records = [json.loads(line) for line in out.splitlines()]
    assert [Path(record["input"]).name for record in records] == sorted(stamps(tmp_path / "in"))
    failed = [record for record in records if "error" in record]
    assert process.returncode == 6 and 0 < len(failed) <= COUNT // 2 and "Traceback" not in said
    assert f"{len(failed)} of {COUNT} images failed" in said
    assert all(Path(record["output"]).exists() for record in records if "error" not in record)
    subprocess.run(command(*given, "--skip-existing"), check=True, stdout=subprocess.DEVNULL)
    assert len(stamps(tmp_path / "out")) == COUNT
