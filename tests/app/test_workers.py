"""Processes that restore for the server: what one of them does or suffers, others do not notice."""

from __future__ import annotations

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from processes import HANG
from serving import ask, post, serving

from restore.app import worker as worker_module
from restore.app.worker import Failed, Late, Stopped, Worker
from restore.errors import InputError
from restore.inference.options import Options

SLEEP, DIE, WAIT, WRONG = b"sleep", b"die", b"wait", b"wrong"


def stand_in(end: Any, stop: Any, options: Options) -> None:
    """What a process does in these tests: what an image says."""
    end.send(None)
    while True:
        image, *_ = end.recv()
        if image == SLEEP:
            time.sleep(HANG)
        if image == DIE:
            os.kill(os.getpid(), signal.SIGKILL)
        if image == WAIT:
            stop.wait()
            end.send(Stopped())
        elif image == WRONG:
            end.send(InputError("is wrong; give another", "image"))
        else:
            end.send(({"process": os.getpid()}, {"image": image}))


@pytest.fixture
def stood_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "_serve", stand_in)


def asked(worker: Worker, image: bytes) -> int:
    """The number of the process that answered."""
    facts, _ = worker.answer(image, None, {}, lambda share: None)
    return int(facts["process"])


def alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.usefixtures("stood_in")
def test_a_process_answers_many_requests_and_ends() -> None:
    worker = Worker(Options(), HANG)
    first = asked(worker, b"image")
    with pytest.raises(InputError) as caught:
        asked(worker, WRONG)
    assert caught.value.subject == "image"
    assert asked(worker, b"image") == first != os.getpid()
    worker.close()
    assert not alive(first)


@pytest.mark.usefixtures("stood_in")
@pytest.mark.parametrize(("image", "fault"), [(SLEEP, Late), (DIE, Failed)])
def test_a_process_that_hangs_or_breaks_is_followed_by_another(image: bytes, fault: type[Exception]) -> None:
    worker = Worker(Options(), 0.5)
    first = asked(worker, b"image")
    with pytest.raises(fault):
        asked(worker, image)
    assert not alive(first)
    assert asked(worker, b"image") != first
    worker.close()


@pytest.mark.usefixtures("stood_in")
@pytest.mark.parametrize(("image", "same"), [(WAIT, True), (SLEEP, False)])
def test_nothing_goes_on_for_who_has_gone(image: bytes, same: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "GRACE", HANG if same else 0.1)
    worker = Worker(Options(), HANG)
    first = asked(worker, b"image")

    def gone(share: float) -> None:
        raise ConnectionError

    with pytest.raises(ConnectionError):
        worker.answer(image, None, {}, gone)
    assert alive(first) is same
    assert (asked(worker, b"image") == first) is same
    worker.close()


@pytest.mark.usefixtures("stood_in")
def test_others_are_answered_while_one_hangs(site: dict[str, bytes]) -> None:
    with serving(site, workers=2, seconds=3) as running, ThreadPoolExecutor(1) as pool:
        began = threading.Event()
        hanging = pool.submit(lambda: began.set() or post(running, "/denoise", SLEEP))  # type: ignore[func-returns-value]
        began.wait(HANG)
        for _ in range(3):
            assert ask(running, "/denoise", "POST", b"image")[1] == b"image"
        assert ask(running, "/denoise", "POST", DIE)[0].status == 500
        assert ask(running, "/denoise", "POST", b"image")[1] == b"image"
        status, told, _ = hanging.result(HANG)
        assert status == 504 and told["remedy"]
        processes = [worker._process.pid for worker in running.workers.idle if worker._process]
    assert processes and not any(map(alive, processes))
