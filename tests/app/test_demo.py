"""The demo that `docs/demo.py` builds, from a plain file server with the network cut off, and the app of a Space."""

from __future__ import annotations

import functools
import http.server
import json
import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image
from scripts import module

import restore
from restore import zoo
from restore.app import runtime
from restore.errors import ModelError

ROOT = Path(__file__).parents[2]
WINDOW = {"width": 1280, "height": 800}


def levels(name: str) -> np.ndarray:
    with Image.open(ROOT / "assets" / name) as image:
        return np.asarray(image.convert("L"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        runtime.installed(runtime.user_folder())
    except ModelError as missing:
        pytest.skip(str(missing))
    output: Path = tmp_path_factory.mktemp("site") / "demo"
    demo = module(ROOT / "docs" / "demo.py")
    assert demo.build(output) == demo.build(output) == output / "index.html"  # again over what is there
    return output


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    handler = functools.partial(Handler, directory=folder.parent)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_address[1]}/demo/"
        running.shutdown()


def test_it_has_three_priors_and_scans(folder: Path) -> None:
    listing = json.loads((folder / "models.json").read_text("utf-8"))
    assert not listing["served"] and listing["preferred"] == "conv-text"
    assert sorted(prior["name"] for prior in listing["priors"]) == ["conv-art", "conv-scan", "conv-text"]
    for prior in listing["priors"]:
        for name in (*prior["scans"], prior["example"]):
            assert (folder / name).is_file()
        for name in (zoo.GRAPH, zoo.WEIGHTS):
            content = (folder / "models" / prior["name"] / name).read_bytes()
            assert content == (zoo.published_folder() / prior["name"] / name).read_bytes()


@pytest.mark.thorough
def test_it_restores_a_scan_with_no_network_but_its_own(browser: Any, address: str, tmp_path: Path) -> None:
    from pages import Visit, expect

    visit = Visit(browser, address, viewport=WINDOW)
    expect(visit.at("status")).to_have_text("Ready.")
    page = levels("page-noisy.png")
    np.testing.assert_array_equal(visit.shown("image", page.shape[1])[..., 0], page)
    visit.context.set_offline(True)  # all that it needs is there
    visit.restore()
    boxes = {name: visit.at(name).bounding_box() for name in ("image", "after", "uncertainty", "download")}
    for name in ("after", "uncertainty"):
        for side in ("width", "height"):
            assert abs(boxes[name][side] - boxes["image"][side]) < 2, f"{name} is as large as the image"
    for name, box in boxes.items():
        assert box["y"] >= 0 and box["y"] + box["height"] <= WINDOW["height"], f"{name} is in view"
        assert box["x"] >= 0 and box["x"] + box["width"] <= WINDOW["width"]
    expected = restore.denoise(page, "conv-text", p=0.1)
    with visit.page.expect_download() as download:
        visit.at("download").click()
    download.value.save_as(tmp_path / "restored.png")
    with Image.open(tmp_path / "restored.png") as restored:
        found = np.asarray(restored.convert("L"))
    assert found.shape == page.shape and np.mean(found != expected) < 1e-3 < np.mean(found != page)
    visit.context.set_offline(False)
    # The next example is damaged here, the third is the first again.
    for width, name in ((200, "page.png"), (320, "page-noisy.png")):
        visit.at("example").click()
        expect(visit.at("image")).to_have_js_property("width", width)
        assert (visit.shown("image", width)[..., 0] != levels(name)).any() == (name == "page.png")
    visit.choose("conv-art")
    expect(visit.at("image")).to_have_js_property("width", 200)
    visit.restore()
    visit.context.close()
    assert visit.complaints == []
    assert all(request.startswith((address, f"blob:{address}")) for request in visit.requests)


def test_the_app_of_a_space_answers_with_both_pictures_and_what_was_done(monkeypatch: pytest.MonkeyPatch) -> None:
    class Fault(Exception):
        pass

    def part(*_: Any, **__: Any) -> None:
        pass

    gradio = SimpleNamespace(Interface=lambda call, *_, **facts: SimpleNamespace(call=call, **facts), Error=Fault)
    gradio.Image = gradio.Dropdown = gradio.Slider = gradio.Markdown = part
    monkeypatch.setitem(sys.modules, "gradio", gradio)
    path = ROOT / "examples" / "space" / "app.py"
    assert len(path.read_text("utf-8").splitlines()) <= 40
    app = module(path)
    assert all(Path(picture).is_file() and model in app.PRIORS for picture, model, _ in app.demo.examples)
    with Image.open(ROOT / "assets" / "digit-noisy.png") as digit:
        clean, doubt, said = app.demo.call(digit, "auto", 0)
        given = app.demo.call(digit, "tap-mnist", 0.1)[0]
    assert clean.size == doubt.size == given.size == digit.size
    assert np.ptp(np.asarray(doubt)) > 100 and re.search(r"^- restored by tap-mnist: .*\n- p = ", said)
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 2, (28, 28), np.uint8) * 255)
    with pytest.warns(restore.RestoreWarning):
        same, _, said = app.demo.call(noise, "auto", 0)
    assert np.array_equal(same, noise) and said.startswith("- not sure")
    with pytest.raises(Fault):
        app.demo.call(noise, "no such prior", 0)
