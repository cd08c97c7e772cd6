"""Many images in the order of the inputs, with any number of workers, in bounded memory."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from pathlib import Path
from threading import Event, Lock

import numpy as np
import pytest
from batches import images
from commands import Run
from restore.cli.batch import stages
from restore.cli.batch.pool import workers
from restore.cli.batch.stages import CHUNK
from waiting import HANG


def test_lines_of_json_are_in_the_order_of_the_inputs(
    run: Run, words: tuple[object, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in" / "0001.png").write_bytes(b"")
    (tmp_path / "in" / "0003.png").write_bytes(b"no image")
    assert run(*words, "--json", "--workers", 3) == 6
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [Path(line["input"]).name for line in told] == [f"{index:04}.png" for index in range(5)]
    assert ["error" in line for line in told] == [False, True, False, True, False]


def test_the_number_of_workers_does_not_change_a_bit(run: Run, words: tuple[object, ...], tmp_path: Path) -> None:
    for count in (1, 2, 9):
        assert run(*words[:-1], f"{tmp_path}/out-{count}/", "--workers", count, "--soft") == 0
    contents = [
        [path.read_bytes() for path in sorted((tmp_path / f"out-{count}").glob("*.png"))] for count in (1, 2, 9)
    ]
    assert len(contents[0]) == 5 and contents[0] == contents[1] == contents[2]


def test_images_under_way_are_few_however_many_there_are(
    run: Run, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, told, most, lock = 0, 0, 0, Lock()
    read_raster, print_json = stages.read_raster, "restore.cli.batch.restoring.print_json"

    def counted(*given: object, **options: object) -> object:
        nonlocal read, most
        with lock:
            read += 1
            most = max(most, read - told)
        return read_raster(*given, **options)

    def tell(record: object) -> None:
        nonlocal told
        told += 1

    monkeypatch.setattr(stages, "read_raster", counted)
    monkeypatch.setattr(print_json, tell)
    source = images(tmp_path / "in", 6 * CHUNK, (10, 12))
    assert (
        run("denoise", source, "--model", model, "--p", 0.3, "-o", f"{tmp_path}/out/", "--json", "--fit", "resize") == 0
    )
    assert read == told == 6 * CHUNK
    assert most <= 3 * CHUNK


def test_large_images_go_in_smaller_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    from restore.cli.batch.jobs import Job

    from restore.images import Picture

    monkeypatch.setattr(stages, "CHUNK_PIXELS", 100)
    sides = [3, 3, 11, 10, 5, 5, 5, 5, 3]
    loaded = [stages.Loaded(Job("", ""), Picture(np.zeros((side, side), np.uint8)), None, {}) for side in sides]
    assert [len(portion) for portion in stages.portions(loaded)] == [3, 1, 4, 1]


@pytest.mark.parametrize("count", [1, 3])
def test_workers_keep_the_order_and_take_no_more_than_they_may(count: int) -> None:
    taken, most = 0, 0

    def items():
        nonlocal taken
        for item in range(50):
            taken += 1
            yield item

    with workers(count) as mapped:
        for index, result in enumerate(mapped(lambda item: item * item, items(), 5)):
            assert result == index * index
            most = max(most, taken - index)
    assert taken == 50 and most == (1 if count == 1 else 6)


def test_workers_drop_what_is_not_begun_when_the_caller_fails() -> None:
    done: list[int] = []
    fails = Event()

    def slow(item: int) -> None:
        if item:
            fails.wait(HANG)
            time.sleep(0.01)
        done.append(item)

    with suppress(KeyboardInterrupt), workers(2) as mapped:
        for _ in mapped(slow, range(1000), 500):
            fails.set()
            raise KeyboardInterrupt
    assert 0 < len(done) < 500
