"""`restore serve` under load against the library in a loop: requests, errors, throughput, memory, and a full queue.

On the loopback interface alone. Turns of the server and of the library follow each other, each in a process of its own
with the same number of threads, so that other work on the machine slows both alike.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import io
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from PIL import Image

import restore
from benchmarks.measures.script import command_line, head, row

ASSETS = Path(__file__).parents[2] / "assets"
KINDS = 50
MIB = 2**20

Work = Callable[[Iterator[int]], Any]


def noisy(p: float) -> list[bytes]:
    """The digit of the README as PNGs, each with other pixels inverted."""
    with Image.open(ASSETS / "digit.png") as image:
        clean = np.asarray(image.convert("L"))
    found = []
    for seed in range(KINDS):
        stream = io.BytesIO()
        flipped = np.random.default_rng(seed).random(clean.shape) < p
        Image.fromarray(np.where(flipped, 255 - clean, clean)).save(stream, "PNG")
        found.append(stream.getvalue())
    return found


class Ours:
    """A server in a process of its own."""

    def __init__(self, threads: int, queue: int) -> None:
        words = ["serve", "--port", "0", "--workers", str(threads), "--queue", str(queue)]
        self.process = subprocess.Popen([sys.executable, "-m", "restore", *words], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout
        host, _, port = self.process.stdout.readline().strip().strip("/").rpartition("/")[2].rpartition(":")
        self.address = host, int(port)

    def connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(*self.address, timeout=600)

    def figures(self) -> tuple[float, float]:
        """Resident memory in MiB, and seconds of processors, of the server and its workers."""
        return of_tree(self.process.pid)


def of_tree(process: int) -> tuple[float, float]:
    """Resident memory in MiB, and seconds of processors, of a process and all that it has started, on Linux."""
    place = Path(f"/proc/{process}")
    facts = (place / "stat").read_text().rpartition(")")[2].split()
    memory = int(facts[21]) * os.sysconf("SC_PAGE_SIZE") / MIB
    seconds = sum(map(int, facts[11:13])) / os.sysconf("SC_CLK_TCK")
    children = [int(child) for task in place.glob("task/*/children") for child in task.read_text().split()]
    more = [of_tree(child) for child in children]
    return memory + sum(each for each, _ in more), seconds + sum(each for _, each in more)


def post(connection: http.client.HTTPConnection, target: str, content: bytes) -> int:
    connection.request("POST", target, content)
    answer = connection.getresponse()
    answer.read()
    return answer.status


def in_threads(count: int, threads: int, work: Work) -> float:
    """Seconds in which so many threads do so many pieces of work, which they take one after the other."""
    pieces = iter(range(count))
    began = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(work, pieces) for _ in range(threads)]:
            done.result()
    return time.perf_counter() - began


def by_server(server: Ours, target: str, images: list[bytes], statuses: list[int]) -> Work:
    def work(pieces: Iterator[int]) -> None:
        with contextlib.closing(server.connection()) as connection:
            for number in pieces:
                statuses.append(post(connection, target, images[number % len(images)]))

    return work


def library(model: str, p: float, threads: int) -> None:
    """Read numbers of images, restore as many in threads, and write the seconds that took, and those of processors."""
    prior, images = restore.load(model), noisy(p)

    def work(pieces: Iterator[int]) -> None:
        for number in pieces:
            with Image.open(io.BytesIO(images[number % KINDS])) as image:
                prior.denoise(image, p=p).save(io.BytesIO(), "PNG")

    for line in sys.stdin:
        before = time.process_time()
        print(in_threads(int(line), threads, work), time.process_time() - before, flush=True)


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--requests", type=int, default=10_000, help="of the server in all [%(default)s]")
    parser.add_argument("--turns", type=int, default=40, help="[%(default)s]")
    parser.add_argument("--at-once", type=int, default=4, help="requests at a time [%(default)s]")
    parser.add_argument("--threads", type=int, default=2, help="of the server, and of the library [%(default)s]")
    parser.add_argument("--model", default="tap-mnist", help="[%(default)s]")
    parser.add_argument("--p", type=float, default=0.1, help="[%(default)s]")
    parser.add_argument("--peer", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.peer:
        library(given.model, given.p, given.threads)
        return
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    each = given.requests // given.turns
    part = each // 5
    target = f"/denoise?model={given.model}&p={given.p}"
    statuses, after, crowded = list[int](), list[int](), list[int]()
    memory, rates, costs = list[float](), list[tuple[float, float]](), list[tuple[float, float]]()
    words = [sys.executable, __file__, "--peer", "--model", given.model, "--p", str(given.p)]
    words += ["--threads", str(given.threads)]
    server = Ours(given.threads, given.at_once)
    work = by_server(server, target, noisy(given.p), statuses)
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as peer:
        assert peer.stdin and peer.stdout
        try:
            for turn in range(given.turns):
                before = server.figures()[1]
                ours = in_threads(each, given.at_once, work)
                now, spent = server.figures()
                peer.stdin.write(f"{part}\n")
                peer.stdin.flush()
                theirs, spent_there = map(float, peer.stdout.readline().split())
                memory.append(now)
                rates.append((each / ours, part / theirs))
                costs.append((1000 * (spent - before) / each, 1000 * spent_there / part))
                rate, cost = ("{:.1f}, library {:.1f}".format(*pairs[-1]) for pairs in (rates, costs))
                print(f"{turn + 1}: {rate} a second; {cost} ms; {now:.0f} MiB; {dict(Counter(statuses))}", flush=True)
            places = given.threads + given.at_once
            page = [(ASSETS / "page-noisy.png").read_bytes()]
            pages = by_server(server, "/denoise?model=conv-text&p=0.1", page, crowded)
            in_threads(2 * places, 2 * places, pages)
            in_threads(each, given.at_once, by_server(server, target, noisy(given.p), after))
        finally:
            server.process.terminate()
            server.process.wait()
            peer.stdin.close()
    print(f"{len(statuses)} requests, {given.at_once} at a time, {given.threads} threads: {dict(Counter(statuses))}")
    head("", "server", "library", "median ratio of turns")
    for what, pairs in (("requests a second", rates), ("ms of a processor for each", costs)):
        own, other = (median(values) for values in zip(*(pairs[1:] or pairs), strict=True))
        row(what, f"{own:.1f}", f"{other:.1f}", f"{median(a / b for a, b in pairs[1:] or pairs):.2f}")
    tenth = memory[len(memory) // 10]
    print(f"memory after the first turn {memory[0]:.0f} MiB, a tenth {tenth:.0f} MiB, all {memory[-1]:.0f} MiB")
    print(f"{2 * places} pages at once for {places} places: {dict(Counter(crowded))}; then {dict(Counter(after))}")


if __name__ == "__main__":
    main()
