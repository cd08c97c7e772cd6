"""Learning to read pages from pairs: pages with their truth beside them, as files of a folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from restore.channels import Damage
from restore.data.gathering import Gathering, gather
from restore.errors import TrainingError, UsageError
from restore.export.packing import beside_weights
from restore.images.tones import stretched
from restore.inference.onnx.engine import OnnxEngine
from restore.inference.torch_engine import Engine
from restore.learning.course import pages_of
from restore.learning.lesson import lesson_of
from restore.learning.recipe.recipe import parse
from restore.learning.run.session import Session
from restore.learning.train import train_and_save
from restore.zoo import GRAPH, load

SIDE = 32

TABLE = {
    "name": "reader",
    "data": {"source": "pages", "gathering": {"levels": "pairs", "shape": [SIDE, SIDE], "patches": 60}},
    "prior": {
        "family": "conditional_convolutional",
        "layers": [[6, 3, 1, "rectified"], [6, 3, 1, "spin"]],
        "weight_scale": 0.7,
    },
    "learner": {"method": "matched", "tasks": ["pages"], "solver": "up_and_down", "iterations": 2, "scored": 1},
    "optimizer": {"name": "muon", "rate": 0.02, "momentum": 0.9, "weight_decay": 0.0, "average": 0.9},
    "training": {"epochs": 6, "batch": 6},
    "inference": {"max_iter": 2, "tol": 0.004},
}


def pages(folder: Path, count: int = 5) -> Path:
    """Pages of random strokes on paper that darkens across, and their truth."""
    folder.mkdir()
    draw = np.random.default_rng(0)
    for number in range(count):
        ink = np.zeros((64, 64), bool)
        for _ in range(8):
            row, column, length = draw.integers(2, 60), draw.integers(2, 40), draw.integers(8, 22)
            ink[row : row + 2, column : column + length] = True
        paper = np.linspace(0.9, 0.35, 64)[None, :] * np.ones((64, 1))
        grey = np.where(ink, 0.45 * paper, paper) + 0.02 * draw.standard_normal(ink.shape)
        Image.fromarray((255 * grey.clip(0, 1)).astype(np.uint8)).save(folder / f"page{number}.png")
        Image.fromarray(np.where(ink, 0, 255).astype(np.uint8)).save(folder / f"page{number}.truth.png")
    return folder


def test_the_truth_is_the_lowest_bit_of_a_page(tmp_path: Path) -> None:
    gathered = gather(pages(tmp_path / "pages"), Gathering("pairs", (SIDE, SIDE), 40))
    joined = torch.from_numpy(gathered.training.images.reshape(len(gathered.training.images), -1) / 255).float()
    page, truth = pages_of(joined)
    assert set(truth.unique().tolist()) == {0.0, 1.0}
    # Ink is darker than the paper beside it by half.
    assert page[truth == 0].mean() < 0.6 * page[truth == 1].mean()


def test_pages_are_learnt_at_the_contrast_at_which_they_are_read(tmp_path: Path) -> None:
    folder = pages(tmp_path / "pages", 4)
    size = (64, 64)

    def learnt(stretch: bool) -> np.ndarray:
        gathered = gather(folder, Gathering("pairs", size, stretched=stretch))
        return np.concatenate([gathered.training.images, gathered.held_out.images])

    grey = [np.asarray(Image.open(path).convert("L")) for path in sorted(folder.glob("page?.png"))]
    assert {image.tobytes() for image in learnt(False) & 0xFE} == {page.tobytes() for page in (np.array(grey) & 0xFE)}
    wanted = [np.rint(255 * stretched(page / 255)).astype(np.uint8) & 0xFE for page in grey]
    assert {image.tobytes() for image in learnt(True) & 0xFE} == {page.tobytes() for page in wanted}
    assert np.array_equal(np.sort(learnt(True) & 1, None), np.sort(learnt(False) & 1, None))  # the truth


def test_a_page_without_truth_is_named(tmp_path: Path) -> None:
    folder = pages(tmp_path / "pages")
    (folder / "page3.truth.png").unlink()
    with pytest.raises(TrainingError, match="page3"):
        gather(folder, Gathering("pairs", (SIDE, SIDE), 40))


def test_a_truth_of_another_size_is_refused(tmp_path: Path) -> None:
    folder = pages(tmp_path / "pages")
    Image.new("L", (63, 64), 255).save(folder / "page1.truth.png")
    with pytest.raises(TrainingError, match="page1"):
        gather(folder, Gathering("pairs", (SIDE, SIDE), 40))


@pytest.mark.parametrize(
    ("table", "key", "value"),
    [("learner", "tasks", ["flip:0.1"]), ("data", "gathering", {"levels": "grey", "shape": [8, 8], "patches": 9})],
)
def test_pages_are_learnt_from_pairs_alone(table: str, key: str, value: object) -> None:
    with pytest.raises(UsageError, match=key if table == "learner" else "levels"):
        parse(TABLE | {table: TABLE[table] | {key: value}})  # type: ignore[operator]


def test_no_other_machine_learns_from_pairs() -> None:
    with pytest.raises(UsageError, match="pairs"):
        parse(TABLE | {"prior": {"family": "deep_convolutional", "layers": [[4, 2, 2, "spin"]], "weight_scale": 0.5}})


@pytest.fixture(scope="module", params=["up_and_down", "two_sizes"])
def reader(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small reader of pages, trained from a recipe, in a folder."""
    root = tmp_path_factory.mktemp("pages")
    source = str(pages(root / "pages", 8))
    learner = TABLE["learner"] | {"solver": request.param}  # type: ignore[operator]
    recipe = parse(TABLE | {"data": TABLE["data"] | {"source": source}, "learner": learner})  # type: ignore[operator]
    session = Session(root / "run", target=root / "reader")
    train_and_save(lesson_of(recipe, text="# pages"), session, torch.device("cpu"))
    return root / "reader"


@pytest.mark.thorough
def test_a_reader_finds_ink_that_no_threshold_finds(reader: Path, tmp_path: Path) -> None:
    folder, engine = pages(tmp_path / "new", 3), Engine.of(load(reader), torch.device("cpu"))
    grey = np.array([np.array(Image.open(folder / f"page{number}.png")) / 255 for number in range(3)])
    ink = np.array([np.array(Image.open(folder / f"page{number}.truth.png")) == 0 for number in range(3)])
    wrong = float(((engine.solve(grey, Damage()).means < 0.5) != ink).mean())
    best = min(float(((grey < level) != ink).mean()) for level in np.linspace(0.1, 0.9, 33))
    assert wrong < best / 2


@pytest.mark.thorough
@pytest.mark.parametrize("shape", [(SIDE, SIDE), (41, 37), (1, 9)])
def test_the_graph_of_a_reader_is_the_reader(reader: Path, shape: tuple[int, int]) -> None:
    if not (reader / GRAPH).is_file():
        (reader / GRAPH).write_bytes(beside_weights(reader))
    draw = np.random.default_rng(1)
    grey, hidden = draw.random((2, *shape)), draw.random((2, *shape)) < 0.1
    one, other = (
        engine.solve(grey, Damage(hidden=hidden))
        for engine in (Engine.of(load(reader), torch.device("cpu")), OnnxEngine.load(reader))
    )
    np.testing.assert_allclose(other.means, one.means, atol=1e-4)
    assert other.iterations.tolist() == one.iterations.tolist()
    # What is hidden says nothing, in the graph too.
    again = OnnxEngine.load(reader).solve(np.where(hidden, 1 - grey, grey), Damage(hidden=hidden))
    np.testing.assert_array_equal(again.means, other.means)
