"""Progress in Python: a callable receives it, a terminal, a notebook or a log shows it, and it ends with the work."""

from __future__ import annotations

import inspect
import sys
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from bad_images import SHAPE
from priors import random_prior, saved_prior

import restore
from restore import console
from restore.channels import parse_task
from restore.evaluation.card import measure
from restore.evaluation.evaluate import compare, evaluate, nothing
from restore.inference.torch_engine import Engine
from restore.sklearn import BoltzmannMachine
from restore.status import Status

pytestmark = pytest.mark.filterwarnings("ignore:.*(no prior recognises|came back as they were)")


class Heard:
    """A callable that keeps what it receives."""

    def __init__(self) -> None:
        self.calls: list[tuple[float, float | None, str]] = []

    def __call__(self, done: float, total: float | None, note: str) -> None:
        self.calls.append((done, total, note))

    @property
    def done(self) -> list[float]:
        return [done for done, _, _ in self.calls]

    def rises_to(self, total: float) -> bool:
        rises = all(before <= after for before, after in pairwise(self.done))
        return rises and self.done[-1] == total and {total for _, total, _ in self.calls} == {total}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> restore.Restorer:
    return restore.load(saved_prior(tmp_path_factory.mktemp("model"), SHAPE), device="cpu")


def drawn(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).random(shape) < 0.3


def test_each_of_many_pictures_counts_when_it_is_done(model: restore.Restorer) -> None:
    heard, pictures = Heard(), [drawn(*SHAPE), drawn(30, 40), drawn(*SHAPE), drawn(5, 6)]
    plain = model.denoise(pictures, p=0.1)
    watched = restore.denoise(pictures, model, p=0.1, progress=heard)
    assert all(map(np.array_equal, plain, watched))
    # Those of the prior's size are restored together.
    assert heard.done == [0, 2, 3, 4] and heard.rises_to(4)
    again = Heard()
    restore.complete(np.stack([drawn(*SHAPE)] * 3), np.eye(*SHAPE, dtype=bool), model, progress=again)
    assert again.done == [0, 3]


def test_a_refused_picture_is_done_too() -> None:
    heard, photograph = Heard(), np.random.default_rng(0).random((28, 28))
    _, solution = restore.denoise([photograph] * 2, "tap-mnist", return_solution=True, progress=heard)
    assert all(Status(status).refused for status in solution.status) and heard.rises_to(2)


def test_of_one_large_picture_the_share_is_told(model: restore.Restorer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("restore.inference.tiles.blocks.TILES", 3)
    heard = Heard()
    model.denoise(drawn(60, 60), p=0.1, progress=heard)
    assert heard.rises_to(1.0) and any(0 < done < 1 for done in heard.done)


@pytest.mark.thorough
def test_pages_are_read_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    page = np.full((64, 80), 0.9) + 0.04 * np.random.default_rng(0).standard_normal((64, 80))
    page[8:56, 10:70:10] = 0.2
    heard = Heard()
    restore.denoise([page.clip(0, 1)] * 3, "conv-scan", p="scan", progress=heard)
    assert heard.rises_to(3) and {1, 2, 3} <= set(heard.done)


def test_an_error_of_the_callable_ends_the_work(model: restore.Restorer) -> None:
    class Enough(Exception):
        pass

    def stop(done: float, total: float | None, note: str) -> None:
        if done:
            raise Enough

    with pytest.raises(Enough):
        model.denoise([drawn(*SHAPE), drawn(30, 40)], p=0.1, progress=stop)


def test_training_tells_epochs_and_scores() -> None:
    heard, bars = Heard(), np.zeros((60, 6, 6), bool)
    bars[np.arange(60), np.arange(60) % 6] = True
    restore.train(bars, hidden=4, epochs=3, progress=heard)
    assert heard.rises_to(1.0) and len(heard.calls) == 3
    assert [note.split(",")[0] for _, _, note in heard.calls] == [f"{epoch} of at most 3" for epoch in (1, 2, 3)]
    assert "best so far" in heard.calls[-1][2]


def test_evaluation_tells_the_share_of_all_its_images(capsys: pytest.CaptureFixture[str]) -> None:
    batches, task = [torch.zeros(2, 14, 14), torch.zeros(6, 14, 14)], parse_task("flip:0.1")
    alone, beside, of_card = Heard(), Heard(), Heard()
    evaluate(nothing, batches, task, torch.Generator().manual_seed(0), progress=alone)
    compare(nothing, batches, task, 0, progress=beside)
    assert alone.done == beside.done == [0.25, 1.0]
    measure(Engine.of(random_prior((14, 14)), torch.device("cpu")), batches, 0, whole=False, progress=of_card)
    assert of_card.rises_to(1.0) and len(of_card.done) == 2 * 7  # tasks
    assert not capsys.readouterr().err
    evaluate(nothing, batches, task, torch.Generator().manual_seed(0), progress=True)
    assert capsys.readouterr().err == "flip:0.1: restored 100%\n"


def test_an_estimator_is_silent_unless_it_is_verbose(capsys: pytest.CaptureFixture[str]) -> None:
    rows = np.repeat(np.eye(4), 10, axis=0)
    BoltzmannMachine(2, n_iter=2, random_state=0).fit(rows)
    assert not capsys.readouterr().err
    BoltzmannMachine(2, n_iter=2, random_state=0, verbose=1).fit(rows)
    said = capsys.readouterr().err
    assert said.startswith("BoltzmannMachine 2/2 ") and said.count("\n") == 1


def test_true_shows_it_and_nothing_does_by_default(model: restore.Restorer, capsys: pytest.CaptureFixture[str]) -> None:
    pictures = [drawn(*SHAPE), drawn(30, 40)]
    model.denoise(pictures, p=0.1)
    assert not capsys.readouterr().err
    model.denoise(pictures, p=0.1, progress=True)
    assert capsys.readouterr().err == "restored 2/2\n"


@pytest.mark.parametrize("terminal", [False, True])
def test_work_that_is_done_at_once_needs_no_bar(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    screen = SimpleNamespace(isatty=lambda: terminal, write=said.append, flush=lambda: None)
    monkeypatch.setattr(sys, "stderr", screen)
    with console.progress("restored", 1.0) as meter:
        meter(1.0)
    assert not said
    with console.progress("restored", 1.0) as meter:
        meter(1.0, "scoring it")
    assert "scoring it" in "".join(said)


@pytest.mark.parametrize("widgets", [False, True])
def test_a_notebook_has_a_bar_where_it_can_draw_one(
    widgets: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without ipywidgets, rich has no bar there but a warning; plain lines do."""
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace())
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name if widgets else None)
    bars: list[str] = []
    monkeypatch.setattr(console, "_bar", lambda description, total: iter([lambda done, note="": bars.append(note)]))
    with console.progress("restored", 2) as meter:
        meter(1, "digit.png")
    assert bars == (["digit.png"] if widgets else [])
    assert ("digit.png" in capsys.readouterr().err) != widgets


def test_what_is_shown_is_in_the_signature_and_its_help() -> None:
    for function in (restore.denoise, restore.complete, restore.train, restore.Restorer.denoise):
        assert inspect.signature(function).parameters["progress"].default is False
    for function in (restore.denoise, restore.complete, restore.train):
        assert "\n        progress: " in (function.__doc__ or "")


def test_the_same_line_is_written_once(capsys: pytest.CaptureFixture[str]) -> None:
    with console.progress("restored", 1.0) as meter:
        for done in (0.2, 1.0, 1.0):
            meter(done)
    assert capsys.readouterr().err.splitlines() == ["restored 100%"]
