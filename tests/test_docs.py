"""Every block of code on the pages for users runs, and the site is built of them without a broken link."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw
from scripts import module

from benchmarks.package import constants
from restore.cli import serve
from restore.images import tiff
from restore.inference import candidates, crops
from restore.inference.decision import facts
from restore.inference.decision.rules import limit_of
from restore.inference.marks import dots, lines
from restore.inference.scans import sheet
from restore.inference.tiles import blocks
from restore.status import Status

ROOT = Path(__file__).parents[1]
PAGES = ["README.md", *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))

# Pages whose blocks other tests run, with what they need.
ELSEWHERE = {
    "docs/gpu.md": "benchmarks/test_gpu.py",
    "docs/ocr.md": "test_ocrmypdf_plugin.py",
    "docs/onnx.md": "export/test_runtimes.py",
    "docs/serve.md": "app/test_serve_page.py",
    "docs/tutorial.md": "cli/test_tutorial.py",
}

# Pages of each kind that the site has.
SHOWN = ("index", "docs/command-line", "docs/guides/many", "examples/index", "reference/python", "training/claims")

# The first words of the tables that are wider than what shows them.
CUT_OFF = """[...document.querySelectorAll(".md-typeset__scrollwrap")]
  .filter((wrap) => wrap.scrollWidth > wrap.clientWidth + 1)
  .map((wrap) => wrap.innerText.slice(0, 60))"""

# Blocks that set up an environment, or go on until they are stopped. `.ci/run` and the tests of the page and of the
# server do those.
SET_UP = re.compile(r"pip install|^restore (app|serve)|watchfiles|^docker ", re.MULTILINE)

# All pages that are kept, but for the cards of priors.
DOCUMENTS = sorted(
    page
    for folder in (".", "docs", "docs/guides", "training", "benchmarks", "models")
    for page in (ROOT / folder).glob("*.md")
)

# A path in backticks, and a name in that file; and paths that commands make, or that stand for others.
PATH = re.compile(r"((?!/$)(?:\.?[\w*-]+/)*[\w*-]*(?:/|\.(?:py|md|toml|css|c|cpp|m?js|txt|html)))(?:: (\w+))?")
MADE = re.compile(r"^runs/|^mnist/$|\b(?:NAME|FOLDER|PATH|OUT)\b|^card\.md$|^report\.|^recipe\.toml$")

# What takes long on a page, and here does not. So short a training recognises little.
BRIEF = {
    r"--model parts\n": "--model parts --p 0.1 --force\n",
    r"--minutes \d+": "--minutes 0.05",
    r"minutes=[\d.]+": "minutes=0.05",
    r"epochs=\d+": "epochs=1",
    r"train\(images\)": "train(images, minutes=0.05)",
}

# What the pages name without making it.
PRELUDE = """
from pathlib import Path
import numpy as np, torch, safetensors.torch, restore
from PIL import Image
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import BernoulliRBM
from sklearn.pipeline import make_pipeline
image, scan = "assets/digit-noisy.png", "assets/page-scan.png"
mask = np.asarray(Image.open("assets/digit-hole.png").convert("1"))
photo = np.random.default_rng(0).random((40, 40, 3))
images = np.random.default_rng(1).random((60, 28, 28)) < np.indices((28, 28)).sum(0) / 60
labels, batch = np.arange(60) % 2, images[:3]
noisy = torch.tensor(images[:3]).float()
rbm = BernoulliRBM(4, n_iter=1).fit(images.reshape(60, -1))
model = torch.nn.Module()
for name, shape in {"W": (784, 4), "visible_bias": (784,), "hidden_bias": (4,)}.items():
    model.register_parameter(name, torch.nn.Parameter(torch.zeros(shape)))
"""


tutorial = module(ROOT / "docs" / "tutorial.py")


def place(folder: Path) -> Path:
    """A folder with all files that the pages name: those of the repository, and what stands for a user's own."""
    shutil.copytree(ROOT / "assets", folder / "assets")
    Image.open(ROOT / "assets" / "digit-noisy.png").save(folder / "image.png")
    shutil.copy(ROOT / "assets" / "page-scan.png", folder / "scan.png")
    dice = np.random.default_rng(0)
    down, right = np.indices((48, 48)) / 48
    grey = 0.3 + 0.4 * (down > right) + dice.normal(0, 0.1, (48, 48))
    Image.fromarray(np.uint8(255 * grey.clip(0, 1))).save(folder / "photo.png")
    for name in ("my-images", "scans"):
        (folder / name).mkdir()
        for number in range(40):
            image = Image.new("1", (28, 28))
            left, top = dice.integers(2, 12, 2).tolist()
            ImageDraw.Draw(image).ellipse((left, top, left + 12, top + 12), fill=1)
            image.save(folder / name / f"{number}.png")
    arrays = {"W": np.zeros((784, 4)), "b": np.full(784, -1.0), "c": np.zeros(4)}
    np.savez(folder / "rbm.npz", **arrays)
    return folder


