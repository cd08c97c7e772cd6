"""The published priors: complete, described by their cards, and as good as those say."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from data_sets import COPIES, mnist, needs_mnist, needs_silhouettes, silhouettes
from machines import with_weights
from onnx import external_data_helper
from parity import GREY_TOLERANCE, TOLERANCE, Parity, compared, damages
from PIL import Image
from safetensors import safe_open

import restore
from restore import zoo
from restore.channels import Damage, parse_task
from restore.data import Split, binarise
from restore.errors import UsageError
from restore.evaluation.card import CARD_TASKS, WHOLE_TASKS
from restore.evaluation.evaluate import evaluate, restorer_of, task_of
from restore.inference.engine import Posterior
from restore.inference.onnx.engine import OnnxEngine
from restore.inference.torch_engine import Engine
from restore.learning.recipe.recipe import read_recipe
from restore.registry import SOLVERS
from restore.status import Status
from restore.zoo.description import Description
from training.data.drawings import drawings
from training.data.photographs import photograph

ROOT = Path(__file__).parents[2]
FOLDERS = sorted(path.parent for path in (ROOT / "models").glob(f"*/{zoo.WEIGHTS}"))
NAMES = [folder.name for folder in FOLDERS]
# One of each kind that restores within a second: the others belong to the thorough run.
QUICK = ("crbm-bp-mnist-flip10", "crbm-mssvm-mnist-patch12", "tap-mnist-25")
every_prior = pytest.mark.parametrize(
    "folder",
    [folder if folder.name in QUICK else pytest.param(folder, marks=pytest.mark.thorough) for folder in FOLDERS],
    ids=NAMES,
)
CONDITIONAL = [folder for folder in FOLDERS if folder.name.startswith("crbm-")]
GREY = [folder for folder in FOLDERS if zoo.describe(folder).grey]
TOLD = [folder for folder in FOLDERS if folder not in CONDITIONAL]
ROW = re.compile(
    r"^\| (?P<task>\S+) \| (?P<n>\d+) \| (?P<error>[\d.]+) ± [\d.]+ .*\| (?P<mcc>[\d.]+) ± [\d.]+ \|$", re.M
)
GREY_ROW = re.compile(
    r"^\| (?P<task>\S+) \| (?P<n>\d+) \| (?P<psnr>\S+)(?: ± [\d.]+)? \| (?P<ssim>[\d.]+) ± [\d.]+ \|$", re.M
)
WHOLE_ROW = re.compile(
    r"^\| (?P<task>\S+) \| (?P<n>\d+) \| (?P<error>[\d.]+) ± [\d.]+ \| .* \| [\d.]+ ± [\d.]+ \(\dx\d\) \|$", re.M
)


def test_every_prior_is_listed() -> None:
    assert len(NAMES) > 20 and set(NAMES) <= set(restore.list_models())


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_published_prior_is_what_its_card_and_recipe_say(folder: Path) -> None:
    header, recipe = zoo.describe(folder), read_recipe(ROOT / "training" / "recipes" / f"{folder.name}.toml")
    assert (header.name, header.recipe) == (folder.name, recipe.digest)
    # A size that was found is on the card, with why it is that.
    card = (folder / zoo.CARD).read_text()
    units = (
        "fully visible" if not header.kind.hidden_units else f"{' + '.join(map(str, header.sizes[1:]))} hidden units"
    )
    assert (header.kind.count(header) if header.kind.any_size else units) in card
    assert "- growth: " in card if recipe.prior.grows else header.hidden == recipe.prior.hidden
    assert (bool(header.task), header.task) == (folder in CONDITIONAL, recipe.data.task)
    if header.task:
        epochs = range(recipe.training.epochs)
        assert header.inference in [recipe.learner.inference(epoch) for epoch in epochs]
    else:
        assert header.inference == recipe.inference
    for fact in (header.name, header.recipe[:16], "- time: ", "- machine: ", f"- seed: {recipe.seed}"):
        assert fact in card
    assert (ROOT / "training" / "recipes" / f"{folder.name}.toml").read_text().strip() in card
    if header.kind.photographs:
        assert all(f"| {task} | " in card for task in WHOLE_TASKS["one noise and mask"])
        return
    if folder in GREY:
        assert [row["task"] for row in GREY_ROW.finditer(card)] == [
            str(parse_task(task)) for task in CARD_TASKS["noise and mask"]
        ]
        return
    if header.kind.pages:
        # Scored on real pages.
        script = "choices/page_parts.py" if folder.name == zoo.PARTS_PRIOR else "peers/real_pages.py"
        assert f"`python benchmarks/{script}" in card
        return
    if header.kind.any_size and header.data != "mnist":
        # Scored on whole pictures.
        assert f"`restore evaluate {header.name} --card --seed 0` on whole images" in card
        assert [row["task"] for row in WHOLE_ROW.finditer(card)] == list(WHOLE_TASKS["flips and mask"])
        return
    tasks = [row["task"] for row in ROW.finditer(card)]
    every = ["flip:0.05", "flip:0.1", "flip:0.2", "flip:0.3", "flip:0.4", "patch:8:0", "patch:12:0"]
    assert tasks == ([str(parse_task(header.task))] if header.task else every)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_header_says_how_white_the_images_are_of_a_prior_of_any_size(folder: Path) -> None:
    header, means = zoo.describe(folder), zoo.load(folder).pixel_means
    whole = header.kind.any_size and not header.grey
    assert header.white == pytest.approx(float(means.mean()) if whole else 0, abs=1e-4)
    assert header.polarised or header.task or header.grey or header.kind.pages or folder.name == "conv-art"


@pytest.mark.parametrize("folder", [folder for folder in TOLD if folder not in GREY], ids=lambda folder: folder.name)
def test_what_is_certain_stays(folder: Path) -> None:
    model = restore.load(folder, device="cpu")
    images = np.random.default_rng(0).random((3, *zoo.describe(folder).image_shape)) < 0.3
    if zoo.describe(folder).kind.pages:
        with pytest.raises(UsageError, match="grey pages"):
            model.denoise(images, 0.0)
        return
    assert (model.denoise(images, 0.0) == images).all()
    assert (model.denoise(images, 1.0) == ~images).all()


def _ink(split: Split) -> torch.Tensor:
    return torch.from_numpy(binarise(mnist(split).images))


# ---------------------------------------------------------------------------------------------------- their graphs


@every_prior
def test_the_graph_of_a_published_prior_is_up_to_date(folder: Path) -> None:
    graph, content = folder / zoo.GRAPH, (folder / zoo.WEIGHTS).read_bytes()
    onnx.checker.check_model(str(graph), full_check=True)
    facts = OnnxEngine.load(folder).facts
    assert facts.header == zoo.describe(folder)
    assert facts.weights == hashlib.sha256(content).hexdigest()
    assert (facts.channel == "learnt") == (folder in CONDITIONAL)
    model = onnx.load(graph, load_external_data=False)
    outside = {item.name: item for item in model.graph.initializer if external_data_helper.uses_external_data(item)}
    with safe_open(folder / zoo.WEIGHTS, framework="numpy") as stored:
        matrices = {name for name in stored.keys() if len(stored.get_slice(name).get_shape()) == 2}  # noqa: SIM118
        unused = {"modes"} if not facts.header.inference.modes else set()
        assert matrices - unused <= outside.keys() <= set(stored.keys())
        for name, tensor in outside.items():
            where = {entry.key: entry.value for entry in tensor.external_data}
            offset, length = int(where["offset"]), int(where["length"])
            assert where["location"] == zoo.WEIGHTS
            assert content[offset : offset + length] == stored.get_tensor(name).tobytes()
    # No weights inside; every layer adds some operations, and a few at another size at which a page is read.
    layers, sizes = facts.header.deeper or facts.header.layers, SOLVERS[facts.header.inference.solver].coarser
    a_layer = 10_000 + 4_000 * (sizes - 1)
    assert graph.stat().st_size < (80_000 if folder in GREY else 40_000) + a_layer * len(layers)


@pytest.mark.slow
def test_every_graph_loads_in_the_oldest_onnxruntime(tmp_path: Path) -> None:
    """The version that docs/onnx.md names, from the package index."""
    (oldest,) = set(re.findall(r"Needs onnxruntime (\d+\.\d+) or newer", (ROOT / "docs" / "onnx.md").read_text()))
    python = tmp_path / "environment" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "environment"], check=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", f"onnxruntime=={oldest}.*"], check=True)
    load = "import sys, onnxruntime\nfor path in sys.argv[1:]: onnxruntime.InferenceSession(path)"
    subprocess.run([python, "-I", "-c", load, *(folder / zoo.GRAPH for folder in FOLDERS)], check=True)


def _clean(folder: Path) -> np.ndarray:
    """Test images of a prior's data, (24, H, W); without those the digit that is drawn here, in as many places.

    Half as many for the prior that takes some thousand iterations.
    """
    data = zoo.describe(folder).data
    if data == "mnist" and not needs_mnist.args[0]:
        return mnist("test").images[:24] / 255
    if data == "cbcl":
        # Any smooth image will do.
        return 0.5 + 0.3 * np.sin(np.add.outer(np.arange(19), np.arange(19)) / np.linspace(3, 5, 12)[:, None, None])
    digit = np.asarray(Image.open(ROOT / "assets" / "digit.png")) / 255
    if data == "drawings":
        height, width = zoo.describe(folder).image_shape
        return drawings(24, seed=1)[:, 40 : 40 + height, 40 : 40 + width] / 255
    if data == "photographs":
        return photograph("camera.png")[100:110, 100:340].reshape(10, 24, 10).swapaxes(0, 1) / 255
    if data == "text":
        page = 1 - np.asarray(Image.open(ROOT / "assets" / "page.png")) / 255
        height, width = zoo.describe(folder).image_shape
        corners = product(range(0, 72, 18), range(0, 150, 25))
        return np.stack([page[top : top + height, left : left + width] for top, left in corners])
    if data != "mnist" and COPIES:
        return silhouettes("test").images[:24] / 255
    digit = digit if data == "mnist" else 1 - digit
    return np.stack([np.roll(digit, place, axis=(0, 1)) for place in product(range(-2, 2), range(-3, 3))])


# By how much of itself every weight is changed to see what rounding could do: in one iteration that does far less, as
# both engines compute with 24 bits.
NUDGE = 5e-7


def _check_reader(folder: Path) -> None:
    """Both engines read a page in uneven light alike, with and without a hole.

    It has grain, as scans have: of wholly even paper a prior that tells it from grey areas sees rounding alone.
    """
    page = np.asarray(Image.open(ROOT / "assets" / "page.png").convert("L")) / 255
    grey = ((0.3 + 0.6 * page) * np.linspace(1, 0.5, page.shape[1]))[None]
    grey += np.random.default_rng(0).normal(0, 0.02, grey.shape)
    hidden = np.zeros(grey.shape, bool)
    hidden[0, 20:30, 40:90] = True
    for damage in (Damage(), Damage(hidden=hidden)):
        one, other = (
            engine.solve(grey, damage) for engine in (Engine.load(str(folder), "cpu"), OnnxEngine.load(folder))
        )
        np.testing.assert_allclose(other.means, one.means, atol=1e-3)
        # Nothing is known of a page's polarity.
        assert not one.inversion.any() and not other.inversion.any()
        if folder.name != zoo.PARTS_PRIOR:
            assert 0.02 < (one.means < 0.5).mean() < 0.4


def _steady(expected: Posterior, nudged: Posterior, header: Description) -> np.ndarray:
    """Which images rounding does not move: they converged or stopped as learnt, and a nudge hardly changes where."""
    moved = np.abs(nudged.means - expected.means).max((1, 2))
    return (moved <= (GREY_TOLERANCE if header.grey else TOLERANCE / 8)) & (
        (expected.status == Status.CONVERGED) | header.stops_as_learnt
    )


@every_prior
def test_both_engines_restore_alike(folder: Path) -> None:
    """On images that rounding does not move, whatever the processor: of as many candidates as it takes to find some."""
    if zoo.describe(folder).kind.pages:
        _check_reader(folder)
        return
    prior, cpu = zoo.load(folder), torch.device("cpu")
    graph, reference = OnnxEngine.load(folder), Engine.of(prior, cpu)
    header = reference.header
    nudged = Engine.of(replace(prior, machine=with_weights(prior.machine, 1 + NUDGE)), cpu)
    result: dict[str, Parity | None] = {}
    for seed, clean in enumerate(np.array_split(_clean(folder), 12)):
        for task, damaged, told in damages(clean, header, seed):
            if result.setdefault(task, None):
                continue
            expected = reference.solve(damaged, told)
            chosen = _steady(expected, nudged.solve(damaged, told), header)
            if chosen.any():
                restored = graph.solve(damaged, told)
                result[task] = compared(restored.rows(chosen), expected.rows(chosen), header, task)
    every = [parity for parity in result.values() if parity]
    assert len(every) == len(result), result
    for parity in every:
        assert parity.difference <= parity.room and parity.pixels == 0 and parity.unsettled == 0, parity
        # Rounding may still let one engine take an iteration more, where a residual comes close to the tolerance.
        assert parity.parted_difference <= 10 * parity.tol, parity
    images, parted = (sum(getattr(parity, name) for parity in every) for name in ("images", "parted"))
    assert parted < images and parted <= max(1, images // 4), every


def _recomputed(folder: Path, task: str, n: int) -> tuple[float, float]:
    engine = Engine.of(zoo.load(folder), torch.device("cpu"))
    header = engine.trained.description
    truth = _ink("test") if header.data == "mnist" else torch.from_numpy(binarise(silhouettes("test").images))
    generator = torch.Generator().manual_seed(0)
    damage = task_of(header) if header.task else parse_task(task)
    report = evaluate(restorer_of(engine), [truth[:n].reshape(-1, 28, 28)], damage, generator)
    return 100 * report.error_all.mean, report.mcc.mean


def _card_row(folder: Path, task: str) -> re.Match[str]:
    return next(row for row in ROW.finditer((folder / zoo.CARD).read_text()) if row["task"] == task)


@pytest.mark.thorough
@needs_mnist
def test_scores_on_a_card_are_what_the_prior_achieves() -> None:
    folder = ROOT / "models" / "tap-mnist-25"
    # What is damaged least is restored soonest.
    row = _card_row(folder, "flip:0.05")
    result = _recomputed(folder, row["task"], int(row["n"]))
    assert result == pytest.approx((float(row["error"]), float(row["mcc"])), abs=2e-3)


@pytest.mark.slow
@needs_mnist
@needs_silhouettes
@pytest.mark.parametrize("folder", [folder for folder in FOLDERS if folder not in GREY], ids=lambda folder: folder.name)
def test_all_scores_on_all_cards(folder: Path) -> None:
    for row in ROW.finditer((folder / zoo.CARD).read_text()):
        result = _recomputed(folder, row["task"], int(row["n"]))
        assert result == pytest.approx((float(row["error"]), float(row["mcc"])), abs=5e-3)
