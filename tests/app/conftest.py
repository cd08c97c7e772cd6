"""A site of made-up priors and its server, and the site of the published ones in Chromium."""

from __future__ import annotations

import functools
import http.server
import shutil
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from priors import random_conditional, random_prior

from restore import zoo
from restore.app import assembly

if TYPE_CHECKING:
    from pages import Visit

    from restore.app.server import Server

# ------------------------------------------------------------------------------------------- a site of made-up priors


@pytest.fixture(scope="module")
def priors(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Folders of a prior, a conditional one for dark on light images, one without a graph, and two damaged ones."""
    parent = tmp_path_factory.mktemp("models")
    conditional = random_conditional()
    dark = replace(conditional, pixel_means=torch.full_like(conditional.pixel_means, 0.9))
    folders = []
    plain = {name: random_prior() for name in ("told", "bare", "bad", "worse")}
    for name, prior in (plain | {"seer": dark}).items():
        zoo.save(parent / name, prior, f"# {name}\n")
        folders.append(parent / name)
        if name != "bare":
            # Nobody runs it here.
            shutil.copy(Path(__file__).parents[2] / "models" / "tap-mnist" / zoo.GRAPH, parent / name)
    (parent / "bad" / zoo.WEIGHTS).write_bytes(b"no safetensors")
    (parent / "worse" / zoo.GRAPH).write_bytes(b"no graph")
    return folders


@pytest.fixture(scope="module")
def listed(priors: list[Path]) -> dict[Path, dict[str, Any]]:
    """The facts about the priors that can be used."""
    zoo.leave_out.cache_clear()
    with pytest.warns(UserWarning) as told:
        result = assembly.usable(priors)
    bad, worse = (str(warning.message) for warning in told)
    assert "bad/weights.safetensors" in bad and "worse/solver.onnx" in worse
    return result


@pytest.fixture(scope="module")
def site(listed: dict[Path, dict[str, Any]]) -> dict[str, bytes]:
    return assembly.page(listed.values(), served=True)


@pytest.fixture(scope="module")
def server(site: dict[str, bytes]) -> Iterator[Server]:
    """The page of the made-up priors, restored by published ones."""
    from serving import serving

    with serving(site) as running:
        yield running


# --------------------------------------------------------------------------------------- published priors in Chromium
# What these import skips the tests of a machine without a browser, and only those.


@pytest.fixture(scope="session")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The page as static files in a folder of any web server."""
    from pages import FILES, PUBLISHED

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    root = tmp_path_factory.mktemp("root")
    assembly.write(PUBLISHED, FILES, root / "deep" / "page")
    handler = functools.partial(Handler, directory=root)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_address[1]}/deep/page/"
        running.shutdown()


@pytest.fixture(scope="session")
def served_url() -> Iterator[str]:
    """The page by our server."""
    from pages import PUBLISHED
    from serving import serving

    with serving(assembly.page(assembly.usable(PUBLISHED).values(), served=True)) as running:
        yield running.url


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    from pages import CHROMIUM, PATIENCE, QUIET, sync_api

    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=list(QUIET), timeout=PATIENCE)
        yield chromium
        chromium.close()


def _visit(browser: Any, url: str) -> Iterator[Visit]:
    from pages import Visit

    visit = Visit(browser, url)
    yield visit
    visit.context.close()


@pytest.fixture(scope="session")
def window(browser: Any, url: str) -> Iterator[Visit]:
    """A visit for `visit`: half of the time that one takes is the browser's own, for a window and its processes."""
    yield from _visit(browser, url)


@pytest.fixture
def visit(window: Visit, url: str) -> Iterator[Visit]:
    """A page just loaded, of which the browser must have nothing to complain: no breach of the policy, no error."""
    # From elsewhere, so that nothing that was filled in is kept.
    window.page.goto("about:blank")
    window.page.goto(url)
    window.wait_for("Ready.")
    yield window
    assert window.complaints == []


@pytest.fixture
def served(browser: Any, served_url: str) -> Iterator[Visit]:
    """A page of our server."""
    for visit in _visit(browser, served_url):
        yield visit
        assert visit.complaints == []


@pytest.fixture(scope="session")
def reader(browser: Any, url: str) -> Iterator[Visit]:
    """A visit for tests that only call the page's modules."""
    yield from _visit(browser, url)


@pytest.fixture
def guest(reader: Visit) -> Iterator[Visit]:
    """As `visit`, for tests that leave no trace but an image, p and a result: with a digit open where others were."""
    from pages import ASSETS, upload

    upload(reader, "digit.png", (ASSETS / "digit.png").read_bytes())
    reader.wait_for("digit.png is open.")
    yield reader
    assert reader.complaints == []
