"""Threads that ask the same open prior at once get the answers of one thread."""

from __future__ import annotations

import io
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from processes import HANG

pytest.importorskip("fastapi", reason="fastapi is not installed")

from restore.app.answers import Answers
from restore.inference.options import Options

DIGIT = Path(__file__).parents[2] / "assets" / "digit.png"
THREADS = 4


def noisy(seed: int) -> bytes:
    """The digit with other pixels inverted for each seed, so that no two answers are alike."""
    with Image.open(DIGIT) as image:
        clean = np.asarray(image.convert("L"))
    stream = io.BytesIO()
    flipped = np.random.default_rng(seed).random(clean.shape) < 0.1
    Image.fromarray(np.where(flipped, 255 - clean, clean)).save(stream, "PNG")
    return stream.getvalue()


# The same prior with its level known, and to be found, and another.
ASKED: list[dict[str, Any]] = [
    {"model": "tap-mnist-25", "p": "0.1"},
    {"model": "tap-mnist-25", "p": "auto", "soft": True},
    {"model": "tap-mnist", "p": "0.1"},
]


@pytest.mark.thorough
@pytest.mark.parametrize("engine", ["onnx", "torch"])
def test_threads_that_share_a_prior_answer_as_one_does(engine: Any) -> None:
    if engine == "torch":
        pytest.importorskip("torch", reason="torch is not installed")
    work = [(noisy(seed), wanted) for seed in range(3) for wanted in ASKED]

    def answer(answers: Answers, number: int) -> tuple[Any, dict[str, bytes]]:
        image, wanted = work[number]
        facts, pictures = answers.answer(image, None, wanted, lambda share: None)
        return {name: value for name, value in facts.items() if name != "seconds"}, pictures

    alone, shared = (Answers(Options(engine=engine)) for _ in range(2))
    expected = [answer(alone, number) for number in range(len(work))]
    assert len({pictures["means"] for _, pictures in expected}) == len(work)
    together = threading.Barrier(THREADS)

    def all_of_them(first: int) -> list[tuple[int, Any]]:
        """All pieces of work, in each thread from another one on; the first to come opens the prior."""
        order = np.roll(np.arange(len(work)), first)
        together.wait(HANG)
        return [(int(number), answer(shared, int(number))) for number in order]

    with ThreadPoolExecutor(THREADS) as pool:
        for result in pool.map(all_of_them, range(THREADS)):
            assert all(got == expected[number] for number, got in result)
