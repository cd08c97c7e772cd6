"""The processes that restore what is posted: a limited number of requests run, and a limited number wait."""

import asyncio
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import prometheus_client as figures
from fastapi import HTTPException, Request

from restore.app.answers import Task
from restore.app.worker import Answer, Worker
from restore.inference.options import Options

# Seconds to wait before another try if the queue is full.
AGAIN = 1


class Gone(Exception):
    """The client has gone."""


class Workers:
    """The processes that restore, each asked by a thread, the count of requests that run or wait, and metrics."""

    def __init__(self, options: Options, workers: int, queue: int, seconds: float) -> None:
        """Take how to restore, the most requests that run and that wait, and the most seconds that one runs."""
        self.options = options
        self.most = workers + queue
        self.inside = 0
        self.pool = ThreadPoolExecutor(workers, "restore")
        # The one that was asked last is asked first, as it is warm.
        self.idle = [Worker(options, seconds) for _ in range(workers)]
        self.closed = threading.Event()
        self.figures = figures.CollectorRegistry()
        name = "restore_request_seconds"
        text = "From a request to its answer."
        labels = ("task", "status")
        self.seconds = figures.Histogram(name, text, labels, registry=self.figures)
        now = figures.Gauge("restore_requests", "Requests that run or wait.", registry=self.figures)
        now.set_function(lambda: self.inside)
        figures.ProcessCollector(registry=self.figures)

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Hold one slot of the queue; raises HTTPException if it is full."""
        if self.inside >= self.most:
            raise HTTPException(503, "the queue is full; ask again later", {"Retry-After": str(AGAIN)})
        self.inside += 1
        try:
            yield
        finally:
            self.inside -= 1

    async def answered(
        self, request: Request, task: Task, parts: Mapping[str, bytes], wanted: Mapping[str, Any], whole: bool
    ) -> Answer:
        """Let a worker do a task; raises Gone if the client has gone."""
        gone = threading.Event()

        def watch(share: float) -> None:
            if gone.is_set() or self.closed.is_set():
                raise Gone

        def work() -> Answer:
            watch(0)
            worker = self.idle.pop()
            try:
                return worker.answer(parts["image"], parts.get("mask"), wanted, watch, whole=whole, task=task)
            finally:
                self.idle.append(worker)

        async def listen() -> None:
            while (await request.receive())["type"] != "http.disconnect":
                pass
            gone.set()
            answer.cancel()  # if it has not begun

        answer = self.pool.submit(work)
        listener = asyncio.create_task(listen())
        try:
            return await asyncio.wrap_future(answer)
        except asyncio.CancelledError:
            if gone.is_set():
                raise Gone from None
            raise
        finally:
            listener.cancel()

    def close(self) -> None:
        """Cancel all running requests, and end the processes."""
        self.closed.set()
        self.pool.shutdown(cancel_futures=True)
        for worker in self.idle:
            worker.close()