@pytest.mark.thorough
@pytest.mark.parametrize("page", [page for page in PAGES if page not in ELSEWHERE])
def test_blocks_of_a_page_run(page: str, tmp_path: Path) -> None:
    work = []
    for block in tutorial.blocks((ROOT / page).read_text(encoding="utf-8")):
        code = block.code
        if block.language not in ("sh", "python") or SET_UP.search(code):
            continue
        for long, brief in BRIEF.items():
            code = re.sub(long, brief, code)
        if block.language == "python":
            code = PRELUDE + code
        work.append(tutorial.Block(block.language, code))
    try:
        for _ in tutorial.run(work, place(tmp_path)):
            pass
    except subprocess.CalledProcessError as fault:
        pytest.fail(f"{page}:\n{fault.cmd[-1]}\n{fault.output}")


def needed(path: Path) -> set[str]:
    """The libraries and programs that an example needs beside the package."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    modules = {
        name.name.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names
    }
    modules |= {(node.module or "").split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    return modules - set(sys.stdlib_module_names) - {"restore"}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_short_and_says_what_it_shows(path: Path) -> None:
    code = path.read_text(encoding="utf-8")
    assert len(code.splitlines()) <= 60 and ast.get_docstring(ast.parse(code))


@pytest.mark.thorough
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_draws_its_picture(path: Path, tmp_path: Path) -> None:
    for name in needed(path):
        pytest.importorskip(name, reason=f"the example needs {name}")
    if path.stem == "ocr" and shutil.which("tesseract") is None:
        pytest.skip("the example needs tesseract")
    environment = os.environ | {"XDG_DATA_HOME": str(tmp_path / "home"), "PYTHONPATH": str(ROOT)}
    code = path.read_text(encoding="utf-8").replace("__file__", repr(str(path)))
    for long, brief in BRIEF.items():
        code = re.sub(long, brief, code)
    ended = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.strip()
    with Image.open(tmp_path / f"{path.stem}.png") as drawn:
        assert len(set(drawn.convert("L").get_flattened_data())) > 1


def paths_named(page: Path) -> Iterator[tuple[str, str, list[Path]]]:
    """The paths in backticks on a page, the name behind a colon if there is one, and the folders they may lie in.

    These are the root, the package, the page's own folder, and the folders named in the same paragraph or row.
    """
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for block in re.split(r"\n\n|\n(?=[|-])", text):
        found = [match.groups("") for code in re.findall(r"`([^`\n]+)`", block) if (match := PATH.fullmatch(code))]
        beside = [path if path.endswith("/") else path.rpartition("/")[0] for path, _ in found]
        bases = [ROOT, ROOT / "restore", page.parent, page.parent / "studies"]
        bases += [base / folder for base in bases[:3] for folder in beside]
        for path, name in found:
            if not MADE.search(path):
                yield path, name, bases


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_path_in_backticks_exists(page: Path) -> None:
    for path, name, bases in paths_named(page):
        files = [file for base in bases for file in base.glob(path.rstrip("/"))]
        assert files, path
        assert not name or any(re.search(rf"\b{name}\b", file.read_text(encoding="utf-8")) for file in files), name


# What the pages say of limits: a pattern, and the limits that stand in for its groups.
LIMITS: list[tuple[str, tuple[float, ...]]] = [
    (r"Levels of `--p` above\s(\S+) must be given", (limit_of(Status.TOO_NOISY, "level"),)),
    (r"Up to (\S+) it is found; above, give it", (limit_of(Status.TOO_NOISY, "level"),)),
    (
        r"squares of (\d+) to (\d+) pixels a\sside, or of a multiple",
        (candidates.SQUARE_SIDES[0], candidates.SQUARE_SIDES[-1]),
    ),
    (r"at least (\d+) pixels long and at most (\d+) thick", (lines.SHORTEST, lines.THICKEST)),
    (r"at least (\d+) alike", (dots.FEWEST_DOTS,)),
    (r"every displacement up to (\d+) pixels", (facts.PAIR_REACH,)),
    (r"Of up to (\w+) crops of the image", (crops.CROPS,)),
    (r"parts of at most (\d+)x\d+ pixels, each with (\d+) pixels around it", (blocks.PART_SIDE, blocks.PART_MARGIN)),
    (r"in a neighbourhood of some (\d+) pixels", (sheet.REACH,)),
    (r"At most (\d+) pages are taken", (tiff.MOST_PAGES,)),
    (r"`--max-pixels N`: (\S+) by default", (serve.MOST_PIXELS,)),
]
WORDS = {"eight": "8"}


@pytest.mark.parametrize(("sentence", "limits"), LIMITS, ids=[sentence for sentence, _ in LIMITS])
def test_limits_on_the_pages_are_those_of_the_code(sentence: str, limits: tuple[object, ...]) -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in DOCUMENTS)
    stated = re.findall(sentence, text)
    assert stated
    for values in stated:
        together = (values,) if isinstance(values, str) else values
        assert [float(WORDS.get(value, value).replace(",", "")) for value in together] == list(limits)


def test_the_page_of_constants_has_every_number_that_the_package_sets() -> None:
    """The names and values are those of the code. The dates are from git, and not compared."""
    in_code = {(constant.file, constant.name, constant.value) for constant in constants.constants()}
    on_page = constants.listed_on_page()
    again = "write docs/constants.md anew with `python benchmarks/package/constants.py`"
    assert in_code == on_page, f"{again}; not on the page: {in_code - on_page}; not in the code: {on_page - in_code}"


def test_constants_have_comments_and_few_are_tuned() -> None:
    """Lower the number when one is derived or merged; name the kind of a new one that is not tuned."""
    listed = constants.constants()
    assert not [f"{one.file}: {one.name}" for one in listed if not one.comment]
    assert set(constants.kinds()) <= {(one.file, one.name) for one in listed}
    assert sum(one.kind == "tuned" for one in listed) <= 221


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built with every warning an error."""
    pytest.importorskip("mkdocs", reason="needs the extra docs")
    folder, beside = tmp_path_factory.mktemp("site"), tmp_path_factory.mktemp("built")
    shutil.copytree(ROOT / "restore" / "app" / "site", beside / "demo")
    (beside / "gallery").mkdir()
    shutil.copy(ROOT / "assets" / "digit.png", beside / "gallery" / "own_glyphs.png")
    command: Sequence[str] = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(folder)]
    ended = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1", "RESTORE_SITE": str(beside)},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return folder


