"""What training shows: the page at its end, and the picture while it goes on."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from commands import Run
from PIL import Image

import restore
from restore import zoo
from restore.channels import BitFlip
from restore.data import Wanted
from restore.errors import OutputError
from restore.learning.recipes.wishes import Wishes
from restore.learning.rules.frank_wolfe import FrankWolfe
from restore.learning.run.folder import Stopped, epoch_records
from restore.learning.run.session import Session
from restore.learning.train import learn, planned_lesson
from restore.priors import RBM
from restore.progress import Passed
from restore.report.chart import Chart, svg
from restore.report.page import Command, Rows, Section, Sentence, Strip, Strips, page
from restore.report.passing import drawer
from restore.report.pictures import grey, magnification, png, tiled
from restore.report.whole import middle

CPU = torch.device("cpu")

WORST = "<b>&\"'"


class Reader(HTMLParser):
    """Checks that elements are closed in order, and collects texts and what is referred to."""

    VOID = frozenset({"meta", "img"})

    def __init__(self, content: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.addresses: list[str] = []
        self.texts: list[str] = []
        self.feed(content)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href", "xlink:href", "action")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def bars(count: int = 60, seed: int = 0) -> np.ndarray:
    """Columns of 9x8 images, white or black; (N, 9, 8), uint8."""
    columns = np.random.default_rng(seed).random((count, 1, 8)) < 0.4
    return np.repeat(columns, 9, axis=1).astype(np.uint8) * np.uint8(255)


def ramps(count: int = 60) -> np.ndarray:
    """Slopes of grey."""
    steep = np.random.default_rng(1).random((count, 1, 1))
    return np.rint(np.broadcast_to(255 * steep * np.linspace(0, 1, 8), (count, 9, 8))).astype(np.uint8)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in that is also where priors are kept."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    # Graphs have tests of their own.
    monkeypatch.setattr("restore.export.packing.beside_weights", lambda folder: b"")
    return tmp_path


def read(path: str) -> tuple[str, Reader]:
    content = Path(path).read_text()
    reader = Reader(content)
    # Nothing from elsewhere, no scripts, small.
    assert all(address.startswith("data:image/png;base64,") for address in reader.addresses)
    assert not re.search(r"https?://|url\(|@import|<script|<link", content)
    assert len(content) < 1_000_000
    return " ".join(reader.texts), reader


TRAININGS = {
    "convolutional": (bars, (), "flip:0.1"),
    "binary": (bars, ("--hidden", "9"), "flip:0.1"),
    "grey": (ramps, (), "noise:0.2"),
    "in-closed-form": (ramps, ("--method", "principal", "--hidden", "2"), "noise:0.2"),
    "conditional": (bars, ("--task", "flip:0.1"), "flip:0.1"),
    "in-rounds": (bars, ("--method", "fw", "--hidden", "2"), "flip:0.2"),
    "without-hidden-units": (bars, ("--method", "fvbm"), "flip:0.2"),
}


@pytest.mark.thorough
@pytest.mark.parametrize(("images", "options", "task"), TRAININGS.values(), ids=TRAININGS.keys())
def test_the_command_leaves_a_page_and_a_picture(
    images: Callable[[], np.ndarray],
    options: tuple[str, ...],
    task: str,
    home: Path,
    run: Run,
    capsys: pytest.CaptureFixture[str],
) -> None:
    np.save("a<i>b.npy", images())
    short = () if "--method" in options else ("--epochs", 2)
    assert run("train", "a<i>b.npy", "--name", "parts", *short, *options) == 0
    said = capsys.readouterr().err
    assert "runs/parts/report.html" in said.splitlines()[-1]
    text, reader = read("runs/parts/report.html")
    assert "a<i>b.npy" in text and "i" not in reader.seen
    assert task in text and "nothing done" in text
    assert "Left out" not in text
    assert "--model parts" in text
    with Image.open("runs/parts/progress.png") as picture:
        assert picture.format == "PNG"


@pytest.mark.thorough
@pytest.mark.parametrize(("grey", "measure"), [(False, "wrong pixels, %"), (True, "PSNR, dB")], ids=["binary", "grey"])
def test_a_prior_of_patches_is_shown_on_a_whole_image(
    grey: bool, measure: str, home: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("scans").mkdir()
    for number, width in enumerate((40, 31, 50, 36)):
        rows = np.arange(60)[:, None] + number
        stripes = 128 + 127 * np.sin(rows / 3) if grey else 255.0 * (rows % 12 < 5)
        levels = np.broadcast_to(stripes, (60, width)).astype(np.uint8)
        Image.fromarray(levels).save(f"scans/{number}.png")
    words = ("--patches", 300, "--shape", "8x8", "--hidden", 4, "--epochs", 3)
    assert run("train", "scans", "--name", "parts", *words) == 0
    *_, usage, last = capsys.readouterr().err.splitlines()
    level = "--sigma auto" if grey else "--p auto"
    said = (
        f"parts: `restore denoise scan.png --model parts {level}` restores images of any size, in windows of 8x8 pixels"
    )
    assert usage == said
    assert "runs/parts/report.html" in last
    text, _ = read("runs/parts/report.html")
    assert "A whole image before and after" in text and measure in text and "of any size" in text
    found = re.search(r"damaged\s+([\d.]+)\s+restored\s+([\d.]+)\s+median of \dx\d\s+([\d.]+)", text)
    assert found is not None
    damaged, restored, _ = map(float, found.groups())
    assert (restored > damaged) if grey else (restored < damaged == pytest.approx(10, abs=2))
    # What it says works: a whole image, its size kept.
    assert run("denoise", "scans/2.png", "--model", "parts", *level.split(), "--engine", "torch", "--force") == 0
    with Image.open("scans/2.restored.png") as picture:
        assert picture.size == (50, 60)


def test_of_a_large_image_the_middle_is_shown() -> None:
    image = torch.arange(1000.0)[:, None].expand(1000, 9)
    assert torch.equal(middle(image), image[150:850])


def test_the_scores_on_the_page_are_those_of_a_baseline_made_by_hand(home: Path, run: Run) -> None:
    images = bars(120)
    np.save("bars.npy", images)
    assert run("train", "bars.npy", "--name", "parts", "--epochs", 1, "--held-out", 0.3, "--quiet") == 0
    text, _ = read("runs/parts/report.html")
    lesson = planned_lesson("bars.npy", "parts", Wishes(epochs=1), shown_as="bars.npy", wanted=Wanted(held_out=0.3))
    assert lesson.held_out is not None
    training, truth = lesson.pixels(CPU), lesson.held_out_pixels(CPU)
    assert truth is not None and len(truth) <= 100
    observed = BitFlip(0.1).corrupt(truth, torch.Generator().manual_seed(0))
    nearest = training[(observed[:, None] != training[None]).sum(2).argmin(1)]
    for name, restored in (("nn", nearest), ("nothing done", observed)):
        wrong = (restored != truth).double().mean(1)
        wanted = f"{100 * wrong.mean():.2f} ± {100 * wrong.std() / math.sqrt(len(wrong)):.2f}"
        assert re.search(rf"\b{name}\s+{re.escape(wanted)}", text), wanted
    assert f"{len(truth)} images held out" in text


@pytest.mark.thorough
@pytest.mark.usefixtures("quick_growth")
def test_the_growth_of_hidden_units_has_a_curve_of_its_own(
    home: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FrankWolfe, "away_every", 2)
    np.save("bars.npy", bars(120))
    Path("mine.toml").write_text(
        'name = "mine"\n[data]\nsource = "bars.npy"\nvalidation = 40\n[prior]\nhidden = "auto"\n'
        '[learner]\nmethod = "tap"\n[growth]\nunits = 6\n'
        '[training]\nepochs = 2\nbatch = 20\nwatch = "flip:0.1"\n'
    )
    assert run("train", "mine.toml", "--quiet") == 0
    text, _ = read("runs/mine/report.html")
    assert "log-likelihood gained, held out, nats" in text and "hidden units" in text
    # One point for every number of units, though with away steps there may be several rounds of it.
    grown = {record["units"] for record in epoch_records(Path("runs/mine/growth"))}
    first = re.search(r'points="([^"]+)"', Path("runs/mine/report.html").read_text())
    assert first is not None
    across = [float(pair.split(",")[0]) for pair in first[1].split()]
    assert len(across) == len(grown) >= 2 and (np.diff(across) > 0).all()


def test_without_images_held_out_there_are_no_scores(home: Path, run: Run) -> None:
    np.save("bars.npy", bars())
    Path("mine.toml").write_text(
        'name = "mine"\n[data]\nsource = "bars.npy"\n[prior]\nhidden = 3\n[learner]\nmethod = "tap"\n'
        "[training]\nepochs = 2\nbatch = 10\n"
    )
    assert run("train", "mine.toml", "--quiet", "-o", "a folder") == 0
    text, _ = read("runs/mine/report.html")
    assert text.count("no images were held out") == 2
    assert "--model 'a folder'" in text and 'model="a folder"' in text


def test_a_page_that_cannot_be_written_loses_no_prior(
    home: Path, run: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, content: bytes) -> None:
        raise OutputError(f"{path}: cannot be written (no space)")

    monkeypatch.setattr("restore.report.contents.write_atomically", full)
    monkeypatch.setattr("restore.report.passing.write_atomically", full)
    np.save("bars.npy", bars())
    assert run("train", "bars.npy", "--name", "parts", "--epochs", 1) == 0
    assert "without a report: runs/parts/report.html: cannot be written" in capsys.readouterr().err
    assert zoo.describe(zoo.find("parts")).name == "parts"
    assert not list(Path("runs/parts").glob("*.html")) and not list(Path("runs/parts").glob("*.png"))


def test_python_leaves_the_same_in_the_folder_of_a_run(home: Path, run: Run) -> None:
    np.save("bars.npy", bars())
    assert run("train", "bars.npy", "--name", "parts", "--hidden", 3, "--epochs", 2, "--quiet") == 0
    asked: dict[str, Any] = {"name": "parts", "hidden": 3, "epochs": 2, "fit": "resize", "run": "mine"}
    restore.train("bars.npy", **asked)
    text, _ = read("mine/report.html")
    assert "It is not kept under a name" in text and "--model" not in text
    zoo.find("parts").rename("moved")
    restore.train("bars.npy", **asked, resume=True, keep=True)
    pages = [read(f"{folder}/report.html")[0] for folder in ("runs/parts", "mine")]
    # But for what was typed, and how long it took.
    pages = [re.sub(r".*restore.train.*|[0-9.]+ (seconds|minutes)", "", text) for text in pages]
    assert pages[0] == pages[1]
    assert Path("mine/progress.png").read_bytes() == Path("runs/parts/progress.png").read_bytes()


def test_a_section_that_cannot_be_made_is_left_out_alone(home: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object) -> None:
        raise RuntimeError("out of <memory>")

    monkeypatch.setattr("restore.report.contents.field_section", broken)
    np.save("bars.npy", bars())
    assert run("train", "bars.npy", "--name", "parts", "--epochs", 1, "--quiet") == 0
    text, _ = read("runs/parts/report.html")
    assert "Left out: out of <memory>" in text and "nothing done" in text


def test_training_that_is_interrupted_leaves_no_page(home: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*arguments: object, **options: Any) -> None:
        raise Stopped(2)

    np.save("bars.npy", bars())
    with monkeypatch.context() as patched:
        patched.setattr("restore.learning.train.learn", stop)
        assert run("train", "bars.npy", "--name", "parts", "--epochs", 1) == 130
    with monkeypatch.context() as patched:
        # The page is what is being made when the signal comes.
        patched.setattr("restore.report.contents.page", stop)
        assert run("train", "bars.npy", "--name", "parts", "--epochs", 1) == 130
    assert not [path for path in Path("runs").rglob("*") if "report" in path.name or path.name.startswith(".restore")]
    assert zoo.describe(zoo.find("parts")).name == "parts"


def test_every_text_is_escaped() -> None:
    parts = [Sentence(WORST), Command(WORST), Rows([WORST, "x"], [[WORST, WORST]], frozenset({(0, 1)}))]
    parts.append(Strips([Strip(WORST, png(np.zeros((2, 3, 3), np.uint8)), 3)]))
    made = page(WORST, WORST, [Section(WORST, parts)])
    assert "<b>" not in made and "b" not in Reader(made).seen
    assert made.count("&lt;b&gt;") == made.count("&amp;&quot;&#x27;") == 11
    drawn = svg(Chart(WORST, [(1.0, 2.0), (2.0, 3.0)], WORST, 2.0))
    assert "<b>" not in drawn and WORST in unescape(drawn)


# ------------------------------------------------------------------------------------------------ while it goes on


def test_the_picture_takes_no_more_than_its_share_of_the_time(home: Path) -> None:
    lesson = planned_lesson([*bars()], "parts", Wishes(epochs=1, hidden=3), shown_as="bars")
    machine = RBM.binary(torch.zeros(72, 3), torch.zeros(72), torch.zeros(3))
    times = iter([0.0, 1.0, 2.0, 50.0, 51.9, 52.1, 52.5, 60.0])
    draw = drawer(lesson, home, CPU, clock=lambda: next(times))
    path = home / "progress.png"
    drawn = []
    # It takes a second at the first epoch, and then has to wait for fifty.
    for done, stage in enumerate(("", "", "", "", ""), 1):
        draw(Passed(done, 9, 1.0, {}, machine, stage))
        drawn.append(path.exists())
        path.unlink(missing_ok=True)
    assert drawn == [True, False, False, True, False]


def test_a_machine_without_binary_units_is_not_shown_settling(home: Path) -> None:
    lesson = planned_lesson([*ramps()], "parts", Wishes(method="principal", hidden=2), shown_as="ramps")
    learn(lesson, Session(home / "run", watch=drawer(lesson, home / "run", CPU)), device=CPU)
    assert lesson.held_out is not None
    with Image.open(home / "run" / "progress.png") as picture:
        drawn = np.asarray(picture)
    # Two receptive fields, and the images held out: TAP diverges on such couplings and would leave a black row.
    times = magnification(9, 8)
    shown = tiled(grey(lesson.held_out.images / 255), 12)
    assert drawn.shape[0] == times * 2 * len(shown)
    np.testing.assert_array_equal(drawn[::times, ::times][-len(shown) :], shown)


def test_layers_of_a_deep_machine_are_not_drawn(home: Path) -> None:
    lesson = planned_lesson([*bars()], "parts", Wishes(epochs=1, hidden=3), shown_as="bars")
    upper = RBM.binary(torch.zeros(3, 2), torch.zeros(3), torch.zeros(2))
    drawer(lesson, home, CPU)(Passed(1, 9, 1.0, {}, upper, "layer 2"))
    assert not (home / "progress.png").exists()


def test_pictures_change_no_bit_of_the_prior(home: Path) -> None:
    def learnt(folder: str, **options: Any) -> dict[str, torch.Tensor]:
        lesson = planned_lesson([*bars()], "parts", Wishes(epochs=3, hidden=4, method="pcd"), shown_as="bars")
        watcher = drawer(lesson, home / folder, CPU) if options else lambda passed: None
        return dict(learn(lesson, Session(home / folder, watch=watcher), device=CPU).trained.prior.machine.parameters)

    alone, drawn = learnt("one"), learnt("two", draw=True)
    assert (home / "two" / "progress.png").exists()
    assert all(torch.equal(alone[name], drawn[name]) for name in alone)