@pytest.mark.thorough
def test_the_site_has_every_page_and_fetches_nothing(site: Path) -> None:
    import restore

    python = (site / "reference" / "python.html").read_text(encoding="utf-8")
    assert all(f'id="restore.{name}"' in python for name in restore.__all__)
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r"<(?:script|img|iframe)[^>]+src=\"([^\"]+)", text) + re.findall(
            r'<link[^>]+rel="(?:stylesheet|preconnect|preload)"[^>]+href="([^"]+)', text
        )
        assert loaded and not [address for address in loaded if address.startswith(("http", "//"))], page
        for address in loaded:
            assert page.name == "404.html" or (page.parent / address.split("?")[0].split("#")[0]).exists(), (
                page,
                address,
            )


@pytest.mark.thorough
def test_the_site_has_the_demo_and_the_pictures_of_examples(site: Path) -> None:
    page = ROOT / "restore" / "app" / "site"
    for path in page.iterdir():
        assert (site / "demo" / path.name).read_bytes() == path.read_bytes()
    assert 'href="demo/index.html"' in (site / "index.html").read_text(encoding="utf-8")
    assert (site / "examples" / "own_glyphs.png").read_bytes() == (ROOT / "assets" / "digit.png").read_bytes()
    shown = re.findall(r'<img[^>]+src="([^"]+)', (site / "examples" / "index.html").read_text(encoding="utf-8"))
    assert "own_glyphs.png" in shown and "ocr.png" not in shown


def visited(addresses: Iterable[str], look: Callable[[Any], list[str]]) -> dict[str, list[str]]:
    """What `look` finds wrong on each page, in a browser window of 1280 pixels."""
    api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("needs chromium")

    def looked() -> dict[str, list[str]]:
        with api.sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
            tab = browser.new_page(viewport={"width": 1280, "height": 900})
            found = {}
            for address in addresses:
                tab.goto(address)
                found[address] = look(tab)
            browser.close()
        return {address: faults for address, faults in found.items() if faults}

    # In a thread of its own, as other tests keep a browser whose loop runs in this one.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(looked).result()


@pytest.mark.thorough
def test_axe_finds_nothing_on_the_site(site: Path) -> None:
    axe = Path(os.environ.get("RESTORE_NODE_MODULES", "node_modules")) / "axe-core" / "axe.min.js"
    if not axe.exists():
        pytest.skip("needs axe-core in RESTORE_NODE_MODULES")

    def look(tab: Any) -> list[str]:
        tab.add_script_tag(path=str(axe))
        faults = tab.evaluate("async () => (await axe.run(document)).violations")
        return [f"{fault['id']}: {node['html']}" for fault in faults for node in fault["nodes"]]

    assert not visited([(site / f"{page}.html").as_uri() for page in SHOWN], look)


@pytest.mark.thorough
def test_no_table_of_the_site_is_cut_off(site: Path) -> None:
    def look(tab: Any) -> list[str]:
        return list(tab.evaluate(CUT_OFF))

    pages = [path.as_uri() for path in sorted(site.rglob("*.html")) if "demo" not in path.parts]
    assert len(pages) > 20 and not visited(pages, look)


def test_the_table_of_rules_is_that_of_the_code() -> None:
    from docs.rules import PAGE, meanings, table, written

    page = PAGE.read_text(encoding="utf-8")
    assert written(page) == page and set(meanings()) == {field.name for field in fields(facts.Facts)}
    assert all(line in page for line in table())
